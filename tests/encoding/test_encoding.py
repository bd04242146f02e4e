"""`Encoding`: the columns that a model is told, which graphs it refuses, and what is saved."""

import json
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops import Graphs, LookHopsError
from lookhops.encoding import Encoding
from strategies import graph_sets


@given(graph_sets())
def test_columns_are_the_attributes_and_the_one_hot_labels(graphs: Graphs):
    encoding = Encoding.fit(graphs)
    found = encoding.columns(graphs)
    assert found.shape == (graphs.num_nodes, encoding.width)
    torch.testing.assert_close(found, graphs.x.float())


@given(graph_sets(), st.data())
def test_columns_of_chosen_nodes(graphs: Graphs, data: st.DataObject):
    encoding = Encoding.fit(graphs)
    some = st.lists(st.integers(0, graphs.num_nodes - 1)) if graphs.num_nodes else st.just([])
    node = torch.tensor(data.draw(some), dtype=torch.long)
    found = encoding.columns(graphs, node, torch.float64)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, encoding.columns(graphs, dtype=torch.float64)[node])


def labelled(*sizes: int, name: str = "mine", featuriser: str = "tu") -> Graphs:
    return Graphs.from_edges(
        torch.tensor([0]),
        torch.tensor([1]),
        torch.tensor([2]),
        labels=torch.zeros(2, len(sizes), dtype=torch.long) if sizes else None,
        label_sizes=sizes,
        name=name,
        featuriser=featuriser,
    )


def test_nodes_without_features_are_told_as_ones():
    graphs = labelled()
    encoding = Encoding.fit(graphs)
    assert encoding.width == 1
    assert encoding.columns(graphs).tolist() == [[1.0], [1.0]]
    assert encoding.columns(graphs, torch.tensor([1])).tolist() == [[1.0]]


def test_graphs_with_other_features_are_refused():
    encoding = Encoding.fit(labelled(3, 1))
    encoding.check(labelled(3, 1))
    encoding.check(labelled(4, featuriser=""))  # as many features, made by nobody knows what
    with pytest.raises(LookHopsError, match=r"^yours: has 5 features a node; .* mine, which has 4"):
        encoding.check(labelled(5, name="yours"))
    with pytest.raises(LookHopsError, match=r"labels take \[2, 2\] .* they take \[3, 1\]"):
        encoding.check(labelled(2, 2))
    with pytest.raises(LookHopsError, match=r"made by 'molecules-1'; .* made by 'tu'"):
        encoding.check(replace(labelled(3, 1), featuriser="molecules-1"))


def test_what_is_saved_is_read_again():
    encoding = Encoding.fit(labelled(3, 1))
    saved = json.loads(json.dumps(encoding.to_dict() | {"fingerprint": "of the data"}))
    assert Encoding.from_dict(saved) == encoding

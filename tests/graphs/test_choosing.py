"""Choosing graphs and joining sets against the same of Python lists."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops import Graphs, LookHopsError
from lookhops.graphs import concatenate
from lookhops.graphs.features import Features
from strategies import graph_sets, unpacked


def path(**features: torch.Tensor) -> Graphs:
    return Graphs.from_edges(torch.tensor([0]), torch.tensor([1]), torch.tensor([2]), **features)


@given(graph_sets(), st.data())
def test_select_is_choosing_from_a_list(graphs: Graphs, data: st.DataObject):
    whole = unpacked(graphs)
    numbers = st.lists(st.integers(0, max(len(graphs) - 1, 0)), max_size=6 if len(graphs) else 0)
    index = data.draw(numbers)
    assert unpacked(graphs.select(index)) == [whole[i] for i in index]
    assert unpacked(graphs.select(np.array(index, dtype=np.int32))) == [whole[i] for i in index]
    mask = data.draw(st.lists(st.booleans(), min_size=len(graphs), max_size=len(graphs)))
    chosen = graphs.select(torch.tensor(mask, dtype=torch.bool))
    assert unpacked(chosen) == [graph for graph, keep in zip(whole, mask, strict=True) if keep]
    assert unpacked(graphs[::-1]) == whole[::-1]
    assert [unpacked(one)[0] for one in graphs] == whole
    if len(graphs):
        assert unpacked(graphs[-1]) == whole[-1:]
        assert graphs.select(index).nodes.label_values == graphs.nodes.label_values


@given(graph_sets(), st.integers(1, 4), st.booleans())
def test_batches_hold_every_graph_once(graphs: Graphs, size: int, shuffle: bool):
    generator = torch.Generator().manual_seed(3)
    batches = list(graphs.batches(size, shuffle, generator))
    order = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(3))
    order = order if shuffle else torch.arange(len(graphs))
    whole = unpacked(graphs, columns=False)
    assert [g for b in batches for g in unpacked(b)] == [whole[i] for i in order.tolist()]
    assert all(len(batch) == size for batch in batches[:-1])


@pytest.mark.parametrize(
    ("index", "named"),
    [
        ([2], r"\b2\b"),
        ([-3], "-3"),
        ([0.5], "mask"),
        ([[0]], "mask"),
        ([True], r"mask.*\b2\b"),
        (torch.tensor([True, False, True]), r"mask.*\b2\b"),
    ],
)
def test_what_cannot_be_chosen_is_refused(index: Any, named: str):
    one = path()
    with pytest.raises(LookHopsError, match=named):
        concatenate([one, one]).select(index)


@given(graph_sets(), st.data())
def test_concatenated_sets_are_joined_lists(graphs: Graphs, data: st.DataObject):
    """With all their features, of nodes and of edges."""
    cut = data.draw(st.integers(0, len(graphs)))
    parts = [graphs[cut:], graphs[:cut], graphs]
    joined = concatenate(parts)
    assert unpacked(joined, columns=False) == [
        graph for part in parts for graph in unpacked(part, columns=False)
    ]
    assert joined.is_undirected == graphs.is_undirected
    if graphs.node_ids is None:
        assert joined.node_ids is None
    else:
        ids = graphs.node_ids.tolist()
        first = int(graphs.node_ptr[cut])
        assert joined.node_ids.tolist() == [*ids[first:], *ids[:first], *ids]
        assert concatenate([replace(graphs, node_ids=None), graphs]).node_ids is None


def test_sets_with_other_features_are_refused():
    with pytest.raises(LookHopsError, match="nodes"):
        concatenate([path(), path(nodes=Features(numbers=torch.zeros(2, 1)))])
    with pytest.raises(LookHopsError, match="edges"):
        concatenate([path(), path(edges=Features(numbers=torch.zeros(1, 2)))])
    labels = torch.zeros(2, 1, dtype=torch.long)
    roles = [path(nodes=Features(labels=labels, label_values=[[role]])) for role in ("old", "new")]
    with pytest.raises(LookHopsError, match="nodes"):
        concatenate(roles)

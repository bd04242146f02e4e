"""`concatenate` against joining lists."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops import Graphs, LookHopsError
from lookhops.graphs import concatenate
from strategies import graph_sets, unpacked


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


def path(**features: torch.Tensor) -> Graphs:
    return Graphs.from_edges(torch.tensor([0]), torch.tensor([1]), torch.tensor([2]), **features)


def test_sets_with_other_features_are_refused():
    with pytest.raises(LookHopsError, match="1 features a node and 0 an edge"):
        concatenate([path(), path(attributes=torch.zeros(2, 1))])
    with pytest.raises(LookHopsError, match="0 features a node and 2 an edge"):
        concatenate([path(), path(edge_attributes=torch.zeros(1, 2))])

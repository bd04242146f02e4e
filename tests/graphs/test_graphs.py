"""`Graphs`: what is in a set, on any device."""

import pytest
import torch
from hypothesis import given

from lookhops import Graphs
from strategies import graph_sets, two_graphs, unpacked


def test_what_is_in_a_small_set():
    graphs = two_graphs()
    assert (len(graphs), graphs.num_nodes, graphs.num_edges) == (2, 4, 5)
    assert graphs.num_undirected_edges == 3
    assert not graphs.is_undirected
    assert graphs.num_features == 3
    assert graphs.num_classes == 2
    assert graphs.row_ptr.tolist() == [0, 1, 3, 5, 5]
    assert graphs.source.tolist() == [1, 0, 2, 0, 1]
    assert graphs.target.tolist() == [0, 1, 1, 2, 2]
    assert graphs.batch.tolist() == [0, 0, 0, 1]
    assert graphs.edge_attr is not None
    assert graphs.edge_attr.flatten().tolist() == [2, 1, 4, 5, 3]
    assert graphs.x.tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert graphs.nodes.labels is not None
    assert graphs.nodes.labels.dtype == torch.uint8


def test_a_set_without_features_shows_a_model_ones():
    graphs = Graphs.from_edges(torch.tensor([0]), torch.tensor([1]), torch.tensor([2]))
    assert graphs.num_features == 0
    assert graphs.x.tolist() == [[1.0], [1.0]]
    assert graphs.edge_attr is None


def test_the_fingerprint_is_of_the_content():
    graphs = two_graphs()
    assert graphs.fingerprint == two_graphs().fingerprint
    assert graphs.fingerprint != graphs[[1, 0]].fingerprint


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@given(graph_sets())
def test_on_the_device_everything_is_the_same(graphs: Graphs):
    there = graphs.to("cuda")
    index = list(range(len(graphs)))[::-1]
    assert there.select(index).device.type == "cuda"
    assert unpacked(there.select(index)) == unpacked(graphs.select(index))
    assert unpacked(there.undirected()) == unpacked(graphs.undirected())
    assert there.is_undirected == graphs.is_undirected
    assert there.fingerprint == graphs.fingerprint
    batches = [g for batch in there.batches(2) for g in unpacked(batch)]
    assert batches == unpacked(graphs, columns=False)

"""kInfo against loops over nodes, and the ways it is computed against each other."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from naive_information import kinfo as naive_kinfo
from naive_information import neighbourhoods
from random_sets import random_graphs

from lookhops import Graphs, LookHopsError
from lookhops.graphs.features import Features, default_values
from lookhops.neighbourhoods import kinfo, reach
from strategies import graph_sets

KINDS = ("walk", "ball")


@given(graph_sets(), st.sampled_from(KINDS), st.integers(1, 70))
def test_equals_a_loop_over_nodes(graphs: Graphs, kind: str, block_size: int):
    x = graphs.x
    if not len(x) or torch.all(x == x[0]):
        with pytest.raises(LookHopsError):
            kinfo(graphs, 4, kind)
        return
    found = kinfo(graphs, 4, kind, block_size)
    np.testing.assert_allclose(found, naive_kinfo(graphs, 4, kind), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("features", ["labels", "attributes", "flags", "all"])
@pytest.mark.parametrize("directed", [False, True])
def test_on_larger_graphs(kind: str, features: str, directed: bool):
    graphs = random_graphs(1, features=features, directed=directed)
    found = kinfo(graphs, 5, kind, block_size=100)
    np.testing.assert_allclose(found, naive_kinfo(graphs, 5, kind), atol=1e-11)


def test_a_graph_wider_than_a_panel(monkeypatch: pytest.MonkeyPatch):
    graphs = random_graphs(2, graphs=3, most_nodes=500, features="all")
    whole = kinfo(graphs, 4)
    monkeypatch.setattr(reach, "PANEL_BYTES", 1)
    monkeypatch.setattr(reach, "UNPACKED", 3000)
    np.testing.assert_allclose(kinfo(graphs, 4), whole, atol=1e-12)


def test_without_numpy_2(monkeypatch: pytest.MonkeyPatch):
    graphs = random_graphs(3)
    whole = kinfo(graphs, 4)
    monkeypatch.delattr(np, "bitwise_count", raising=False)
    assert np.array_equal(kinfo(graphs, 4), whole)


def test_directed_edges_carry_information_along_the_arrow():
    # 0 -> 1 -> 2: after two steps only node 2 sees anything, and that is node 0.
    path = Graphs.from_edges(
        torch.tensor([0, 1]),
        torch.tensor([1, 2]),
        torch.tensor([3]),
        nodes=Features(labels=torch.tensor([[0], [1], [1]])),
    )
    assert neighbourhoods(path, 2, "walk") == [set(), set(), {0}]
    assert neighbourhoods(path, 2, "ball") == [{0}, {0, 1}, {0, 1, 2}]
    for kind in KINDS:
        np.testing.assert_allclose(kinfo(path, 3, kind), naive_kinfo(path, 3, kind), atol=1e-12)
    assert kinfo(path, 3)[2].max() == 0  # no walk of three steps


def test_edge_weights_and_repeated_edges_do_not_matter():
    graphs = random_graphs(4)
    weights = torch.rand(graphs.num_edges, 1)
    assert np.array_equal(
        kinfo(replace(graphs, edges=replace(graphs.edges, numbers=weights)), 3), kinfo(graphs, 3)
    )
    twice = Graphs.from_edges(
        graphs.source.repeat(2).long(),
        graphs.target.repeat(2).long(),
        graphs.nodes_per_graph,
        nodes=Features(
            labels=graphs.nodes.labels, label_values=default_values(graphs.nodes.label_sizes)
        ),
    )
    assert np.array_equal(kinfo(twice, 3), kinfo(graphs, 3))

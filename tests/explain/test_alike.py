"""Parts that cannot be told apart have equal shares; nothing is lost, nothing else is mixed."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops import Graphs
from lookhops.explain import attribute
from lookhops.explain.spreading import alike, means_of_kinds
from lookhops.graphs.features import Features
from lookhops.sources.molecules import from_smiles
from strategies import graph_sets


def test_the_atoms_and_bonds_of_benzene_have_equal_shares(of_classes):
    found = attribute(of_classes, from_smiles(["c1ccccc1", "Cc1ccccc1"]))
    np.testing.assert_allclose(found[0].node, found[0].node[0])
    np.testing.assert_allclose(found[0].edge, found[0].edge[0])
    node = found[1].node
    np.testing.assert_allclose(node[[2, 3]], node[[6, 5]])
    assert len(set(np.round(node, 9))) > 3


@given(graph_sets(), st.integers(0, 2**16))
def test_means_keep_the_sum_of_each_graph(graphs, seed):
    draws = np.random.default_rng(seed)
    (kind, _), graph = alike(graphs, 4), graphs.batch.long()
    shares = torch.from_numpy(draws.normal(size=(2, graphs.num_nodes)))
    one, two = (
        torch.zeros(2, len(graphs), dtype=torch.float64).index_add(1, graph, own)
        for own in (shares, means_of_kinds(shares, kind))
    )
    torch.testing.assert_close(one, two)


def test_numbers_and_kinds_of_edges_tell_nodes_apart():
    ends = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    plain = {"source": ends[0], "target": ends[1], "nodes_per_graph": torch.tensor([3])}
    numbers = torch.tensor([[0.1], [0.5], [0.1000001]])
    kinds = torch.tensor([[0], [0], [1], [1]])
    for features, apart in (
        ({}, False),
        ({"nodes": Features(numbers)}, True),
        ({"edges": Features(labels=kinds)}, True),
    ):
        node, edge = alike(Graphs.from_edges(**plain, **features), 3)
        assert (node[0] != node[2]) == apart
        assert (edge[0] != edge[3]) == apart

"""Shares of neighbourhoods and totals reach the nodes that make them up, and none is lost."""

import networkx as nx
import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops import Graphs
from lookhops.encoding import Encoding
from lookhops.encoding.columns import Columns
from lookhops.explain import attribute
from lookhops.explain.spreading import Spreading, alike, means_of_kinds, over_neighbourhoods
from lookhops.graphs.features import Features
from lookhops.neighbourhoods.totals import graph_totals, spread_totals
from lookhops.sources.hop_tasks import hop_task
from lookhops.sources.molecules import from_smiles
from strategies import graph_sets


def test_a_neighbourhood_is_shared_by_the_nodes_in_it():
    graphs = hop_task(2, 4)
    shares = torch.rand(graphs.num_nodes, 3, dtype=torch.float64)
    wanted = np.zeros(graphs.num_nodes)
    first = 0
    for graph in graphs.to_networkx():
        for node in graph:
            for hops in range(3):
                ball = nx.single_source_shortest_path_length(graph, node, cutoff=hops)
                for other in ball:
                    wanted[first + other] += float(shares[first + node, hops]) / len(ball)
        first += len(graph)
    np.testing.assert_allclose(over_neighbourhoods(graphs, shares).numpy(), wanted)


@given(graph_sets(), st.integers(0, 2**16))
def test_shares_of_totals_are_handed_on_whole(graphs, seed):
    totals = graph_totals(graphs)
    shares = torch.from_numpy(np.random.default_rng(seed).normal(size=totals.shape))
    mean = totals.nanmean(0).nan_to_num(0.0)
    node, edge, whole = spread_totals(graphs, shares, mean)
    graph = graphs.batch.long()
    found = whole.index_add(0, graph, node).index_add(0, graph[graphs.target.long()], edge)
    torch.testing.assert_close(found, shares.sum(1), atol=1e-6, rtol=1e-6)


def test_a_count_goes_to_the_nodes_that_are_counted():
    graphs = hop_task(1, 3)
    totals = graph_totals(graphs)
    shares = torch.zeros_like(totals)
    first = 2 + 2 * 7  # sizes and degrees come before the labels
    shares[:, first + 1] = 6.0  # marked nodes, of which every graph has two
    node, edge, whole = spread_totals(graphs, shares, totals.mean(0))
    marked = graphs.nodes.labels[:, 0] == 1
    assert node[marked].tolist() == [3.0] * 6
    assert not node[~marked].any()
    assert not edge.any()
    assert not whole.any()


def test_what_a_graph_has_too_few_of_is_carried_by_no_node():
    graphs = hop_task(1, 3)
    totals = graph_totals(graphs)
    shares = torch.zeros_like(totals)
    first = 2 + 2 * 7
    shares[:, first + 1] = 6.0  # the count of marked nodes: two, where training graphs had more
    node, _, whole = spread_totals(graphs, shares, totals.mean(0) + 0.1)
    assert not node.any()
    assert whole.tolist() == [6.0] * 3


def test_shares_of_descriptors_reach_their_atoms():
    graphs = from_smiles(["Cc1ccccc1", "CCCC", "O"])
    names = graphs.whole.number_names
    shares = torch.from_numpy(np.random.default_rng(0).normal(size=(3, len(names))))
    mean = torch.full((len(names),), 0.7, dtype=torch.float64)
    spreading = Spreading(graphs, Encoding.fit(graphs))
    node, left, whole = spreading.of_features(shares, mean)
    total = (left.sum(1) + whole).index_add(0, graphs.batch.long(), node)
    torch.testing.assert_close(total, shares.sum(1))
    kept = {name for name, own in zip(names, left.T, strict=True) if own.any()}
    assert {"FractionCSP3", "fr_benzene"} <= kept  # no sum, or nothing to hand on
    assert not kept & {"MolLogP", "MolMR", "HeavyAtomCount"}
    rings = names.index("fr_benzene")
    alone = torch.zeros_like(shares)
    alone[:, rings] = 1.0
    node, left, whole = spreading.of_features(alone, mean)
    np.testing.assert_allclose(node[:7], [0] + [1 / 6 / 0.3] * 6)
    np.testing.assert_allclose(whole, [-0.7 / 0.3, 0, 0])
    assert not node[7:].any()
    assert left[:, rings].tolist() == [0, 1, 1]
    alone = torch.zeros_like(shares)
    alone[:, names.index("HeavyAtomCount")] = 1.0
    node, left, whole = spreading.of_features(alone, mean)
    np.testing.assert_allclose(node, [1 / 7] * 7 + [1 / 4] * 4 + [1])
    assert not left.any()
    assert not whole.any()


def test_graphs_that_are_no_molecules_keep_their_features():
    graphs = hop_task(1, 3)
    shares = torch.ones(3, 2, dtype=torch.float64)
    encoding = Encoding("", "", Columns(), whole=Columns(("TPSA", "fr_nitro")))
    node, left, whole = Spreading(graphs, encoding).of_features(shares, torch.zeros(2))
    assert not node.any()
    assert not whole.any()
    assert torch.equal(left, shares)


# -------------------------------------------------------------------- parts that look alike


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

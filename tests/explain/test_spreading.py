"""Shares of neighbourhoods and totals reach the nodes that make them up, and none is lost."""

import networkx as nx
import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops.explain.spreading import over_neighbourhoods
from lookhops.neighbourhoods.totals import graph_totals, spread_totals
from lookhops.sources.hop_tasks import hop_task
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

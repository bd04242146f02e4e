"""Graphs to be drawn."""

import networkx as nx
import numpy as np

from lookhops.explain.drawing.sketch import DrawnGraph


def test_edges_among_some_nodes_are_those_of_the_subgraph():
    graph = nx.gnm_random_graph(20, 60, seed=1)
    edges = np.array([sorted(edge) for edge in graph.edges])
    nodes = np.random.default_rng(0).permutation(20)[:9]
    found, inside = DrawnGraph(edges).edges_among(nodes, 20)
    expected = {frozenset(edge) for edge in graph.subgraph(nodes.tolist()).edges}
    assert {frozenset(edge) for edge in nodes[found].tolist()} == expected
    assert (nodes[found] == edges[inside]).all()
    assert len(DrawnGraph(edges).edges_among(nodes[:0], 20)[0]) == 0

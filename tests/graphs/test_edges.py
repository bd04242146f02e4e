"""Edges in both directions, and block by block."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops import Graphs
from lookhops.graphs import choosing
from strategies import graph_sets, unpacked


@given(graph_sets())
def test_undirected_is_every_edge_both_ways_once(graphs: Graphs):
    both = graphs.undirected()
    assert both.is_undirected
    for before, after in zip(unpacked(graphs), unpacked(both), strict=True):
        first: dict[tuple[int, int], object] = {}
        for turned in (False, True):
            for source, target, feature in before["edges"]:
                pair = (target, source) if turned else (source, target)
                first.setdefault(pair, feature)
        expected = sorted((t, s, f) for (s, t), f in first.items())
        assert [(t, s, f) for s, t, f in after["edges"]] == expected
        assert before["x"] == after["x"]
    pairs = {
        (number, *sorted(edge[:2]))
        for number, graph in enumerate(unpacked(graphs))
        for edge in graph["edges"]
    }
    assert graphs.num_undirected_edges == len(pairs)
    assert torch.equal(both.undirected().source, both.source)


@given(graph_sets(), st.integers(1, 40))
def test_blocks_are_all_graphs_in_their_order_and_bounded(graphs, most):
    ranges = list(choosing.graph_ranges(graphs, most))
    assert [number for span in ranges for number in range(*span)] == list(range(len(graphs)))
    for first, after in ranges:
        part = graphs[first:after]
        assert after == first + 1 or part.num_nodes + part.num_edges <= most


@given(graph_sets(), st.integers(1, 40))
def test_edges_block_by_block_are_all_edges(graphs, most):
    nodes = edges = 0
    for block in choosing.graph_blocks(graphs, most):
        # Nodes count from the first of the block.
        here = slice(edges, edges + block.num_edges)
        assert torch.equal(graphs.source[here], block.source + nodes)
        assert torch.equal(graphs.target[here], block.target + nodes)
        nodes, edges = nodes + block.num_nodes, here.stop
    assert (nodes, edges) == (graphs.num_nodes, graphs.num_edges)


@given(graph_sets())
def test_what_holds_of_every_block_holds_of_the_set(graphs):
    pairs = list(zip(graphs.source.tolist(), graphs.target.tolist(), strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing.graph_blocks, "__defaults__", (7,))
        assert graphs.is_undirected == (sorted(pairs) == sorted((t, s) for s, t in pairs))
        assert graphs.num_undirected_edges == len({tuple(sorted(pair)) for pair in pairs})
        small = graphs.is_symmetric
    assert small == replace(graphs).is_symmetric

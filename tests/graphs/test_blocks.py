"""Blocks of graphs."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops.graphs import blocks
from strategies import graph_sets


@given(graph_sets(), st.integers(1, 40))
def test_blocks_are_all_graphs_in_their_order_and_bounded(graphs, most):
    ranges = list(blocks.graph_ranges(graphs, most))
    assert [number for span in ranges for number in range(*span)] == list(range(len(graphs)))
    for first, after in ranges:
        part = graphs[first:after]
        assert after == first + 1 or part.num_nodes + part.num_edges <= most


@given(graph_sets(), st.integers(1, 40))
def test_edges_block_by_block_are_all_edges(graphs, most):
    found = []
    for block in blocks.edge_blocks(graphs, most):
        # Nodes count from the first of the block: as far as all of its edges moved.
        shift = graphs.source[block.edges] - block.source
        assert torch.equal(graphs.target[block.edges] - block.target, shift)
        assert not len(block.source) or int(block.source.max()) < block.num_nodes
        found += range(block.edges.start, block.edges.stop)
    assert found == list(range(graphs.num_edges))


@given(graph_sets())
def test_what_holds_of_every_block_holds_of_the_set(graphs):
    pairs = list(zip(graphs.source.tolist(), graphs.target.tolist(), strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks.edge_blocks, "__defaults__", (7,))
        assert graphs.is_undirected == (sorted(pairs) == sorted((t, s) for s, t in pairs))
        assert graphs.num_undirected_edges == len({tuple(sorted(pair)) for pair in pairs})
        small = graphs.is_symmetric
    assert small == replace(graphs).is_symmetric

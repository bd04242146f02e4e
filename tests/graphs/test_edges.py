"""Edges in both directions."""

import torch
from hypothesis import given

from lookhops import Graphs
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

"""Pairs of nodes against a search from every node."""

from collections import Counter

import networkx as nx
import numpy as np
import torch
from hypothesis import given, settings

from lookhops.learners.kernels import GraphRows, Kernels
from lookhops.neighbourhoods import identities
from lookhops.neighbourhoods.counts import pair_codes
from strategies import graph_sets

MOST = 3


def pairs_of(graphs, number):
    """How often a graph has two labels so many hops apart."""
    start, stop = graphs.node_ptr[number].item(), graphs.node_ptr[number + 1].item()
    label = identities(graphs, 0)[:, 0].tolist()
    joined = nx.Graph(zip(graphs.source.tolist(), graphs.target.tolist(), strict=True))
    joined.add_nodes_from(range(start, stop))
    found = Counter()
    for i in range(start, stop):
        for j, distance in nx.single_source_shortest_path_length(joined, i, MOST).items():
            if i < j:
                found[tuple(sorted((label[i], label[j]))), distance] += 1
    return found


@settings(max_examples=40, deadline=None)
@given(graph_sets(min_graphs=1))
def test_pairs_are_counted_and_compared_as_their_definition_says(graphs):
    counts = [pairs_of(graphs, number) for number in range(len(graphs))]
    _, ptr = pair_codes(graphs, identities(graphs, 0)[:, 0], MOST)
    assert ptr.diff().tolist() == [sum(own.values()) for own in counts]
    rows = GraphRows.of(graphs, 1, {}, pairs=MOST)
    kernels = Kernels(rows, {})
    assert kernels.names[-1] == "pairs"
    expected = np.ones((len(graphs), len(graphs)))
    for a, first in enumerate(counts):
        for b, second in enumerate(counts):
            if either := (first | second).total():
                expected[a, b] = (first & second).total() / either
    np.testing.assert_allclose(kernels.full(rows)[-1].numpy(), expected, atol=1e-12)
    index = torch.arange(len(graphs)).flip(0)
    np.testing.assert_allclose(
        kernels.full(rows.select(index))[-1].numpy(), expected[::-1], atol=1e-12
    )

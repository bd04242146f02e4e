"""Identities of shells: what they tell apart, and that nothing else changes them."""

import pytest
import torch
from hypothesis import given

from lookhops import Graphs, LookHopsError
from lookhops.graphs.features import Features
from lookhops.neighbourhoods import identities, shells
from naive_wl import naive_shells, same_partition
from strategies import graph_sets

HOPS = 4


def found(graphs: Graphs, hops: int = HOPS) -> torch.Tensor:
    return shells(graphs, identities(graphs, 0)[:, 0], hops)


@given(graph_sets(repeats=False))
def test_the_partition_is_that_of_naive_walks(graphs):
    ours = found(graphs)
    assert ours.shape == (graphs.num_nodes, HOPS)
    for hop, theirs in enumerate(naive_shells(graphs, HOPS)):
        assert same_partition(ours[:, hop].tolist(), theirs)


def test_what_lies_between_does_not_matter():
    # Two paths of three nodes: the ends see each other two hops away, whatever the middle.
    pairs = torch.tensor([(0, 1), (1, 2), (3, 4), (4, 5)])
    source, target = torch.cat((pairs, pairs.flip(1))).T
    labels = torch.tensor([[0], [1], [0], [0], [2], [0]])
    graphs = Graphs.from_edges(source, target, torch.tensor([3, 3]), nodes=Features(labels=labels))
    ours, full = found(graphs, 2), identities(graphs, 2)
    assert ours[0, 1] == ours[3, 1]
    assert ours[0, 0] != ours[3, 0]
    assert full[0, 2] != full[3, 2]


@given(graph_sets())
def test_a_graph_has_the_same_alone(graphs):
    together = found(graphs)
    alone = [found(graphs.select([i])) for i in range(len(graphs))]
    assert torch.equal(together, torch.cat(alone) if alone else together)


def test_hops_below_zero(tasks):
    with pytest.raises(LookHopsError, match="-1"):
        found(tasks, -1)

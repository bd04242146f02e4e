"""Identities of neighbourhoods: what they tell apart, and that nothing else changes them."""

from dataclasses import replace
from itertools import combinations_with_replacement

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops import Graphs, LookHopsError
from lookhops.core.hashing import mix
from lookhops.graphs.features import Features
from lookhops.neighbourhoods import Bins, identities, shells
from naive_wl import naive_colours, naive_shells, same_partition
from strategies import graph_sets, renumbered

HOPS = 3


def triangle_with_tail(edge_labels=True) -> Graphs:
    """Nodes 0, 1, 2 in a ring, 3 hanging on 2."""
    pairs = torch.tensor([(0, 1), (1, 2), (2, 0), (2, 3)])
    source, target = torch.cat((pairs, pairs.flip(1))).T
    labels = torch.tensor([[0], [1], [0], [2]])
    kinds = torch.tensor([[0], [1], [0], [2]] * 2) if edge_labels else None
    return Graphs.from_edges(
        source,
        target,
        torch.tensor([4]),
        nodes=Features(labels=labels),
        edges=Features(labels=kinds),
    )


@given(graph_sets())
def test_the_partition_is_that_of_a_naive_test(graphs):
    ours = identities(graphs, HOPS)
    assert ours.shape == (graphs.num_nodes, HOPS + 1)
    for hop, theirs in enumerate(naive_colours(graphs, HOPS)):
        assert same_partition(ours[:, hop].tolist(), theirs)


@given(st.integers(0, 2**16), st.integers(2, 12), st.floats(0.1, 0.6))
def test_the_partition_on_larger_random_graphs(seed, size, density):
    made = [nx.gnp_random_graph(size, density, seed=seed + i) for i in range(8)]
    graphs = Graphs.from_networkx(made)
    ours = identities(graphs, 4)
    for hop, theirs in enumerate(naive_colours(graphs, 4)):
        assert same_partition(ours[:, hop].tolist(), theirs)


@given(graph_sets(min_graphs=1), st.data())
def test_order_of_nodes_and_batch_do_not_matter(graphs, data):
    whole = identities(graphs, HOPS)
    number = data.draw(st.integers(0, len(graphs) - 1))
    alone = graphs[number]
    first, end = graphs.node_ptr[number : number + 2].tolist()
    assert torch.equal(identities(alone, HOPS), whole[first:end])
    order = torch.tensor(data.draw(st.permutations(range(end - first))), dtype=torch.long)
    assert torch.equal(identities(renumbered(alone, order), HOPS), whole[first:end][order])


def test_graphs_that_the_test_tells_apart_differ_from_then_on():
    """Paths of 6 and 7 nodes: an end 3 hops away shows in the degree there, so after 4 hops."""
    six, seven = (identities(Graphs.from_networkx([nx.path_graph(n)]), 4) for n in (6, 7))
    same = [bool((six[:, hop, None] == seven[None, :, hop]).any(1).all()) for hop in range(5)]
    assert same == [True, True, True, True, False]
    # Two rings of three and one of six: no number of hops tells them apart.
    rings = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3)), nx.cycle_graph(6)
    two, one = (identities(Graphs.from_networkx([ring]), 5) for ring in rings)
    assert torch.equal(two, one)


def test_labels_bins_and_edge_labels_count():
    plain = triangle_with_tail(edge_labels=False)
    bonds = triangle_with_tail()
    assert torch.equal(identities(plain, 2), identities(bonds, 2, edge_labels=False))
    assert torch.equal(identities(plain, 2)[:, 0], identities(bonds, 2)[:, 0])
    assert not (identities(plain, 2) == identities(bonds, 2))[:, 1:].any()
    other = replace(bonds, edges=replace(bonds.edges, labels=bonds.edges.labels.clone().fill_(1)))
    changed = identities(other, 1)[:, 1] != identities(bonds, 1)[:, 1]
    assert changed.all()
    bins = torch.tensor([[0], [0], [0], [1]])
    binned = identities(plain, 1, bins=bins)
    assert same_partition(binned[:, 1].tolist(), naive_colours(plain, 1, bins.tolist())[1])
    assert not torch.equal(binned, identities(plain, 1, bins=1 - bins))


def test_edges_are_looked_along_in_their_direction():
    graph = Graphs.from_edges(torch.tensor([0]), torch.tensor([1]), torch.tensor([2]))
    told = identities(graph, 1)
    assert told[0, 0] == told[1, 0]
    assert told[0, 1] != told[1, 1]


def test_a_graph_never_seen_has_the_identities_of_every_other_machine():
    """Written down once: models are saved with such numbers."""
    assert identities(triangle_with_tail(), 2).tolist() == EXPECTED
    unlabelled = Graphs.from_networkx([nx.path_graph(2)])
    assert identities(unlabelled, 1)[0].tolist() == EXPECTED_UNLABELLED
    # The values that splitmix64 starts with, from the seed 0.
    golden = 0x9E3779B97F4A7C15 - 2**64
    states = torch.tensor([golden, 2 * golden + 2**64])
    drawn = mix(states).numpy().view(np.uint64).tolist()
    assert drawn == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4]


EXPECTED = [
    [5878998237028904013, -4495790121493297871, 6826841873092063893],
    [-4081421820438628083, 3217744726162619450, -6770542493745709437],
    [5878998237028904013, 4009758944109852263, 7662583879732650796],
    [-7622186841133973175, -4174029081424092080, 3278153619693859713],
]
EXPECTED_UNLABELLED = [-7046029254386353131, -3259557677051019279]


def test_collisions_are_as_rare_as_random_numbers_have_them():
    """Stars with 4 leaves of 40 labels: 123,410 different neighbourhoods of the centre."""
    leaves = torch.tensor(list(combinations_with_replacement(range(40), 4)))
    stars = len(leaves)
    centre = torch.arange(stars).repeat_interleave(4) * 5
    leaf = centre + torch.arange(1, 5).repeat(stars)
    labels = torch.cat((torch.zeros(stars, 1, dtype=torch.long), leaves), 1).reshape(-1, 1)
    graphs = Graphs.from_edges(leaf, centre, torch.full((stars,), 5), nodes=Features(labels=labels))
    found = identities(graphs, 1)[::5, 1]
    assert found.unique().numel() == stars
    # Of m random numbers of b bits, about m^2 / 2^(b + 1) pairs are equal: 1.8 for 32 bits, 454 for
    # 24 bits, give or take five standard deviations.
    for shift, bits in ((0, 32), (32, 32), (0, 24), (20, 24), (40, 24)):
        part = (found >> shift) & (2**bits - 1)
        counts = part.unique(return_counts=True)[1]
        pairs = int((counts * (counts - 1) // 2).sum())
        expected = stars**2 / 2 ** (bits + 1)
        assert abs(pairs - expected) < 5 * expected**0.5 + 3


def test_sets_without_anything():
    none = torch.zeros(0, dtype=torch.long)
    assert identities(Graphs.from_edges(none, none, none), 2).shape == (0, 3)
    alone = identities(Graphs.from_edges(none, none, torch.tensor([1, 0, 2])), 2)
    assert (alone == alone[0]).all()
    assert alone[0].unique().numel() == 3
    with pytest.raises(LookHopsError, match="-1"):
        identities(triangle_with_tail(), -1)


# -------------------------------------------------------------------- shells

SHELLS = 4


def shells_of(graphs: Graphs, hops: int = SHELLS) -> torch.Tensor:
    return shells(graphs, identities(graphs, 0)[:, 0], hops)


@given(graph_sets(repeats=False))
def test_the_partition_is_that_of_naive_walks(graphs):
    ours = shells_of(graphs)
    assert ours.shape == (graphs.num_nodes, SHELLS)
    for hop, theirs in enumerate(naive_shells(graphs, SHELLS)):
        assert same_partition(ours[:, hop].tolist(), theirs)


def test_what_lies_between_does_not_matter():
    # Two paths of three nodes: the ends see each other two hops away, whatever the middle.
    pairs = torch.tensor([(0, 1), (1, 2), (3, 4), (4, 5)])
    source, target = torch.cat((pairs, pairs.flip(1))).T
    labels = torch.tensor([[0], [1], [0], [0], [2], [0]])
    graphs = Graphs.from_edges(source, target, torch.tensor([3, 3]), nodes=Features(labels=labels))
    ours, full = shells_of(graphs, 2), identities(graphs, 2)
    assert ours[0, 1] == ours[3, 1]
    assert ours[0, 0] != ours[3, 0]
    assert full[0, 2] != full[3, 2]


@given(graph_sets())
def test_a_graph_has_the_same_alone(graphs):
    together = shells_of(graphs)
    alone = [shells_of(graphs.select([i])) for i in range(len(graphs))]
    assert torch.equal(together, torch.cat(alone) if alone else together)


def test_hops_below_zero(tasks):
    with pytest.raises(LookHopsError, match="-1"):
        shells_of(tasks, -1)


# -------------------------------------------------------------------- bins


def test_bins_hold_about_as_many_values_each():
    values = torch.randn(1000, 2, generator=torch.Generator().manual_seed(0))
    placed = Bins.learn(values, 4)(values)
    for column in placed.T:
        assert column.bincount().tolist() == [250] * 4


def test_values_never_seen_fall_into_the_outer_bins():
    bins = Bins.learn(torch.arange(10.0)[:, None], 5)
    assert bins(torch.tensor([[-100.0], [0.0], [1.9], [2.0], [100.0]])).flatten().tolist() == [
        0,
        0,
        0,
        1,
        4,
    ]


def test_blanks_are_a_bin_of_their_own():
    blank = float("nan")
    values = torch.tensor([[0.0, blank], [blank, 1.0], [1.0, 2.0], [2.0, 3.0], [3.0, blank]])
    bins = Bins.learn(values, 2)
    assert bins(values).tolist() == [[0, 2], [2, 0], [0, 1], [1, 1], [1, 2]]
    assert Bins.learn(values * blank, 2)(values).tolist() == [[0, 1], [1, 0], *[[0, 0]] * 2, [0, 1]]


def test_bins_are_kept():
    bins = Bins.learn(torch.tensor([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0]]), 3)
    again = Bins.from_tensors(bins.tensors())
    assert [edges.tolist() for edges in again.edges] == [[1.0, 2.0], []]


def test_few_different_values_have_few_bins():
    column = torch.tensor([0.0] * 90 + [1.0] * 10)[:, None]
    bins = Bins.learn(column, 4)
    assert bins.edges[0].tolist() == []
    bins = Bins.learn(torch.tensor([[0.0], [0.0], [1.0], [1.0]]), 4)
    assert bins.edges[0].tolist() == [1.0]
    assert Bins.learn(torch.zeros(0, 1), 4)(torch.ones(3, 1)).tolist() == [[0]] * 3

"""A graph alone and in a batch: the same answer, though many of its scores are nearly equal."""

from dataclasses import replace
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import one_hot

from batches import Batch, join, make_batch
from lookhops.nn import HGPSL, GraphBatch, GraphNetwork
from lookhops.nn.registry import CONVOLUTIONS, POOLINGS
from lookhops.ops import Adjacency
from lookhops.ops.contraction import greedy_matching
from lookhops.ops.ranking import nearness, top_of_each

KINDS = 3


@st.composite
def alike(draw: st.DrawFn) -> Batch:
    """A graph whose nodes are alike in many ways: a ring or a comb of few kinds of nodes."""
    size = draw(st.integers(6, 30))
    kind = torch.arange(size) % draw(st.integers(1, KINDS))
    ring = torch.stack((torch.arange(size), (torch.arange(size) + 1) % size))
    if draw(st.booleans()):  # a comb: every node of a chain has a leaf
        leaves = torch.stack((torch.arange(size), torch.arange(size) + size))
        ring = torch.cat((ring[:, :-1], leaves), dim=1)
        kind = kind.repeat(2)
    edges = torch.cat((ring, ring.flip(0)), dim=1)
    order = torch.randperm(edges.shape[1], generator=torch.Generator().manual_seed(size))
    graph = torch.zeros(len(kind), dtype=torch.long)
    return Batch(one_hot(kind, KINDS).float(), edges[:, order], graph, 1)


@pytest.mark.parametrize(("conv", "pool"), list(product(CONVOLUTIONS, POOLINGS)))
@settings(max_examples=2)
@given(one=alike(), seed=st.integers(0, 99))
def test_a_graph_alone_is_answered_as_in_a_batch(conv, pool, one, seed):
    torch.manual_seed(seed)
    edge_ratio = 0.7 if seed % 2 else None
    model = GraphNetwork(KINDS, 2, conv=conv, pool=pool, hidden=32, edge_ratio=edge_ratio)
    before, after = make_batch(seed, (50, 3), KINDS), make_batch(seed + 1, (1, 70), KINDS)
    # Elsewhere, as on another device, sums are rounded otherwise: as if features were a bit off.
    off = replace(one, x=one.x * (1 + noise(len(one.x), 2e-7, seed)[:, None]))
    with torch.inference_mode():
        alone = model.classify(one.level())[0].softmax(-1)
        for batch in (join(before, one, after), join(before, off, after)):
            found = model.classify(batch.level())[0].softmax(-1)
            torch.testing.assert_close(found[2:3], alone, rtol=0, atol=1e-4)


@pytest.mark.parametrize("pool", sorted(set(POOLINGS) - {"asap", "edge"}))  # these choose the first
@settings(max_examples=10)
@given(one=alike(), seed=st.integers(0, 99))
def test_the_order_of_nodes_changes_nothing(pool, one, seed):
    torch.manual_seed(seed)
    edge_ratio = 0.7 if seed % 2 else None
    model = GraphNetwork(KINDS, 2, pool=pool, hidden=32, edge_ratio=edge_ratio)
    order = torch.randperm(len(one.x))
    other = replace(one, x=one.x[order], edge_index=order.argsort()[one.edge_index])
    with torch.inference_mode():
        found, again = (model.classify(each.level())[0].softmax(-1) for each in (one, other))
    torch.testing.assert_close(found, again, rtol=0, atol=1e-4)


def noise(count: int, size: float, seed: int) -> torch.Tensor:
    return size * (2 * torch.rand(count, generator=torch.Generator().manual_seed(seed)) - 1)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-3, 3)), min_size=1, max_size=30),
    st.floats(0.1, 1),
    st.integers(0, 2**16),
)
def test_rounding_does_not_choose_nodes(elements, ratio, seed):
    segment, score = (torch.tensor(part) for part in zip(*elements, strict=True))
    score = score.float()
    chosen = []
    for each in (score, score + noise(len(score), 1e-6, seed)):
        order, kept = top_of_each(each, segment, 4, ratio, size=torch.full_like(score, 3.0))
        chosen.append(sorted(order[kept].tolist()))
    assert chosen[0] == chosen[1]


@pytest.mark.parametrize("scale", [1, 100, 1000])
@given(one=alike(), seed=st.integers(0, 2**16))
def test_rounding_does_not_choose_learnt_edges(scale, one, seed):
    """Nodes that are alike, but for one edge: their scores differ by one, so shares end at zero."""
    torch.manual_seed(seed)
    pool = HGPSL(KINDS, 0.6)
    one = replace(one, x=scale * (one.x @ torch.rand(KINDS, KINDS)))
    off = replace(one, x=one.x * (1 + noise(one.x.numel(), 2e-7, seed).view_as(one.x)))
    exact, other = (pool.answer(batch.level()) for batch in (one, off))
    assert torch.equal(exact.node, other.node)
    assert torch.equal(exact.adjacency.edge_index, other.adjacency.edge_index)
    close = {"rtol": 0, "atol": 1e-5 * scale}
    torch.testing.assert_close(exact.adjacency.weight, other.adjacency.weight, **close)


@pytest.mark.parametrize("back", [-0.99, -0.999])
@given(size=st.integers(6, 30), kinds=st.integers(1, KINDS), seed=st.integers(0, 2**16))
def test_rounding_does_not_choose_nodes_whose_neighbours_cancel(back, size, kinds, seed):
    """A ring's two neighbours, of weights 1 and -0.99, count 100 and -99 times in their mean."""
    ring = torch.stack((torch.arange(size), (torch.arange(size) + 1) % size))
    weight = torch.cat((torch.ones(size), torch.full((size,), back)))
    x = torch.rand(kinds, 8, generator=torch.Generator().manual_seed(seed))
    x = x[torch.arange(size) % kinds]
    kept = []
    for each in (x, x * (1 + noise(x.numel(), 2e-7, seed).view_as(x))):
        *_, perm, _ = HGPSL(8, 0.6)(each, torch.cat((ring, ring.flip(0)), dim=1), weight)
        kept.append(perm.tolist())
    assert kept[0] == kept[1]


@given(st.integers(0, 2**16))
def test_rounding_does_not_choose_edges(seed):
    batch = make_batch(seed, (9, 1, 12), edges_per_node=2)
    adjacency = Adjacency.of(batch.edge_index, len(batch.x))
    rng = torch.Generator().manual_seed(seed)
    score = 0.5 + torch.randint(0, 3, (adjacency.num_edges,), generator=rng) / 2
    exact = greedy_matching(score, adjacency)
    other = greedy_matching(score + noise(len(score), 1e-6, seed), adjacency)
    assert set(exact.tolist()) == set(other.tolist())


def test_edges_that_beat_each_other_in_a_circle_are_matched():
    """Each is a little better than the one before it, which was given first."""
    edges = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
    adjacency = Adjacency.of(edges, 6)
    step = 0.7 * nearness(torch.float32)
    score = (1 + step * torch.arange(6).roll(3))[adjacency.order]
    taken = greedy_matching(score, adjacency)
    ends = torch.cat((adjacency.source[taken], adjacency.target[taken])).tolist()
    assert len(ends) == len(set(ends))
    left = set(range(6)) - set(ends)
    assert not any(set(pair) <= left for pair in edges.T.tolist())


def test_scores_that_are_no_numbers_are_matched():
    level = GraphBatch(
        torch.zeros(2, 1), Adjacency.of(torch.tensor([[0], [1]]), 2), torch.zeros(2), 1
    )
    assert greedy_matching(torch.tensor([torch.nan]), level.adjacency).tolist() == [0]

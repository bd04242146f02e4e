"""What Edge and ASAP make of edges: against one edge after the other, and dense matrices."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from batches import batches, dense, make_batch
from lookhops.nn import ASAP, Edge
from lookhops.ops import Adjacency, Pattern, clusters
from lookhops.ops.contraction import greedy_matching, match_tensors, merge_edges
from lookhops.ops.ranking import nearness

CHANNELS = 4
DTYPES = {"single": torch.float32, "double": torch.float64}


def matrix(edge_index: Tensor, size: int, weight: Tensor | None = None) -> Tensor:
    """Edges as a dense matrix; repeated ones add up."""
    value = torch.ones(edge_index.shape[1]).double() if weight is None else weight
    zeros = torch.zeros(size, size, dtype=value.dtype)
    return zeros.index_put(tuple(edge_index), value, accumulate=True)


# -------------------------------------------------------------------- edge pooling


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@given(st.integers(1, 12), st.integers(0, 60), st.sampled_from([0.0, 1e4]), st.integers(0, 2**16))
def test_rounds_take_what_one_edge_after_the_other_takes(dtype, nodes, edges, step, seed):
    rng = torch.Generator().manual_seed(seed)
    ends = torch.randint(0, nodes, (2, edges), generator=rng)  # loops and parallel edges among them
    steps = torch.randint(0, 6, (edges,), generator=rng)
    score = (1 + step * nearness(dtype) * steps.double()).to(dtype)  # equal, or far apart
    score[torch.rand(edges, generator=rng) < 0.05] = torch.inf
    order = torch.randperm(edges, generator=rng)
    used, expected = set(), []
    for edge in sorted(range(edges), key=lambda e: (-score[e].item(), order[e].item())):
        if not used & {*ends[:, edge].tolist()}:
            used |= {*ends[:, edge].tolist()}
            expected.append(edge)
    found = match_tensors(score, order, *ends, nodes, nearness(dtype))
    assert sorted(found.tolist()) == sorted(expected)


@given(st.integers(2, 9), st.sampled_from([0.4, 0.7, 1.0, 1e4]), st.integers(0, 2**16))
def test_graphs_are_matched_together_as_they_are_alone(nodes, step, seed):
    """Circles among them in which no edge is the best at both ends."""
    rng, near = torch.Generator().manual_seed(seed), nearness(torch.float32)
    circle = torch.stack((torch.arange(nodes), torch.arange(nodes).roll(-1)))
    ends = torch.cat((circle, torch.randint(nodes, 2 * nodes, (2, nodes), generator=rng)), 1)
    score = 1 + step * near * torch.randint(0, 6, (2 * nodes,), generator=rng)
    order = torch.randperm(2 * nodes, generator=rng)
    together = match_tensors(score, order, *ends, 2 * nodes, near).tolist()
    alone = []
    for part in (slice(nodes), slice(nodes, None)):
        own = score[part], order[part], *ends[:, part]
        alone += (match_tensors(*own, 2 * nodes, near) + (part.start or 0)).tolist()
    assert sorted(together) == sorted(alone)


@given(batches(weighted=False), st.integers(0, 2**16), st.booleans())
def test_rounds_match_as_one_edge_after_the_other_does(batch, seed, masked):
    rng = torch.Generator().manual_seed(seed)
    edges = batch.edge_index.shape[1]
    score = torch.randint(1, 4, (edges,), generator=rng) / 2  # many are equal
    keep = torch.rand(edges, generator=rng) < (0.7 if masked else 1.1)
    free, expected = set(range(len(batch.x))), set()
    for edge in sorted(range(edges), key=lambda e: -float(score[e])):
        ends = {int(node) for node in batch.edge_index[:, edge]}
        if keep[edge] and ends <= free:
            expected.add(edge)
            free -= ends
    adjacency = Adjacency.of(batch.edge_index, len(batch.x))
    if masked:
        adjacency = adjacency.masked(keep[adjacency.order])
    for dtype in (torch.float32, torch.float64):
        taken = greedy_matching(score[adjacency.order].to(dtype), adjacency)
        assert set(adjacency.order[taken].tolist()) == expected


@given(batches(weighted=False))
def test_edge_sums_what_belongs_to_merged_edges(batch):
    pool = Edge(CHANNELS).double()
    attr = torch.rand(batch.edge_index.shape[1], 2)
    x, edges, summed, graph, perm, score = pool(batch.x, batch.edge_index, attr, batch.batch)
    _, pooled = pool.pool(batch.level())
    assert torch.equal(pooled.node.nonzero().flatten(), perm)
    number = torch.full((len(batch.x),), -1).scatter(0, perm, torch.arange(len(perm)))
    merged = number[pooled.cluster]
    for channel in range(2):
        expected = matrix(merged[batch.edge_index], len(x), attr[:, channel])
        torch.testing.assert_close(matrix(edges, len(x), summed[:, channel]), expected)
    assert matrix(edges, len(x)).max().item() <= 1 if edges.numel() else True
    masked = Adjacency.of(batch.edge_index, len(batch.x))
    keep = torch.arange(masked.num_edges) % 3 > 0
    _, edges_left, left, *_ = pool(batch.x, masked.masked(keep), attr, batch.batch)
    assert len(left) == edges_left.shape[1]
    torch.testing.assert_close(left.sum(0), attr[keep].sum(0))
    expected = torch.zeros_like(x).index_add(0, merged, batch.x) * score[:, None]
    torch.testing.assert_close(x, expected)
    assert torch.equal(graph[merged], batch.batch)


@given(batches(weighted=True))
def test_merged_edges_add_their_weights(batch):
    pool = Edge(CHANNELS).double()
    level, pooled = pool.pool(batch.level())
    perm = pooled.node.nonzero().flatten()
    number = torch.full((len(batch.x),), -1).scatter(0, perm, torch.arange(len(perm)))
    into = number[pooled.cluster][batch.edge_index]
    adjacency = level.adjacency
    assert adjacency.weight is not None
    torch.testing.assert_close(
        matrix(adjacency.edge_index, len(perm), adjacency.weight),
        matrix(into, len(perm), batch.edge_weight),
    )


@given(batches(min_graphs=1, min_nodes=1), st.integers(0, 2**16), st.integers(0, 4))
def test_masked_edges_are_the_merged_ones_and_padding_behind(batch, seed, padding):
    rng = torch.Generator().manual_seed(seed)
    whole = Adjacency.of(batch.edge_index, len(batch.x), batch.edge_weight)
    keep = torch.rand(whole.num_edges, generator=rng) < 0.8
    number = torch.randint(0, len(batch.x), (len(batch.x),), generator=rng)
    last = len(batch.x) - 1
    pad = torch.full((padding,), last, dtype=torch.int32)
    padded = Adjacency(
        Pattern(whole.pattern.row_ptr, torch.cat((whole.source, pad))),
        None if whole.weight is None else torch.cat((whole.weight, torch.ones(padding).double())),
    )
    for exact, wide in (
        (whole, padded),
        (whole.masked(keep), padded.masked(torch.cat((keep, torch.ones(padding).bool())))),
    ):
        expected = merge_edges(exact, number, len(batch.x))
        found = merge_edges(wide, number, len(batch.x), masked=True)
        small, large = expected.adjacency, found.adjacency
        count, edges = small.num_edges, exact.num_edges
        assert large.num_edges == wide.num_edges
        assert large.weighted == small.weighted
        assert torch.equal(large.pattern.row_ptr, small.pattern.row_ptr)
        assert torch.equal(large.edge_index[:, :count], small.edge_index)
        assert (large.edge_index[:, count:] == last).all()
        assert large.present.tolist() == [True] * count + [False] * (large.num_edges - count)
        if small.weighted:
            torch.testing.assert_close(large.weight[:count], small.weight)
        assert torch.equal(found.number[:edges], expected.number)
        assert torch.equal(found.first[:edges], expected.first)
        assert (found.number[edges:] == -1).all()


# -------------------------------------------------------------------- pieces of ASAP


@given(batches(weighted=True), st.sampled_from([1, 7, 40, 1 << 22]), st.booleans())
def test_links_are_the_dense_product_whatever_fits_at_once(batch, budget, weighted):
    leaves = [batch.x.requires_grad_()]
    leaves += [batch.edge_weight.requires_grad_()] if weighted else []
    batch = batch if weighted else replace(batch, edge_weight=None)
    torch.manual_seed(0)
    pool = ASAP(CHANNELS, 0.6).double()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clusters, "BUDGET", {"cpu": budget})
        level, pooled = pool.pool(batch.level())
    n = len(batch.x)
    a = dense(batch)
    loops = a.diag()
    a = a - loops.diag() + torch.where(loops != 0, loops, 1).diag()
    adjacency = batch.level().adjacency
    pattern = adjacency.with_loops.select(adjacency.counted_with_loops)
    shares, _ = pool.attend(batch.x, pattern)
    s = torch.zeros(n, n).double()
    s = s.index_put((pattern.row.long(), pattern.column.long()), shares.value, accumulate=True)
    torch.testing.assert_close(s.sum(1), torch.ones(n).double())
    product = (s @ a @ s.T)[pooled.node][:, pooled.node]
    product = product - product.diag().diag()
    links = level.adjacency
    assert (links.weight is not None) == weighted
    found = matrix(links.edge_index.flip(0), len(product), links.weight)
    torch.testing.assert_close(found, product if weighted else (product != 0).double())
    if weighted and found.requires_grad:
        into = torch.randn_like(found)
        leaves += pool.attention.parameters()
        for mine, own in zip(
            torch.autograd.grad(found, leaves, into, materialize_grads=True),
            torch.autograd.grad(product, leaves, into, materialize_grads=True),
            strict=True,
        ):
            torch.testing.assert_close(mine, own)


def test_asap_takes_graphs_whose_nodes_lie_apart():
    batch = make_batch(1, (6, 5, 7), CHANNELS, dtype=torch.float64)
    torch.manual_seed(0)
    pool = ASAP(CHANNELS).double()
    expected = pool(batch.x, batch.edge_index, None, batch.batch)
    order = torch.randperm(len(batch.x))
    number = torch.empty_like(order).scatter(0, order, torch.arange(len(order)))
    mixed = pool(batch.x[order], number[batch.edge_index], None, batch.batch[order])
    assert torch.equal(order[mixed[4]], expected[4])
    torch.testing.assert_close(mixed[0], expected[0])
    size = len(expected[0])
    assert torch.equal(matrix(mixed[1], size), matrix(expected[1], size))

# mypy: allow-untyped-defs, allow-incomplete-defs
"""Which are the best of their graph: decided alike in every batch, order and on every device.

Scores that are equal by the formula differ by rounding, and rounding depends on what else is in a
batch. So scores that differ from the last one that is kept by no more than rounding count as equal
to it. Equal ones are kept together: any choice among them would hang on the order of the nodes,
which is no part of the graph.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.ops.batch import GraphBatch
from lookhops.ops.gpu import can_run_on, tl, triton
from lookhops.ops.pattern import group

BLOCK = 128  # nodes a program ranks


def nearness(dtype: torch.dtype) -> float:
    """How far apart scores count as equal, as a share of what they were computed from.

    A hundred roundings of float32 (0.000012), or of float64: layers before the scores add theirs.
    """
    return 100 * min(torch.finfo(dtype).eps, torch.finfo(torch.float32).eps)


def keep_top(
    batch: GraphBatch, score: Tensor, ratio: float, size: Tensor | None = None, exact: bool = False
) -> Tensor:
    """Which nodes are among the best of their graph by :func:`top_of_each`, shape (n)."""
    score = score.detach()
    if can_run_on(score):
        start, end = batch.bounds
        where = batch.graph, start, end, batch.alive
        return keep_top_by_kernels(score, size, *where, ratio, nearness(score.dtype), exact)
    graphs = batch.graph, batch.num_graphs
    order, kept = top_of_each(score, *graphs, ratio, batch.alive, size, exact)
    return torch.zeros_like(kept).scatter(0, order, kept)


def edges_between(batch: GraphBatch, keep: Tensor) -> Tensor:
    """Which of a batch's edges join two of the kept nodes, shape (e)."""
    source, target = batch.adjacency.source, batch.adjacency.target
    if can_run_on(source):
        return edges_between_by_kernel(source, target, keep, batch.edge_alive)
    between = keep.index_select(0, source) & keep.index_select(0, target)
    return between if batch.edge_alive is None else between & batch.edge_alive


def top_of_each(
    score: Tensor,
    segment: Tensor,
    num_segments: int,
    ratio: float,
    alive: Tensor | None = None,
    size: Tensor | None = None,
    exact: bool = False,
) -> tuple[Tensor, Tensor]:
    r"""The :math:`\lceil \rho m \rceil` highest scores among the :math:`m` of each segment.

    With :math:`c` the lowest of these, scores from :math:`c - \epsilon` to :math:`c + \epsilon`
    count as equal, :math:`\epsilon` being :func:`nearness` times the largest size of the segment,
    and are all kept. Nothing depends on other segments, nor on the order of the elements.

    Args:
        score: Shape :math:`(n)`.
        segment: Segment of each element, shape :math:`(n)`.
        num_segments: How many segments there are.
        ratio: The fraction :math:`\rho` to keep.
        alive: Which elements count at all; none means all.
        size: How large the numbers are from which a score was computed, and whose rounding it
            therefore has, shape :math:`(n)`; none means as large as the score.
        exact: Whether no more are kept: of equal scores the earlier ones.

    Returns:
        The elements by segment and falling score, and which places of that order are kept.
    """
    score = score.detach()
    size = (score if size is None else size.detach()).abs()
    if _packable(score, num_segments):
        living = None if alive is None else alive.numpy()
        given = score.numpy(), segment.numpy(), living, size.numpy()
        best = top_arrays(*given, num_segments, ratio, exact)
        return torch.from_numpy(best[0]), torch.from_numpy(best[1])
    return top_tensors(score, segment, alive, size, num_segments, ratio, exact)


def top_tensors(
    score: Tensor,
    segment: Tensor,
    alive: Tensor | None,
    size: Tensor,
    num_segments: int,
    ratio: float,
    exact: bool = False,
) -> tuple[Tensor, Tensor]:
    """:func:`top_of_each` by a sort; an exact one by two: what is near a cut is equal in it."""
    if alive is not None:
        score, size = torch.where(alive, score, -torch.inf), torch.where(alive, size, 0)
    start, order = ranked(score, segment, num_segments)
    if not score.numel():
        return order, torch.zeros_like(segment, dtype=torch.bool)
    count = start.diff().long()
    if alive is not None:
        count = torch.zeros_like(count).index_add(0, segment, alive.long())
    # Forgive the rounding of ratio * n: 0.7 of 10 is 7, not 7.000000000000001.
    end = start[:-1] + (count.double() * ratio - 1e-7).ceil().clamp(min=1).int()
    score = torch.where(score.isnan(), torch.inf, score)
    last = (end - 1).clamp(max=score.numel() - 1)  # a segment without elements has none
    cut = score.index_select(0, order.index_select(0, last)).index_select(0, segment)
    size = torch.where(size.isfinite(), size, 0)
    largest = size.new_zeros(num_segments).scatter_reduce(0, segment.long(), size, "amax")
    reach = nearness(score.dtype) * largest.index_select(0, segment)
    keep = score >= cut - reach
    keep = keep if alive is None else keep & alive
    if not exact:
        return order, keep.index_select(0, order)
    near = keep & (score <= cut + reach)
    _, order = ranked(torch.where(near, cut, score), segment, num_segments)
    place = torch.arange(segment.numel(), device=segment.device)
    kept = place < end.index_select(0, segment.index_select(0, order))
    return order, kept & keep.index_select(0, order)


def top_arrays(
    score: Array,
    segment: Array,
    alive: Array | None,
    size: Array,
    num_segments: int,
    ratio: float,
    exact: bool = False,
) -> tuple[Array, Array]:
    """:func:`top_tensors` in NumPy, by one sort: what is near a cut lies side by side after it."""
    score = np.where(np.isnan(score), np.inf, score)
    size = np.where(np.isfinite(size), size, 0)
    start, order = _packed_order(score, segment, num_segments, alive)
    length = count = np.diff(start)
    if alive is not None:
        size = np.where(alive, size, 0)
        count = np.bincount(segment, alive, num_segments)
    filled = np.flatnonzero(length)
    if not len(filled):
        return order, np.zeros(0, dtype=bool)
    end = start[:-1] + np.ceil(count * ratio - 1e-7).astype(np.int64).clip(min=1)
    value, first, lengths = score[order], start[filled], length[filled]
    cut = value[end[filled] - 1]
    reach = nearness(torch.float32) * np.maximum.reduceat(size[order], first)
    kept = value >= np.repeat(cut - reach, lengths)
    kept = kept if alive is None else kept & alive[order]
    if exact:
        place = np.flatnonzero(kept & (value <= np.repeat(cut + reach, lengths)))
        same = order[place]
        order[place] = same[np.lexsort((same, segment[same]))]
        kept &= np.arange(len(order)) < np.repeat(end, length)
    return order, kept


def on_cpu(x: Tensor) -> bool:
    """Whether what follows may be computed by NumPy."""
    return x.device.type == "cpu" and not torch.compiler.is_compiling()


def ranked(score: Tensor, segment: Tensor, num_segments: int) -> tuple[Tensor, Tensor]:
    """The elements by segment and falling score: where each segment starts, and that order."""
    if _packable(score, num_segments):
        found = _packed_order(score.numpy(), segment.numpy(), num_segments)
        return torch.from_numpy(found[0]).int(), torch.from_numpy(found[1])
    order = score.argsort(descending=True, stable=True)
    start, by_segment = group(segment.index_select(0, order), num_segments)
    return start, order.index_select(0, by_segment)


def _packable(score: Tensor, num_segments: int) -> bool:
    """Whether segment, score and place fit into one number of 64 bits, and NumPy may sort them."""
    if not on_cpu(score) or score.dtype != torch.float32:
        return False
    return _place_bits(score.numel()) + num_segments.bit_length() <= 31


def _place_bits(count: int) -> int:
    return max(count - 1, 1).bit_length()


def _packed_order(
    score: Array, segment: Array, num_segments: int, alive: Array | None = None
) -> tuple[Array, Array]:
    """:func:`ranked` by sorting segment, score and place packed into one number; the dead go last.

    Many times as fast as sorting places by their scores, and no two are equal. Floats order as the
    integers of the same bits do, those below zero backwards; -0.0 is made 0.0 first, and every NaN
    the one above all numbers. Segments mostly come in order: the stable sort gains from that.
    """
    score = np.where(np.isnan(score), np.nan, score + 0.0).view(np.int32)
    falling = (score ^ (~(score >> 31) & 0x7FFFFFFF)).view(np.uint32)
    key = (falling if alive is None else np.where(alive, falling, 0xFFFFFFFF)).astype(np.int64)
    bits = _place_bits(len(key))
    key |= segment.astype(np.int64) << 32
    key <<= bits
    key |= np.arange(len(key))
    key.sort(kind="stable")
    start = np.searchsorted(key, np.arange(num_segments + 1) << (32 + bits))
    return start, key & ((1 << bits) - 1)


def keep_top_by_kernels(
    score: Tensor,
    size: Tensor | None,
    graph: Tensor,
    start: Tensor,
    end: Tensor,
    alive: Tensor | None,
    ratio: float,
    near: float,
    exact: bool = False,
) -> Tensor:
    """Which nodes are among the ceil(ratio n) best of their graph's n living ones.

    A node's rank is the number of nodes of its graph that beat it: counted, nothing is sorted. The
    first pass finds the lowest score that is kept; the second keeps what is not below it, or ranks
    scores near it as equal where exactly so many are wanted.

    Args:
        score: Shape (n).
        size: How large the numbers are from which each was computed; none means the scores.
        graph: Graph of each node.
        start: First node of each graph.
        end: The one after its last.
        alive: Which nodes count; none means all.
        ratio: The fraction to keep.
        near: How far apart scores count as equal, as a share of the graph's largest size.
        exact: Whether of equal scores only the earlier are kept, to keep no more.
    """
    score = score.contiguous()
    keep = torch.empty_like(score, dtype=torch.bool)
    cut = torch.empty(2, start.numel(), dtype=torch.float32, device=score.device)
    wanted = torch.empty(start.numel(), dtype=torch.int32, device=score.device)
    grid = (triton.cdiv(score.numel(), BLOCK),)
    nodes, sizes = (score, graph, start, end, alive), {"BLOCK": BLOCK, "num_warps": 4}
    found, count = (*cut.unbind(), wanted), score.numel()
    size = score if size is None else size.contiguous()
    _cut_kernel[grid](*nodes, size, *found, count, RATIO=float(ratio), NEAR=near, **sizes)
    _keep_kernel[grid](*nodes, *found, keep, count, EXACT=exact, **sizes)
    return keep


def edges_between_by_kernel(
    source: Tensor, target: Tensor, keep: Tensor, edge_alive: Tensor | None
) -> Tensor:
    """Which edges join two kept nodes, of those that are alive; none means all, shape (e)."""
    out = torch.empty(source.numel(), dtype=torch.bool, device=source.device)
    grid, sizes = (triton.cdiv(out.numel(), BLOCK),), {"BLOCK": BLOCK, "num_warps": 4}
    _between_kernel[grid](source, target, keep, edge_alive, out, out.numel(), **sizes)
    return out


if triton is not None:

    @triton.jit
    def _load(score, place, mask):
        """Scores in single precision; NaN is above all."""
        value = tl.load(score + place, mask=mask, other=0.0).to(tl.float32)
        return tl.where(value != value, float("inf"), value)

    @triton.jit
    def _living(alive, node, mask):
        """Which of these nodes count."""
        if alive is not None:
            mask = mask & (tl.load(alive + node, mask=mask, other=0) != 0)
        return mask

    @triton.jit
    def _cut_kernel(
        score,
        graph,
        start,
        end,
        alive,
        size,
        low,
        high,
        wanted,
        nodes,
        RATIO: tl.constexpr,
        NEAR: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        """Of each graph wanted = ceil(ratio n), and what counts as equal to its last kept score."""
        node = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        counts = _living(alive, node, node < nodes)
        own = _load(score, node, counts)
        where = tl.load(graph + node, mask=counts, other=0)
        first = tl.load(start + where, mask=counts, other=0)
        last = tl.load(end + where, mask=counts, other=0)
        length = tl.where(counts, last - first, 0)
        rank = tl.zeros((BLOCK,), tl.int32)
        total = tl.zeros((BLOCK,), tl.int32)
        largest = tl.zeros((BLOCK,), tl.float32)
        for i in range(0, tl.max(length, axis=0)):
            there = first + i
            rival = _living(alive, there, there < last)
            other = _load(score, there, rival)
            beats = (other > own) | ((other == own) & (there < node))
            rank += (rival & beats).to(tl.int32)
            total += rival.to(tl.int32)
            extent = tl.abs(_load(size, there, rival))
            largest = tl.maximum(largest, tl.where(rival & (extent < float("inf")), extent, 0.0))
        # In double precision, as the plain version: 0.7 of 10 is 7.
        kept = tl.maximum(tl.ceil(total.to(tl.float64) * RATIO - 1e-7).to(tl.int32), 1)
        lowest = counts & (rank == kept - 1)  # one node of each graph
        tl.store(wanted + where, kept, mask=lowest)
        tl.store(low + where, own - NEAR * largest, mask=lowest)
        tl.store(high + where, own + NEAR * largest, mask=lowest)

    @triton.jit
    def _keep_kernel(
        score,
        graph,
        start,
        end,
        alive,
        low,
        high,
        wanted,
        keep,
        nodes,
        EXACT: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        """keep = not below; exact: above, or rank < wanted, earlier nodes first."""
        node = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = node < nodes
        counts = _living(alive, node, inside)
        own = _load(score, node, counts)
        where = tl.load(graph + node, mask=counts, other=0)
        below = tl.load(low + where, mask=counts, other=0.0)
        chosen = own >= below
        if EXACT:
            above = tl.load(high + where, mask=counts, other=0.0)
            near = counts & chosen & (own <= above)
            first = tl.load(start + where, mask=near, other=0)
            last = tl.load(end + where, mask=near, other=0)
            length = tl.where(near, last - first, 0)
            rank = tl.zeros((BLOCK,), tl.int32)
            for i in range(0, tl.max(length, axis=0)):
                there = first + i
                rival = _living(alive, there, there < last)
                other = _load(score, there, rival)
                beats = (other > above) | ((other >= below) & (there < node))
                rank += (rival & beats).to(tl.int32)
            places = tl.load(wanted + where, mask=near, other=0)
            chosen = tl.where(near, rank < places, own > above)
        tl.store(keep + node, counts & chosen, mask=inside)

    @triton.jit
    def _between_kernel(source, target, keep, edge_alive, out, edges, BLOCK: tl.constexpr):
        """out = keep[source] and keep[target] and alive."""
        edge = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = edge < edges
        first = tl.load(source + edge, mask=inside, other=0)
        last = tl.load(target + edge, mask=inside, other=0)
        stays = _living(keep, first, inside) & _living(keep, last, inside)
        tl.store(out + edge, _living(edge_alive, edge, stays), mask=inside)

"""Which are the best of their graph: decided alike in every batch, order and on every device.

Scores that are equal by the formula differ by rounding, and rounding depends on what else is in a
batch. So scores that differ from the last one that is kept by no more than rounding count as equal
to it. Equal ones are kept together: any choice among them would hang on the order of the nodes,
which is no part of the graph.
"""

import torch
from torch import Tensor

from lookhops.ops.batch import GraphBatch
from lookhops.ops.gpu import can_run_on, launch_over, tl, triton
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
    """Which nodes are among the best of their graph by :func:`top_of_each`, shape (n).

    The kernels sort nothing: a node's rank is the number of nodes of its graph that beat it. The
    first finds the lowest score that is kept; the second keeps what is not below it, or where
    exactly so many are wanted ranks scores near it as equal.
    """
    score, graph, alive = score.detach().contiguous(), batch.graph, batch.alive
    if not can_run_on(score):
        order, kept = top_of_each(score, graph, batch.num_graphs, ratio, alive, size, exact)
        return torch.zeros_like(kept).scatter(0, order, kept)
    start, end = batch.bounds
    keep = torch.empty_like(score, dtype=torch.bool)
    low, high = score.new_empty(2, start.numel(), dtype=torch.float32).unbind()
    cut = low, high, torch.empty_like(start, dtype=torch.int32)
    nodes, count = (score, graph, start, end, alive), score.numel()
    size = score if size is None else size.contiguous()
    given = *nodes, size, *cut, count
    launch_over(_cut_kernel, count, BLOCK, *given, RATIO=float(ratio), NEAR=nearness(score.dtype))
    launch_over(_keep_kernel, count, BLOCK, *nodes, *cut, keep, count, EXACT=exact)
    return keep


def edges_between(batch: GraphBatch, keep: Tensor) -> Tensor:
    """Which of a batch's edges join two of the kept nodes, shape (e)."""
    source, target, alive = batch.adjacency.source, batch.adjacency.target, batch.edge_alive
    if can_run_on(source):
        out, count = torch.empty_like(source, dtype=torch.bool), source.numel()
        launch_over(_between_kernel, count, BLOCK, source, target, keep, alive, out, count)
        return out
    between = keep.index_select(0, source) & keep.index_select(0, target)
    return between if alive is None else between & alive


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
        score, segment: Of each element, shape :math:`(n)`.
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
    near = keep & (score <= cut + reach)  # equal in a second sort
    _, order = ranked(torch.where(near, cut, score), segment, num_segments)
    place = torch.arange(segment.numel(), device=segment.device)
    kept = place < end.index_select(0, segment.index_select(0, order))
    return order, kept & keep.index_select(0, order)


def ranked(score: Tensor, segment: Tensor, num_segments: int) -> tuple[Tensor, Tensor]:
    """The elements by segment and falling score: where each segment starts, and that order."""
    order = score.argsort(descending=True, stable=True)
    start, by_segment = group(segment.index_select(0, order), num_segments)
    return start, order.index_select(0, by_segment)


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

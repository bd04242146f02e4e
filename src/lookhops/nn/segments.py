"""Scores, softmax and maximum over the edges into each node."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from lookhops.nn import kernels
from lookhops.nn.level import Level
from lookhops.nn.ranking import nearness, ranked
from lookhops.ops import Pattern
from lookhops.ops.kernels import can_run_on
from lookhops.ops.product import group, multiply

#: Nodes of one graph that are multiplied at once.
_PIECE = 64
#: Entries whose rows of features are gathered at once: few enough to stay in the cache.
_BLOCK = 1 << 13
#: Of the LeakyReLU of an attention, below zero.
_SLOPE = 0.2


def edge_scores(source: Tensor, target: Tensor | None, pattern: Pattern) -> Tensor:
    r""":math:`a_j + b_i` for the edges from j to i, shape (e).

    A linear score of two ends side by side is the sum of two scores of one end each: nodes are
    projected first, and only numbers are gathered.

    Args:
        source: The :math:`a_j`, shape :math:`(n)`.
        target: The :math:`b_i`, shape :math:`(n)`; none means zero.
        pattern: The edges, those into node i in row i.
    """
    if can_run_on(source):
        return _EdgeScores.apply(source, target, pattern)
    return _gathered(source, target, pattern)


def _gathered(source: Tensor, target: Tensor | None, pattern: Pattern) -> Tensor:
    score = source.index_select(0, pattern.column)
    return score if target is None else score + target.index_select(0, pattern.row)


class _EdgeScores(torch.autograd.Function):
    """The same with a gradient by rows and by columns, without atomic additions.

    On a GPU these would meet at the last node, on which all padding holds.
    """

    @staticmethod
    def forward(ctx, source, target, pattern):  # type: ignore[no-untyped-def]
        ctx.pattern = pattern
        return _gathered(source, target, pattern)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        pattern, by_row = ctx.pattern, None
        ones = grad.new_ones(pattern.size, 1)
        if ctx.needs_input_grad[1]:
            by_row = multiply(pattern.row_ptr, pattern.column, grad.contiguous(), ones).flatten()
        other, order = pattern.transpose, pattern.transpose_order
        by_column = multiply(other.row_ptr, other.column, grad.index_select(0, order), ones)
        return by_column.flatten(), by_row, None


def softmax(
    score: Tensor, pattern: Pattern, counts: Tensor | None = None, value: Tensor | None = None
) -> Tensor:
    r""":math:`v_{ij} e^{s_{ij}} / \sum_l v_{il} e^{s_{il}}` over each row's entries, shape (e).

    Args:
        score: The :math:`s_{ij}`, one for each entry of the pattern, shape :math:`(e)`.
        pattern: Which entries there are.
        counts: Which entries take part, shape :math:`(e)`; the others get zero. None means all.
        value: The :math:`v_{ij} \geq 0`, shape :math:`(e)`; none means one everywhere.
    """
    score = score.to(torch.promote_types(score.dtype, torch.float32))
    if can_run_on(score) and (value is None or not value.requires_grad):
        return kernels.Softmax.apply(score, pattern.row_ptr, counts, value)
    row, size = pattern.row.long(), pattern.size
    if counts is not None:
        score = score.masked_fill(~counts, -torch.inf)
    highest = score.new_full((size,), -torch.inf)
    highest = highest.scatter_reduce(0, row, score.detach(), "amax")
    highest = highest.masked_fill(highest == -torch.inf, 0)
    share = (score - highest.index_select(0, row)).exp()
    if value is None:
        # Where a row has any entry that counts, its highest alone makes one.
        total = score.new_zeros(size).index_add(0, row, share).clamp(min=1)
    else:
        share = share * value.to(share.dtype)
        total = score.new_zeros(size).index_add(0, row, share)
        total = torch.where(total > 0, total, torch.ones_like(total))
    return share / total.index_select(0, row)


def attention(source: Tensor, target: Tensor, pattern: Pattern) -> Tensor:
    r"""The softmax of :math:`\mathrm{LeakyReLU}(a_j + b_i)` over each row's entries, shape (e).

    Arguments as for :func:`edge_scores`; the slope below zero is 0.2.
    """
    if can_run_on(source):
        return kernels.Attention.apply(source, target, pattern, _SLOPE)
    return softmax(leaky_relu(edge_scores(source, target, pattern), _SLOPE), pattern)


def sparsemax(score: Tensor, pattern: Pattern, size: Tensor | None = None) -> Tensor:
    r""":math:`\max(s_{ij} - \tau_i, 0)`, the point of the simplex nearest to each row, shape (e).

    As a softmax its entries add up to one in each row, but low scores get exactly zero:
    `Martins and Astudillo <https://arxiv.org/abs/1602.02068>`_. With the scores of a row in
    falling order, those count for which :math:`1 + r s_{(r)} > \sum_{l \le r} s_{(l)}`, and
    :math:`\tau` is their sum less one, over their number.

    Args:
        score: The :math:`s_{ij}`, one for each entry of the pattern, shape :math:`(e)`.
        pattern: Which entries there are.
        size: How large the numbers are from which a score was computed, and whose rounding it
            therefore has, shape :math:`(e)`. Where it is given, entries that are above zero by no
            more than rounding get zero too, and the others add up to one.
    """
    score = score.to(torch.promote_types(score.dtype, torch.float32))
    row, rows = pattern.row.long(), pattern.size
    with torch.no_grad():
        support = _support(score, row, rows)
        if size is not None:
            share = torch.where(support, score - _threshold(score, support, row, rows), 0)
            support &= share > _reach(share, size.to(share.dtype), row, rows)
    return torch.where(support, score - _threshold(score, support, row, rows), 0).clamp(min=0)


def _support(score: Tensor, row: Tensor, rows: int) -> Tensor:
    """Which entries a sparsemax leaves above zero, shape (e)."""
    start, order = ranked(score, row, rows)
    owner = row.index_select(0, order)
    first = start.long().index_select(0, owner)
    # Less the highest of its row, a sum over many rows loses nothing that matters to one.
    falling = score.index_select(0, order)
    falling = (falling - falling.index_select(0, first)).double()
    total = falling.cumsum(0)
    total = total - (total - falling).index_select(0, first)
    place = torch.arange(1, len(owner) + 1, device=row.device) - first
    support = torch.empty_like(falling, dtype=torch.bool)
    support[order] = 1 + place * falling > total
    return support


def _threshold(score: Tensor, support: Tensor, row: Tensor, rows: int) -> Tensor:
    r"""The :math:`\tau` of each entry's row, given which entries are above it, shape (e)."""
    counted = torch.where(support, score, 0)
    count = score.new_zeros(rows).index_add(0, row, support.to(score.dtype)).clamp(min=1)
    threshold = (score.new_zeros(rows).index_add(0, row, counted) - 1) / count
    return threshold.index_select(0, row)


def _reach(share: Tensor, size: Tensor, row: Tensor, rows: int) -> Tensor:
    """How far above zero rounding may leave a share of each entry's row, shape (e).

    Never more than half of the row's largest share: whatever the size, that one stays, and with it
    those that are equal to it.
    """
    largest, most = (
        value.new_zeros(rows).scatter_reduce(0, row, value, "amax") for value in (size, share)
    )
    return torch.minimum(nearness(share.dtype) * largest, most / 2).index_select(0, row)


def neighbour_max(pattern: Pattern, x: Tensor) -> tuple[Tensor, Tensor]:
    r""":math:`\max_j x_j` over the entries of each row and each channel, shape (n, d); and x again.

    Neighbours that share a maximum share its gradient; of a maximum of zero one share is lost, as
    in PyTorch's own, which counts the zero it starts from. The maximum of no entry is zero. Works
    through the entries block by block: there may be far more than fit with all their features. What
    is computed from the x that it gives has its gradient added here, not in a pass of its own.

    Args:
        pattern: Row :math:`i` lists the neighbours of node i.
        x: Node features, shape :math:`(n, d)`.
    """
    if kernels.neighbours.fits(x):
        transpose = pattern.transpose
        return kernels.NeighbourMax.apply(
            x, pattern.row_ptr, pattern.column, transpose.row_ptr, transpose.column
        )
    return _Maximum.apply(x, pattern)


class _Maximum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, pattern):  # type: ignore[no-untyped-def]
        begin = torch.where(pattern.row_ptr.diff() > 0, -torch.inf, 0).to(x.dtype)
        highest = begin[:, None].expand_as(x).contiguous()
        blocks = zip(pattern.row.split(_BLOCK), pattern.column.split(_BLOCK), strict=True)
        for row, column in blocks:
            index = row.long()[:, None].expand(-1, x.shape[1])
            highest.scatter_reduce_(0, index, x.index_select(0, column), "amax")
        ctx.save_for_backward(x, highest)
        ctx.set_materialize_grads(False)
        ctx.pattern = pattern
        return highest, x

    @staticmethod
    def backward(ctx, grad, added):  # type: ignore[no-untyped-def]
        (x, highest), pattern = ctx.saved_tensors, ctx.pattern
        if grad is None:
            return added, None
        share = torch.empty_like(grad)
        for rows, row, column, total in _blocks(pattern):
            hit = x.index_select(0, column).eq_(highest.index_select(0, row))  # 0.0 or 1.0
            ties = total(hit).add_(highest[rows] == 0)
            torch.div(grad[rows], ties, out=share[rows])
        grad_x = torch.empty_like(grad)
        for rows, row, column, total in _blocks(pattern.transpose):
            hit = x.index_select(0, row).eq_(highest.index_select(0, column))
            found = total(hit.mul_(share.index_select(0, column)))
            grad_x[rows] = found if added is None else found.add_(added[rows])
        return grad_x, None


def _blocks(pattern: Pattern):  # type: ignore[no-untyped-def]
    """Runs of whole rows: which, their entries' rows and columns, and how to sum over each row.

    On a GPU, which is not to be asked where rows end, all of them are one run.
    """
    row_ptr, size, device = pattern.row_ptr, pattern.size, pattern.column.device
    cuts = [0, size]
    if device.type == "cpu" and pattern.column.numel() > _BLOCK:
        wanted = torch.arange(0, pattern.column.numel(), _BLOCK).to(row_ptr)
        cuts = sorted({*torch.searchsorted(row_ptr, wanted).clamp(max=size).tolist(), size})
    for first, last in pairwise(cuts):
        start, end = (0, None) if len(cuts) == 2 else row_ptr[[first, last]].tolist()
        column = pattern.column[start:end]
        offsets = row_ptr[first : last + 1] - start
        entry = torch.arange(column.numel(), dtype=column.dtype, device=device)

        def total(x: Tensor, offsets: Tensor = offsets, entry: Tensor = entry) -> Tensor:
            return multiply(offsets, entry, None, x)

        yield slice(first, last), pattern.row[start:end], column, total


def places_in_graphs(level: Level) -> Tensor:
    """Which of its graph's living nodes each is, from 0 up, and -1 for the dead; shape (n)."""
    start, order = group(level.graph, level.num_graphs)
    alive = torch.ones_like(level.graph) if level.alive is None else level.alive.long()
    before = torch.zeros(len(order) + 1, dtype=torch.long, device=order.device)
    before[1:] = alive.index_select(0, order).cumsum(0)
    first = before.index_select(0, start[:-1]).index_select(0, level.graph)
    place = torch.empty_like(alive).scatter(0, order.long(), before[:-1]) - first
    return torch.where(alive > 0, place, -1)


def graph_products(a: Tensor, b: Tensor, level: Level) -> Tensor:
    r""":math:`\sum_i a_i b_i^\top` over the nodes of each graph, shape (graphs, p, q).

    Nodes are taken in pieces of one graph each, padded to one length: graphs of very different
    sizes take little more memory than they have nodes.

    Args:
        a: Shape :math:`(n, p)`.
        b: Shape :math:`(n, q)`.
        level: The graphs.
    """
    start, order = group(level.graph, level.num_graphs)
    order, size = order.long(), start.long().diff()
    graph = level.graph.index_select(0, order)
    place = torch.arange(len(order), device=order.device) - start.long().index_select(0, graph)
    pieces = (size + _PIECE - 1) // _PIECE
    first = pieces.cumsum(0) - pieces
    slot = first.index_select(0, graph) * _PIECE + place
    total = int(pieces.sum())

    def padded(x: Tensor) -> Tensor:
        room = x.new_zeros(total * _PIECE, x.shape[1])
        room = room.index_copy(0, slot, x.index_select(0, order))
        return room.view(total, _PIECE, x.shape[1])

    owner = torch.repeat_interleave(pieces, output_size=total)
    products = torch.bmm(padded(a).mT, padded(b))
    zeros = products.new_zeros(level.num_graphs, *products.shape[1:])
    return zeros.index_add(0, owner, products)

"""Scores of edges, and their shares: softmax, attention and sparsemax over each row."""

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from lookhops.ops.gpu import can_run_on, launch_over, tl, triton
from lookhops.ops.pattern import Pattern
from lookhops.ops.product import multiply
from lookhops.ops.ranking import nearness, ranked

BLOCK, WARPS = 64, 2  # rows that a program takes, and its warps
SLOPE = 0.2  # of the LeakyReLU of an attention, below zero


def edge_scores(source: Tensor, target: Tensor | None, pattern: Pattern) -> Tensor:
    r""":math:`a_j + b_i` for the edges from j to i, shape (e).

    A linear score of two ends side by side is the sum of two scores of one end each: nodes are
    projected first, and only numbers are gathered. Without ``target`` the :math:`b_i` are zero; the
    edges into node i are row i of the pattern.
    """
    if can_run_on(source):
        return _EdgeScores.apply(source, target, pattern)
    return _gathered(source, target, pattern)


def _gathered(source: Tensor, target: Tensor | None, pattern: Pattern) -> Tensor:
    score = source.index_select(0, pattern.column)
    return score if target is None else score + target.index_select(0, pattern.row)


class _EdgeScores(torch.autograd.Function):
    """The same without atomic additions, which on a GPU would meet at the last node: padding's."""

    @staticmethod
    def forward(ctx, source, target, pattern):
        ctx.pattern = pattern
        return _gathered(source, target, pattern)

    @staticmethod
    def backward(ctx, grad):
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
        return _Softmax.apply(score, pattern.row_ptr, counts, value)
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
        return _Attention.apply(source, target, pattern)
    return softmax(leaky_relu(edge_scores(source, target, pattern), SLOPE), pattern)


def sparsemax(score: Tensor, pattern: Pattern, size: Tensor | None = None) -> Tensor:
    r""":math:`\max(s_{ij} - \tau_i, 0)`, the point of the simplex nearest to each row, shape (e).

    As a softmax its entries add up to one in each row, but low scores get exactly zero:
    `Martins and Astudillo <https://arxiv.org/abs/1602.02068>`_. With the scores of a row in
    falling order, those count for which :math:`1 + r s_{(r)} > \sum_{l \le r} s_{(l)}`, and
    :math:`\tau` is their sum less one, over their number.

    Where ``size`` is given, shape :math:`(e)`, how large the numbers are from which a score was
    computed and whose rounding it therefore has, entries that are above zero by no more than
    rounding get zero too, and the others add up to one.
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

    At most half of the row's largest share: that one stays, and with it those that are equal to it.
    """
    largest, most = (
        value.new_zeros(rows).scatter_reduce(0, row, value, "amax") for value in (size, share)
    )
    return torch.minimum(nearness(share.dtype) * largest, most / 2).index_select(0, row)


class _Softmax(torch.autograd.Function):
    """Shares of the entries of each row of a pattern; entries past the last row's end get zero."""

    @staticmethod
    def forward(ctx, score, row_ptr, counts, value):
        share, rows = torch.zeros_like(score), row_ptr.numel() - 1
        given = row_ptr, score.contiguous(), counts, value, share, rows
        launch_over(_softmax_kernel, rows, BLOCK, *given, warps=WARPS)
        ctx.save_for_backward(share, row_ptr)
        return share

    @staticmethod
    def backward(ctx, grad):
        share, row_ptr = ctx.saved_tensors
        grad_score, rows = torch.zeros_like(share), row_ptr.numel() - 1
        given = row_ptr, share, grad.contiguous(), grad_score, rows
        launch_over(_softmax_backward_kernel, rows, BLOCK, *given, warps=WARPS)
        return grad_score, None, None, None


class _Attention(torch.autograd.Function):
    """Shares of the entries of each row: the softmax of LeakyReLU(a_j + b_i); padding gets zero."""

    @staticmethod
    def forward(ctx, source, target, pattern):
        ends, rows = (source.contiguous(), target.contiguous()), pattern.size
        share = torch.zeros(pattern.column.numel(), dtype=torch.float32, device=source.device)
        given = pattern.row_ptr.int(), pattern.column.int(), *ends, share, rows
        launch_over(_attend_kernel, rows, BLOCK, *given, SLOPE=SLOPE, warps=WARPS)
        ctx.save_for_backward(*ends, share)
        ctx.pattern = pattern
        return share

    @staticmethod
    def backward(ctx, grad):
        source, target, share = ctx.saved_tensors
        pattern, rows = ctx.pattern, ctx.pattern.size
        grad_score = torch.empty_like(share)
        grad_source, grad_target = torch.empty_like(source), torch.empty_like(target)
        entries = pattern.row_ptr.int(), pattern.column.int()
        given = *entries, source, target, share, grad.contiguous(), grad_score, grad_target, rows
        launch_over(_attend_backward_kernel, rows, BLOCK, *given, SLOPE=SLOPE, warps=WARPS)
        columns = pattern.transpose.row_ptr.int(), pattern.transpose_order
        launch_over(_add_kernel, rows, BLOCK, *columns, grad_score, grad_source, rows, warps=WARPS)
        return grad_source, grad_target, None


if triton is not None:

    @triton.jit
    def _rows_of(row_ptr, rows, BLOCK: tl.constexpr):
        """First and last entry of this program's rows, and the most that one of them has."""
        row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        start = tl.load(row_ptr + row, mask=row < rows, other=0)
        end = tl.load(row_ptr + row + 1, mask=row < rows, other=0)
        return start, end, tl.max((end - start).to(tl.int32), axis=0)

    @triton.jit
    def _load_score(score, counts, entry, end):
        """A score of each row, minus infinity where the entry does not count."""
        here = entry < end
        if counts is not None:
            here = here & (tl.load(counts + entry, mask=here, other=0) != 0)
        return tl.load(score + entry, mask=here, other=float("-inf")), here

    @triton.jit
    def _softmax_kernel(row_ptr, score, counts, value, share, rows, BLOCK: tl.constexpr):
        """v exp(s - max s) over its sum; zero where nothing counts."""
        start, end, longest = _rows_of(row_ptr, rows, BLOCK)
        highest = tl.full((BLOCK,), float("-inf"), tl.float32)
        for j in range(0, longest):
            highest = tl.maximum(highest, _load_score(score, counts, start + j, end)[0])
        highest = tl.where(highest == float("-inf"), 0.0, highest)
        total = tl.zeros((BLOCK,), tl.float32)
        for j in range(0, longest):
            own, here = _load_score(score, counts, start + j, end)
            part = tl.exp(own - highest)
            if value is not None:
                part *= tl.load(value + start + j, mask=here, other=0.0).to(tl.float32)
            total += part
        total = tl.where(total > 0, total, 1.0)
        for j in range(0, longest):
            own, here = _load_score(score, counts, start + j, end)
            part = tl.exp(own - highest)
            if value is not None:
                part *= tl.load(value + start + j, mask=here, other=0.0).to(tl.float32)
            tl.store(share + start + j, part / total, mask=here)

    @triton.jit
    def _softmax_backward_kernel(row_ptr, share, grad, grad_score, rows, BLOCK: tl.constexpr):
        """p (g - sum p g) over each row."""
        start, end, longest = _rows_of(row_ptr, rows, BLOCK)
        total = tl.zeros((BLOCK,), tl.float32)
        for j in range(0, longest):
            here = start + j < end
            part = tl.load(share + start + j, mask=here, other=0.0)
            total += part * tl.load(grad + start + j, mask=here, other=0.0)
        for j in range(0, longest):
            here = start + j < end
            part = tl.load(share + start + j, mask=here, other=0.0)
            own = tl.load(grad + start + j, mask=here, other=0.0)
            tl.store(grad_score + start + j, part * (own - total), mask=here)

    @triton.jit
    def _raw_score(column, source, own, entry, end):
        """a_j + b_i for an entry of each row, and which rows have one."""
        here = entry < end
        other = tl.load(column + entry, mask=here, other=0)
        return tl.load(source + other, mask=here, other=0.0).to(tl.float32) + own, here

    @triton.jit
    def _score(column, source, own, entry, end, SLOPE: tl.constexpr):
        """LeakyReLU of it, minus infinity where there is no entry."""
        raw, here = _raw_score(column, source, own, entry, end)
        return tl.where(here, tl.where(raw > 0, raw, raw * SLOPE), float("-inf")), here

    @triton.jit
    def _attend_kernel(
        row_ptr, column, source, target, share, rows, SLOPE: tl.constexpr, BLOCK: tl.constexpr
    ):
        """exp(s - max s) over its sum."""
        start, end, longest = _rows_of(row_ptr, rows, BLOCK)
        row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        own = tl.load(target + row, mask=row < rows, other=0.0).to(tl.float32)
        highest = tl.full((BLOCK,), float("-inf"), tl.float32)
        for j in range(0, longest):
            score = _score(column, source, own, start + j, end, SLOPE)[0]
            highest = tl.maximum(highest, score)
        highest = tl.where(highest == float("-inf"), 0.0, highest)
        total = tl.zeros((BLOCK,), tl.float32)
        for j in range(0, longest):
            total += tl.exp(_score(column, source, own, start + j, end, SLOPE)[0] - highest)
        total = tl.where(total > 0, total, 1.0)
        for j in range(0, longest):
            score, here = _score(column, source, own, start + j, end, SLOPE)
            tl.store(share + start + j, tl.exp(score - highest) / total, mask=here)

    @triton.jit
    def _attend_backward_kernel(
        row_ptr,
        column,
        source,
        target,
        share,
        grad,
        grad_score,
        grad_target,
        rows,
        SLOPE: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        """p (g - sum p g) times the slope, and its sum over each row."""
        start, end, longest = _rows_of(row_ptr, rows, BLOCK)
        row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        own = tl.load(target + row, mask=row < rows, other=0.0).to(tl.float32)
        mean = tl.zeros((BLOCK,), tl.float32)
        for j in range(0, longest):
            here = start + j < end
            part = tl.load(share + start + j, mask=here, other=0.0)
            mean += part * tl.load(grad + start + j, mask=here, other=0.0)
        total = tl.zeros((BLOCK,), tl.float32)
        for j in range(0, longest):
            raw, here = _raw_score(column, source, own, start + j, end)
            part = tl.load(share + start + j, mask=here, other=0.0)
            found = part * (tl.load(grad + start + j, mask=here, other=0.0) - mean)
            found = tl.where(raw > 0, found, found * SLOPE)
            tl.store(grad_score + start + j, found, mask=here)
            total += tl.where(here, found, 0.0)
        tl.store(grad_target + row, total.to(grad_target.dtype.element_ty), mask=row < rows)

    @triton.jit
    def _add_kernel(row_ptr, order, value, out, rows, BLOCK: tl.constexpr):
        """The sum of the values at each row's entries of the transpose."""
        start, end, longest = _rows_of(row_ptr, rows, BLOCK)
        row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        total = tl.zeros((BLOCK,), tl.float32)
        for j in range(0, longest):
            here = start + j < end
            entry = tl.load(order + start + j, mask=here, other=0)
            total += tl.load(value + entry, mask=here, other=0.0)
        tl.store(out + row, total.to(out.dtype.element_ty), mask=row < rows)

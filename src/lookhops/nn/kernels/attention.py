# mypy: allow-untyped-defs, allow-incomplete-defs
"""The attention of every node over the entries of its row, with its gradient."""

from __future__ import annotations

import torch

from lookhops.ops.kernels import tl, triton

BLOCK = 64  # rows that a program takes


class Attention(torch.autograd.Function):
    """Shares of the entries of each row: the softmax of LeakyReLU(a_j + b_i); padding gets zero."""

    @staticmethod
    def forward(ctx, source, target, pattern, slope):
        """One kernel over rows."""
        ends = source.contiguous(), target.contiguous()
        share = torch.zeros(pattern.column.numel(), dtype=torch.float32, device=source.device)
        grid, sizes = _blocks_of(pattern, slope)
        entries = pattern.row_ptr.int(), pattern.column.int()
        _attend_kernel[grid](*entries, *ends, share, **sizes)
        ctx.save_for_backward(*ends, share)
        ctx.pattern, ctx.slope = pattern, slope
        return share

    @staticmethod
    def backward(ctx, grad):
        """One kernel over rows, and one over columns, which adds up what the first one found."""
        source, target, share = ctx.saved_tensors
        pattern, slope = ctx.pattern, ctx.slope
        grid, sizes = _blocks_of(pattern, slope)
        entries = pattern.row_ptr.int(), pattern.column.int()
        grad_score, grad_target = torch.empty_like(share), torch.empty_like(target)
        given = (source, target, share, grad.contiguous())
        _attend_backward_kernel[grid](*entries, *given, grad_score, grad_target, **sizes)
        grad_source = torch.empty_like(source)
        sizes.pop("SLOPE")
        columns = pattern.transpose.row_ptr.int(), pattern.transpose_order
        _add_kernel[grid](*columns, grad_score, grad_source, **sizes)
        return grad_source, grad_target, None, None


def _blocks_of(pattern, slope):
    """The grid and the sizes of programs that each take some rows."""
    sizes = {"rows": pattern.size, "SLOPE": slope, "BLOCK": BLOCK, "num_warps": 2}
    return (triton.cdiv(pattern.size, BLOCK),), sizes


if triton is not None:
    from lookhops.nn.kernels.softmax import _rows_of

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
        row_ptr,
        column,
        source,
        target,
        share,
        rows,
        SLOPE: tl.constexpr,
        BLOCK: tl.constexpr,
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

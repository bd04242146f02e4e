# mypy: allow-untyped-defs, allow-incomplete-defs
"""The softmax over each row's entries, with its gradient."""

from __future__ import annotations

import torch

from lookhops.ops.kernels import tl, triton

BLOCK = 64  # rows that a program takes


class Softmax(torch.autograd.Function):
    """Shares of the entries of each row of a pattern; entries past the last row's end get zero."""

    @staticmethod
    def forward(ctx, score, row_ptr, counts, value):
        """One kernel over rows; value has no gradient."""
        share = torch.zeros_like(score)
        grid, sizes = _blocks_of(row_ptr)
        given = (row_ptr, score.contiguous(), counts, value)
        _softmax_kernel[grid](*given, share, **sizes)
        ctx.save_for_backward(share, row_ptr)
        return share

    @staticmethod
    def backward(ctx, grad):
        """One kernel over rows."""
        share, row_ptr = ctx.saved_tensors
        grad_score = torch.zeros_like(share)
        grid, sizes = _blocks_of(row_ptr)
        _softmax_backward_kernel[grid](row_ptr, share, grad.contiguous(), grad_score, **sizes)
        return grad_score, None, None, None


def _blocks_of(row_ptr):
    """The grid and the sizes of programs that each take some rows."""
    rows = row_ptr.numel() - 1
    return (triton.cdiv(rows, BLOCK),), {"rows": rows, "BLOCK": BLOCK, "num_warps": 2}


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

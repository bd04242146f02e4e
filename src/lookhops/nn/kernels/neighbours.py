# mypy: allow-untyped-defs, allow-incomplete-defs
"""The maximum over the neighbours of every node, with its gradient."""

from __future__ import annotations

import torch

from lookhops.ops.kernels import available, blocks_of, tl, triton


def fits(x: torch.Tensor) -> bool:
    """Whether the kernels can take these features, which may be of double precision."""
    return x.is_cuda and available() and x.numel() > 0


class NeighbourMax(torch.autograd.Function):
    """The maximum over each row's entries of a pattern, channel by channel, and x again.

    The maximum of no entry is zero. What is computed from this x has its gradient added here.
    """

    @staticmethod
    def forward(ctx, x, row_ptr, column, row_ptr_t, column_t):
        """One kernel over rows; it notes which part of the gradient each of the largest gets."""
        x = x.contiguous()
        highest = torch.empty_like(x)
        part = torch.empty_like(x, dtype=torch.promote_types(x.dtype, torch.float32))
        grid, sizes = _sizes_of(x)
        _highest_kernel[grid](row_ptr.int(), column.int(), x, highest, part, *x.shape, **sizes)
        ctx.save_for_backward(x, highest, part, row_ptr_t, column_t)
        ctx.set_materialize_grads(False)
        return highest, x

    @staticmethod
    def backward(ctx, grad, added):
        """One kernel over rows of the transpose."""
        x, highest, part, row_ptr_t, column_t = ctx.saved_tensors
        if grad is None:
            return added, None, None, None, None
        grad_x = torch.empty_like(x)
        grid, sizes = _sizes_of(x)
        added = None if added is None else added.contiguous()
        given = (row_ptr_t.int(), column_t.int(), x, highest, part, grad.contiguous(), added)
        _share_kernel[grid](*given, grad_x, *x.shape, **sizes)
        return grad_x, None, None, None, None


def _sizes_of(x):
    """The grid and the sizes of programs that each take a block of rows, and their precision."""
    grid, sizes = blocks_of(*x.shape)
    return grid, {"WIDE": tl.float64 if x.dtype == torch.float64 else tl.float32, **sizes}


if triton is not None:
    from lookhops.ops.kernels import ENTRIES

    @triton.jit
    def _block_of(row_ptr, rows, width, ROWS: tl.constexpr, CHANNELS: tl.constexpr):
        """Channels of this program, its elements' places, and the first and last of their entries.

        Beside them which channels and which elements exist, and the most entries of a row.
        """
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
        live = row < rows
        inside = channel < width
        place = row.to(tl.int64)[:, None] * width + channel[None, :]
        start = tl.load(row_ptr + row, mask=live, other=0)
        end = tl.load(row_ptr + row + 1, mask=live, other=0)
        longest = tl.max(end - start, axis=0)
        return channel, inside, place, live[:, None] & inside[None, :], start, end, longest

    @triton.jit
    def _highest_kernel(
        row_ptr,
        column,
        x,
        highest,
        part,
        rows,
        width,
        WIDE: tl.constexpr,
        ROWS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """The maximum over a row's entries, and one over the number of those that share it."""
        channel, inside, place, mask, start, end, longest = _block_of(
            row_ptr, rows, width, ROWS, CHANNELS
        )
        found = tl.full((ROWS, CHANNELS), float("-inf"), WIDE)
        ties = tl.zeros((ROWS, CHANNELS), WIDE)
        for first in range(0, longest, ENTRIES):
            for j in tl.static_range(ENTRIES):
                entry = start + first + j
                here = entry < end
                source = tl.load(column + entry, mask=here, other=0).to(tl.int64)
                both = here[:, None] & inside[None, :]
                there = source[:, None] * width + channel[None, :]
                value = tl.load(x + there, mask=both, other=float("-inf")).to(WIDE)
                ties = tl.where(value > found, 1.0, ties + (both & (value == found)).to(WIDE))
                found = tl.maximum(found, value)
        found = tl.where((end > start)[:, None], found, 0.0)
        ties = tl.maximum(ties, 1.0) + (found == 0).to(WIDE)
        tl.store(highest + place, found.to(highest.dtype.element_ty), mask=mask)
        tl.store(part + place, (1.0 / ties).to(part.dtype.element_ty), mask=mask)

    @triton.jit
    def _share_kernel(
        row_ptr,
        column,
        x,
        highest,
        part,
        grad,
        added,
        out,
        rows,
        width,
        WIDE: tl.constexpr,
        ROWS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """Over a row's entries the sum of their parts of the gradient, where x is the maximum.

        What is added to it comes from elsewhere.
        """
        channel, inside, place, mask, start, end, longest = _block_of(
            row_ptr, rows, width, ROWS, CHANNELS
        )
        own = tl.load(x + place, mask=mask, other=0.0)
        if added is None:
            total = tl.zeros((ROWS, CHANNELS), WIDE)
        else:
            total = tl.load(added + place, mask=mask, other=0.0).to(WIDE)
        for first in range(0, longest, ENTRIES):
            for j in tl.static_range(ENTRIES):
                entry = start + first + j
                here = entry < end
                source = tl.load(column + entry, mask=here, other=0).to(tl.int64)
                there = source[:, None] * width + channel[None, :]
                both = here[:, None] & inside[None, :]
                hit = both & (tl.load(highest + there, mask=both, other=0.0) == own)
                given = tl.load(grad + there, mask=hit, other=0.0).to(WIDE)
                total += given * tl.load(part + there, mask=hit, other=0.0).to(WIDE)
        tl.store(out + place, total.to(out.dtype.element_ty), mask=mask)

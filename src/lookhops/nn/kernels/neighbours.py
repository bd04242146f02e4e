# mypy: allow-untyped-defs, allow-incomplete-defs
"""The maximum over the neighbours of every node, with its gradient."""

from __future__ import annotations

import torch

from lookhops.hops.kernels import blocks_of, tl, triton


class NeighbourMax(torch.autograd.Function):
    """The maximum over each row's entries of a pattern, channel by channel."""

    @staticmethod
    def forward(ctx, x, row_ptr, column, row_ptr_t, column_t):
        """One kernel over rows."""
        x = x.contiguous()
        highest = torch.empty_like(x)
        _launch_neighbours(row_ptr, column, x, x, x, highest, "max")
        ctx.save_for_backward(x, highest, row_ptr, column, row_ptr_t, column_t)
        return highest

    @staticmethod
    def backward(ctx, grad):
        """Neighbours that share a maximum share its gradient: count them, then hand it back."""
        x, highest, row_ptr, column, row_ptr_t, column_t = ctx.saved_tensors
        share = torch.empty_like(x)
        _launch_neighbours(row_ptr, column, highest, x, x, share, "count")
        share = grad / share.clamp_(min=1).add_(highest == 0)
        grad_x = torch.empty_like(x)
        _launch_neighbours(row_ptr_t, column_t, x, highest, share, grad_x, "sum")
        return grad_x, None, None, None, None


def _launch_neighbours(row_ptr, column, own, theirs, weight, out, what):
    rows, width = out.shape
    grid, sizes = blocks_of(rows, width)
    entries = row_ptr.int(), column.int()
    _neighbours_kernel[grid](
        *entries, own, theirs, weight.contiguous(), out, rows, width, WHAT=what, **sizes
    )


if triton is not None:

    @triton.jit
    def _neighbours_kernel(
        row_ptr,
        column,
        own,
        theirs,
        weight,
        out,
        rows,
        width,
        WHAT: tl.constexpr,
        ROWS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """Over a row's entries the max of theirs, or count or sum of weight where own equals."""
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
        live = row < rows
        inside = channel < width
        place = row.to(tl.int64)[:, None] * width + channel[None, :]
        mask = live[:, None] & inside[None, :]
        start = tl.load(row_ptr + row, mask=live, other=0)
        end = tl.load(row_ptr + row + 1, mask=live, other=0)
        found = tl.full((ROWS, CHANNELS), float("-inf") if WHAT == "max" else 0.0, tl.float32)
        if WHAT != "max":
            mine = tl.load(own + place, mask=mask, other=0.0)
        for j in range(0, tl.max(end - start, axis=0)):
            entry = start + j
            here = entry < end
            source = tl.load(column + entry, mask=here, other=0).to(tl.int64)
            there = source[:, None] * width + channel[None, :]
            both = here[:, None] & inside[None, :]
            value = tl.load(theirs + there, mask=both, other=0.0)
            if WHAT == "max":
                found = tl.maximum(found, tl.where(both, value.to(tl.float32), float("-inf")))
            elif WHAT == "count":
                found += tl.where(both & (value == mine), 1.0, 0.0)
            else:
                given = tl.load(weight + there, mask=both, other=0.0).to(tl.float32)
                found += tl.where(both & (value == mine), given, 0.0)
        tl.store(out + place, found.to(out.dtype.element_ty), mask=mask)

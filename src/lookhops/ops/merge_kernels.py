# mypy: allow-untyped-defs, allow-incomplete-defs
"""A Triton kernel for the merge along a recurrence, forward and backward.

:func:`merge` stands for :func:`lookhops.ops.merge.merge_hops`, which tests hold it to.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.ops.kernels import ROWS as HOP_ROWS
from lookhops.ops.kernels import available, launch_hop, tl, triton

# One warp holds all rows of a block, so that their sums need no exchange; few rows, so that many
# warps wait for memory at the same time.
ROWS, GRADIENT_ROWS = 1, 2  # rows of a block
WARPS = 1
PROGRAMS = 4096  # about: two of the gradient for each place that an H200 has for one
MOST_BLOCKS = 4  # that a program takes: neighbours that lie close are then asked for once
FEWEST_SUMS, MOST_SUMS = 3, 16  # blocks whose sums a program of the gradient adds up
PARTS, PART_CHANNELS = 256, 32  # of the programs' sums that are added up at once


def merge_fits(x: Tensor, weight: Tensor) -> bool:
    """Whether :func:`merge` can take these tensors: one slice of weights for each block of rows."""
    slices = weight.shape[:-2].numel()
    rows = x.shape[:-1].numel()
    return (
        available()
        and 2 <= weight.shape[-2] <= 9
        and x.shape[-1] <= 256
        and x.dtype in (torch.float32, torch.bfloat16)
        and x.shape[:-2].numel() == slices
        and rows > 0
        and (slices == 1 or (rows // slices) % HOP_ROWS == 0)
    )


def merge(
    order: float,
    row_ptr: Tensor,
    column: Tensor,
    value: Tensor | None,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    other: Tensor | None,
    offset: Tensor | None,
) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor] | None, Tensor]:
    """Total, sums and hops of ``merge_hops``; ``order`` is 2 for Chebyshev's hops, 1 for powers."""
    shape, (count, channels) = x.shape, weight.shape[-2:]
    flat = x.reshape(-1, channels)
    rows, slices = flat.shape[0], weight.shape[:-2].numel()
    shift = offset if other is None else None
    hops = _hops_but_the_last(order, row_ptr, column, value, flat, count - 2, shift, slices)
    total = torch.empty_like(flat)
    # Sums over nodes are taken a program: those of several blocks of rows leave less to add up.
    block, fewest, most = ROWS, 1, MOST_BLOCKS
    if other is not None:
        block, fewest, most = GRADIENT_ROWS, FEWEST_SUMS, MOST_SUMS
    blocks = min(max(rows // (block * PROGRAMS), fewest), most)
    programs = triton.cdiv(rows // slices, block * blocks)  # of one slice
    parts = None
    if other is not None:
        shape_of_parts = (slices * programs, count + 2, channels)
        parts = torch.empty(shape_of_parts, dtype=torch.float32, device=x.device)
    given = (weight, bias, other, offset)
    _merge_kernel[(slices * programs,)](
        row_ptr,
        column,
        value,
        flat,
        hops if count > 2 else None,
        *(None if one is None else one.contiguous() for one in given),
        total,
        parts,
        rows,
        rows // slices,
        programs,
        blocks,
        channels,
        K=count - 1,
        CHEBYSHEV=order == 2,
        ROWS=block,
        CHANNELS=triton.next_power_of_2(channels),
        num_warps=WARPS,
        num_stages=1,
    )
    sums = None if parts is None else add_up(parts, weight)
    return total.view(shape), sums, hops.view(-1, *shape)


def add_up(parts: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What the programs of each slice found, added up: of x, of products, of the total."""
    stack, (count, channels) = weight.shape[:-2], weight.shape[-2:]
    slices = stack.numel()
    shapes = (*stack, channels), (*stack, count, channels), (*stack, channels)
    own, products, of_total = (
        torch.empty(s, dtype=parts.dtype, device=parts.device) for s in shapes
    )
    _add_up_kernel[slices, count + 2, triton.cdiv(channels, PART_CHANNELS)](
        parts,
        own,
        products,
        of_total,
        len(parts) // slices,
        count,
        channels,
        PARTS=PARTS,
        CHANNELS=PART_CHANNELS,
        num_warps=8,
    )
    return own, products, of_total


def _hops_but_the_last(
    order: float,
    row_ptr: Tensor,
    column: Tensor,
    value: Tensor | None,
    x: Tensor,
    count: int,
    offset: Tensor | None,
    slices: int,
) -> Tensor:
    """T_1 x to T_count x, written out; the hop after them is merged where it is computed."""
    hops = torch.empty(max(count, 0), *x.shape, dtype=x.dtype, device=x.device)
    for j in range(count):  # hops[j] = T_{j+1} x
        last = x if j == 0 else hops[j - 1]
        before = None if order == 1 or j == 0 else x if j == 1 else hops[j - 2]
        shifts = offset if j == 0 else None, offset if j == 1 else None
        launch_hop(row_ptr, column, value, last, before, hops[j], *shifts, slices)
    return hops


if triton is not None:
    from lookhops.ops.kernels import gather_rows, load_shift

    @triton.jit
    def _merge_kernel(
        row_ptr,
        column,
        value,
        x,
        hops,
        weight,
        bias,
        other,
        offset,
        total,
        parts,
        rows,
        rows_a_slice,
        programs_a_slice,
        blocks,
        width,
        K: tl.constexpr,
        CHEBYSHEV: tl.constexpr,
        ROWS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """total = sum_j w_j T_j x + b, the last hop computed here; sums of T_j x times other.

        An offset stands for a bias that x lacks, or other where there is one. A program takes
        some blocks of rows of one slice of the weights, and adds up their sums.
        """
        program = tl.program_id(0)
        part = program // programs_a_slice  # which slice of the weights it belongs to
        first = part * rows_a_slice + (program % programs_a_slice) * (ROWS * blocks)
        end = (part + 1) * rows_a_slice
        channel = tl.arange(0, CHANNELS)
        inside = channel < width
        size = tl.zeros((), tl.int64) + rows * width
        weight += part * (K + 1) * width + channel
        shift = load_shift(offset, part, channel, inside, width)
        hop_shift = shift if other is None else shift * 0
        own = load_shift(bias, part, channel, inside, width)
        found = (tl.zeros((CHANNELS,), tl.float32),) * (K + 3)

        for block in range(blocks):
            row = first + block * ROWS + tl.arange(0, ROWS)
            live = row < end
            place = row.to(tl.int64)[:, None] * width + channel[None, :]
            mask = live[:, None] & inside[None, :]
            hop = tl.load(x + place, mask=mask, other=0.0).to(tl.float32)
            if other is not None:
                with_other = tl.load(other + place, mask=mask, other=0.0).to(tl.float32)
                with_other = tl.where(mask, with_other + shift[None, :], 0.0)
                found = (found[0] + tl.sum(hop, axis=0),) + found[1:]
            hop = tl.where(mask, hop + hop_shift[None, :], 0.0)
            before = hop
            merged = tl.zeros((ROWS, CHANNELS), dtype=tl.float32) + own[None, :]
            for j in tl.static_range(0, K + 1):
                if j > 0:
                    if j < K:  # written out before
                        there = hops + (j - 1) * size + place
                        now = tl.load(there, mask=mask, other=0.0).to(tl.float32)
                    else:
                        if K == 1:
                            last, by = x, hop_shift
                        else:
                            last, by = hops + (K - 2) * size, hop_shift * 0
                        now = gather_rows(
                            row_ptr, column, value, last, row, live, channel, inside, width, by
                        )
                        if CHEBYSHEV and K > 1:
                            now = 2 * now - before
                    before = hop
                    hop = now
                factor = tl.load(weight + j * width, mask=inside, other=0.0).to(tl.float32)
                merged += hop * factor[None, :]
                if other is not None:
                    products = found[j + 1] + tl.sum(hop * with_other, axis=0)
                    found = found[: j + 1] + (products,) + found[j + 2 :]
            if other is not None:
                merged = tl.where(mask, merged, 0.0)
                found = found[: K + 2] + (found[K + 2] + tl.sum(merged, axis=0),)
            tl.store(total + place, merged.to(total.dtype.element_ty), mask=mask)
        if other is not None:
            parts += program * (K + 3) * width + channel
            for j in tl.static_range(0, K + 3):
                tl.store(parts + j * width, found[j], mask=inside)

    @triton.jit
    def _add_up_kernel(
        parts,
        own,
        products,
        of_total,
        programs,
        count,
        width,
        PARTS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """The sums of one slice over its programs, each to where its parameter's gradient is."""
        part = tl.program_id(0)
        number = tl.program_id(1)
        channel = tl.program_id(2) * CHANNELS + tl.arange(0, CHANNELS)
        inside = channel < width
        found = tl.zeros((PARTS, CHANNELS), tl.float32)
        for first in range(0, programs, PARTS):
            program = first + tl.arange(0, PARTS)
            row = (part * programs + program).to(tl.int64) * (count + 2) + number
            here = (program < programs)[:, None] & inside[None, :]
            found += tl.load(parts + row[:, None] * width + channel[None, :], mask=here, other=0.0)
        total = tl.sum(found, axis=0)
        if number == 0:
            tl.store(own + part * width + channel, total, mask=inside)
        elif number == count + 1:
            tl.store(of_total + part * width + channel, total, mask=inside)
        else:
            row = part * count + number - 1
            tl.store(products + row * width + channel, total, mask=inside)

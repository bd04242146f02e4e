# mypy: allow-untyped-defs, allow-incomplete-defs
"""Triton kernels for NVIDIA GPUs: the product, and the merge along a recurrence.

Each stands for a few lines of PyTorch elsewhere, which tests hold it to: :func:`multiply` for
:func:`lookhops.hops.product.multiply`, :func:`merge` for :func:`lookhops.hops.merge.merge_hops`.
A program takes a block of rows and all their channels, so a row of ``x`` is read in one piece.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

ROWS = 8  # rows a program takes
WARPS = 2  # measured: with these two a program's sums stay within few threads
BLOCKS = 1  # blocks of rows whose sums a program of the gradient adds up
MOST_CHANNELS = 1024  # a program holds a block of rows with all their channels in registers

if TYPE_CHECKING:
    triton: Any
    tl: Any
else:
    try:
        import triton
        import triton.language as tl
    except ImportError:  # no GPU build: PyTorch's own operators do the work
        triton = tl = None


@cache
def available() -> bool:
    """Whether the kernels can run here."""
    return triton is not None and torch.cuda.is_available()


def can_run_on(x: Tensor) -> bool:
    """Whether kernels take ``x``: it has elements, lies on a GPU, and is not double precision."""
    return x.is_cuda and x.dtype != torch.float64 and available() and x.numel() > 0


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
        and (slices == 1 or (rows // slices) % ROWS == 0)
    )


def multiply(row_ptr: Tensor, column: Tensor, value: Tensor | None, x: Tensor) -> Tensor:
    """The product of a CSR matrix with ``x`` of shape (n, d)."""
    row_ptr, column, x = row_ptr.int(), column.int(), x.contiguous()
    out = torch.empty(row_ptr.numel() - 1, x.shape[1], dtype=x.dtype, device=x.device)
    _launch_hop(row_ptr, column, value, x, None, out)
    return out


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
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Total, sums and hops of ``merge_hops``; ``order`` is 2 for Chebyshev's hops, 1 for powers."""
    # All hops but the last are written out; the last one is merged with them where it is computed.
    shape, (count, channels) = x.shape, weight.shape[-2:]
    flat = x.reshape(-1, channels)
    rows, slices = flat.shape[0], weight.shape[:-2].numel()
    hops = torch.empty(max(count - 2, 0), rows, channels, dtype=x.dtype, device=x.device)
    for j in range(count - 2):  # hops[j] = T_{j+1} x
        last = flat if j == 0 else hops[j - 1]
        before = None if order == 1 or j == 0 else flat if j == 1 else hops[j - 2]
        on_the_way = offset if other is None and j == 0 else None
        before_offset = offset if other is None and j == 1 else None
        _launch_hop(
            row_ptr, column, value, last, before, hops[j], on_the_way, before_offset, slices
        )
    total = torch.empty_like(flat)
    # Sums over nodes are taken a program: those of several blocks of rows leave less to add up.
    blocks = 1 if other is None else BLOCKS
    programs = triton.cdiv(rows // slices, ROWS * blocks)  # of one slice
    sums = None
    if other is not None:
        shape_of_sums = (slices * programs, count + 2, channels)
        sums = torch.empty(shape_of_sums, dtype=torch.float32, device=x.device)
    _merge_kernel[(slices * programs,)](
        row_ptr,
        column,
        value if value is not None else flat,
        flat,
        hops if count > 2 else flat,
        weight.contiguous(),
        bias.contiguous() if bias is not None else flat,
        other.contiguous() if other is not None else flat,
        offset.contiguous() if offset is not None else flat,
        total,
        sums if sums is not None else flat,
        rows,
        rows // slices,
        programs,
        channels,
        K=count - 1,
        CHEBYSHEV=order == 2,
        HAS_VALUE=value is not None,
        HAS_BIAS=bias is not None,
        HAS_OTHER=other is not None,
        HAS_OFFSET=offset is not None,
        ROWS=ROWS,
        BLOCKS=blocks,
        SUMS=triton.next_power_of_2(count + 2),
        CHANNELS=triton.next_power_of_2(channels),
        num_warps=WARPS,
        num_stages=1,
    )
    if sums is not None:
        sums = sums.view(*weight.shape[:-2], -1, count + 2, channels).sum(-3)
    return total.view(shape), sums, hops.view(-1, *shape)


def _launch_hop(
    row_ptr: Tensor,
    column: Tensor,
    value: Tensor | None,
    x: Tensor,
    before: Tensor | None,
    out: Tensor,
    offset: Tensor | None = None,
    before_offset: Tensor | None = None,
    slices: int = 1,
) -> None:
    rows, channels = out.shape
    block = min(triton.next_power_of_2(channels), MOST_CHANNELS)
    # Narrow rows leave a program little to do: give it more of them.
    rows_each = ROWS if slices > 1 else max(ROWS, 512 // block)
    _hop_kernel[(triton.cdiv(rows, rows_each), triton.cdiv(channels, block))](
        row_ptr,
        column,
        value if value is not None else x,
        x,
        before if before is not None else x,
        offset if offset is not None else before_offset if before_offset is not None else x,
        out,
        rows,
        rows // slices,
        channels,
        HAS_VALUE=value is not None,
        HAS_BEFORE=before is not None,
        HAS_OFFSET=offset is not None,
        BEFORE_OFFSET=before_offset is not None,
        ROWS=rows_each,
        CHANNELS=block,
        num_warps=4,
        num_stages=1,
    )


if triton is not None:

    @triton.jit
    def _gather(row_ptr, column, value, x, row, live, channel, inside, width, shift, HAS_VALUE):
        """Sum over each row's entries of value times the (shifted) row of x in its column."""
        start = tl.load(row_ptr + row, mask=live, other=0)
        end = tl.load(row_ptr + row + 1, mask=live, other=0)
        total = tl.zeros((row.shape[0], channel.shape[0]), dtype=tl.float32)
        for j in range(0, tl.max((end - start).to(tl.int32), axis=0)):
            entry = start + j
            here = entry < end
            source = tl.load(column + entry, mask=here, other=0).to(tl.int64)
            part = tl.load(
                x + source[:, None] * width + channel[None, :],
                mask=here[:, None] & inside[None, :],
                other=0.0,
            ).to(tl.float32)
            part = tl.where(here[:, None], part + shift[None, :], 0.0)
            if HAS_VALUE:
                part *= tl.load(value + entry, mask=here, other=0.0).to(tl.float32)[:, None]
            total += part
        return total

    @triton.jit
    def _hop_kernel(
        row_ptr,
        column,
        value,
        x,
        before,
        offset,
        out,
        rows,
        rows_a_slice,
        width,
        HAS_VALUE: tl.constexpr,
        HAS_BEFORE: tl.constexpr,
        HAS_OFFSET: tl.constexpr,
        BEFORE_OFFSET: tl.constexpr,
        ROWS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """out = A x, or 2 A x - before; an offset stands for a bias that x, or before, lacks."""
        block = tl.program_id(0)
        row = block * ROWS + tl.arange(0, ROWS)
        channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
        live = row < rows
        inside = channel < width
        shift = tl.zeros((CHANNELS,), tl.float32)
        if HAS_OFFSET or BEFORE_OFFSET:
            part = (block * ROWS) // rows_a_slice
            shift = tl.load(offset + part * width + channel, mask=inside, other=0.0).to(tl.float32)
        hop_shift = shift if HAS_OFFSET else shift * 0
        total = _gather(
            row_ptr, column, value, x, row, live, channel, inside, width, hop_shift, HAS_VALUE
        )
        place = row.to(tl.int64)[:, None] * width + channel[None, :]
        mask = live[:, None] & inside[None, :]
        if HAS_BEFORE:
            earlier = tl.load(before + place, mask=mask, other=0.0).to(tl.float32)
            if BEFORE_OFFSET:
                earlier += shift[None, :]
            total = 2 * total - earlier
        tl.store(out + place, total.to(out.dtype.element_ty), mask=mask)

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
        sums,
        rows,
        rows_a_slice,
        programs_a_slice,
        width,
        K: tl.constexpr,
        CHEBYSHEV: tl.constexpr,
        HAS_VALUE: tl.constexpr,
        HAS_BIAS: tl.constexpr,
        HAS_OTHER: tl.constexpr,
        HAS_OFFSET: tl.constexpr,
        ROWS: tl.constexpr,
        BLOCKS: tl.constexpr,
        SUMS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """total = sum_j w_j T_j x + b, the last hop computed here; sums of T_j x times other.

        An offset stands for a bias that x lacks, or other where there is one. A program takes
        BLOCKS blocks of rows of one slice of the weights, and adds up their sums.
        """
        program = tl.program_id(0)
        part = program // programs_a_slice  # which slice of the weights it belongs to
        first = part * rows_a_slice + (program % programs_a_slice) * (ROWS * BLOCKS)
        end = (part + 1) * rows_a_slice
        channel = tl.arange(0, CHANNELS)
        inside = channel < width
        size = tl.zeros((), tl.int64) + rows * width
        weight += part * (K + 1) * width + channel
        shift = tl.zeros((CHANNELS,), tl.float32)
        if HAS_OFFSET:
            shift = tl.load(offset + part * width + channel, mask=inside, other=0.0).to(tl.float32)
        hop_shift = shift * 0 if HAS_OTHER else shift
        own = tl.zeros((CHANNELS,), tl.float32)
        if HAS_BIAS:
            own = tl.load(bias + part * width + channel, mask=inside, other=0.0).to(tl.float32)
        number = tl.arange(0, SUMS)[:, None]
        found = tl.zeros((SUMS, CHANNELS), tl.float32)

        for block in range(BLOCKS):
            row = first + block * ROWS + tl.arange(0, ROWS)
            live = row < end
            place = row.to(tl.int64)[:, None] * width + channel[None, :]
            mask = live[:, None] & inside[None, :]
            hop = tl.load(x + place, mask=mask, other=0.0).to(tl.float32)
            if HAS_OTHER:
                with_other = tl.load(other + place, mask=mask, other=0.0).to(tl.float32)
                with_other = tl.where(mask, with_other + shift[None, :], 0.0)
                found += tl.where(number == 0, tl.sum(hop, axis=0)[None, :], 0.0)
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
                        now = _gather(
                            row_ptr,
                            column,
                            value,
                            last,
                            row,
                            live,
                            channel,
                            inside,
                            width,
                            by,
                            HAS_VALUE,
                        )
                        if CHEBYSHEV and K > 1:
                            now = 2 * now - before
                    before = hop
                    hop = now
                factor = tl.load(weight + j * width, mask=inside, other=0.0).to(tl.float32)
                merged += hop * factor[None, :]
                if HAS_OTHER:
                    products = tl.sum(hop * with_other, axis=0)
                    found += tl.where(number == j + 1, products[None, :], 0.0)
            if HAS_OTHER:
                merged = tl.where(mask, merged, 0.0)
                found += tl.where(number == K + 2, tl.sum(merged, axis=0)[None, :], 0.0)
            tl.store(total + place, merged.to(total.dtype.element_ty), mask=mask)
        if HAS_OTHER:
            there = sums + (program * (K + 3) + number) * width + channel[None, :]
            tl.store(there, found, mask=(number < K + 3) & inside[None, :])

# mypy: allow-untyped-defs, allow-incomplete-defs
"""A Triton kernel for NVIDIA GPUs: one hop, a sparse matrix times features.

:func:`multiply` stands for :func:`lookhops.hops.product.multiply`, which tests hold it to. A
program takes a block of rows and all their channels, so a row of ``x`` is read in one piece.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

ROWS = 8  # rows a program takes
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


def multiply(row_ptr: Tensor, column: Tensor, value: Tensor | None, x: Tensor) -> Tensor:
    """The product of a CSR matrix with ``x`` of shape (n, d)."""
    row_ptr, column, x = row_ptr.int(), column.int(), x.contiguous()
    out = torch.empty(row_ptr.numel() - 1, x.shape[1], dtype=x.dtype, device=x.device)
    launch_hop(row_ptr, column, value, x, None, out)
    return out


def launch_hop(
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
    """Write A x, or 2 A x - before, to ``out``; an offset is added to rows of x, or of before."""
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
    def gather_rows(row_ptr, column, value, x, row, live, channel, inside, width, shift, HAS_VALUE):
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
        total = gather_rows(
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

# mypy: allow-untyped-defs, allow-incomplete-defs
"""A Triton kernel for products of stacked matrices: the accuracy of float32, on tensor cores.

:func:`product` stands for :func:`torch.bmm`, which tests hold it to. Tensor cores take factors of
11 bits. Each factor is taken apart into two of those, and three of the four products of the parts
are added up ("tf32x3"). What is left out, and what the smaller part lacks, is at most 2^-21 of a
term, which the rounding of sums in float32 reaches too from 16 terms on. Three products on tensor
cores take less time than one in float32 without them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.hops.kernels import available, tl, triton

# Rows and columns of the product that a program finds, and the terms of its sums that it takes at
# once: parts of the factors lie in registers, two programs to a multiprocessor.
ROWS, COLUMNS, TERMS = 64, 128, 32
WARPS, STAGES = 4, 3
PROGRAMS = 264  # that an H200 runs at once
FEWEST_STEPS = 4  # of TERMS, in a piece of a long sum
NARROWEST, WIDEST = 16, 256  # channels


def fits(x: Tensor, *widths: int) -> bool:
    """Whether :func:`product` is used for ``x`` and matrices of these widths.

    It is for single precision where nobody has asked for less, on GPUs as those it was tried on:
    of others, many have too few tensor cores for it to pay.
    """
    return (
        x.is_cuda
        and x.dtype == torch.float32
        and x.numel() > 0
        and all(NARROWEST <= width <= WIDEST for width in widths)
        and torch.get_float32_matmul_precision() == "highest"
        and available()
        and torch.cuda.get_device_capability(x.device) == (9, 0)
    )


def product(a: Tensor, b: Tensor) -> Tensor:
    """The products of every slice, (s, m, k) times (s, k, n), of any strides."""
    slices, rows, length = a.shape
    columns = b.shape[-1]
    block = min(max(triton.next_power_of_2(columns), 16), COLUMNS)
    tiles = triton.cdiv(rows, ROWS) * triton.cdiv(columns, block)
    # Long sums with few outputs are taken in pieces, or they would leave most of a GPU idle.
    pieces = max(PROGRAMS // (slices * tiles), 1)
    steps = max(triton.cdiv(length, TERMS * pieces), FEWEST_STEPS)
    pieces = triton.cdiv(length, TERMS * steps)
    out = torch.empty(slices, pieces, rows, columns, dtype=a.dtype, device=a.device)
    _product_kernel[(tiles, pieces, slices)](
        a,
        b,
        out,
        rows,
        columns,
        length,
        steps * TERMS,
        *a.stride(),
        *b.stride(),
        ROWS=ROWS,
        COLUMNS=block,
        TERMS=TERMS,
        num_warps=WARPS,
        num_stages=STAGES,
    )
    return out.squeeze(1) if pieces == 1 else out.sum(1)


if triton is not None:

    @triton.jit
    def _product_kernel(
        a,
        b,
        out,
        rows,
        columns,
        length,
        piece_length,
        a_slice,
        a_row,
        a_column,
        b_slice,
        b_row,
        b_column,
        ROWS: tl.constexpr,
        COLUMNS: tl.constexpr,
        TERMS: tl.constexpr,
    ):
        """out = a b for a block of rows and columns of one slice, over one piece of the sums."""
        tile, piece = tl.program_id(0), tl.program_id(1)
        part = tl.program_id(2).to(tl.int64)  # which slice this block belongs to
        across = tl.cdiv(columns, COLUMNS)
        first_row = (tile // across * ROWS).to(tl.int64)
        first_term = (piece * piece_length).to(tl.int64)
        row = tl.arange(0, ROWS)
        column = tile % across * COLUMNS + tl.arange(0, COLUMNS)
        term = tl.arange(0, TERMS)
        live = (first_row + row < rows)[:, None]
        inside = (column < columns)[None, :]
        end = tl.minimum(length - first_term, piece_length).to(tl.int32)
        a += part * a_slice + first_row * a_row + first_term * a_column
        b += part * b_slice + first_term * b_row
        total = tl.zeros((ROWS, COLUMNS), tl.float32)
        for first in range(0, end, TERMS):
            now = first + term
            left = a + row[:, None] * a_row + now[None, :] * a_column
            right = b + now[:, None] * b_row + column[None, :] * b_column
            left = tl.load(left, mask=live & (now < end)[None, :], other=0.0)
            right = tl.load(right, mask=inside & (now < end)[:, None], other=0.0)
            total = tl.dot(left, right, total, input_precision="tf32x3")
        out += ((part * tl.num_programs(1) + piece) * rows + first_row) * columns
        tl.store(out + row[:, None] * columns + column[None, :], total, mask=live & inside)

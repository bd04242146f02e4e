# mypy: allow-untyped-defs, allow-incomplete-defs
"""A Triton kernel for products of stacked matrices: the accuracy of float32, on tensor cores.

:func:`product` and :func:`product_of_columns` stand for :func:`torch.bmm`: tests hold them to it.
Tensor cores take factors of few bits, so each factor is taken apart, and the products of its parts
are added up. Of two parts of 11 bits each ("tf32x3") three of the four products are: what is left
out, and what the smaller part lacks, is at most 2^-20 of a term, which the rounding of sums in
float32 reaches too from 16 terms on. Tensor cores take such parts along rows of the left factor and
columns of the right one alone. Of three parts of 8 bits (bfloat16), which they take either way, six
of the nine are. Both take less time than one product in float32 without tensor cores.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.ops.kernels import available, tl, triton

# Rows and columns of the product that a program finds: parts of the factors lie in registers.
ROWS, COLUMNS, COLUMNS_OF_LONG_SUMS = 64, 64, 128
TERMS = 32  # of its sums that it takes at once
WARPS = 4
PROGRAMS = 264  # of long sums, that an H200 runs at once
FEWEST_STEPS = 4  # of TERMS, in a piece of a long sum
NARROWEST, STEP, WIDEST = 16, 16, 256  # channels


def fits(x: Tensor, *widths: int) -> bool:
    """Whether :func:`product` is used for ``x`` and matrices of these widths.

    It is for single precision where nobody has asked for less, on GPUs as those it was tried on:
    of others, many have too few tensor cores for it to pay.
    """
    return (
        x.is_cuda
        and x.dtype == torch.float32
        and x.numel() > 0
        and all(NARROWEST <= width <= WIDEST and width % STEP == 0 for width in widths)
        and torch.get_float32_matmul_precision() == "highest"
        and available()
        and torch.cuda.get_device_capability(x.device) == (9, 0)
    )


def product(a: Tensor, b: Tensor) -> Tensor:
    """The products of every slice, (s, m, k) times the transpose of (s, n, k)."""
    return _product(a.contiguous(), b.contiguous().mT, 1, COLUMNS, stages=3)


def product_of_columns(a: Tensor, b: Tensor) -> Tensor:
    """The products of every slice, the transpose of (s, k, m) times (s, k, n), for a large k.

    Few outputs would leave most of a GPU idle: sums are taken in pieces.
    """
    slices, length, rows = a.shape
    columns = min(max(triton.next_power_of_2(b.shape[-1]), 16), COLUMNS_OF_LONG_SUMS)
    tiles = triton.cdiv(rows, ROWS) * triton.cdiv(b.shape[-1], columns)
    pieces = max(PROGRAMS // (slices * tiles), 1)
    steps = max(triton.cdiv(length, TERMS * pieces), FEWEST_STEPS)
    pieces = triton.cdiv(length, TERMS * steps)
    found = _product(a.contiguous().mT, b.contiguous(), pieces, columns, stages=1)
    return found if pieces == 1 else found.view(slices, pieces, *found.shape[1:]).sum(1)


def _product(a: Tensor, b: Tensor, pieces: int, block: int, stages: int) -> Tensor:
    """The products of every slice, the sums of each in so many pieces, one after the other."""
    slices, rows, length = a.shape
    columns = b.shape[-1]
    out = torch.empty(slices * pieces, rows, columns, dtype=a.dtype, device=a.device)
    tiles = triton.cdiv(rows, ROWS) * triton.cdiv(columns, block)
    each = triton.cdiv(triton.cdiv(length, TERMS), pieces) * TERMS
    _product_kernel[(tiles, pieces, slices)](
        a,
        b,
        out,
        rows,
        columns,
        length,
        each,
        *a.stride(),
        *b.stride(),
        ROWS=ROWS,
        COLUMNS=block,
        TERMS=TERMS,
        ALONG_SUMS=a.stride(2) == 1,
        num_warps=WARPS,
        num_stages=stages,
    )
    return out


if triton is not None:

    @triton.jit
    def _dot_of_three_parts(left, right):
        """The product of two blocks, by six of bfloat16, the smallest first."""
        high = left.to(tl.bfloat16)
        rest = left - high.to(tl.float32)
        middle = rest.to(tl.bfloat16)
        low = (rest - middle.to(tl.float32)).to(tl.bfloat16)
        right_high = right.to(tl.bfloat16)
        rest = right - right_high.to(tl.float32)
        right_middle = rest.to(tl.bfloat16)
        right_low = (rest - right_middle.to(tl.float32)).to(tl.bfloat16)
        found = tl.dot(low, right_high)
        found = tl.dot(high, right_low, found)
        found = tl.dot(middle, right_middle, found)
        found = tl.dot(middle, right_high, found)
        found = tl.dot(high, right_middle, found)
        return tl.dot(high, right_high, found)

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
        ALONG_SUMS: tl.constexpr,
    ):
        """out = a b for a block of rows and columns of one slice, over one piece of the sums.

        Where neighbours in memory are terms of one sum the parts are two, else three.
        """
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
            if ALONG_SUMS:
                total = tl.dot(left, right, total, input_precision="tf32x3")
            else:
                total += _dot_of_three_parts(left, right)
        out += ((part * tl.num_programs(1) + piece) * rows + first_row) * columns
        tl.store(out + row[:, None] * columns + column[None, :], total, mask=live & inside)

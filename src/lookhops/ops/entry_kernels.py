# mypy: allow-untyped-defs, allow-incomplete-defs
"""A Triton kernel for what the entries of a sparse matrix learn from: products of two nodes' rows.

:func:`entry_products` stands for :func:`lookhops.ops.product.entry_products`, and
:func:`merge_entries` for :func:`lookhops.ops.merge.merge_entries`. A program takes a block of rows
with all their channels, keeps them, and meets the row of every entry's column once.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lookhops.ops.kernels import MOST_CHANNELS, blocks_of, tl, triton


def entry_products(row_ptr: Tensor, column: Tensor, g: Tensor, x: Tensor) -> Tensor:
    """The products of ``g``, shape (n, d), at the row of each entry and ``x`` at its column."""
    out = torch.zeros(column.numel(), dtype=torch.float32, device=x.device)
    g, x = g.contiguous(), x.contiguous()
    for first in range(0, x.shape[1], MOST_CHANNELS):
        _launch(row_ptr, column, [g], x, None, None, out, first=first)
    return out.to(x.dtype)


def merge_entries(
    order: float,
    row_ptr: Tensor,
    column: Tensor,
    left: Sequence[Tensor],
    right: Sequence[Tensor],
    weight: Tensor,
    offset: Tensor | None,
) -> Tensor:
    """As the plain one; ``order`` is 2 for Chebyshev's recurrence, whose weights are summed up."""
    out = torch.zeros(column.numel(), dtype=torch.float32, device=weight.device)
    weight, k = weight.contiguous(), weight.shape[-2] - 1
    for b in range(k):
        shift = offset if b == 0 else None
        _launch(row_ptr, column, left[: k - b], right[b], weight, shift, out, order=order, after=b)
    return out.to(weight.dtype)


def _launch(
    row_ptr: Tensor,
    column: Tensor,
    left: Sequence[Tensor],
    x: Tensor,
    weight: Tensor | None,
    offset: Tensor | None,
    out: Tensor,
    order: float = 1.0,
    after: int = 0,
    first: int = 0,
) -> None:
    """Add to ``out``: the sum of ``left``, each times its weight, at rows, times ``x`` at columns.

    Args:
        row_ptr: Offsets of the rows.
        column: Column of each entry.
        left: One tensor or several, in terms of hops, each of as many rows and channels as ``x``.
        x: What is met at the columns.
        weight: The weights of a merge, shape (..., k + 1, d), or none: ``left`` is one tensor then.
        offset: Is added to every row of ``x``.
        out: One number an entry.
        order: 2 where the weights are those of Chebyshev polynomials.
        after: Hops of ``x``; ``left[a]`` has the weight of ``a + after + 1`` hops.
        first: The channel to begin with.
    """
    rows, width = row_ptr.numel() - 1, x.shape[-1]
    slices = 1 if weight is None else weight.shape[:-2].numel()
    (programs, _), sizes = blocks_of(rows, width - first, slices)
    hops = torch.stack(list(left[1:])) if len(left) > 2 else left[-1]
    offset = None if offset is None else offset.contiguous()
    given = (row_ptr, column, left[0], hops, x, weight, offset)
    count = 0 if weight is None else weight.shape[-2]
    terms = {"LEFT": len(left), "AFTER": after, "COUNT": count, "DOUBLE": order}
    _entry_kernel[(programs,)](*given, out, rows, rows // slices, width, first, **terms, **sizes)


if triton is not None:
    from lookhops.ops.kernels import load_rows, load_shift

    @triton.jit
    def _meet(column, x, own, shift, entry, end, channel, inside, width):
        """The product of each row with that of x in an entry's column."""
        here = entry < end
        source = tl.load(column + entry, mask=here, other=0).to(tl.int64)
        met = load_rows(x, source, here, channel, inside, width)
        return tl.sum(own * (met + shift[None, :]), axis=1)

    @triton.jit
    def _add_to(out, entry, end, found):
        """Add to an entry of each row."""
        here = entry < end
        tl.store(out + entry, tl.load(out + entry, mask=here, other=0.0) + found, mask=here)

    @triton.jit
    def _entry_kernel(
        row_ptr,
        column,
        left,
        hops,
        x,
        weight,
        offset,
        out,
        rows,
        rows_a_slice,
        width,
        first,
        LEFT: tl.constexpr,
        AFTER: tl.constexpr,
        COUNT: tl.constexpr,
        DOUBLE: tl.constexpr,
        ROWS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """out[e] += (sum_a w_a left_a)[row of e] . (x + offset)[column of e]."""
        block = tl.program_id(0)
        row = block * ROWS + tl.arange(0, ROWS)
        channel = first + tl.arange(0, CHANNELS)
        live = row < rows
        inside = channel < width
        place = row.to(tl.int64)[:, None] * width + channel[None, :]
        mask = live[:, None] & inside[None, :]
        size = tl.zeros((), tl.int64) + rows * width
        part = (block * ROWS) // rows_a_slice  # which slice of the weights this block belongs to
        own = tl.zeros((ROWS, CHANNELS), dtype=tl.float32)
        for a in tl.static_range(0, LEFT):
            if a == 0:
                value = tl.load(left + place, mask=mask, other=0.0).to(tl.float32)
            else:
                value = tl.load(hops + (a - 1) * size + place, mask=mask, other=0.0).to(tl.float32)
            if weight is not None:
                there = weight + (part * COUNT + a + AFTER + 1) * width + channel
                factor = tl.load(there, mask=inside, other=0.0).to(tl.float32)
                if a > 0:
                    factor *= DOUBLE
                if AFTER > 0:
                    factor *= DOUBLE
                value *= factor[None, :]
            own += value
        shift = load_shift(offset, part, channel, inside, width)
        start = tl.load(row_ptr + row, mask=live, other=0)
        end = tl.load(row_ptr + row + 1, mask=live, other=0)
        for j in range(0, tl.max((end - start).to(tl.int32), axis=0), 4):
            # All four are asked for before anything is written, for which they would wait.
            entry = start + j
            one = _meet(column, x, own, shift, entry, end, channel, inside, width)
            two = _meet(column, x, own, shift, entry + 1, end, channel, inside, width)
            three = _meet(column, x, own, shift, entry + 2, end, channel, inside, width)
            four = _meet(column, x, own, shift, entry + 3, end, channel, inside, width)
            _add_to(out, entry, end, one)
            _add_to(out, entry + 1, end, two)
            _add_to(out, entry + 2, end, three)
            _add_to(out, entry + 3, end, four)

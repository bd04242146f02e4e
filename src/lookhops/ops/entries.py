# mypy: allow-untyped-defs, allow-incomplete-defs
"""What the entries of a sparse matrix learn from: products of two nodes' rows.

A program of the kernel takes a block of rows with all their channels, keeps them, and meets the row
of every entry's column once.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import torch
from torch import Tensor

from lookhops.ops.gpu import MOST_CHANNELS, blocks_of, can_run_on, tl, triton
from lookhops.ops.pattern import Pattern

#: Entries to gather at once where their rows of features are wanted.
BLOCK = {"cpu": 1 << 16, "cuda": 1 << 22}


def entry_products(row_ptr: Tensor, column: Tensor, g: Tensor, x: Tensor) -> Tensor:
    r"""The products :math:`g_i \cdot x_j` for every entry :math:`(i, j)`, shape (e).

    Never needs the (e, d) tensors that gathering both sides would make, unless a second derivative
    is wanted. Entries past the last row's end are padding, and get zero.
    """
    second = torch.is_grad_enabled() and (g.requires_grad or x.requires_grad)
    if can_run_on(x) and g.numel() > 0 and not second:
        return entry_products_by_kernel(row_ptr.int(), column.int(), g, x)
    on_cpu = g.device.type == "cpu" and g.dtype in (torch.float32, torch.float64) and not second
    fits = 0 < column.numel() <= g.shape[0] * x.shape[0] and g.numel() > 0  # of the CSR kernel
    if on_cpu and fits and not torch.compiler.is_compiling():
        size = (g.shape[0], x.shape[0])
        zeros = g.new_zeros(column.numel())
        with warnings.catch_warnings():  # PyTorch announces that its CSR tensors are in beta
            warnings.filterwarnings("ignore", message="Sparse ")
            at = torch.sparse_csr_tensor(row_ptr, column, zeros, size, check_invariants=False)
        return torch.sparse.sampled_addmm(at, g, x.mT).values()
    row = Pattern(row_ptr, column).row
    most = BLOCK[g.device.type]
    blocks = zip(row.split(most), column.split(most), strict=True)
    found = torch.cat([(g[i] * x[j]).sum(-1) for i, j in blocks])
    return found * (torch.arange(column.numel(), device=g.device) < row_ptr[-1])


def entry_products_by_kernel(row_ptr: Tensor, column: Tensor, g: Tensor, x: Tensor) -> Tensor:
    """The products of ``g``, shape (n, d), at the row of each entry and ``x`` at its column."""
    out = torch.zeros(column.numel(), dtype=torch.float32, device=x.device)
    g, x = g.contiguous(), x.contiguous()
    for first in range(0, x.shape[1], MOST_CHANNELS):
        launch_entries(row_ptr, column, [g], x, None, None, out, first=first)
    return out.to(x.dtype)


def launch_entries(
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
    from lookhops.ops.gpu import load_rows, load_shift

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

# mypy: allow-untyped-defs, allow-incomplete-defs
"""A Triton kernel that finds the other direction of every entry: a transpose without a sort.

:func:`mirror` stands for :func:`lookhops.ops.product.mirror`, which tests hold it to.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.ops.kernels import available, tl, triton

BLOCK = 256  # entries that a program takes


def fits(column: Tensor) -> bool:
    """Whether :func:`mirror` can take these entries."""
    return column.is_cuda and available() and column.numel() > 0


def mirror(row_ptr: Tensor, column: Tensor, row: Tensor) -> Tensor:
    """The entry (j, i) for every entry (i, j) of a mirrored pattern; padding stays itself."""
    order = torch.empty_like(column, dtype=torch.int32)
    entries = column.numel()
    grid = (triton.cdiv(entries, BLOCK),)
    rows = row_ptr.numel() - 1
    _mirror_kernel[grid](
        row_ptr, column, row, order, entries, rows, BLOCK=BLOCK, num_warps=BLOCK // 32
    )
    return order


if triton is not None:

    @triton.jit
    def _place_in_row(row_ptr, column, row, wanted, live):
        """The first entry of each row whose column is ``wanted``, behind the row's loop."""
        low = tl.load(row_ptr + row, mask=live, other=0)
        high = tl.load(row_ptr + row + 1, mask=live, other=0)
        loop = live & (tl.load(column + low, mask=live & (low < high), other=-1) == row)
        low += loop.to(tl.int32)
        while tl.max(high - low, axis=0) > 0:
            middle = (low + high) // 2
            searching = low < high
            below = searching & (tl.load(column + middle, mask=searching, other=0) < wanted)
            high = tl.where(searching & (below == 0), middle, high)
            low = tl.where(below, middle + 1, low)
        return low

    @triton.jit
    def _mirror_kernel(row_ptr, column, row, order, entries, rows, BLOCK: tl.constexpr):
        """Binary search for j's entry with column i; of equal entries the n-th meets the n-th."""
        entry = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = entry < entries
        target = tl.load(row + entry, mask=inside, other=0)
        source = tl.load(column + entry, mask=inside, other=0)
        real = (entry < tl.load(row_ptr + rows)) & (source != target)
        number = entry - _place_in_row(row_ptr, column, target, source, real)
        found = _place_in_row(row_ptr, column, source, target, real) + number
        tl.store(order + entry, tl.where(real, found, entry), mask=inside)

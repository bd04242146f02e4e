"""Which entries a sparse matrix has, their groups, and its transpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from lookhops.graphs.indexing import counts_of, segment_of, to_offsets
from lookhops.ops.gpu import can_run_on, launch_over, tl, triton

Value = TypeVar("Value")
#: So few elements are sorted faster than SciPy is called.
FEW = 1 << 12
BLOCK = 256  # entries that a program takes


class cached(Generic[Value]):
    """As :func:`functools.cached_property`, for tensors that are kept across calls of a layer.

    ``cached_property`` takes a lock before Python 3.12, which ``torch.compile`` cannot follow. And
    a tensor that was first computed in inference mode could never be used in training.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self.compute = compute
        self.name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, owner: object | None, kind: type) -> Value:
        if owner is None:
            return self  # type: ignore[return-value]  # asked of the class, for its docstring
        value = outside_inference(lambda: self.compute(owner))
        setattr(owner, self.name, value)  # found before this descriptor from now on
        return value


def outside_inference(compute: Callable[[], Value]) -> Value:
    """What ``compute`` gives, as tensors that training can use too."""
    if torch.compiler.is_compiling() or not torch.is_inference_mode_enabled():
        return compute()
    with torch.inference_mode(False):
        return compute()


class Pattern:
    """Which entries a square sparse matrix has, in CSR order.

    The entries of row :math:`i` stand in the columns ``column[row_ptr[i]:row_ptr[i + 1]]``.
    What follows from that alone (the row of each entry, the transpose) is computed when first
    needed and kept, so that all layers and all values over one pattern share it.

    Args:
        row_ptr: Offsets of the rows, shape :math:`(n + 1)`.
        column: Column of each entry, shape :math:`(e)`, of the same integer type.
        mirrored: Whether the caller knows that the pattern is its own transpose, and that in each
            row the loop comes first, where there is one, and then the columns ascend: the transpose
            then needs no sort.
        row: Row of each entry, where it is known already.
    """

    def __init__(
        self, row_ptr: Tensor, column: Tensor, mirrored: bool = False, row: Tensor | None = None
    ) -> None:
        self.row_ptr = row_ptr
        self.column = column
        self.mirrored = mirrored
        #: Number of rows, and of columns.
        self.size = row_ptr.numel() - 1
        if row is not None:
            self.row = row

    @cached
    def row(self) -> Tensor:
        """Row of each entry, shape (e); entries past the last row's end count as the last row's.

        Such entries are padding: a batch of fixed capacity has them.
        """
        if self.column.is_cuda:
            entry = torch.arange(self.column.numel(), device=self.column.device).to(self.column)
            row = torch.searchsorted(self.row_ptr[1:], entry, out_int32=True, right=True)
            return row.clamp(max=self.size - 1).to(self.column.dtype)
        if torch.compiler.is_exporting():
            return segment_of(self.row_ptr, self.column.numel())
        number = torch.arange(self.size, dtype=self.column.dtype, device=self.column.device)
        count = self.row_ptr.diff()
        count[-1:] += self.column.numel() - self.row_ptr[-1]  # padding
        return torch.repeat_interleave(number, count, output_size=self.column.numel())

    @property
    def is_padding(self) -> Tensor:
        """Which entries stand past the last row's end, shape (e)."""
        return torch.arange(self.column.numel(), device=self.column.device) >= self.row_ptr[-1]

    def select(self, keep: Tensor) -> Pattern:
        """The pattern of the entries that ``keep`` marks, shape (e)."""
        kept = keep.nonzero().flatten()
        column, row = self.column.index_select(0, kept), self.row.index_select(0, kept)
        return Pattern(self.ends_of(keep), column, row=row)

    def push_out(self, keep: Tensor) -> tuple[Pattern, Tensor]:
        """The same with the other entries as padding, and the entry that stands at each place."""
        kept = keep.cumsum(0)
        entry = torch.arange(keep.numel(), device=keep.device)
        place = torch.where(keep, kept - 1, kept[-1:] + entry - kept)
        order = torch.empty_like(entry).scatter(0, place, entry)
        chosen = Pattern(self.ends_of(keep), self.column.index_select(0, order))
        last = chosen.is_padding
        chosen.column = chosen.column.masked_fill(last, self.size - 1)
        chosen.row = self.row.index_select(0, order).masked_fill(last, self.size - 1)
        return chosen, order

    def ends_of(self, keep: Tensor) -> Tensor:
        """Offsets of the rows when only the entries are left that ``keep`` marks."""
        return to_offsets(keep.to(self.row_ptr.dtype)).index_select(0, self.row_ptr)

    @cached
    def transpose_order(self) -> Tensor:
        """The entry that stands at each place of the transpose, shape (e)."""
        return mirror(self) if self.mirrored else self._grouped[1]

    @cached
    def transpose(self) -> Pattern:
        """The pattern with rows and columns exchanged; padding stays past the last row's end.

        Padding stands in the last column, so it is last here too. As part of the last row it would
        be hundreds of thousands of entries that one program adds up.
        """
        if self.mirrored:
            return self
        row_ptr, order = self._grouped
        row_ptr = torch.minimum(row_ptr.to(self.row_ptr.dtype), self.row_ptr[-1])
        return Pattern(row_ptr, self.row.index_select(0, order))

    @cached
    def _grouped(self) -> tuple[Tensor, Tensor]:
        return group(self.column, self.size)


def group(index: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The elements by their index: where those of each index start, and the elements in that order.

    Indices go from 0 up to ``size`` - 1; elements that share one keep their order. Gives offsets,
    shape (size + 1), and the elements, shape (e), as 32-bit integers.
    """
    on_cpu = index.device.type == "cpu" and not torch.compiler.is_compiling()
    if on_cpu and index.numel() > FEW:
        # Transposing a matrix with one entry in each row is a counting sort, several times as fast
        # as PyTorch's sort; SciPy has one.
        from scipy.sparse import csr_array  # it takes a while to import

        rows = np.arange(index.numel() + 1, dtype=np.int32)
        entries = (np.empty(index.numel(), dtype=np.int8), index.int().numpy(), rows)
        grouped = csr_array(entries, shape=(index.numel(), size)).tocsc()
        return torch.from_numpy(grouped.indptr).int(), torch.from_numpy(grouped.indices).int()
    order = index.argsort(stable=True)
    if torch.compiler.is_exporting():
        return to_offsets(counts_of(index, size)).int(), order.int()
    numbers = torch.arange(size + 1, device=index.device, dtype=index.dtype)
    row_ptr = torch.searchsorted(index.index_select(0, order), numbers, out_int32=True)
    return row_ptr, order.int()


def mirror(pattern: Pattern) -> Tensor:
    """The entry (j, i) for each entry (i, j) of a mirrored pattern, shape (e); padding's is itself.

    Of entries that stand there several times the first meets the first.
    """
    row_ptr, column, row = pattern.row_ptr, pattern.column, pattern.row
    if can_run_on(column):
        order, entries = torch.empty_like(column, dtype=torch.int32), column.numel()
        given = row_ptr, column, row, order, entries, pattern.size
        launch_over(_mirror_kernel, entries, BLOCK, *given, warps=BLOCK // 32)
        return order
    padding, is_loop, size = pattern.is_padding, row == column, pattern.size + 1
    # One number an entry, ascending: loops are the first of their row, padding comes last.
    key = row.long() * size + torch.where(is_loop, 0, column + 1)
    other = column.long() * size + torch.where(is_loop, 0, row + 1)
    key, other = (each.masked_fill(padding, size * size) for each in (key, other))
    entry = torch.arange(column.numel(), device=column.device)
    order = torch.searchsorted(key, other) + entry - torch.searchsorted(key, key)
    return order.int()


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

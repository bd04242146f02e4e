"""A sparse matrix times a dense one, with its gradient: what every convolution here rests on."""

from __future__ import annotations

import warnings
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from lookhops.core.errors import LookHopsError
from lookhops.graphs.indexing import counts_of, segment_of, to_offsets
from lookhops.ops import entry_kernels, kernels, mirror_kernels
from lookhops.ops.cached import cached

#: So few elements are sorted faster than SciPy is called.
_FEW = 1 << 12
#: Entries to gather at once where their rows of features are wanted.
_BLOCK = {"cpu": 1 << 16, "cuda": 1 << 22}


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
    """

    def __init__(self, row_ptr: Tensor, column: Tensor, mirrored: bool = False) -> None:
        self.row_ptr = row_ptr
        self.column = column
        self.mirrored = mirrored

    @property
    def size(self) -> int:
        """Number of rows, and of columns."""
        return self.row_ptr.numel() - 1

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
        chosen = Pattern(self._ends_of(keep), self.column.index_select(0, kept))
        chosen.row = self.row.index_select(0, kept)
        return chosen

    def push_out(self, keep: Tensor) -> tuple[Pattern, Tensor]:
        """The same with all shapes kept: the other entries become padding.

        Returns:
            The pattern, and the entry that stands at each of its places, shape (e).
        """
        kept = keep.cumsum(0)
        entry = torch.arange(keep.numel(), device=keep.device)
        place = torch.where(keep, kept - 1, kept[-1:] + entry - kept)
        order = torch.empty_like(entry).scatter(0, place, entry)
        chosen = Pattern(self._ends_of(keep), self.column.index_select(0, order))
        last = chosen.is_padding
        chosen.column = chosen.column.masked_fill(last, self.size - 1)
        chosen.row = self.row.index_select(0, order).masked_fill(last, self.size - 1)
        return chosen, order

    def _ends_of(self, keep: Tensor) -> Tensor:
        """Offsets of the rows when only some entries are left."""
        before = torch.zeros(keep.numel() + 1, dtype=self.row_ptr.dtype, device=keep.device)
        before[1:] = keep.cumsum(0, dtype=self.row_ptr.dtype)
        return before.index_select(0, self.row_ptr)

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

    Elements that share an index keep their order.

    Args:
        index: Shape :math:`(e)`, values from 0 up to ``size`` - 1.
        size: How many indices there are.

    Returns:
        Offsets, shape :math:`(size + 1)`, and the elements, shape :math:`(e)`, as 32-bit integers.
    """
    on_cpu = index.device.type == "cpu" and not torch.compiler.is_compiling()
    if on_cpu and index.numel() > _FEW:
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


def sum_into(values: Tensor, index: Tensor, size: int) -> Tensor:
    r"""The sums of the values that share an index, shape (size, ...); -1 counts nowhere.

    Args:
        values: Shape :math:`(e, \ldots)`.
        index: Shape :math:`(e)`, 64-bit, from -1 up to ``size`` - 1.
        size: How many indices there are.
    """
    return _SumInto.apply(values, index, size)


class _SumInto(torch.autograd.Function):
    """On a GPU without atomic additions: all padding would meet at one place."""

    @staticmethod
    def forward(ctx, values, index, size):  # type: ignore[no-untyped-def]
        place = torch.where(index < 0, size, index)
        ctx.save_for_backward(place)
        if kernels.can_run_on(values) and values.is_floating_point() and size > 0:
            row_ptr, order = group(place, size + 1)
            sums = multiply(row_ptr[:-1], order, None, values.reshape(len(values), -1))
            return sums.view(size, *values.shape[1:])
        return values.new_zeros(size + 1, *values.shape[1:]).index_add(0, place, values)[:size]

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        (place,) = ctx.saved_tensors
        none = grad.new_zeros(1, *grad.shape[1:])
        return torch.cat((grad, none)).index_select(0, place), None, None


def mirror(pattern: Pattern) -> Tensor:
    """The entry (j, i) for each entry (i, j) of a mirrored pattern, shape (e); padding's is itself.

    Of entries that stand there several times the first meets the first.
    """
    row_ptr, column, row = pattern.row_ptr, pattern.column, pattern.row
    if mirror_kernels.fits(column):
        return mirror_kernels.mirror(row_ptr, column, row)
    padding, is_loop, size = pattern.is_padding, row == column, pattern.size + 1
    # One number an entry, ascending: loops are the first of their row, padding comes last.
    key = row.long() * size + torch.where(is_loop, 0, column + 1)
    other = column.long() * size + torch.where(is_loop, 0, row + 1)
    key, other = (each.masked_fill(padding, size * size) for each in (key, other))
    entry = torch.arange(column.numel(), device=column.device)
    order = torch.searchsorted(key, other) + entry - torch.searchsorted(key, key)
    return order.int()


class SparseMatrix:
    """A square sparse matrix: a pattern and the value of each entry.

    Args:
        pattern: Where the entries are.
        value: What they are, shape :math:`(e)`; none means one everywhere.
        symmetric: Whether the caller knows that the matrix equals its transpose, values included:
            the gradient then needs no transpose.
    """

    def __init__(
        self, pattern: Pattern, value: Tensor | None = None, symmetric: bool = False
    ) -> None:
        self.pattern = pattern
        self.value = value
        self.symmetric = symmetric

    def __matmul__(self, x: Tensor) -> Tensor:
        r"""The product :math:`A x`, differentiable in :math:`x` and in the values.

        Args:
            x: Shape :math:`(\ldots, n, d)`. With leading axes either every slice meets this matrix,
                or the matrix has as many rows as all slices together, one diagonal block a slice.
        """
        value = None if self.value is None else self.value.to(x.dtype)
        flat, restore = as_matrix(x, self.pattern.size)
        differentiate = torch.is_grad_enabled() and (
            x.requires_grad or (value is not None and value.requires_grad)
        )
        if not differentiate:
            return restore(multiply(self.pattern.row_ptr, self.pattern.column, value, flat))
        return restore(_Product.apply(flat, value, *self.entries()))

    def __call__(self, x: Tensor) -> Tensor:
        """As ``@``: one step. A call can be compiled; an operator of our own cannot."""
        return self.__matmul__(x)

    def entries(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
        """CSR of the matrix, CSR of its transpose, and the entry at each place of the latter."""
        pattern = self.pattern
        if self.symmetric:
            return pattern.row_ptr, pattern.column, pattern.row_ptr, pattern.column, None
        transpose = pattern.transpose
        return (
            pattern.row_ptr,
            pattern.column,
            transpose.row_ptr,
            transpose.column,
            pattern.transpose_order,
        )


def multiply(row_ptr: Tensor, column: Tensor, value: Tensor | None, x: Tensor) -> Tensor:
    r"""The bare product of a CSR matrix with :math:`x` of shape :math:`(n, d)`, no gradient.

    A bag of rows of ``x``, weighted and summed, is what PyTorch's embedding kernels compute; they
    are the fastest product it has for matrices as sparse as graphs.
    """
    if torch.compiler.is_exporting():  # what every runtime has
        messages = x.index_select(0, column)
        messages = messages if value is None else messages * value[:, None]
        row = segment_of(row_ptr, column.numel()).long()
        return x.new_zeros(row_ptr.numel() - 1, x.shape[1]).index_add(0, row, messages)
    if column.numel() == 0 or x.numel() == 0:
        return x.new_zeros(row_ptr.numel() - 1, x.shape[1])
    if kernels.can_run_on(x):
        return kernels.multiply(row_ptr, column, value, x)
    if torch.is_grad_enabled():
        return embedding_bag(
            column, x, row_ptr, mode="sum", per_sample_weights=value, include_last_offset=True
        )
    # Bare of what asks for a gradient, else the kernel prepares for one.
    x, value = x.detach(), None if value is None else value.detach()
    return torch.embedding_bag(x, column, row_ptr, False, 0, False, value, True)[0]


def entry_products(row_ptr: Tensor, column: Tensor, g: Tensor, x: Tensor) -> Tensor:
    r"""The products :math:`g_i \cdot x_j` for every entry :math:`(i, j)`, shape (e).

    Never needs the (e, d) tensors that gathering both sides would make, unless a second derivative
    is wanted. Entries past the last row's end are padding, and get zero.
    """
    second = torch.is_grad_enabled() and (g.requires_grad or x.requires_grad)
    if kernels.can_run_on(x) and g.numel() > 0 and not second:
        return entry_kernels.entry_products(row_ptr.int(), column.int(), g, x)
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
    most = _BLOCK[g.device.type]
    blocks = zip(row.split(most), column.split(most), strict=True)
    found = torch.cat([(g[i] * x[j]).sum(-1) for i, j in blocks])
    return found * (torch.arange(column.numel(), device=g.device) < row_ptr[-1])


class _Product(torch.autograd.Function):
    """A x, whose gradients are A^T g for x and, entry by entry, g_i . x_j for the values."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        value: Tensor | None,
        row_ptr: Tensor,
        column: Tensor,
        row_ptr_t: Tensor,
        column_t: Tensor,
        order: Tensor | None,
    ) -> Tensor:
        needs_x = value is not None and value.requires_grad
        ctx.save_for_backward(
            x if needs_x else None, value, row_ptr, column, row_ptr_t, column_t, order
        )
        return multiply(row_ptr, column, value, x)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        x, value, row_ptr, column, row_ptr_t, column_t, order = ctx.saved_tensors
        grad_x = grad_value = None
        if ctx.needs_input_grad[0]:
            value_t = value if value is None or order is None else value.index_select(0, order)
            grad_x = multiply(row_ptr_t, column_t, value_t, grad.contiguous())
        if value is not None and ctx.needs_input_grad[1]:
            grad_value = entry_products(row_ptr, column, grad.contiguous(), x)
        return grad_x, grad_value, None, None, None, None, None


def as_matrix(x: Tensor, size: int):  # type: ignore[no-untyped-def]
    """``x`` as a matrix of ``size`` rows, and how to give the product its leading axes back."""
    shape = x.shape
    every = prod(shape[:-1])  # Size.numel() would fix the shape of an exported model
    if size not in (shape[-2], every):
        raise LookHopsError(f"The edges join {size} nodes, but x has shape {tuple(shape)}.")
    if x.dim() == 2:
        return x.contiguous(), lambda y: y
    if size == every:
        return x.reshape(size, shape[-1]), lambda y: y.view(shape)
    wide = x.movedim(-2, 0)
    return wide.reshape(size, -1), lambda y: y.view(wide.shape).movedim(0, -2)

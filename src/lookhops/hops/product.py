"""A sparse matrix times a dense one, with its gradient: what every convolution here rests on."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag


class Pattern:
    """Which entries a square sparse matrix has, in CSR order.

    The entries of row :math:`i` stand in the columns ``column[row_ptr[i]:row_ptr[i + 1]]``.
    What follows from that alone (the row of each entry, the transpose) is computed when first
    needed and kept, so that all layers and all values over one pattern share it.

    Args:
        row_ptr: Offsets of the rows, shape :math:`(n + 1)`.
        column: Column of each entry, shape :math:`(e)`, of the same integer type.
    """

    def __init__(self, row_ptr: Tensor, column: Tensor) -> None:
        self.row_ptr = row_ptr
        self.column = column

    @property
    def size(self) -> int:
        """Number of rows, and of columns."""
        return self.row_ptr.numel() - 1

    @cached_property
    def row(self) -> Tensor:
        """Row of each entry, shape (e)."""
        number = torch.arange(self.size, dtype=self.column.dtype, device=self.column.device)
        return torch.repeat_interleave(number, self.row_ptr.diff(), output_size=self.column.numel())

    @cached_property
    def transpose_order(self) -> Tensor:
        """The entry that stands at each place of the transpose, shape (e)."""
        return self.column.argsort(stable=True)

    @cached_property
    def transpose(self) -> Pattern:
        """The pattern with rows and columns exchanged."""
        rows = torch.arange(self.size + 1, device=self.column.device, dtype=self.column.dtype)
        row_ptr = torch.searchsorted(
            self.column[self.transpose_order], rows, out_int32=self.row_ptr.dtype == torch.int32
        )
        return Pattern(row_ptr, self.row[self.transpose_order])


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
        flat, restore = _flatten(x, self.pattern.size)
        differentiate = torch.is_grad_enabled() and (
            x.requires_grad or (value is not None and value.requires_grad)
        )
        if not differentiate:
            return restore(multiply(self.pattern.row_ptr, self.pattern.column, value, flat))
        return restore(_Product.apply(flat, value, *self.entries()))

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
    if column.numel() == 0 or x.numel() == 0:
        return x.new_zeros(row_ptr.numel() - 1, x.shape[1])
    return embedding_bag(
        column, x, row_ptr, mode="sum", per_sample_weights=value, include_last_offset=True
    )


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
            value_t = value if value is None or order is None else value[order]
            grad_x = multiply(row_ptr_t, column_t, value_t, grad.contiguous())
        if value is not None and ctx.needs_input_grad[1]:
            row = Pattern(row_ptr, column).row
            grad_value = (grad[row] * x[column]).sum(-1)
        return grad_x, grad_value, None, None, None, None, None


def _flatten(x: Tensor, size: int):  # type: ignore[no-untyped-def]
    """``x`` as a matrix of ``size`` rows, and how to give the product its leading axes back."""
    if x.dim() == 2:
        return x.contiguous(), lambda y: y
    shape = x.shape
    if size == shape[:-1].numel():
        return x.reshape(size, shape[-1]), lambda y: y.view(shape)
    wide = x.movedim(-2, 0)
    return wide.reshape(size, -1), lambda y: y.view(wide.shape).movedim(0, -2)

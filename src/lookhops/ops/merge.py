"""The merge of the anchors, which keeps none of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from lookhops.ops import entry_kernels, merge_kernels
from lookhops.ops.product import SparseMatrix, as_matrix, entry_products, multiply
from lookhops.ops.recurrences import (
    Recurrence,
    alternate_sums,
    chebyshev,
    entry_factors,
    in_powers,
    powers,
)

#: The most hops that are merged as powers of the operator: Chebyshev's coefficients sum to 41 at
#: k = 5, so that float32 still has five digits; they more than double with every further hop.
MOST_HOPS = 5


def merge(
    recurrence: Recurrence,
    matrix: SparseMatrix,
    z: Tensor,
    weight: Tensor,
    bias: Tensor,
    offset: Tensor | None = None,
) -> Tensor:
    r""":math:`\sum_j T_j (z + c) \odot w^j + b`, differentiable in all, the matrix's values too.

    Args:
        recurrence: What yields the :math:`T_j z`.
        matrix: The operator of one hop.
        z: Shape :math:`(\ldots, n, d')`.
        weight: The :math:`w^j`, shape :math:`(\ldots, k + 1, d')`.
        bias: The :math:`b`, shape :math:`(\ldots, d')`.
        offset: The :math:`c`, shape :math:`(\ldots, d')`; none means zero.
    """
    exact = weight.dtype in (torch.float32, torch.float64)  # bfloat16 has no digit to spare
    few = weight.shape[-2] <= MOST_HOPS + 1
    if recurrence is not powers and exact and few and weight.device.type == "cpu":
        recurrence, weight = powers, in_powers(recurrence, weight)  # a pass over memory less a hop
    if offset is not None and not merge_kernels.merge_fits(z, weight):
        z, offset = z + offset.to(z.dtype).unsqueeze(-2), None
    value = None if matrix.value is None else matrix.value.to(z.dtype)
    if not torch.is_grad_enabled() and not torch.compiler.is_compiling():
        pattern = matrix.pattern
        where = pattern.row_ptr, pattern.column, value
        return merge_hops(recurrence, *where, z, weight, bias, offset=offset).total
    return _Merge.apply(z, weight, bias, offset, value, recurrence, *matrix.entries())


class _Merge(torch.autograd.Function):
    r"""The merge, keeping only z: its gradient runs the same recurrence over the transpose.

    Where the values of the matrix learn too it keeps the hops :math:`T_1 z, \ldots, T_{k-1} z`.
    """

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx, z, weight, bias, offset, value, recurrence, *entries
    ):
        learns = ctx.needs_input_grad[4]
        row_ptr, column = entries[:2]
        merged = merge_hops(
            recurrence, row_ptr, column, value, z, weight, bias, offset=offset, keep=learns
        )
        ctx.save_for_backward(z, weight, offset, value, *entries, *merged.hops)
        ctx.recurrence = recurrence
        return merged.total

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        z, weight, offset, value, row_ptr, column, row_ptr_t, column_t, order = ctx.saved_tensors[
            :9
        ]
        hops, learns = ctx.saved_tensors[9:], ctx.needs_input_grad[4]
        if learns and torch.is_grad_enabled():  # a second derivative is wanted: through them too
            hops = merge_hops(
                ctx.recurrence, row_ptr, column, value, z, weight, offset=offset, keep=True
            ).hops
        value_t = value if value is None or order is None else value.index_select(0, order)
        grad = grad.contiguous()
        merged = merge_hops(
            ctx.recurrence,
            row_ptr_t,
            column_t,
            value_t,
            grad,
            weight,
            other=z,
            offset=offset,
            keep=learns,
        )
        grad_value = None
        if learns:
            left, right = (grad, *merged.hops), (z, *hops)
            grad_value = merge_entries(ctx.recurrence, row_ptr, column, left, right, weight, offset)
        assert merged.sums is not None
        grad_bias, grad_weight, grad_offset = (one.to(weight.dtype) for one in merged.sums)
        vector = (*weight.shape[:-2], weight.shape[-1])
        return (
            merged.total,
            grad_weight.sum_to_size(weight.shape),
            grad_bias.sum_to_size(vector),
            None if offset is None else grad_offset.sum_to_size(vector),
            grad_value,
            *[None] * 6,
        )


class Merged(NamedTuple):
    """What a merge along a recurrence gives.

    Args:
        total: The merge itself.
        sums: Sums over nodes that a backward pass wants beside it, where they were asked for: of
            x, of every :math:`T_j x` times another tensor, and of the total.
        hops: The hops :math:`T_1 x` to :math:`T_{k-1} x`, where they were asked for.
    """

    total: Tensor
    sums: tuple[Tensor, Tensor, Tensor] | None
    hops: Sequence[Tensor]


def merge_hops(
    recurrence: Recurrence,
    row_ptr: Tensor,
    column: Tensor,
    value: Tensor | None,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    other: Tensor | None = None,
    offset: Tensor | None = None,
    keep: bool = False,
) -> Merged:
    r"""Run a recurrence from ``x`` and merge it on the way, without gradient.

    Never more than two hops are alive, unless ``keep`` wants them. Returns
    :math:`\sum_j T_j x \odot w^j + b` and, where ``other`` is given, what a backward pass wants
    beside it: the sums over nodes of :math:`x`, of every :math:`T_j x \odot` ``other``, and of the
    result, shapes :math:`(\ldots, d')`, :math:`(\ldots, k + 1, d')` and :math:`(\ldots, d')`. The
    ``offset`` is added to every row of ``x``, or of ``other`` where there is one.
    """
    if x.is_cuda and merge_kernels.merge_fits(x, weight):
        order = 2.0 if recurrence is chebyshev else 1.0
        found = merge_kernels.merge(order, row_ptr, column, value, x, weight, bias, other, offset)
        return Merged(*found[:2], found[2].unbind(0) if keep else ())
    if offset is not None and other is not None:
        other = other + offset.unsqueeze(-2)
    elif offset is not None:
        x = x + offset.unsqueeze(-2)
    total: Tensor | None = None
    sums: list[Tensor] = []
    hops: list[Tensor] = []

    def step(x: Tensor) -> Tensor:
        flat, restore = as_matrix(x, row_ptr.numel() - 1)
        return restore(multiply(row_ptr, column, value, flat))

    for part, hop in zip(weight.unbind(-2), recurrence(step, x, weight.shape[-2] - 1), strict=True):
        part = part.unsqueeze(-2)
        if keep:
            hops.append(hop)
        if other is not None:
            sums += _node_sums(hop, other, with_own=total is None)
        if total is not None and torch.compiler.is_compiling():
            # PyTorch 2.11 loses the gradient of what a compiled forward changes in place.
            total = torch.addcmul(total, part, hop)
        elif total is not None:
            total.addcmul_(part, hop)
        elif bias is not None:
            total = torch.addcmul(bias.unsqueeze(-2), part, hop)
        else:
            total = part * hop
    assert total is not None
    if other is None:
        return Merged(total, None, hops[1:-1])
    own, *products = sums
    # Without an offset nobody asks for the sum of the result.
    of_total = torch.zeros_like(own) if offset is None else total.sum(-2)
    return Merged(total, (own, torch.stack(products, dim=-2), of_total), hops[1:-1])


def merge_entries(
    recurrence: Recurrence,
    row_ptr: Tensor,
    column: Tensor,
    left: Sequence[Tensor],
    right: Sequence[Tensor],
    weight: Tensor,
    offset: Tensor | None = None,
) -> Tensor:
    r"""The gradient of a merge in the values of its matrix, shape (e), no gradient.

    .. math::
        \frac{\partial}{\partial A_{ij}} = \sum_{a + b < k}
        \bigl(m^{ab} \odot T_a(A^\top) g\bigr)_i \cdot \bigl(T_b(A)\,(z + c)\bigr)_j

    with the factors :math:`m^{ab}` of :func:`~lookhops.ops.recurrences.entry_factors`.

    Args:
        recurrence: What yields the :math:`T_j`.
        row_ptr: Offsets of the matrix's rows.
        column: Column of each entry, shape :math:`(e)`.
        left: The :math:`T_a(A^\top) g` for the gradient :math:`g`, from none to k - 1 hops.
        right: The same of :math:`z`, to whose first the offset is still to be added.
        weight: The :math:`w^j`, shape :math:`(\ldots, k + 1, d')`.
        offset: The :math:`c`, shape :math:`(\ldots, d')`; none means zero.
    """
    k = weight.shape[-2] - 1
    if k == 0:
        return weight.new_zeros(column.numel())
    if right[0].is_cuda and merge_kernels.merge_fits(right[0], weight):
        order, weight = 2.0 if recurrence is chebyshev else 1.0, alternate_sums(recurrence, weight)
        return entry_kernels.merge_entries(order, row_ptr, column, left, right, weight, offset)
    if offset is not None:
        right = (right[0] + offset.to(right[0].dtype).unsqueeze(-2), *right[1:])
    factors, size = entry_factors(recurrence, weight), row_ptr.numel() - 1
    total = weight.new_zeros(column.numel())
    for b in range(k):
        rows = torch.stack([factors[a, b].unsqueeze(-2) * left[a] for a in range(k - b)]).sum(0)
        flat = (as_matrix(side, size)[0] for side in (rows, right[b]))
        total = total + entry_products(row_ptr, column, *flat)
    return total


def _node_sums(x: Tensor, other: Tensor, with_own: bool) -> list[Tensor]:
    r"""The sums over nodes of :math:`x`, where that is wanted, and of :math:`x \odot` ``other``.

    These are the gradients of a layer norm's bias and weight, for which there is a kernel that
    reads x once and makes no product on the way: mean zero and deviation one leave nothing else.
    """
    on_cpu = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)
    second = torch.is_grad_enabled()  # a second derivative is wanted, which the kernel has not
    fits = on_cpu and x.dim() == 2 and x.shape == other.shape
    if second or torch.compiler.is_compiling() or not fits:
        own = [x.sum(-2)] if with_own else []
        return [*own, (x * other).sum(-2)]
    mean, one, weight = x.new_zeros(len(x), 1), x.new_ones(len(x), 1), x.new_ones(x.shape[1])
    _, products, own_sum = torch.ops.aten.native_layer_norm_backward(
        x, other, x.shape[1:], mean, one, weight, weight, [False, True, with_own]
    )
    return [own_sum, products] if with_own else [products]

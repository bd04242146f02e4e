"""The merge of the anchors, which keeps none of them."""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.hops import kernels
from lookhops.hops.product import SparseMatrix, as_matrix, multiply
from lookhops.hops.recurrences import Recurrence, chebyshev, in_powers, powers

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
    r""":math:`\sum_j T_j (z + c) \odot w^j + b`, differentiable in all but the matrix.

    Args:
        recurrence: What yields the :math:`T_j z`.
        matrix: The operator of one hop, without gradient.
        z: Shape :math:`(\ldots, n, d')`.
        weight: The :math:`w^j`, shape :math:`(\ldots, k + 1, d')`.
        bias: The :math:`b`, shape :math:`(\ldots, d')`.
        offset: The :math:`c`, shape :math:`(\ldots, d')`; none means zero.
    """
    exact = weight.dtype in (torch.float32, torch.float64)  # bfloat16 has no digit to spare
    few = weight.shape[-2] <= MOST_HOPS + 1
    if recurrence is not powers and exact and few and weight.device.type == "cpu":
        recurrence, weight = powers, in_powers(recurrence, weight)  # a pass over memory less a hop
    if offset is not None and not kernels.merge_fits(z, weight):
        z, offset = z + offset.to(z.dtype).unsqueeze(-2), None
    value = None if matrix.value is None else matrix.value.to(z.dtype)
    return _Merge.apply(z, weight, bias, offset, value, recurrence, *matrix.entries())


class _Merge(torch.autograd.Function):
    """The merge, keeping only z: its gradient runs the same recurrence over the transpose."""

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx, z, weight, bias, offset, value, recurrence, *entries
    ):
        ctx.save_for_backward(z, weight, offset, value, *entries)
        ctx.recurrence = recurrence
        row_ptr, column = entries[:2]
        return merge_hops(recurrence, row_ptr, column, value, z, weight, bias, offset=offset)[0]

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        z, weight, offset, value, _, _, row_ptr, column, order = ctx.saved_tensors
        value = value if value is None or order is None else value.index_select(0, order)
        grad_z, sums = merge_hops(
            ctx.recurrence,
            row_ptr,
            column,
            value,
            grad.contiguous(),
            weight,
            other=z,
            offset=offset,
        )
        assert sums is not None
        count = weight.shape[-2]
        grad_bias, grad_weight, grad_offset = sums.to(weight.dtype).split((1, count, 1), dim=-2)
        vector = (*weight.shape[:-2], weight.shape[-1])
        return (
            grad_z,
            grad_weight.sum_to_size(weight.shape),
            grad_bias.squeeze(-2).sum_to_size(vector),
            None if offset is None else grad_offset.squeeze(-2).sum_to_size(vector),
            *[None] * 7,
        )


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
) -> tuple[Tensor, Tensor | None]:
    r"""Run a recurrence from ``x`` and merge it on the way, without gradient.

    Never more than two hops are alive. Returns :math:`\sum_j T_j x \odot w^j + b` and, where
    ``other`` is given, what a backward pass wants beside it: the sums over nodes of :math:`x`, of
    every :math:`T_j x \odot` ``other``, and of the result, shape :math:`(\ldots, k + 3, d')`. The
    ``offset`` is added to every row of ``x``, or of ``other`` where there is one.
    """
    if x.is_cuda and kernels.merge_fits(x, weight):
        order = 2.0 if recurrence is chebyshev else 1.0
        return kernels.merge(order, row_ptr, column, value, x, weight, bias, other, offset)
    if offset is not None and other is not None:
        other = other + offset.unsqueeze(-2)
    elif offset is not None:
        x = x + offset.unsqueeze(-2)
    total: Tensor | None = None
    sums: list[Tensor] = []

    def step(x: Tensor) -> Tensor:
        flat, restore = as_matrix(x, row_ptr.numel() - 1)
        return restore(multiply(row_ptr, column, value, flat))

    for part, hop in zip(weight.unbind(-2), recurrence(step, x, weight.shape[-2] - 1), strict=True):
        part = part.unsqueeze(-2)
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
    if other is not None:
        # Without an offset nobody asks for the sum of the result.
        sums.append(torch.zeros_like(sums[0]) if offset is None else total.sum(-2))
    return total, torch.stack(sums, dim=-2) if sums else None


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

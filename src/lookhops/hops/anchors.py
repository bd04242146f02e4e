"""The anchors: what the paper's figure aggregates, and its two readings, merge and score."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from lookhops.hops.product import SparseMatrix, _flatten, multiply

Recurrence = Callable[[Callable[[Tensor], Tensor], Tensor, int], Iterator[Tensor]]


def chebyshev(step: Callable[[Tensor], Tensor], z: Tensor, k: int) -> Iterator[Tensor]:
    r"""Yield :math:`T_0 z, \ldots, T_k z` with :math:`T_j = 2 A T_{j-1} - T_{j-2}`.

    Args:
        step: One hop, :math:`x \mapsto A x`.
        z: What is propagated.
        k: The number of hops.
    """
    yield z
    if k == 0:
        return
    before, now = z, step(z)
    yield now
    for _ in range(k - 1):
        before, now = now, torch.lerp(before, step(now), 2.0)  # 2 step(now) - before, in one pass
        yield now


def powers(step: Callable[[Tensor], Tensor], z: Tensor, k: int) -> Iterator[Tensor]:
    r"""Yield :math:`z, A z, \ldots, A^k z`; arguments as for :func:`chebyshev`."""
    yield z
    for _ in range(k):
        z = step(z)
        yield z


class Anchors:
    r"""The anchor vectors :math:`Z = [Z^0 \| \ldots \| Z^k]`, :math:`Z^j = T_j z`, of every node.

    One tensor of shape :math:`(\ldots, n, k + 1, d')`, two readings: the convolution **merges** it
    channel by channel, the pooling **scores** it. Neither needs the tensor: both readings are
    linear in :math:`z`, and :math:`T_j(A)^\top = T_j(A^\top)`, so they run along the recurrence
    forwards and backwards and keep only :math:`z`.

    Args:
        recurrence: :func:`chebyshev` or :func:`powers`.
        matrix: The operator :math:`A` of one hop.
        z: The projected features, shape :math:`(\ldots, n, d')`.
        k: The number of hops.
    """

    def __init__(self, recurrence: Recurrence, matrix: SparseMatrix, z: Tensor, k: int) -> None:
        self.recurrence = recurrence
        self.matrix = matrix
        self.z = z
        self.k = k

    def stack(self) -> Tensor:
        r"""The anchors themselves, shape :math:`(\ldots, n, k + 1, d')`."""
        return torch.stack(list(self.recurrence(self.matrix.__matmul__, self.z, self.k)), dim=-2)

    def merge(self, weight: Tensor) -> Tensor:
        r""":math:`\sum_j z_i^j \odot w^j` for every node, shape :math:`(\ldots, n, d')`.

        Args:
            weight: The :math:`w^j`, shape :math:`(\ldots, k + 1, d')`.
        """
        weight, value = weight.to(self.z.dtype), self.matrix.value
        if value is not None and value.requires_grad:  # learnt edge weights: the long way round
            hops = self.recurrence(self.matrix.__matmul__, self.z, self.k)
            return sum(weight[..., j, None, :] * hop for j, hop in enumerate(hops))  # type: ignore
        value = None if value is None else value.to(self.z.dtype)
        return _Merge.apply(self.z, weight, value, self.recurrence, *self.matrix.entries())

    def score(self, theta: Tensor) -> Tensor:
        r""":math:`\sum_j \theta^j \cdot z_i^j` for every node, shape :math:`(\ldots, n)`.

        Channels are summed before the hops are taken, so it costs :math:`k + 1` channels, not d'.

        Args:
            theta: The attention weights :math:`\theta^j`, shape :math:`(\ldots, k + 1, d')`.
        """
        summed = self.z @ theta.to(self.z.dtype).mT  # (..., n, k + 1): column j awaits T_j
        hops = self.recurrence(self.matrix.__matmul__, summed, self.k)
        return sum(hop[..., j] for j, hop in enumerate(hops))  # type: ignore[return-value]


class _Merge(torch.autograd.Function):
    """The merge, keeping only z: its gradient runs the same recurrence over the transpose."""

    @staticmethod
    def forward(ctx, z, weight, value, recurrence, *entries):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(z, weight, value, *entries)
        ctx.recurrence = recurrence
        row_ptr, column = entries[:2]
        hops = recurrence(_step(row_ptr, column, value), z, weight.shape[-2] - 1)
        return _combine(hops, weight)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        z, weight, value, _, _, row_ptr_t, column_t, order = ctx.saved_tensors
        value_t = value if value is None or order is None else value[order]
        step = _step(row_ptr_t, column_t, value_t)
        grad_z, grad_weight = None, []
        for j, hop in enumerate(ctx.recurrence(step, grad.contiguous(), weight.shape[-2] - 1)):
            grad_weight.append((z * hop).sum(-2))
            part = weight[..., j, None, :]
            grad_z = part * hop if grad_z is None else grad_z.addcmul_(part, hop)
        stacked = torch.stack(grad_weight, dim=-2).sum_to_size(weight.shape)
        return grad_z, stacked, None, None, None, None, None, None, None


def _step(row_ptr: Tensor, column: Tensor, value: Tensor | None) -> Callable[[Tensor], Tensor]:
    """One hop over bare tensors, for use where autograd does not look."""

    def step(x: Tensor) -> Tensor:
        flat, restore = _flatten(x, row_ptr.numel() - 1)
        return restore(multiply(row_ptr, column, value, flat))

    return step


def _combine(hops: Iterator[Tensor], weight: Tensor) -> Tensor:
    """Sum of weighted hops, accumulated: never more than two hops are alive."""
    total = weight[..., 0, None, :] * next(hops)
    for j, hop in enumerate(hops, start=1):
        total.addcmul_(weight[..., j, None, :], hop)
    return total

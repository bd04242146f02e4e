"""Dense products of a stack of members, and with few outputs, fast in both directions."""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.ops import dense_kernels

PIECE = 256  # rows of one piece of a weight gradient


def stacked(x: Tensor, weight: Tensor) -> Tensor:
    r"""The products :math:`x_s W_s^\top` of every slice, differentiable.

    Args:
        x: Shape :math:`(s, n, d)`.
        weight: Shape :math:`(s, d', d)`.
    """
    if torch.is_autocast_enabled(x.device.type):
        dtype = torch.get_autocast_dtype(x.device.type)
        x, weight = x.to(dtype), weight.to(dtype)
    return _Stacked.apply(x, weight)


def linear_scores(x: Tensor, weight: Tensor) -> Tensor:
    r"""A dense layer with few outputs, :math:`W x^\top`.

    Multiplying from this side, and in the gradient too, reads ``x`` row by row, which is faster.

    Args:
        x: Shape :math:`(\ldots, n, d)`.
        weight: The rows of :math:`W`, shape :math:`(\ldots, c, d)`.

    Returns:
        Shape :math:`(\ldots, c, n)`.
    """
    if torch.is_autocast_enabled(x.device.type):
        return weight @ x.mT
    return _LinearScores.apply(x, weight)[1]


def scores_beside(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """``x`` again, and its :func:`linear_scores`.

    What is computed from this ``x`` has its gradient added in the product, not in a pass of its
    own.
    """
    if torch.is_autocast_enabled(x.device.type):
        return x, weight @ x.mT
    return _LinearScores.apply(x, weight)


def weight_gradient(grad: Tensor, x: Tensor) -> Tensor:
    r"""The sums over nodes :math:`\sum_i g_i x_i^\top` of every slice, shape (s, d', d).

    They have few outputs and long sums: as one product a slice they would leave most of a GPU idle,
    so they are taken in pieces.

    Args:
        grad: Shape :math:`(s, n, d')`.
        x: Shape :math:`(s, n, d)`.
    """
    stack, rows, _ = x.shape
    if dense_kernels.fits(x, grad.shape[-1], x.shape[-1]):
        return dense_kernels.product_of_columns(grad, x)
    if not x.is_cuda or rows % PIECE or rows == PIECE:
        return grad.mT @ x
    pieces = torch.bmm(
        grad.reshape(-1, PIECE, grad.shape[-1]).mT, x.reshape(-1, PIECE, x.shape[-1])
    )
    return pieces.view(stack, -1, *pieces.shape[1:]).sum(1)


def _products(x: Tensor, weight: Tensor) -> Tensor:
    """The product of every slice, (s, n, d) times the transpose of (s, d', d)."""
    if dense_kernels.fits(x, *weight.shape[1:]):
        return dense_kernels.product(x, weight)
    return torch.bmm(x, weight.mT)


class _Stacked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(x, weight)
        return _products(x, weight)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        x, weight = ctx.saved_tensors
        needs_x, needs_weight = ctx.needs_input_grad
        grad_x = _products(grad, weight.mT) if needs_x else None
        return grad_x, weight_gradient(grad, x) if needs_weight else None


class _LinearScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(x, weight)
        ctx.set_materialize_grads(False)
        return x.view_as(x), weight @ x.mT

    @staticmethod
    def backward(ctx, grad_x, grad):  # type: ignore[no-untyped-def]
        x, weight = ctx.saved_tensors
        if grad is None:
            return grad_x, None
        if grad_x is not None and x.dim() == grad.dim() == 2:
            grad_x = torch.addmm(grad_x, grad.mT, weight)
        elif grad_x is not None and x.dim() == 3 and grad.shape[:-2] == x.shape[:-2]:
            grad_x = torch.baddbmm(grad_x, grad.mT, weight.expand(len(x), -1, -1))
        else:
            added = (grad.mT @ weight).sum_to_size(x.shape)
            grad_x = added if grad_x is None else grad_x + added
        return grad_x, _of_scores(grad, x, weight)


def _of_scores(grad: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """The gradient of the rows of W, given that of the scores."""
    if x.is_cuda and x.dim() == 3 and grad.shape[:-2] == x.shape[:-2]:
        return weight_gradient(grad.mT, x).sum_to_size(weight.shape)
    return (grad @ x).sum_to_size(weight.shape)

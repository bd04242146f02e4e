"""A dense layer with few outputs."""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.hops.dense import weight_gradient


def along(x: Tensor, directions: Tensor) -> Tensor:
    r"""How far each node lies along each of a few directions, :math:`W x^\top`.

    The same as a dense layer with few outputs, and faster: multiplying from this side, and in the
    gradient too, reads ``x`` row by row.

    Args:
        x: Shape :math:`(\ldots, n, d)`.
        directions: The rows of :math:`W`, shape :math:`(\ldots, c, d)`.

    Returns:
        Shape :math:`(\ldots, c, n)`.
    """
    if torch.is_autocast_enabled(x.device.type):
        return directions @ x.mT
    return _Along.apply(x, directions)


class _Along(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, directions):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(x, directions)
        return directions @ x.mT

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        x, directions = ctx.saved_tensors
        grad_x = (grad.mT @ directions).sum_to_size(x.shape)
        if x.is_cuda and x.dim() == 3 and grad.shape[:-2] == x.shape[:-2]:
            return grad_x, weight_gradient(grad.mT, x).sum_to_size(directions.shape)
        return grad_x, (grad @ x).sum_to_size(directions.shape)

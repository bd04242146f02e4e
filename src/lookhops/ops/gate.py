"""What a node carries on: its features times its score, on the unit sphere or as they are."""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.ops.pattern import group
from lookhops.ops.product import entry_products, multiply


def gate(x: Tensor, score: Tensor, normalize: bool, rows: Tensor | None = None) -> Tensor:
    r"""The gated features :math:`w_i x_i`, or :math:`w_i x_i / \|x_i\|`, of some nodes or all.

    A vector of zeros stays zero.

    Args:
        x: Node features, shape :math:`(\ldots, n, d)`.
        score: The :math:`w_i`, shape :math:`(\ldots, n)`.
        normalize: Whether to divide by the norm.
        rows: The nodes wanted, none of them twice, shape :math:`(m)`, where there are no leading
            axes; none means all.

    Returns:
        Shape :math:`(\ldots, n, d)`, or :math:`(m, d)`.
    """
    compiled = torch.compiler.is_compiling()
    if compiled or (x.is_cuda and normalize):  # these lines are fused, or nearly free
        factor = score.unsqueeze(-1)
        gated = x * (factor * unit(x) if normalize else factor)
        return gated if rows is None else gated.index_select(0, rows)
    dtype = torch.promote_types(x.dtype, score.dtype)
    flat = x.to(dtype).flatten(0, -2)
    gated = _Gate.apply(flat, score.to(dtype).flatten(), normalize, rows)
    return gated if x.dim() == 2 else gated.view(x.shape)


def unit(x: Tensor) -> Tensor:
    r"""The factor :math:`1 / \|x_i\|` that puts each row on the unit sphere, shape (..., n, 1).

    A row of zeros gets the factor one: it stays zero, and so does its gradient's scale.
    """
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return torch.where(norm > 1e-12, norm, torch.ones_like(norm)).reciprocal()


class _Gate(torch.autograd.Function):
    """Written out because a row's gradient then takes two passes over memory in place of seven."""

    @staticmethod
    def forward(ctx, x, score, normalize, rows):  # type: ignore[no-untyped-def]
        scale = unit(x).squeeze(-1) if normalize else None
        factor = score if scale is None else score * scale
        ctx.save_for_backward(x, score, scale, rows)
        if rows is None:
            return x * factor.unsqueeze(-1)
        return multiply(_each(rows), rows, factor.index_select(0, rows), x)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        x, score, scale, rows = ctx.saved_tensors
        if scale is not None and torch.is_grad_enabled():  # a second derivative goes through it
            scale = unit(x).squeeze(-1)
        factor = score if scale is None else score * scale
        grad = grad.contiguous()
        if rows is None:
            projection = _row_products(x, grad)
            grad_x = grad * factor.unsqueeze(-1)
        else:
            projection = torch.zeros_like(factor)
            projection.index_copy_(0, rows, entry_products(_each(rows), rows, grad, x))
            row_ptr, order = group(rows, len(x))
            value = factor.index_select(0, rows.index_select(0, order))
            grad_x = multiply(row_ptr, order, value, grad)
        if scale is None:
            return grad_x, projection, None, None
        grad_x.addcmul_(x, (projection * factor * -scale * scale).unsqueeze(-1))
        return grad_x, projection * scale, None, None


def _row_products(a: Tensor, b: Tensor) -> Tensor:
    """The product of each row with that of the other, shape (n)."""
    if not a.is_cuda:
        return (a * b).sum(-1)
    rows = torch.arange(len(a) + 1, dtype=torch.int32, device=a.device)
    return entry_products(rows, rows[:-1], a, b)  # in one pass


def _each(rows: Tensor) -> Tensor:
    """Offsets of rows with one entry each."""
    return torch.arange(rows.numel() + 1, dtype=rows.dtype, device=rows.device)

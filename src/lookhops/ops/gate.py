"""What a node carries on: its features times its score, on the unit sphere or as they are."""

import torch
from torch import Tensor

from lookhops.ops.product import entry_products


def gate(x: Tensor, score: Tensor, normalize: bool) -> Tensor:
    r"""The gated features :math:`w_i x_i`, or :math:`w_i x_i / \|x_i\|`.

    A vector of zeros stays zero.

    Args:
        x: Node features, shape :math:`(\ldots, n, d)`.
        score: The :math:`w_i`, shape :math:`(\ldots, n)`.
        normalize: Whether to divide by the norm.
    """
    if torch.compiler.is_compiling() or (x.is_cuda and normalize):  # fused, or nearly free
        return x * (score.unsqueeze(-1) * unit(x) if normalize else score.unsqueeze(-1))
    dtype = torch.promote_types(x.dtype, score.dtype)
    gated = _Gate.apply(x.to(dtype).flatten(0, -2), score.to(dtype).flatten(), normalize)
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
    def forward(ctx, x, score, normalize):
        scale = unit(x).squeeze(-1) if normalize else None
        ctx.save_for_backward(x, score, scale)
        return x * (score if scale is None else score * scale).unsqueeze(-1)

    @staticmethod
    def backward(ctx, grad):
        x, score, scale = ctx.saved_tensors
        if scale is not None and torch.is_grad_enabled():  # a second derivative goes through it
            scale = unit(x).squeeze(-1)
        factor = score if scale is None else score * scale
        grad = grad.contiguous()
        grad_x = grad * factor.unsqueeze(-1)
        if x.is_cuda:  # in one pass
            rows = torch.arange(len(x) + 1, dtype=torch.int32, device=x.device)
            projection = entry_products(rows, rows[:-1], x, grad)
        else:
            projection = (x * grad).sum(-1)
        if scale is None:
            return grad_x, projection, None
        grad_x.addcmul_(x, (projection * factor * -scale * scale).unsqueeze(-1))
        return grad_x, projection * scale, None

"""Dropout whose draws belong to a member, a layer and a node: a hash, not a generator."""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.core.hashing import GAMMA, GOLDEN, mix_, signed
from lookhops.nn import kernels
from lookhops.nn.kernels.dropout import DRAWS
from lookhops.ops.kernels import can_run_on


def dropout(x: Tensor, p: float | Tensor, key: Tensor, layer: int, place: Tensor) -> Tensor:
    r"""Set a share of the elements to zero and scale the others up: :math:`x \odot m / (1 - p)`.

    Whether an element is dropped follows from its key, layer, place and channel alone, on every
    device: the same whatever else is in the stack or the batch, in compacted and in masked form.
    Four neighbouring channels share the 64 bits of one hash, 16 bits each; an element is dropped
    where they are below :math:`\mathrm{round}(2^{16} p)`, which makes :math:`p` a multiple of
    :math:`2^{-16}`.

    Args:
        x: Node features, shape :math:`(\ldots, n, d)`.
        p: The share that is dropped, from 0 up to below 1; where members differ a tensor with the
            share of each, shape :math:`(\ldots)`.
        key: The random number of each member, 64-bit integers of shape :math:`(\ldots)`.
        layer: Number of the layer.
        place: Number of each node in the whole data set, shape :math:`(\ldots, n)` or flat.
    """
    threshold, scale = _of_members(p, x) if isinstance(p, Tensor) else _of_all(p)
    if not (isinstance(threshold, Tensor) or threshold) or x.numel() == 0:
        return x
    key, place = key.to(x.device, torch.int64).contiguous(), place.to(torch.int64)
    if can_run_on(x):
        return kernels.Dropout.apply(x, key, layer, place.contiguous(), threshold, scale)
    keep = kept(x, key, layer, place, threshold)
    return _Scale.apply(x, keep, scale[..., None, None] if isinstance(scale, Tensor) else scale)


def _of_all(p: float) -> tuple[int, float]:
    """The draws of 65,536 that drop an element, and what the others are multiplied by."""
    threshold = min(round(p * DRAWS), DRAWS - 1)
    return threshold, DRAWS / (DRAWS - threshold)


def _of_members(p: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """The same for each member, on the device: a recorded step reads what is there now."""
    threshold = p.to(x.device).mul(DRAWS).round().clamp(max=DRAWS - 1)
    scale = (DRAWS / (DRAWS - threshold)).to(torch.promote_types(x.dtype, torch.float32))
    return threshold.long(), scale


def kept(x: Tensor, key: Tensor, layer: int, place: Tensor, threshold: int | Tensor) -> Tensor:
    """Which elements stay, shaped like ``x``; those of ``threshold`` in 65,536 are dropped."""
    if not x.numel():  # molecules of one atom have no bond; an empty tensor has no bits to view
        return torch.ones_like(x, dtype=torch.bool)
    member = mix_(key + signed(layer * GAMMA)).unsqueeze(-1)
    node = mix_(member + place.view(x.shape[:-1]))
    groups = -(-x.shape[-1] // 4)
    step = torch.arange(1, groups + 1, device=x.device) * GOLDEN
    bits = mix_(node.unsqueeze(-1) + step).view(torch.int16)[..., : x.shape[-1]]
    least = threshold - DRAWS // 2  # 16 bits, read with a sign
    return bits >= (least[..., None, None] if isinstance(least, Tensor) else least)


class _Scale(torch.autograd.Function):
    """x times a mask and a scale (of each member, or one number), keeping one byte an element."""

    @staticmethod
    def forward(ctx, x, keep, scale):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(keep)
        ctx.scale = scale
        return (x * keep).mul_(scale)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        (keep,) = ctx.saved_tensors
        return (grad * keep).mul_(ctx.scale), None, None

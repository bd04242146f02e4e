"""Dropout whose draws belong to a member, a layer and a node: a hash, not a generator.

The kernel computes the mask again for the gradient, and never stores it.
"""

from typing import Any

import torch
from torch import Tensor

from lookhops.core.hashing import GAMMA, GOLDEN, MIX_1, MIX_2, mix_, signed
from lookhops.ops.gpu import can_run_on, launch_over, tl, triton

DRAWS = 1 << 16  # values that a draw of 16 bits can take
BLOCK = 1024  # elements a program takes


def dropout(x: Tensor, p: float | Tensor, key: Tensor, layer: int, place: Tensor) -> Tensor:
    r"""Set a share of the elements to zero and scale the others up: :math:`x \odot m / (1 - p)`.

    Whether an element is dropped follows from its key, layer, place and channel alone, on every
    device and in every batch. Four neighbouring channels share the 64 bits of one hash; an element
    is dropped where its 16 are below :math:`\mathrm{round}(2^{16} p)`.

    Args:
        x: Node features, shape :math:`(\ldots, n, d)`.
        p: The share that is dropped, from 0 up to below 1; where members differ a tensor with the
            share of each, shape :math:`(\ldots)`.
        key: The random number of each member, 64-bit integers of shape :math:`(\ldots)`.
        layer: Number of the layer.
        place: Number of each node in the whole data set, shape :math:`(\ldots, n)` or flat.
    """
    threshold, scale = _threshold_and_scale(p, x)
    if not (isinstance(threshold, Tensor) or threshold) or x.numel() == 0:
        return x
    key, place = key.to(x.device, torch.int64).contiguous(), place.to(torch.int64)
    if can_run_on(x):
        return _Dropout.apply(x, key, layer, place.contiguous(), threshold, scale)
    keep = kept(x, key, layer, place, threshold)
    # Of these, autograd keeps one byte an element.
    return (x * keep).mul_(scale[..., None, None] if isinstance(scale, Tensor) else scale)


def _threshold_and_scale(p: float | Tensor, x: Tensor) -> Any:
    """The draws of 65,536 that drop an element, and what the others are multiplied by."""
    if not isinstance(p, Tensor):
        threshold = min(round(p * DRAWS), DRAWS - 1)
        return threshold, DRAWS / (DRAWS - threshold)
    # Of each member, on the device: a recorded step reads what is there now.
    each = p.to(x.device).mul(DRAWS).round().clamp(max=DRAWS - 1)
    return each.long(), (DRAWS / (DRAWS - each)).to(torch.promote_types(x.dtype, torch.float32))


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


class _Dropout(torch.autograd.Function):
    """:func:`dropout` in one launch."""

    @staticmethod
    def forward(ctx, x, key, layer, place, threshold, scale):
        ctx.save_for_backward(key, place)
        ctx.layer, ctx.threshold, ctx.scale = layer, threshold, scale
        x = x.contiguous()
        out, each = torch.empty_like(x), isinstance(threshold, Tensor)
        rates = (threshold.contiguous(), scale.contiguous()) if each else (key, key)
        counts = x.numel(), x.shape[-1], x.shape[-2]
        numbers = (1.0, layer, 0) if each else (scale, layer, threshold)
        constants = {"EACH": each, "GAMMA": GAMMA, "MIX_1": MIX_1, "MIX_2": MIX_2}
        given = x, key, place, out, *rates, *counts, *numbers
        launch_over(_dropout_kernel, x.numel(), BLOCK, *given, **constants)
        return out

    @staticmethod
    def backward(ctx, grad):
        key, place = ctx.saved_tensors
        back = _Dropout.apply(grad, key, ctx.layer, place, ctx.threshold, ctx.scale)
        return back, *[None] * 5


if triton is not None:

    @triton.jit
    def _mix(bits, MIX_1: tl.constexpr, MIX_2: tl.constexpr):
        """The finaliser of SplitMix64."""
        bits = (bits ^ (bits >> 30)) * MIX_1
        bits = (bits ^ (bits >> 27)) * MIX_2
        return bits ^ (bits >> 31)

    @triton.jit(do_not_specialize=["layer", "threshold"])  # one kernel serves all layers and rates
    def _dropout_kernel(
        x,
        key,
        place,
        out,
        thresholds,
        scales,
        size,
        width,
        nodes,
        scale,
        layer,
        threshold,
        EACH: tl.constexpr,
        GAMMA: tl.constexpr,
        MIX_1: tl.constexpr,
        MIX_2: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        """out = x scale where the element's draw is not below the threshold, else zero."""
        element = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        inside = element < size
        row = element // width
        channel = (element - row * width).to(tl.uint64)
        member = tl.load(key + row // nodes, mask=inside, other=0).to(tl.uint64)
        member = _mix(member + tl.cast(layer, tl.uint64) * GAMMA, MIX_1, MIX_2)
        node = tl.load(place + row, mask=inside, other=0).to(tl.uint64)
        node = _mix(member + node, MIX_1, MIX_2)
        bits = _mix(node + (channel // 4 + 1) * GAMMA, MIX_1, MIX_2)
        draw = ((bits >> (channel % 4 * 16)) & 65535) ^ 32768  # read with a sign by plain PyTorch
        value = tl.load(x + element, mask=inside, other=0.0).to(tl.float32)
        if EACH:
            own = tl.load(thresholds + row // nodes, mask=inside, other=0).to(tl.uint64)
            factor = tl.load(scales + row // nodes, mask=inside, other=1.0).to(tl.float32)
            value = tl.where(draw >= own, value * factor, 0.0)
        else:
            value = tl.where(draw >= tl.cast(threshold, tl.uint64), value * scale, 0.0)
        tl.store(out + element, value.to(out.dtype.element_ty), mask=inside)

# mypy: allow-untyped-defs, allow-incomplete-defs
"""Dropout by a hash: the mask is computed again for the gradient, and never stored."""

from __future__ import annotations

import torch

from lookhops.core.hashing import GAMMA, MIX_1, MIX_2
from lookhops.ops.kernels import tl, triton

DRAWS = 1 << 16  # values that a draw of 16 bits can take
BLOCK = 1024  # elements a program takes


class Dropout(torch.autograd.Function):
    """As :func:`lookhops.nn.dropout.dropout`."""

    @staticmethod
    def forward(ctx, x, key, layer, place, threshold, scale):
        """One kernel over elements; threshold and scale are numbers, or of each member."""
        ctx.save_for_backward(key, place)
        ctx.layer, ctx.threshold, ctx.scale = layer, threshold, scale
        return _launch(x, key, layer, place, threshold, scale)

    @staticmethod
    def backward(ctx, grad):
        """The same kernel."""
        key, place = ctx.saved_tensors
        back = Dropout.apply(grad, key, ctx.layer, place, ctx.threshold, ctx.scale)
        return back, *[None] * 5


def _launch(x, key, layer, place, threshold, scale):
    x = x.contiguous()
    out = torch.empty_like(x)
    each = isinstance(threshold, torch.Tensor)
    _dropout_kernel[(triton.cdiv(x.numel(), BLOCK),)](
        x,
        key,
        place,
        out,
        threshold.contiguous() if each else key,
        scale.contiguous() if each else key,
        x.numel(),
        x.shape[-1],
        x.shape[-2],
        1.0 if each else scale,
        layer,
        0 if each else threshold,
        EACH=each,
        GAMMA=GAMMA,
        MIX_1=MIX_1,
        MIX_2=MIX_2,
        BLOCK=BLOCK,
        num_warps=4,
    )
    return out


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

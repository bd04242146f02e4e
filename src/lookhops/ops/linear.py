"""A dense layer, also on processors that PyTorch's own choice of a library does not know well.

On the CPU PyTorch multiplies float32 with MKL, which takes AVX2 on AMD's processors even where they
have AVX-512. oneDNN, which comes with PyTorch too, takes AVX-512 on any: twice as fast there.
"""

from __future__ import annotations

import platform
from contextlib import suppress
from functools import cache
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import linear as plain_linear
from torch.nn.functional import pad

from lookhops.ops.dense import stacked

#: Rows are padded to a multiple of this: oneDNN prepares for each number of rows, and remembers it.
ROWS = 512
#: Products of fewer numbers are over before oneDNN has begun.
LEAST = 1 << 23


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
    r"""The product :math:`x W^\top + b`, and the bias where it is still to be added.

    That is the bias of a stack of members, which kernels that read the product can add.

    Args:
        x: Shape :math:`(\ldots, n, d)`.
        weight: Shape :math:`(d', d)`, or :math:`(s, d', d)` with a slice for each member.
        bias: Shape :math:`(d')`, or :math:`(s, d')`; none means zero.
    """
    if fits(x, weight):
        return dense(x, weight, bias), None
    if weight.dim() == 2:
        return plain_linear(x, weight, bias), None
    x = x.expand(weight.shape[0], -1, -1) if x.dim() != 3 else x
    return stacked(x, weight), bias


def fits(x: Tensor, weight: Tensor) -> bool:
    """Whether :func:`dense` is faster for these than PyTorch's ``linear``.

    Args:
        x: Shape :math:`(n, d)`.
        weight: Shape :math:`(d', d)`.
    """
    plain = x.device.type == "cpu" and x.dim() == weight.dim() == 2
    if not plain or torch.compiler.is_compiling() or torch.jit.is_tracing():
        return False  # to look at the number of rows would fix it
    exact = x.dtype == weight.dtype == torch.float32
    large = len(x) >= ROWS and x.numel() * len(weight) >= LEAST
    return exact and large and x.is_contiguous() and _is_faster() and not _is_special()


def _is_special() -> bool:
    """Whether products are rounded or transformed, which PyTorch's own know how to be."""
    transformed = torch._C._functorch.peek_interpreter_stack() is not None
    if transformed or torch.is_autocast_enabled("cpu"):
        return True
    try:
        return torch.get_float32_matmul_precision() != "highest"
    except RuntimeError:  # the user has chosen by PyTorch's newer settings
        return True


def dense(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    r""":math:`x W^\top + b`, differentiable.

    Args:
        x: Shape :math:`(n, d)`.
        weight: Shape :math:`(d', d)`.
        bias: Shape :math:`(d')`; none means zero.
    """
    count, more = len(x), -len(x) % ROWS
    padded = pad(x, (0, 0, 0, more)) if more else x
    if torch.is_grad_enabled():
        found = _Dense.apply(padded, weight, bias, count)
    else:
        found = product(padded, weight, bias)
    return found[:count] if more else found


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """:func:`dense` without a gradient, of a multiple of ``ROWS``."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


class _Dense(torch.autograd.Function):
    """The gradient of the weights is left to MKL: over so many rows it rounds less."""

    @staticmethod
    def forward(ctx, x, weight, bias, count):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(x, weight)
        ctx.count = count
        return product(x, weight, bias)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias, _ = ctx.needs_input_grad
        grad_x, rows = None, grad[: ctx.count]  # padding has no part in sums over rows
        if needs_x:
            second = torch.is_grad_enabled()  # a second derivative is wanted
            grad_x = grad @ weight if second else product(grad.contiguous(), weight.mT)
        return (
            grad_x,
            rows.mT @ x[: ctx.count] if needs_weight else None,
            rows.sum(0) if needs_bias else None,
            None,
        )


@cache
def _is_faster() -> bool:
    """Whether oneDNN is here, and this is a processor with AVX-512 that is not Intel's."""
    known = torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()
    if not known or torch.backends.cpu.get_cpu_capability() != "AVX512":
        return False
    return hasattr(torch.ops.mkldnn, "_linear_pointwise") and "AuthenticAMD" in _processor()


def _processor() -> str:
    """What the system says about its processors."""
    with suppress(OSError, UnicodeError):
        return Path("/proc/cpuinfo").read_text()
    return platform.processor()

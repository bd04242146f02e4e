"""Dense layers: of one member, of a stack of members, and with few outputs.

On the CPU PyTorch multiplies float32 with MKL, which takes AVX2 on AMD's processors even where they
have AVX-512. oneDNN, which comes with PyTorch too, takes AVX-512 on any: twice as fast there.

The kernel has the accuracy of float32 on tensor cores, which take factors of few bits: the products
of a factor's parts are added up. Of two parts of 11 bits ("tf32x3"), for sums along rows of the
left factor and columns of the right one alone, three of the four products are: what is left out is
at most 2^-20 of a term. Of three parts of 8 bits (bfloat16) six of the nine are.
"""

import platform
from contextlib import suppress
from functools import cache
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import linear as plain_linear
from torch.nn.functional import pad

from lookhops.ops.gpu import available, tl, triton

#: Rows are padded to a multiple of this: oneDNN prepares for each number of rows, and remembers it.
MULTIPLE = 512
#: Products of fewer numbers are over before oneDNN has begun.
LEAST = 1 << 23
PIECE = 256  # rows of one piece of a weight gradient
# Rows and columns of the product that a program finds: parts of the factors lie in registers.
ROWS, COLUMNS, COLUMNS_OF_LONG_SUMS = 64, 64, 128
TERMS = 32  # of its sums that it takes at once
WARPS = 4
PROGRAMS = 264  # of long sums, that an H200 runs at once
FEWEST_STEPS = 4  # of TERMS, in a piece of a long sum
NARROWEST, STEP, WIDEST = 16, 16, 256  # channels


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
    r"""The product :math:`x W^\top + b`, and the bias where it is still to be added.

    That is the bias of a stack of members, which kernels that read the product can add.

    Args:
        x: Shape :math:`(\ldots, n, d)`.
        weight: Shape :math:`(d', d)`, or :math:`(s, d', d)` with a slice for each member.
        bias: Shape :math:`(d')`, or :math:`(s, d')`; none means zero.
    """
    if onednn_fits(x, weight):
        return by_onednn(x, weight, bias), None
    if weight.dim() == 2:
        return plain_linear(x, weight, bias), None
    x = x.expand(weight.shape[0], -1, -1) if x.dim() != 3 else x
    return stacked(x, weight), bias


def onednn_fits(x: Tensor, weight: Tensor) -> bool:
    """Whether :func:`by_onednn` is faster for these than PyTorch's ``linear``."""
    plain = x.device.type == "cpu" and x.dim() == weight.dim() == 2
    if not plain or torch.compiler.is_compiling() or torch.jit.is_tracing():
        return False  # to look at the number of rows would fix it
    exact = x.dtype == weight.dtype == torch.float32
    large = len(x) >= MULTIPLE and x.numel() * len(weight) >= LEAST
    return exact and large and x.is_contiguous() and _is_faster() and not _is_special()


def _is_special() -> bool:
    """Whether products are rounded or transformed, which PyTorch's own know how to be."""
    try:
        transformed = torch._C._functorch.peek_interpreter_stack() is not None
        exact = torch.get_float32_matmul_precision() == "highest"
    except (AttributeError, RuntimeError):  # PyTorch has it no more; precision by newer settings
        return True
    return transformed or not exact or torch.is_autocast_enabled("cpu")


def by_onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    r""":math:`x W^\top + b` of matrices, differentiable."""
    count, more = len(x), -len(x) % MULTIPLE
    padded = pad(x, (0, 0, 0, more)) if more else x
    if torch.is_grad_enabled():
        found = _ByOneDNN.apply(padded, weight, bias, count)
    else:
        found = onednn_product(padded, weight, bias)
    return found[:count] if more else found


def onednn_product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """:func:`by_onednn` without a gradient, of a multiple of ``MULTIPLE`` rows."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


class _ByOneDNN(torch.autograd.Function):
    """The gradient of the weights is left to MKL: over so many rows it rounds less."""

    @staticmethod
    def forward(ctx, x, weight, bias, count):
        ctx.save_for_backward(x, weight)
        ctx.count = count
        return onednn_product(x, weight, bias)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias, _ = ctx.needs_input_grad
        grad_x, rows = None, grad[: ctx.count]  # padding has no part in sums over rows
        if needs_x:
            second = torch.is_grad_enabled()  # a second derivative is wanted
            grad_x = grad @ weight if second else onednn_product(grad.contiguous(), weight.mT)
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


def stacked(x: Tensor, weight: Tensor) -> Tensor:
    r"""The products :math:`x_s W_s^\top` of every slice, (s, n, d) by (s, d', d)."""
    if torch.is_autocast_enabled(x.device.type):
        dtype = torch.get_autocast_dtype(x.device.type)
        x, weight = x.to(dtype), weight.to(dtype)
    return _Stacked.apply(x, weight)


def linear_scores(x: Tensor, weight: Tensor) -> Tensor:
    r"""A dense layer with few outputs, :math:`W x^\top`, shape :math:`(\ldots, c, n)`.

    Multiplying from this side, and in the gradient too, reads ``x`` row by row, which is faster.
    """
    return scores_beside(x, weight)[1]


def scores_beside(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """``x`` again, whose gradient is added in the product, and its :func:`linear_scores`."""
    if torch.is_autocast_enabled(x.device.type):
        return x, weight @ x.mT
    return _LinearScores.apply(x, weight)


def weight_gradient(grad: Tensor, x: Tensor) -> Tensor:
    r"""The sums over nodes :math:`\sum_i g_i x_i^\top` of every slice, shape (s, d', d).

    They have few outputs and long sums, and are taken in pieces, else most of a GPU would be idle.
    """
    stack, rows, _ = x.shape
    if product_fits(x, grad.shape[-1], x.shape[-1]):
        return product_of_columns(grad, x)
    if not x.is_cuda or rows % PIECE or rows == PIECE:
        return grad.mT @ x
    pieces = torch.bmm(
        grad.reshape(-1, PIECE, grad.shape[-1]).mT, x.reshape(-1, PIECE, x.shape[-1])
    )
    return pieces.view(stack, -1, *pieces.shape[1:]).sum(1)


def _products(x: Tensor, weight: Tensor) -> Tensor:
    """The product of every slice, (s, n, d) times the transpose of (s, d', d)."""
    if product_fits(x, *weight.shape[1:]):
        return product(x, weight)
    return torch.bmm(x, weight.mT)


class _Stacked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return _products(x, weight)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        needs_x, needs_weight = ctx.needs_input_grad
        grad_x = _products(grad, weight.mT) if needs_x else None
        return grad_x, weight_gradient(grad, x) if needs_weight else None


class _LinearScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        ctx.set_materialize_grads(False)
        return x.view_as(x), weight @ x.mT

    @staticmethod
    def backward(ctx, grad_x, grad):
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
        alike = x.is_cuda and x.dim() == 3 and grad.shape[:-2] == x.shape[:-2]
        grad_weight = weight_gradient(grad.mT, x) if alike else grad @ x
        return grad_x, grad_weight.sum_to_size(weight.shape)


def product_fits(x: Tensor, *widths: int) -> bool:
    """Whether :func:`product` is used: for single precision, on GPUs as those it was tried on."""
    return (
        x.is_cuda
        and x.dtype == torch.float32
        and x.numel() > 0
        and all(NARROWEST <= width <= WIDEST and width % STEP == 0 for width in widths)
        and torch.get_float32_matmul_precision() == "highest"
        and available()
        and torch.cuda.get_device_capability(x.device) == (9, 0)
    )


def product(a: Tensor, b: Tensor) -> Tensor:
    """The products of every slice, (s, m, k) times the transpose of (s, n, k)."""
    return _product(a.contiguous(), b.contiguous().mT, 1, COLUMNS, stages=3)


def product_of_columns(a: Tensor, b: Tensor) -> Tensor:
    """The products of every slice, the transpose of (s, k, m) times (s, k, n), for a large k."""
    slices, length, rows = a.shape
    columns = min(max(triton.next_power_of_2(b.shape[-1]), 16), COLUMNS_OF_LONG_SUMS)
    tiles = triton.cdiv(rows, ROWS) * triton.cdiv(b.shape[-1], columns)
    pieces = max(PROGRAMS // (slices * tiles), 1)
    steps = max(triton.cdiv(length, TERMS * pieces), FEWEST_STEPS)
    pieces = triton.cdiv(length, TERMS * steps)
    found = _product(a.contiguous().mT, b.contiguous(), pieces, columns, stages=1)
    return found if pieces == 1 else found.view(slices, pieces, *found.shape[1:]).sum(1)


def _product(a: Tensor, b: Tensor, pieces: int, block: int, stages: int) -> Tensor:
    """The products of every slice, the sums of each in so many pieces, one after the other."""
    slices, rows, length = a.shape
    columns = b.shape[-1]
    out = torch.empty(slices * pieces, rows, columns, dtype=a.dtype, device=a.device)
    tiles = triton.cdiv(rows, ROWS) * triton.cdiv(columns, block)
    each = triton.cdiv(triton.cdiv(length, TERMS), pieces) * TERMS
    sizes = {"ROWS": ROWS, "COLUMNS": block, "TERMS": TERMS, "ALONG_SUMS": a.stride(2) == 1}
    given = (a, b, out, rows, columns, length, each, *a.stride(), *b.stride())
    _product_kernel[(tiles, pieces, slices)](*given, **sizes, num_warps=WARPS, num_stages=stages)
    return out


if triton is not None:

    @triton.jit
    def _dot_of_three_parts(left, right):
        """The product of two blocks, by six of bfloat16, the smallest first."""
        high = left.to(tl.bfloat16)
        rest = left - high.to(tl.float32)
        middle = rest.to(tl.bfloat16)
        low = (rest - middle.to(tl.float32)).to(tl.bfloat16)
        right_high = right.to(tl.bfloat16)
        rest = right - right_high.to(tl.float32)
        right_middle = rest.to(tl.bfloat16)
        right_low = (rest - right_middle.to(tl.float32)).to(tl.bfloat16)
        found = tl.dot(low, right_high)
        found = tl.dot(high, right_low, found)
        found = tl.dot(middle, right_middle, found)
        found = tl.dot(middle, right_high, found)
        found = tl.dot(high, right_middle, found)
        return tl.dot(high, right_high, found)

    @triton.jit
    def _product_kernel(
        a,
        b,
        out,
        rows,
        columns,
        length,
        piece_length,
        a_slice,
        a_row,
        a_column,
        b_slice,
        b_row,
        b_column,
        ROWS: tl.constexpr,
        COLUMNS: tl.constexpr,
        TERMS: tl.constexpr,
        ALONG_SUMS: tl.constexpr,
    ):
        """out = a b for a block of rows and columns of one slice, over one piece of the sums.

        Where neighbours in memory are terms of one sum the parts are two, else three.
        """
        tile, piece = tl.program_id(0), tl.program_id(1)
        part = tl.program_id(2).to(tl.int64)  # which slice this block belongs to
        across = tl.cdiv(columns, COLUMNS)
        first_row = (tile // across * ROWS).to(tl.int64)
        first_term = (piece * piece_length).to(tl.int64)
        row = tl.arange(0, ROWS)
        column = tile % across * COLUMNS + tl.arange(0, COLUMNS)
        term = tl.arange(0, TERMS)
        live = (first_row + row < rows)[:, None]
        inside = (column < columns)[None, :]
        end = tl.minimum(length - first_term, piece_length).to(tl.int32)
        a += part * a_slice + first_row * a_row + first_term * a_column
        b += part * b_slice + first_term * b_row
        total = tl.zeros((ROWS, COLUMNS), tl.float32)
        for first in range(0, end, TERMS):
            now = first + term
            left = a + row[:, None] * a_row + now[None, :] * a_column
            right = b + now[:, None] * b_row + column[None, :] * b_column
            left = tl.load(left, mask=live & (now < end)[None, :], other=0.0)
            right = tl.load(right, mask=inside & (now < end)[:, None], other=0.0)
            if ALONG_SUMS:
                total = tl.dot(left, right, total, input_precision="tf32x3")
            else:
                total += _dot_of_three_parts(left, right)
        out += ((part * tl.num_programs(1) + piece) * rows + first_row) * columns
        tl.store(out + row[:, None] * columns + column[None, :], total, mask=live & inside)

"""A dense layer over few rows of every member: product, bias and ReLU in one launch each way."""

import torch
from torch import Tensor

from lookhops.ops.dense import linear
from lookhops.ops.gpu import can_run_on, tl, triton

SIDE = 32  # rows and columns of the products that a program makes
MOST_ROWS = 1024  # a program adds up a weight's gradient over all rows
MOST_CHANNELS = 1024


def linear_relu(x: Tensor, weight: Tensor, bias: Tensor, relu: bool = True) -> Tensor:
    r""":math:`\mathrm{ReLU}(x W^\top + b)`, or without the ReLU; shapes as for a linear layer."""
    # The device first: an export must not see that sizes are compared.
    fits = can_run_on(x) and x.dim() == weight.dim() == 3 and len(x) == len(weight)
    if fits and x.shape[-2] <= MOST_ROWS and max(weight.shape[-2:]) <= MOST_CHANNELS:
        return _Dense.apply(x, weight, bias, relu)
    product, offset = linear(x, weight, bias)
    product = product if offset is None else product.add_(offset.unsqueeze(-2))
    return torch.relu(product) if relu else product


class _Dense(torch.autograd.Function):
    """One kernel each way; products round as PyTorch's do, as it is set to or under autocast."""

    @staticmethod
    def forward(ctx, x, weight, bias, relu):
        x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
        mixed = torch.is_autocast_enabled(x.device.type)
        dtype = torch.get_autocast_dtype(x.device.type) if mixed else x.dtype
        slices, rows, width = x.shape
        outputs = weight.shape[1]
        out = torch.empty(slices, rows, outputs, dtype=dtype, device=x.device)
        ctx.sizes = {
            "PRECISION": "ieee" if torch.get_float32_matmul_precision() == "highest" else "tf32",
            "SHORT": dtype == torch.bfloat16,
            "RELU": relu,
            "SIDE": SIDE,
            "num_warps": 4,
        }
        tiles = triton.cdiv(rows, SIDE), triton.cdiv(outputs, SIDE)
        _dense_kernel[slices, *tiles](x, weight, bias, out, rows, width, outputs, **ctx.sizes)
        ctx.save_for_backward(x, weight, out if relu else None)
        ctx.dtype = bias.dtype
        return out

    @staticmethod
    def backward(ctx, grad):
        x, weight, out = ctx.saved_tensors
        slices, rows, width = x.shape
        outputs = weight.shape[1]
        grad_x, grad_weight = torch.empty_like(x), torch.empty_like(weight)
        grad_bias = torch.empty(slices, outputs, dtype=ctx.dtype, device=x.device)
        across = triton.cdiv(width, SIDE)
        of_x, of_weight = triton.cdiv(rows, SIDE) * across, triton.cdiv(outputs, SIDE) * across
        given = grad.contiguous(), x, weight, out, grad_x, grad_weight, grad_bias
        _dense_backward_kernel[slices, of_x + of_weight](
            *given, of_x, across, rows, width, outputs, **ctx.sizes
        )
        return grad_x, grad_weight, grad_bias, None


if triton is not None:

    @triton.jit
    def _load(x, row, column, rows, columns, SHORT: tl.constexpr):
        """A block of a matrix, zero outside of it, in the type in which it is multiplied."""
        place = row[:, None] * columns + column[None, :]
        mask = (row < rows)[:, None] & (column < columns)[None, :]
        value = tl.load(x + place, mask=mask, other=0.0)
        return value.to(tl.bfloat16) if SHORT else value.to(tl.float32)

    @triton.jit
    def _load_slope(grad, out, row, column, rows, columns, RELU: tl.constexpr, SHORT: tl.constexpr):
        """The gradient before the ReLU."""
        value = _load(grad, row, column, rows, columns, SHORT)
        if RELU:
            value = tl.where(_load(out, row, column, rows, columns, SHORT) > 0, value, 0.0)
        return value

    @triton.jit
    def _store(x, value, row, column, rows, columns):
        place = row[:, None] * columns + column[None, :]
        mask = (row < rows)[:, None] & (column < columns)[None, :]
        tl.store(x + place, value.to(x.dtype.element_ty), mask=mask)

    @triton.jit
    def _dense_kernel(
        x,
        weight,
        bias,
        out,
        rows,
        width,
        outputs,
        PRECISION: tl.constexpr,
        SHORT: tl.constexpr,
        RELU: tl.constexpr,
        SIDE: tl.constexpr,
    ):
        """out = x W^T + b, or its ReLU: a block of rows and outputs of one slice."""
        part = tl.program_id(0).to(tl.int64)
        x += part * rows * width
        weight += part * outputs * width
        out += part * rows * outputs
        row = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
        output = tl.program_id(2) * SIDE + tl.arange(0, SIDE)
        own = tl.load(bias + part * outputs + output, mask=output < outputs, other=0.0)
        total = tl.zeros((SIDE, SIDE), tl.float32) + own.to(tl.float32)[None, :]
        for first in range(0, width, SIDE):
            channel = first + tl.arange(0, SIDE)
            left = _load(x, row, channel, rows, width, SHORT)
            right = _load(weight, output, channel, outputs, width, SHORT)
            total = tl.dot(left, tl.trans(right), total, input_precision=PRECISION)
        if RELU:
            total = tl.where(total < 0, 0.0, total)  # a NaN stays
        _store(out, total, row, output, rows, outputs)

    @triton.jit
    def _dense_backward_kernel(
        grad,
        x,
        weight,
        out,
        grad_x,
        grad_weight,
        grad_bias,
        of_x,
        across,
        rows,
        width,
        outputs,
        PRECISION: tl.constexpr,
        SHORT: tl.constexpr,
        RELU: tl.constexpr,
        SIDE: tl.constexpr,
    ):
        """A block of x's gradient g W, or of the weight's g^T x and the bias's sum of g."""
        part = tl.program_id(0).to(tl.int64)
        grad += part * rows * outputs
        x += part * rows * width
        weight += part * outputs * width
        if RELU:
            out += part * rows * outputs
        program = tl.program_id(1)
        each = tl.arange(0, SIDE)
        channel = (program % across) * SIDE + each
        total = tl.zeros((SIDE, SIDE), tl.float32)
        if program < of_x:
            row = (program // across) * SIDE + each
            for first in range(0, outputs, SIDE):
                output = first + each
                slope = _load_slope(grad, out, row, output, rows, outputs, RELU, SHORT)
                right = _load(weight, output, channel, outputs, width, SHORT)
                total = tl.dot(slope, right, total, input_precision=PRECISION)
            _store(grad_x + part * rows * width, total, row, channel, rows, width)
        else:
            output = (program // across - of_x // across) * SIDE + each
            summed = tl.zeros((SIDE,), tl.float32)
            for first in range(0, rows, SIDE):
                row = first + each
                slope = _load_slope(grad, out, row, output, rows, outputs, RELU, SHORT)
                summed += tl.sum(slope.to(tl.float32), axis=0)
                right = _load(x, row, channel, rows, width, SHORT)
                total = tl.dot(tl.trans(slope), right, total, input_precision=PRECISION)
            there = grad_weight + part * outputs * width
            _store(there, total, output, channel, outputs, width)
            if program % across == 0:
                place = grad_bias + part * outputs + output
                tl.store(place, summed.to(grad_bias.dtype.element_ty), mask=output < outputs)

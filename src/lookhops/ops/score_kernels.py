# mypy: allow-untyped-defs, allow-incomplete-defs
"""Triton kernels for the score of the anchors, forward and backward: 7 launches for k = 2, not 26.

:func:`score` stands for the activation of :meth:`lookhops.ops.Anchors.score` plus a bias, which
tests hold it to. Channels are summed first, in one pass over z; hops then take one number a node.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.ops.kernels import can_run_on, tl, triton
from lookhops.ops.product import SparseMatrix

ACTIVATIONS = ("none", "sigmoid", "relu")
BLOCK = 128  # rows that a program of a hop takes
ROWS = 16  # rows of z that a program reads
# Of the gradient: one warp holds all rows of a block, so that their sums need no exchange.
GRAD_ROWS = 4
FEWEST_BLOCKS = 3  # whose sums a program adds up
PROGRAMS = 4096  # about
PARTS, PART_CHANNELS = 256, 32  # of the programs' sums that are added up at once


def score_fits(matrix: SparseMatrix, z: Tensor, theta: Tensor, activation: str) -> bool:
    """Whether :func:`score` can take them: a slice of weights for each slice of rows."""
    if not can_run_on(z):
        return False
    value = matrix.value
    learns = value is not None and value.requires_grad and torch.is_grad_enabled()
    alike = z.shape[:-2] == theta.shape[:-2] and matrix.pattern.size == z.shape[:-1].numel()
    few = 2 <= theta.shape[-2] <= 9 and z.shape[-1] <= 256
    known = activation in ACTIVATIONS
    return alike and few and known and not learns


def score(
    chebyshev: bool,
    matrix: SparseMatrix,
    z: Tensor,
    offset: Tensor | None,
    theta: Tensor,
    bias: Tensor,
    activation: str,
) -> tuple[Tensor, Tensor]:
    """z again, and the activated scores, shape (..., n); without ``chebyshev`` hops are powers.

    What is computed from this z has its gradient added where that of the scores is computed.
    """
    return _Scores.apply(
        z, offset, theta, bias, chebyshev, activation, matrix.value, *matrix.entries()
    )


class _Scores(torch.autograd.Function):
    """Keeps z and the scores: the gradient runs the recurrence over the transpose."""

    @staticmethod
    def forward(ctx, z, offset, theta, bias, chebyshev, activation, value, *entries):
        """A pass over z, then Clenshaw's rule, or Horner's."""
        z, theta, row_ptr, column = z.contiguous(), theta.contiguous(), *entries[:2]
        offset = None if offset is None else offset.contiguous()
        rows, width, count = z.shape[:-1].numel(), z.shape[-1], theta.shape[-2]
        each = z.shape[-2]  # rows of a slice
        terms = torch.empty(count, rows, dtype=torch.float32, device=z.device)
        blocks = triton.cdiv(each, ROWS)
        sizes = {"COUNT": count, "ROWS": ROWS, "CHANNELS": triton.next_power_of_2(width)}
        _terms_kernel[rows // each, blocks](
            z, offset, theta, terms, rows, each, width, **sizes, num_warps=4
        )
        now, before = terms[-1], None
        for j in range(count - 2, -1, -1):
            last = j == 0
            dtype = torch.promote_types(z.dtype, bias.dtype) if last else torch.float32
            after = torch.empty(rows, dtype=dtype, device=z.device)
            given = terms[j], before, bias.contiguous() if last else None
            how = 2 if chebyshev and not last else 1, activation if last else "none"
            _launch_hop((row_ptr, column, value), now, *given, after, each, *how)
            now, before = after, now if chebyshev else None
        ctx.save_for_backward(z, offset, theta, now, value, *entries)
        ctx.how, ctx.dtype = (chebyshev, activation), bias.dtype
        ctx.set_materialize_grads(False)
        return z.view_as(z), now.view(z.shape[:-1])

    @staticmethod
    def backward(ctx, beside, grad):
        """The hops of the gradient, a pass over z, and the sums of the parameters."""
        if grad is None:
            return beside, *[None] * 11
        z, offset, theta, found, value, _, _, row_ptr, column, order = ctx.saved_tensors
        chebyshev, activation = ctx.how
        value = value if value is None or order is None else value.index_select(0, order)
        rows, width, count = z.shape[:-1].numel(), z.shape[-1], theta.shape[-2]
        each, matrix = z.shape[-2], (row_ptr, column, value)
        slopes = torch.empty(count, rows, dtype=torch.float32, device=z.device)
        own = grad.contiguous().view(-1), found.view(-1), slopes[0]
        _launch_hop(matrix, own[0], None, None, None, slopes[1], each, 1, activation, own[1:])
        for j in range(2, count):
            before = slopes[j - 2] if chebyshev else None
            how = 2 if chebyshev else 1, "none"
            _launch_hop(matrix, slopes[j - 1], None, before, None, slopes[j], each, *how)
        slices = rows // each
        blocks = max(triton.cdiv(rows, GRAD_ROWS * PROGRAMS), FEWEST_BLOCKS)
        programs = triton.cdiv(each, GRAD_ROWS * blocks)  # of a slice
        grad_z, beside = torch.empty_like(z), None if beside is None else beside.contiguous()
        parts = torch.empty(slices * programs, count, width + 1, device=z.device)
        sizes = {"COUNT": count, "ROWS": GRAD_ROWS, "CHANNELS": triton.next_power_of_2(width)}
        counts = (rows, each, programs, blocks, width)
        _score_backward_kernel[(slices * programs,)](
            z, theta, slopes, beside, grad_z, parts, *counts, **sizes, num_warps=1
        )
        grad_theta = torch.empty_like(theta)
        grad_offset = None if offset is None else torch.empty_like(offset)
        grad_bias = torch.empty(*theta.shape[:-2], 1, dtype=ctx.dtype, device=z.device)
        grads = (grad_theta, grad_offset, grad_bias)
        sizes = {"COUNT": count, "PARTS": PARTS, "CHANNELS": PART_CHANNELS, "num_warps": 8}
        _score_sums_kernel[slices, count + 1, triton.cdiv(width, PART_CHANNELS)](
            parts, offset, theta, *grads, programs, width, **sizes
        )
        return grad_z, grad_offset, grad_theta, grad_bias, *[None] * 8


def _launch_hop(matrix, x, term, before, bias, out, each, scale, activation, own=(None, None)):
    """Write scale A x, plus a term, less what was before, to ``out``; see the kernel."""
    rows = out.numel()
    grid, sizes = (triton.cdiv(rows, BLOCK),), {"BLOCK": BLOCK, "num_warps": 4}
    how = {"SCALE": scale, "ACTIVATION": ACTIVATIONS.index(activation)}
    _score_hop_kernel[grid](*matrix, x, term, before, bias, *own, out, rows, each, **how, **sizes)


if triton is not None:

    @triton.jit
    def _terms_kernel(
        z,
        offset,
        theta,
        terms,
        rows,
        each,
        width,
        COUNT: tl.constexpr,
        ROWS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """The products of every row of z, to which the offset is added, with each theta."""
        part = tl.program_id(0)
        at = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
        row = part * each + at
        channel = tl.arange(0, CHANNELS)
        live, inside = at < each, channel < width
        place = row.to(tl.int64)[:, None] * width + channel[None, :]
        x = tl.load(z + place, mask=live[:, None] & inside[None, :], other=0.0).to(tl.float32)
        if offset is not None:
            shift = tl.load(offset + part * width + channel, mask=inside, other=0.0)
            x += shift.to(tl.float32)[None, :]
        for j in tl.static_range(COUNT):
            there = theta + (part * COUNT + j) * width + channel
            own = tl.load(there, mask=inside, other=0.0).to(tl.float32)
            tl.store(terms + j * rows + row, tl.sum(x * own[None, :], axis=1), mask=live)

    @triton.jit
    def _slope_of(found, ACTIVATION: tl.constexpr):
        """The derivative of the activation, given what it answered."""
        slope = found * 0.0 + 1.0
        if ACTIVATION == 1:
            slope = found * (1.0 - found)
        elif ACTIVATION == 2:
            slope = (found > 0).to(tl.float32)
        return slope

    @triton.jit
    def _score_hop_kernel(
        row_ptr,
        column,
        value,
        x,
        term,
        before,
        bias,
        found,
        own,
        out,
        rows,
        each,
        SCALE: tl.constexpr,
        ACTIVATION: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        """out = SCALE A x + term - before of one number a row; with a bias its activation.

        Where the activation's answers are ``found``, x is the gradient after it; before the
        activation it is what the hop takes, and is written to own.
        """
        row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        live = row < rows
        start = tl.load(row_ptr + row, mask=live, other=0)
        end = tl.load(row_ptr + row + 1, mask=live, other=0)
        total = tl.zeros((BLOCK,), tl.float32)
        for j in range(0, tl.max((end - start).to(tl.int32), axis=0)):
            entry = start + j
            here = entry < end
            source = tl.load(column + entry, mask=here, other=0)
            part = tl.load(x + source, mask=here, other=0.0).to(tl.float32)
            if found is not None:
                answer = tl.load(found + source, mask=here, other=0.0).to(tl.float32)
                part *= _slope_of(answer, ACTIVATION)
            if value is not None:
                part *= tl.load(value + entry, mask=here, other=0.0).to(tl.float32)
            total += part
        total *= SCALE
        if term is not None:
            total += tl.load(term + row, mask=live, other=0.0)
        if before is not None:
            total -= tl.load(before + row, mask=live, other=0.0)
        if bias is not None:
            total += tl.load(bias + row // each, mask=live, other=0.0).to(tl.float32)
            if ACTIVATION == 1:
                total = tl.sigmoid(total)
            elif ACTIVATION == 2:
                total = tl.where(total < 0, 0.0, total)  # a NaN stays
        if found is not None:
            answer = tl.load(found + row, mask=live, other=0.0).to(tl.float32)
            slope = tl.load(x + row, mask=live, other=0.0).to(tl.float32)
            tl.store(own + row, slope * _slope_of(answer, ACTIVATION), mask=live)
        tl.store(out + row, total.to(out.dtype.element_ty), mask=live)

    @triton.jit
    def _score_backward_kernel(
        z,
        theta,
        slopes,
        beside,
        grad_z,
        parts,
        rows,
        each,
        programs,
        blocks,
        width,
        COUNT: tl.constexpr,
        ROWS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """The gradient of z; of some blocks of rows the sums of slopes, and of slopes times z."""
        program = tl.program_id(0)
        part = program // programs
        begin = (program % programs) * (ROWS * blocks)
        channel = tl.arange(0, CHANNELS)
        inside = channel < width
        found = (tl.zeros((CHANNELS,), tl.float32),) * COUNT
        summed = (tl.zeros((ROWS,), tl.float32),) * COUNT
        for block in range(blocks):
            at = begin + block * ROWS + tl.arange(0, ROWS)
            row = part * each + at
            live = at < each
            place = row.to(tl.int64)[:, None] * width + channel[None, :]
            mask = live[:, None] & inside[None, :]
            x = tl.load(z + place, mask=mask, other=0.0).to(tl.float32)
            grad = tl.zeros((ROWS, CHANNELS), tl.float32)
            if beside is not None:
                grad += tl.load(beside + place, mask=mask, other=0.0).to(tl.float32)
            for j in tl.static_range(COUNT):
                slope = tl.load(slopes + j * rows + row, mask=live, other=0.0)
                there = theta + (part * COUNT + j) * width + channel
                own = tl.load(there, mask=inside, other=0.0).to(tl.float32)
                grad += slope[:, None] * own[None, :]
                products = found[j] + tl.sum(slope[:, None] * x, axis=0)
                found = found[:j] + (products,) + found[j + 1 :]
                summed = summed[:j] + (summed[j] + slope,) + summed[j + 1 :]
            tl.store(grad_z + place, grad.to(grad_z.dtype.element_ty), mask=mask)
        parts += program.to(tl.int64) * COUNT * (width + 1)
        for j in tl.static_range(COUNT):
            tl.store(parts + j * (width + 1) + channel, found[j], mask=inside)
            tl.store(parts + j * (width + 1) + width, tl.sum(summed[j], axis=0))

    @triton.jit
    def _score_sums_kernel(
        parts,
        offset,
        theta,
        grad_theta,
        grad_offset,
        grad_bias,
        programs,
        width,
        COUNT: tl.constexpr,
        PARTS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """The gradients of a slice's parameters from what its programs found.

        Those of theta, and for the number after the last theta those of offset and bias.
        """
        part = tl.program_id(0)
        number = tl.program_id(1)
        channel = tl.program_id(2) * CHANNELS + tl.arange(0, CHANNELS)
        inside = channel < width
        parts += part.to(tl.int64) * programs * COUNT * (width + 1)
        theta += part * COUNT * width + channel
        if number < COUNT:
            total = tl.zeros((PARTS, CHANNELS), tl.float32)
            for first in range(0, programs, PARTS):
                program = first + tl.arange(0, PARTS)
                place = (program * COUNT + number) * (width + 1)
                here = (program < programs)[:, None] & inside[None, :]
                place = place[:, None] + channel[None, :]
                total += tl.load(parts + place, mask=here, other=0.0)
            found = tl.sum(total, axis=0)
            if offset is not None:
                shift = tl.load(offset + part * width + channel, mask=inside, other=0.0)
                slope = _slopes(parts, number, programs, width, COUNT, PARTS)
                found += slope * shift.to(tl.float32)
            there = grad_theta + (part * COUNT + number) * width + channel
            tl.store(there, found.to(grad_theta.dtype.element_ty), mask=inside)
        else:
            found = tl.zeros((CHANNELS,), tl.float32)
            for j in tl.static_range(COUNT):
                slope = _slopes(parts, j, programs, width, COUNT, PARTS)
                own = tl.load(theta + j * width, mask=inside, other=0.0).to(tl.float32)
                found += slope * own
                if j == 0:
                    tl.store(grad_bias + part, slope.to(grad_bias.dtype.element_ty))
            if offset is not None:
                there = grad_offset + part * width + channel
                tl.store(there, found.to(grad_offset.dtype.element_ty), mask=inside)

    @triton.jit
    def _slopes(parts, j, programs, width, COUNT: tl.constexpr, PARTS: tl.constexpr):
        """The sum of the j-th slopes of all nodes of a slice."""
        total = tl.zeros((PARTS,), tl.float32)
        for first in range(0, programs, PARTS):
            program = first + tl.arange(0, PARTS)
            place = (program * COUNT + j) * (width + 1) + width
            total += tl.load(parts + place, mask=program < programs, other=0.0)
        return tl.sum(total, axis=0)

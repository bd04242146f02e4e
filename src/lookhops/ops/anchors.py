"""The anchors: what the paper's figure aggregates, and its two readings, merge and score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lookhops.ops.dense import scores_beside
from lookhops.ops.gpu import can_run_on, launch_over, tl, triton
from lookhops.ops.merge import merge
from lookhops.ops.product import SparseMatrix, transposed_values
from lookhops.ops.recurrences import Recurrence, chebyshev, polynomial_sum

#: What a score goes through.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    "tanh": torch.tanh,
    "none": lambda score: score,
}
KERNEL_ACTIVATIONS = ("none", "sigmoid", "relu")
BLOCK = 128  # rows that a program of a hop takes
ROWS = 16  # rows of z that a program reads
# Of the gradient: one warp holds all rows of a block, so that their sums need no exchange.
GRAD_ROWS = 4
FEWEST_BLOCKS = 3  # whose sums a program adds up
PROGRAMS = 4096  # about
PARTS, PART_CHANNELS = 256, 32  # of the programs' sums that are added up at once


@dataclass(frozen=True, eq=False)
class Anchors:
    r"""The anchor vectors :math:`Z = [Z^0 \| \ldots \| Z^k]`, :math:`Z^j = T_j z`, of every node.

    One tensor of shape :math:`(\ldots, n, k + 1, d')`, two readings: the convolution **merges** it
    channel by channel, the pooling **scores** it. Neither needs the tensor: both readings are
    linear in :math:`z`, and :math:`T_j(A)^\top = T_j(A^\top)`, so they run along the recurrence
    forwards and backwards and keep only :math:`z`.

    Args:
        recurrence: :func:`~lookhops.ops.chebyshev` or :func:`~lookhops.ops.powers`.
        matrix: The operator :math:`A` of one hop.
        z: The projected features, shape :math:`(\ldots, n, d')`.
        k: The number of hops.
        offset: A vector :math:`c` of shape :math:`(\ldots, d')` to be added to every row of
            :math:`z`: a bias that fast kernels add as they read.
    """

    recurrence: Recurrence
    matrix: SparseMatrix
    z: Tensor
    k: int
    offset: Tensor | None = None

    @property
    def shape(self) -> torch.Size:
        r"""Shape of the tensor that they stand for, :math:`(\ldots, n, k + 1, d')`."""
        return torch.Size((*self.z.shape[:-1], self.k + 1, self.z.shape[-1]))

    def stack(self) -> Tensor:
        r"""The anchors themselves, shape :math:`(\ldots, n, k + 1, d')`."""
        z = self.z if self.offset is None else self.z + self.offset.to(self.z.dtype).unsqueeze(-2)
        return torch.stack(list(self.recurrence(self.matrix, z, self.k)), dim=-2)

    def merge(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        r""":math:`\sum_j z_i^j \odot w^j + b` for every node, shape :math:`(\ldots, n, d')`.

        Args:
            weight: The :math:`w^j`, shape :math:`(\ldots, k + 1, d')`.
            bias: The :math:`b`, shape :math:`(\ldots, d')`.
        """
        weight = weight.to(self.z.dtype)
        bias = torch.zeros_like(weight[..., 0, :]) if bias is None else bias.to(self.z.dtype)
        return merge(self.recurrence, self.matrix, self.z, weight, bias, self.offset)

    def score(
        self, theta: Tensor, bias: Tensor | None = None, activation: str = "none"
    ) -> tuple[Tensor, Anchors]:
        r""":math:`\sigma(\sum_j \theta^j \cdot z_i^j + t)` for every node, and the anchors again.

        The scores have shape :math:`(\ldots, n)`. Channels are summed before the hops are taken, so
        a hop costs one channel, not d'. Gradients of scores and anchors are joined in one pass.

        Args:
            theta: The attention weights :math:`\theta^j`, shape :math:`(\ldots, k + 1, d')`.
            bias: The :math:`t`, shape :math:`(\ldots, 1)`; none means zero.
            activation: :math:`\sigma`, a name in :data:`ACTIVATIONS`.
        """
        if bias is not None and self._score_fits(theta, activation):
            how = self.recurrence is chebyshev, activation, self.matrix.value
            given = self.z, self.offset, theta, bias, *how
            z, found = _Scores.apply(*given, *self.matrix.entries())
            return found, replace(self, z=z)
        theta = theta.to(self.z.dtype)
        z, terms = scores_beside(self.z, theta)
        if self.offset is not None:
            terms = terms + theta @ self.offset.to(theta.dtype).unsqueeze(-1)
        total = polynomial_sum(self.recurrence, self.matrix, terms.unsqueeze(-1).unbind(-3))
        total = total.squeeze(-1) if bias is None else total.squeeze(-1) + bias
        return ACTIVATIONS[activation](total), replace(self, z=z)

    def _score_fits(self, theta: Tensor, activation: str) -> bool:
        """Whether the kernels can take them: a slice of weights for each slice of rows."""
        z, value = self.z, self.matrix.value
        learns = value is not None and value.requires_grad and torch.is_grad_enabled()
        few = 2 <= theta.shape[-2] <= 9 and z.shape[-1] <= 256
        if learns or not few or activation not in KERNEL_ACTIVATIONS or not can_run_on(z):
            return False
        alike = z.shape[:-2] == theta.shape[:-2]
        return alike and self.matrix.pattern.size == z.shape[:-1].numel()


class _Scores(torch.autograd.Function):
    """Keeps z and the scores: the gradient runs the recurrence over the transpose."""

    @staticmethod
    def forward(ctx, z, offset, theta, bias, chebyshev, activation, value, *entries):
        z, theta, csr = z.contiguous(), theta.contiguous(), (*entries[:2], value)
        offset = None if offset is None else offset.contiguous()
        rows, (each, width), count = z.shape[:-1].numel(), z.shape[-2:], theta.shape[-2]
        terms = z.new_empty(count, rows, dtype=torch.float32)
        sizes = {"COUNT": count, "ROWS": ROWS, "CHANNELS": triton.next_power_of_2(width)}
        _terms_kernel[rows // each, triton.cdiv(each, ROWS)](
            z, offset, theta, terms, rows, each, width, **sizes, num_warps=4
        )
        now, before = terms[-1], None
        for j in range(count - 2, -1, -1):
            last = j == 0
            dtype = torch.promote_types(z.dtype, bias.dtype) if last else torch.float32
            after = z.new_empty(rows, dtype=dtype)
            given = terms[j], before, bias.contiguous() if last else None
            how = 2 if chebyshev and not last else 1, activation if last else "none"
            _launch_hop(csr, now, *given, after, each, *how)
            now, before = after, now if chebyshev else None
        ctx.save_for_backward(z, offset, theta, now, value, *entries)
        ctx.how, ctx.dtype = (chebyshev, activation), bias.dtype
        ctx.set_materialize_grads(False)
        return z.view_as(z), now.view(z.shape[:-1])

    @staticmethod
    def backward(ctx, beside, grad):
        if grad is None:
            return beside, *[None] * 11
        z, offset, theta, found, value, _, _, row_ptr, column, order = ctx.saved_tensors
        chebyshev, activation = ctx.how
        csr = row_ptr, column, transposed_values(value, order)
        rows, (each, width), count = z.shape[:-1].numel(), z.shape[-2:], theta.shape[-2]
        slopes = z.new_empty(count, rows, dtype=torch.float32)
        grad, answers = grad.contiguous().view(-1), (found.view(-1), slopes[0])
        _launch_hop(csr, grad, None, None, None, slopes[1], each, 1, activation, answers)
        for j in range(2, count):
            before, scale = (slopes[j - 2], 2) if chebyshev else (None, 1)
            _launch_hop(csr, slopes[j - 1], None, before, None, slopes[j], each, scale, "none")
        slices = rows // each
        blocks = max(triton.cdiv(rows, GRAD_ROWS * PROGRAMS), FEWEST_BLOCKS)
        programs = triton.cdiv(each, GRAD_ROWS * blocks)  # of a slice
        grad_z, beside = torch.empty_like(z), None if beside is None else beside.contiguous()
        parts = z.new_empty(slices * programs, count, width + 1, dtype=torch.float32)
        sizes = {"COUNT": count, "ROWS": GRAD_ROWS, "CHANNELS": triton.next_power_of_2(width)}
        counts = (rows, each, programs, blocks, width)
        _score_backward_kernel[(slices * programs,)](
            z, theta, slopes, beside, grad_z, parts, *counts, **sizes, num_warps=1
        )
        grad_theta = torch.empty_like(theta)
        grad_offset = None if offset is None else torch.empty_like(offset)
        grad_bias = z.new_empty(*theta.shape[:-2], 1, dtype=ctx.dtype)
        grads = (grad_theta, grad_offset, grad_bias)
        sizes = {"COUNT": count, "PARTS": PARTS, "CHANNELS": PART_CHANNELS, "num_warps": 8}
        _score_sums_kernel[slices, count + 1, triton.cdiv(width, PART_CHANNELS)](
            parts, offset, theta, *grads, programs, width, **sizes
        )
        return grad_z, grad_offset, grad_theta, grad_bias, *[None] * 8


def _launch_hop(matrix, x, term, before, bias, out, each, scale, activation, own=(None, None)):
    """Write scale A x, plus a term, less what was before, to ``out``; see the kernel."""
    given = *matrix, x, term, before, bias, *own, out, out.numel(), each
    how = {"SCALE": scale, "ACTIVATION": KERNEL_ACTIVATIONS.index(activation)}
    launch_over(_score_hop_kernel, out.numel(), BLOCK, *given, **how)


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

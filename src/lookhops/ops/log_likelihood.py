"""The loss of a classification: one launch on a GPU, where operators take twenty."""

import torch
from torch import Tensor

from lookhops.ops.gpu import can_run_on, tl, triton

MOST_CLASSES = 256
ELEMENTS = 1024  # outputs that a program takes at once


def log_likelihood(
    output: Tensor, target: Tensor, class_weight: Tensor | None, real: Tensor | None
) -> tuple[Tensor, Tensor]:
    r"""The weighted mean :math:`-\sum_g v_g \log p_g / \sum_g v_g`, and :math:`\sum_g v_g`.

    Args:
        output: Logits, shape :math:`(\ldots, g, c)`.
        target: The class of each graph, below 0 for none, shape :math:`(\ldots, g)`.
        class_weight: The weight :math:`v` of each class, shape :math:`(\ldots, c)`; none means one.
        real: Which graphs count, shape :math:`(\ldots, g)`; none means all.
    """
    alike = output.shape[:-1] == target.shape and (real is None or real.shape == target.shape)
    if alike and output.shape[-1] <= MOST_CLASSES and can_run_on(output):
        return _LogLikelihood.apply(output, target, class_weight, real)
    known = target.clamp(min=0)
    likelihood = output.log_softmax(-1).gather(-1, known.unsqueeze(-1)).squeeze(-1)
    weight = ((target >= 0) if real is None else (target >= 0) & real).to(likelihood.dtype)
    if class_weight is not None:
        weight = weight * class_weight.to(weight.dtype).gather(-1, known)
    total = weight.sum(-1)
    return -(likelihood * weight).sum(-1) / total.clamp(min=1e-12), total


class _LogLikelihood(torch.autograd.Function):
    """One kernel, which leaves the gradient too: it is as large as the output."""

    @staticmethod
    def forward(ctx, output, target, fitted, real):
        output, target, slope = output.contiguous(), target.contiguous(), torch.empty_like(output)
        stack, (graphs, classes) = output.shape[:-2], output.shape[-2:]
        losses, totals = output.new_empty(stack), output.new_empty(stack)
        given = (None if one is None else one.contiguous() for one in (fitted, real))
        block = triton.next_power_of_2(classes)
        sizes = {"GRAPHS": max(ELEMENTS // block, 1), "CLASSES": block, "num_warps": 4}
        _log_likelihood_kernel[(stack.numel(),)](
            output, target, *given, losses, totals, slope, graphs, classes, **sizes
        )
        ctx.save_for_backward(slope)
        ctx.mark_non_differentiable(totals)
        ctx.set_materialize_grads(False)
        return losses, totals

    @staticmethod
    def backward(ctx, grad, _):
        (slope,) = ctx.saved_tensors
        return slope * grad[..., None, None].to(slope.dtype), None, None, None


if triton is not None:

    @triton.jit
    def _log_likelihood_kernel(
        output,
        target,
        fitted,
        real,
        losses,
        totals,
        slope,
        graphs,
        classes,
        GRAPHS: tl.constexpr,
        CLASSES: tl.constexpr,
    ):
        """Loss, weight and gradient of a member: the weights are added up first."""
        member = tl.program_id(0)
        first = member.to(tl.int64) * graphs
        own = tl.arange(0, CLASSES)
        weights = tl.zeros((GRAPHS,), tl.float32)
        for begin in range(0, graphs, GRAPHS):
            number = begin + tl.arange(0, GRAPHS)
            _, weight = _targets(target, fitted, real, member, first, number, graphs, classes)
            weights += weight
        total = tl.sum(weights, axis=0)
        scale = 1.0 / tl.maximum(total, 1e-12)
        summed = tl.zeros((GRAPHS,), tl.float32)
        for begin in range(0, graphs, GRAPHS):
            number = begin + tl.arange(0, GRAPHS)
            y, weight = _targets(target, fitted, real, member, first, number, graphs, classes)
            here = (number < graphs)[:, None] & (own < classes)[None, :]
            place = (first + number)[:, None] * classes + own[None, :]
            given = tl.load(output + place, mask=here, other=0.0).to(tl.float32)
            given = tl.where((own < classes)[None, :], given, float("-inf"))
            above = given - tl.max(given, axis=1)[:, None]
            share = tl.exp(above)
            spread = tl.sum(share, axis=1)
            hit = own[None, :] == y[:, None]
            likelihood = tl.sum(tl.where(hit, above, 0.0), axis=1) - tl.log(spread)
            summed += likelihood * weight
            found = (share / spread[:, None] - hit.to(tl.float32)) * (weight * scale)[:, None]
            tl.store(slope + place, found.to(slope.dtype.element_ty), mask=here)
        loss = -tl.sum(summed, axis=0) / tl.maximum(total, 1e-12)
        tl.store(losses + member, loss.to(losses.dtype.element_ty))
        tl.store(totals + member, total.to(totals.dtype.element_ty))

    @triton.jit
    def _targets(target, fitted, real, member, first, number, graphs, classes):
        """The class of each graph, 0 where it is blank, and the weight that it has."""
        inside = number < graphs
        y = tl.load(target + first + number, mask=inside, other=-1)
        counts = inside & (y >= 0)
        if real is not None:
            counts = counts & (tl.load(real + first + number, mask=inside, other=0) != 0)
        y = tl.where(y >= 0, y, 0)
        weight = counts.to(tl.float32)
        if fitted is not None:
            weight *= tl.load(fitted + member * classes + y, mask=counts, other=0.0).to(tl.float32)
        return y, weight

"""What follows a convolution: score, sphere, ReLU, and the layer's readout."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from lookhops.nn import kernels
from lookhops.nn.conv.light import LightConv
from lookhops.nn.gate import gate
from lookhops.nn.level import Level
from lookhops.nn.linear import unit
from lookhops.nn.readout import at_maximum, readout
from lookhops.ops import Anchors, chebyshev
from lookhops.ops.kernels import can_run_on
from lookhops.ops.product import multiply


def activate(level: Level, score: Tensor | None, normalize: bool) -> tuple[Level, Tensor]:
    r"""The level with :math:`x_i = \mathrm{ReLU}(w_i\, z_i / \|z_i\|)`, and its readout.

    Args:
        level: A level whose ``x`` is the convolution's output :math:`z`.
        score: The score :math:`w` of each node, shape (..., n); none means one.
        normalize: Whether to divide by the norm (NF).
    """
    z = level.x
    if can_run_on(z) and z.shape[-1] <= 256 and not level.near_ties:
        start, end = level.bounds
        flat_score = None if score is None else score.flatten()
        x, read = kernels.Activate.apply(
            z, flat_score, level.graph, start, end, level.alive, normalize
        )
        return level.with_x(x), read.view(*z.shape[:-2], -1, 2 * z.shape[-1])
    if level.alive is not None:
        alive = level.alive.view(z.shape[:-1]).to(z.dtype)
        score = alive if score is None else score * alive
    if normalize and score is None:
        score = z.new_ones(z.shape[:-1])
    if normalize and score is not None and _fits(z, score):
        bounds = level.bounds
        sizes = bounds[1] - bounds[0] if level.alive is None else level.sizes
        rows = z.flatten(0, -2).contiguous(), score.flatten().contiguous()
        x, read = _Activate.apply(*rows, level.graph.long(), sizes, bounds[0], level.slack)
        level = replace(level, x=x.view(z.shape), segments=bounds)  # the next layer asks again
        return level, read.view(*z.shape[:-2], -1, 2 * z.shape[-1])
    gated = z if score is None else gate(z, score, normalize)
    # In place only where autograd will not copy: not on a view, not on what others keep.
    x = gated.relu_() if gated is not z and z.dim() == 2 else torch.relu(gated)
    level = level.with_x(x)
    return level, readout(level)


def merge_and_activate(
    conv: LightConv,
    anchors: Anchors,
    alive: Tensor | None,
    level: Level,
    score: Tensor | None,
    normalize: bool,
) -> tuple[Level, Tensor]:
    """As :func:`activate` of the merged anchors, in one kernel: for what :func:`at_once` says.

    Args:
        conv: Whose weights merge them.
        anchors: The anchors of all nodes.
        alive: Which nodes the hops were taken over; of these the level may have dropped some.
        level, score, normalize: As for :func:`activate`, but for the level's ``x``.
    """
    z, (start, end), matrix = anchors.z, level.bounds, anchors.matrix
    value = None if matrix.value is None else matrix.value.to(z.dtype)
    row_ptr, column, row_ptr_t, column_t, order = matrix.entries()
    value_t = value if value is None or order is None else value.index_select(0, order)
    x, read = kernels.LightLayer.apply(
        z,
        conv.weight.to(z.dtype),
        conv.bias.to(z.dtype),
        anchors.offset,
        None if score is None else score.flatten(),
        2 if anchors.recurrence is chebyshev else 1,
        normalize,
        (alive, level.alive, start, end),
        *(row_ptr, column, value),
        *(row_ptr_t, column_t, value_t),
    )
    return level.with_x(x), read.view(*z.shape[:-2], -1, 2 * z.shape[-1])


def at_once(anchors: Anchors, level: Level) -> bool:
    """Whether one kernel is to merge, activate and read: on a GPU, for many small graphs."""
    z, value = anchors.z, anchors.matrix.value
    small = 0 < level.largest <= kernels.LARGEST and level.num_graphs >= kernels.FEWEST
    narrow = z.shape[-1] <= 256 and 1 <= anchors.k <= 8
    fixed = value is not None and not value.requires_grad
    return small and narrow and can_run_on(z) and fixed and not level.near_ties


def _fits(z: Tensor, score: Tensor) -> bool:
    on_cpu = z.device.type == "cpu" and z.dtype in (torch.float32, torch.float64)
    return on_cpu and score.dtype == z.dtype and z.numel() > 0 and not torch.compiler.is_compiling()


def plain(z: Tensor, score: Tensor, graph: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    r"""What :class:`_Activate` computes: :math:`x_i = \mathrm{ReLU}(w_i\, z_i / \|z_i\|)` and its
    maximum and mean over each graph.

    Args:
        z: Shape :math:`(n, d)`.
        score: The :math:`w_i`, zero for dead nodes, shape :math:`(n)`.
        graph: Graph of each node, ascending, shape :math:`(n)`.
        sizes: How many living nodes each graph has, shape :math:`(g)`.

    Returns:
        x, shape :math:`(n, d)`, and the readout, shape :math:`(g, 2 d)`.
    """
    x = torch.relu(z * (score[:, None] * unit(z)))
    zeros = x.new_zeros(sizes.numel(), x.shape[1])
    index = graph[:, None].expand_as(x)
    # Nothing is below zero here: dead nodes, which are zero, and empty graphs need no exception.
    highest = zeros.scatter_reduce(0, index, x, "amax", include_self=False)
    mean = zeros.index_add(0, graph, x) / sizes.clamp(min=1)[:, None]
    return x, torch.cat((highest, mean), dim=1)


class _Activate(torch.autograd.Function):
    """As :func:`plain`, in a third of the passes over memory, keeping only z and x.

    A weight norm is what PyTorch calls :math:`w_i z_i / |z_i|`, for which it has kernels in both
    directions. They divide by the norm whatever it is: rows of zeros are mended here.
    """

    @staticmethod
    def forward(ctx, z, score, graph, sizes, start, slack=0.0):  # type: ignore[no-untyped-def]
        x, norm = torch._weight_norm_interface(z, score.unsqueeze(1), 0)
        if not norm.amin() > 1e-12:  # so that a NaN elsewhere does not hide it
            tiny = (norm <= 1e-12).view(-1).nonzero().flatten()
            norm.index_fill_(0, tiny, 1.0)
            scaled = z.index_select(0, tiny) * score.index_select(0, tiny).unsqueeze(1)
            x.index_copy_(0, tiny, scaled)
        x.relu_()
        # Nothing is below zero now: dead nodes, which are zero, and empty graphs need no exception.
        highest = x.new_zeros(sizes.numel(), x.shape[1])
        highest.scatter_reduce_(0, graph.unsqueeze(1).expand_as(x), x, "amax")
        count = sizes.clamp(min=1).to(x.dtype).unsqueeze(1)
        # The graphs by their nodes, a matrix of zeros and ones. Padding is zero, and may be summed.
        offsets = torch.cat((start, start.new_full((1,), len(x))))
        members = torch.arange(len(x), dtype=start.dtype, device=start.device)
        mean = multiply(offsets, members, None, x).div_(count)
        ctx.set_materialize_grads(False)
        ctx.slack = slack
        ctx.save_for_backward(z, score, norm, graph, sizes, x, highest, count, offsets, members)
        return x, torch.cat((highest, mean), dim=1)

    @staticmethod
    def backward(ctx, grad_x, grad_read):  # type: ignore[no-untyped-def]
        z, score, norm, graph, sizes, x, highest, count, offsets, members = ctx.saved_tensors
        if grad_x is None and grad_read is None:
            return (None,) * 6
        if torch.is_grad_enabled():  # a second derivative is wanted
            outputs = zip(plain(z, score, graph, sizes), (grad_x, grad_read), strict=True)
            total = sum((output * grad).sum() for output, grad in outputs if grad is not None)
            wanted = [t for t in (z, score) if t.requires_grad]
            found = iter(torch.autograd.grad(total, wanted, create_graph=True))
            grads = [next(found) if t.requires_grad else None for t in (z, score)]
            return *grads, None, None, None, None
        if grad_read is None:
            grad = grad_x.clone(memory_format=torch.contiguous_format)  # its kernel's wish
        else:
            of_maximum, of_mean = grad_read.chunk(2, dim=1)
            grad = (of_mean / count).index_select(0, graph)
            if grad_x is not None:
                grad += grad_x
            # Nodes that share a maximum share its gradient.
            hit = at_maximum(x, highest, graph, ctx.slack)
            share = of_maximum / multiply(offsets, members, None, hit).clamp_(min=1)
            grad.addcmul_(hit, share.index_select(0, graph))
        torch.ops.aten.threshold_backward.grad_input(grad, x, 0, grad_input=grad)
        grad_z, grad_score = torch.ops.aten._weight_norm_interface_backward(
            grad, z, score.unsqueeze(1), norm, 0
        )
        return grad_z, grad_score.view(-1), None, None, None, None

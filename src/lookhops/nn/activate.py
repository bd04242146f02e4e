"""What follows a convolution: score, sphere, ReLU, and the layer's readout."""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.hops.kernels import available
from lookhops.nn import kernels
from lookhops.nn.gate import gate
from lookhops.nn.level import Level
from lookhops.nn.readout import readout


def activate(level: Level, score: Tensor | None, normalize: bool) -> tuple[Level, Tensor]:
    r"""The level with :math:`x_i = \mathrm{ReLU}(w_i\, z_i / \|z_i\|)`, and its readout.

    Args:
        level: A level whose ``x`` is the convolution's output :math:`z`.
        score: The score :math:`w` of each node, shape (..., n); none means one.
        normalize: Whether to divide by the norm (NF).
    """
    z = level.x
    if z.is_cuda and available() and z.shape[-1] <= 256 and z.dtype != torch.float64 and z.numel():
        start, end = level.bounds
        flat_score = None if score is None else score.flatten()
        x, read = kernels.Activate.apply(
            z.flatten(0, -2), flat_score, level.graph, start, end, level.alive, normalize
        )
        return level.with_x(x.view(z.shape)), read.view(*z.shape[:-2], -1, 2 * z.shape[-1])
    if level.alive is not None:
        alive = level.alive.view(z.shape[:-1]).to(z.dtype)
        score = alive if score is None else score * alive
    if normalize and score is None:
        score = z.new_ones(z.shape[:-1])
    gated = z if score is None else gate(z, score, normalize)
    # In place only where autograd will not copy: not on a view, not on what others keep.
    x = gated.relu_() if gated is not z and z.dim() == 2 else torch.relu(gated)
    level = level.with_x(x)
    return level, readout(level)

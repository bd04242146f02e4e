"""A dense layer that one member and a stack of members share."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from lookhops.nn import kernels
from lookhops.ops import cpu_dense
from lookhops.ops.dense import stacked


class Linear(nn.Linear):
    r""":math:`x W^\top + b` over any leading axes.

    As :class:`torch.nn.Linear`, but the weights may carry leading axes too, one slice for each
    member of a stack: x :math:`(\ldots, n, d)`, W :math:`(\ldots, d', d)`, b :math:`(\ldots, d')`.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer to ``x``, shape (..., n, d)."""
        product, bias = self.parted(x)
        return product if bias is None else product.add_(bias.unsqueeze(-2))

    def parted(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """The product, and the bias where it is still to be added: that of a stack of members."""
        if cpu_dense.fits(x, self.weight):
            return cpu_dense.dense(x, self.weight, self.bias), None
        if self.weight.dim() == 2:
            return super().forward(x), None
        x = x.expand(self.weight.shape[0], -1, -1) if x.dim() != 3 else x
        return stacked(x, self.weight), self.bias


class DenseLayers(nn.Sequential):
    """Dense layers with a ReLU between each two, over any leading axes.

    Args:
        channels: Of the input, of each layer's output in turn.
    """

    def __init__(self, *channels: int) -> None:
        layers = [part for ends in pairwise(channels) for part in (Linear(*ends), nn.ReLU())]
        super().__init__(*layers[:-1])

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layers to ``x``, shape (..., n, d)."""
        layers = [layer for layer in self if isinstance(layer, Linear)]
        for number, layer in enumerate(layers, start=1):
            if kernels.dense_fits(x, layer.weight):
                x = kernels.Dense.apply(x, layer.weight, layer.bias, number < len(layers))
            else:
                x = layer(x) if number == len(layers) else torch.relu(layer(x))
        return x


def unit(x: Tensor) -> Tensor:
    r"""The factor :math:`1 / \|x_i\|` that puts each row on the unit sphere, shape (..., n, 1).

    A row of zeros gets the factor one: it stays zero, and so does its gradient's scale.
    """
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return torch.where(norm > 1e-12, norm, torch.ones_like(norm)).reciprocal()

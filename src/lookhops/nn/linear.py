"""A dense layer that one member and a stack of members share."""

from itertools import pairwise

from torch import Tensor, nn

from lookhops.ops.dense import linear
from lookhops.ops.linear_relu import linear_relu


class Linear(nn.Linear):
    r""":math:`x W^\top + b` over any leading axes.

    As :class:`torch.nn.Linear`, but the weights may carry leading axes too, one slice for each
    member of a stack: x :math:`(\ldots, n, d)`, W :math:`(\ldots, d', d)`, b :math:`(\ldots, d')`.
    """

    def forward(self, x: Tensor) -> Tensor:
        product, bias = self.parted(x)
        return product if bias is None else product.add_(bias.unsqueeze(-2))

    def parted(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """The product, and the bias where it is still to be added: that of a stack of members."""
        return linear(x, self.weight, self.bias)


class DenseLayers(nn.Sequential):
    """Dense layers with a ReLU between each two, over any leading axes.

    Args:
        channels: Of the input, of each layer's output in turn.
    """

    def __init__(self, *channels: int) -> None:
        layers = [part for ends in pairwise(channels) for part in (Linear(*ends), nn.ReLU())]
        super().__init__(*layers[:-1])

    def forward(self, x: Tensor) -> Tensor:
        layers = [layer for layer in self if isinstance(layer, Linear)]
        for number, layer in enumerate(layers, start=1):
            x = linear_relu(x, layer.weight, layer.bias, relu=number < len(layers))
        return x

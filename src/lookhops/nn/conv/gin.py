"""GIN, the baseline that adds its neighbours up."""

import torch
from torch import Tensor, nn

from lookhops.nn.conv.base import Convolution
from lookhops.nn.linear import Linear
from lookhops.ops import Adjacency


class GIN(Convolution):
    r"""The graph isomorphism network of `Xu et al. <https://arxiv.org/abs/1810.00826>`_.

    .. math::
        x'_i = \mathrm{MLP}\Bigl((1 + \varepsilon)\, x_i +
        \sum_{j \in N(i)} v_{ij}\, x_j\Bigr), \qquad
        \mathrm{MLP}(x) = \mathrm{ReLU}(x W_1 + b_1)\, W_2 + b_2

    with a learned :math:`\varepsilon` that starts at zero: PyG's ``GINConv`` with ``train_eps``.
    The :math:`v_{ij}` are the edges' weights times their factors, one where they have none.

    Arguments and shapes as for :class:`~lookhops.nn.Convolution`, without k; between the two dense
    layers there are as many channels as in the output.
    """

    name = "gin"
    reads_k = False

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels)
        self.mlp = nn.Sequential(
            Linear(in_channels, out_channels), nn.ReLU(), Linear(out_channels, out_channels)
        )
        self.eps = nn.Parameter(torch.empty(1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for layer in self.mlp:
            if isinstance(layer, Linear):
                layer.reset_parameters()
        nn.init.zeros_(self.eps)

    def convolve(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        own = x * (1 + self.eps.to(x.dtype)).unsqueeze(-1)
        return self.mlp(own + adjacency.links(x.dtype)(x))

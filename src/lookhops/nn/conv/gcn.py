"""GCN, the baseline that looks one hop."""

import torch
from torch import Tensor, nn

from lookhops.nn.conv.base import Convolution
from lookhops.nn.linear import Linear
from lookhops.ops import Adjacency


class GCN(Convolution):
    r"""The graph convolution of `Kipf and Welling <https://arxiv.org/abs/1609.02907>`_.

    .. math::
        x' = \hat D^{-1/2} (A + I) \hat D^{-1/2} \, x W + b

    with :math:`\hat D` the degrees of :math:`A + I`: PyG's ``GCNConv``, with its initialisation.

    Arguments and shapes as for :class:`~lookhops.nn.Convolution`, without k.
    """

    name = "gcn"
    reads_k = False

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels)
        self.project = Linear(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.project.weight)
        nn.init.zeros_(self.bias)

    def convolve(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        z = self.project(x)
        return adjacency.mixhop(z.dtype)(z) + self.bias.to(z.dtype).unsqueeze(-2)

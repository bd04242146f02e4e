"""SGC, the baseline whose hops have nothing but a weight matrix after them."""

import torch
from torch import Tensor, nn

from lookhops.nn.conv.base import Convolution
from lookhops.nn.linear import Linear
from lookhops.ops import Adjacency


class SGC(Convolution):
    r"""The simplified graph convolution of `Wu et al. <https://arxiv.org/abs/1902.07153>`_.

    .. math::
        x' = \hat A^k x W + b, \qquad \hat A = \hat D^{-1/2} (A + I) \hat D^{-1/2}

    with :math:`\hat D` the degrees of :math:`A + I`: k layers of GCN without what lies between
    them, PyG's ``SGConv(d, d', K=k)``, with its initialisation.

    Arguments and shapes as for :class:`~lookhops.nn.Convolution`.
    """

    name = "sgc"

    def __init__(self, in_channels: int, out_channels: int, k: int = 2) -> None:
        super().__init__(in_channels, out_channels, k)
        self.project = Linear(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.project.reset_parameters()
        bound = self.in_channels**-0.5
        nn.init.uniform_(self.bias, -bound, bound)

    def convolve(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        z = self.project(x)  # first: the product is the same in either order
        hop = adjacency.mixhop(z.dtype)
        for _ in range(self.k):
            z = hop(z)
        return z + self.bias.to(z.dtype).unsqueeze(-2)

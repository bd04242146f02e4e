"""GraphSAGE, the baseline that averages its neighbours."""

import torch
from torch import Tensor

from lookhops.nn.conv.base import Convolution
from lookhops.nn.linear import Linear
from lookhops.ops import Adjacency


class SAGE(Convolution):
    r"""The GraphSAGE convolution of `Hamilton et al. <https://arxiv.org/abs/1706.02216>`_.

    .. math::
        x'_i = x_i W_1 + \Bigl(\underset{j \in N(i)}{\mathrm{mean}}\; x_j\Bigr) W_2 + b

    where the mean of no neighbour is zero: PyG's ``SAGEConv``. Where edges have weights the mean is
    weighted; factors multiply what is averaged, :math:`\sum_j f_{ij} w_{ij} x_j / \sum_j w_{ij}`.

    Arguments and shapes as for :class:`~lookhops.nn.Convolution`, without k.
    """

    name = "sage"
    reads_k = False

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels)
        self.own = Linear(in_channels, out_channels, bias=False)
        self.neighbours = Linear(in_channels, out_channels)

    def convolve(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        weight = adjacency.times(None).links(x.dtype)(x.new_ones(*x.shape[:-1], 1))
        weight = torch.where(weight > 0, weight, torch.ones_like(weight))
        return self.own(x) + self.neighbours(adjacency.links(x.dtype)(x) / weight)

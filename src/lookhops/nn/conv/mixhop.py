"""MixHop, the baseline that gives each hop its own channels."""

import torch
from torch import Tensor, nn

from lookhops.nn.conv.base import Convolution
from lookhops.nn.linear import Linear
from lookhops.ops import Adjacency


class MixHop(Convolution):
    r"""The MixHop convolution of `Abu-El-Haija et al. <https://arxiv.org/abs/1905.00067>`_.

    .. math::
        x' = \bigl[x W_0 \,\|\, \hat A x W_1 \,\|\, \ldots \,\|\, \hat A^k x W_k\bigr] + b, \qquad
        \hat A = \hat D^{-1/2} (A + I) \hat D^{-1/2}

    with :math:`\hat D` the degrees of :math:`A + I`: PyG's ``MixHopConv`` with powers 0 to k, with
    its initialisation. ``out_channels`` counts the channels of all powers together, shared out as
    evenly as whole channels can be, more to the first: 128 over three powers are 43 + 43 + 42.

    Arguments and shapes as for :class:`~lookhops.nn.Convolution`.
    """

    name = "mixhop"

    def __init__(self, in_channels: int, out_channels: int, k: int = 2) -> None:
        super().__init__(in_channels, out_channels, k)
        each, over = divmod(out_channels, k + 1)
        self.widths = [each + (power < over) for power in range(k + 1)]
        self.project = Linear(in_channels, out_channels, bias=False)  # W_0, ..., W_k
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def convolve(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        ahead = self.project(x)
        hop = adjacency.mixhop(ahead.dtype)
        done = []
        for power, width in enumerate(self.widths):
            ahead = hop(ahead) if power else ahead
            done.append(ahead[..., :width])  # each power sheds its channels, the others go on
            ahead = ahead[..., width:]
        return torch.cat(done, dim=-1) + self.bias.to(ahead.dtype).unsqueeze(-2)

"""DCNN, the baseline that diffuses features by a random walk."""

import torch
from torch import Tensor, nn

from lookhops.nn.conv.base import Convolution
from lookhops.nn.linear import Linear
from lookhops.ops import Adjacency, powers


class DCNN(Convolution):
    r"""The diffusion convolution of `Atwood and Towsley <https://arxiv.org/abs/1511.02136>`_.

    .. math::
        x' = \bigl[\tanh(w^0 \odot x) \,\|\, \tanh(w^1 \odot P x) \,\|\, \ldots \,\|\,
        \tanh(w^k \odot P^k x)\bigr]\, W + b, \qquad P = D^{-1} A

    with one weight :math:`w^j_c` for each hop and channel, and P the transitions of a random walk;
    a node without neighbours has a row of zeros in P. The paper has one such layer with a dense
    layer after it, from hops times features to classes; here that dense layer leads to
    :math:`d'` channels, so that the two can be stacked. Hop 0 counts, as in the authors' code; that
    code divides by :math:`D + I` where the paper prints D, which is taken here. The paper's tanh is
    kept. Where edges are directed, P averages over the edges into a node. The :math:`w^j` start at
    one.

    Arguments and shapes as for :class:`~lookhops.nn.Convolution`.
    """

    name = "dcnn"

    def __init__(self, in_channels: int, out_channels: int, k: int = 2) -> None:
        super().__init__(in_channels, out_channels, k)
        self.weight = nn.Parameter(torch.empty(k + 1, in_channels))
        self.project = Linear((k + 1) * in_channels, out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.ones_(self.weight)

    def convolve(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        hop = adjacency.random_walk(x.dtype)
        weights = self.weight.to(x.dtype).unsqueeze(-2).unbind(-3)  # one (..., 1, d) a hop
        diffused = zip(powers(hop, x, self.k), weights, strict=True)
        return self.project(torch.cat([torch.tanh(w * z) for z, w in diffused], dim=-1))

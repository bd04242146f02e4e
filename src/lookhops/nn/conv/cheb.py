"""ChebConv, the baseline with one weight matrix for each hop."""

import torch
from torch import Tensor, nn

from lookhops.nn.conv.base import Convolution
from lookhops.nn.linear import Linear
from lookhops.ops import Adjacency, chebyshev, polynomial_sum


class Cheb(Convolution):
    r"""The Chebyshev convolution of `Defferrard et al. <https://arxiv.org/abs/1606.09375>`_.

    .. math::
        x' = \sum_{j=0}^{k} T_j(\hat L)\, x W_j + b, \qquad
        T_j = 2 \hat L T_{j-1} - T_{j-2}, \quad T_1 = \hat L, \quad T_0 = I

    with :math:`\hat L = -D^{-1/2} A D^{-1/2}`: PyG's ``ChebConv(d, d', K=k + 1)`` called with
    ``lambda_max=2``, with its initialisation. All :math:`x W_j` come first and the sum is taken by
    Clenshaw's rule, from the last hop inwards,

    .. math::
        s_j = x W_j + 2 \hat L s_{j+1} - s_{j+2}, \qquad x' = x W_0 + \hat L s_1 - s_2 + b

    so that training keeps x alone, and not all :math:`T_j x`.

    Arguments and shapes as for :class:`~lookhops.nn.Convolution`.
    """

    name = "cheb"

    def __init__(self, in_channels: int, out_channels: int, k: int = 2) -> None:
        super().__init__(in_channels, out_channels, k)
        self.project = Linear(in_channels, (k + 1) * out_channels, bias=False)  # W_0, ..., W_k
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for weight in self.project.weight.split(self.out_channels):
            nn.init.xavier_uniform_(weight)
        nn.init.zeros_(self.bias)

    def convolve(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        terms = self.project(x).split(self.out_channels, dim=-1)
        hop = adjacency.chebyshev(terms[0].dtype)
        return polynomial_sum(chebyshev, hop, terms) + self.bias.to(terms[0].dtype).unsqueeze(-2)

"""The paper's light convolutions: project once, look k hops, merge channel by channel."""

from collections.abc import Callable
from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn

from lookhops.nn.conv.base import Convolution
from lookhops.nn.linear import Linear
from lookhops.ops import Adjacency, Anchors, SparseMatrix, chebyshev, powers
from lookhops.ops.recurrences import Recurrence


class LightConv(Convolution):
    r"""What LiCheb and LiMixHop share: all but the operator.

    .. math::
        z = x W + c, \qquad Z^j = T_j z, \qquad z' = \sum_{j=0}^{k} Z^j \odot w^j + b

    The projection comes first, so that hops are taken over :math:`d'` channels and one :math:`W`
    serves all of them: :math:`(d + 1) d' + (k + 2) d'` parameters, where ChebConv has
    :math:`(k + 1) d d' + d'`. The anchors :math:`Z` are merged as they come and never stored.
    """

    recurrence: Recurrence
    #: The matrix of one hop.
    operator: Callable[[Adjacency, torch.dtype], SparseMatrix]

    def __init__(self, in_channels: int, out_channels: int, k: int = 2) -> None:
        super().__init__(in_channels, out_channels, k)
        self.project = Linear(in_channels, out_channels)
        self.weight = nn.Parameter(torch.empty(k + 1, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        bound = 1 / sqrt(self.k + 1)  # each channel's merge starts like a dense layer over its hops
        nn.init.uniform_(self.weight, -bound, bound)

    def aggregate(self, x: Tensor, adjacency: Adjacency) -> Anchors:
        """The anchors Z of the projected features."""
        z, offset = self.project.parted(x)
        operator = type(self).operator(adjacency, z.dtype)
        return Anchors(type(self).recurrence, operator, z, self.k, offset)

    def merge(self, anchors: Anchors) -> Tensor:
        """The anchors merged channel by channel: the convolution's output z'."""
        return anchors.merge(self.weight, self.bias)

    def convolve(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        return self.merge(self.aggregate(x, adjacency))

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Adjacency,
        edge_weight: Tensor | None = None,
        *,
        return_anchors: bool = False,
    ) -> Any:
        """Convolve; with ``return_anchors`` give ``(output, anchors)``, for LookHops pooling."""
        adjacency = self._adjacency(x, edge_index, edge_weight)
        anchors = self.aggregate(x, adjacency)
        merged = self.merge(anchors)
        return (merged, anchors) if return_anchors else merged


class LiChebConv(LightConv):
    r"""LiCheb: the light convolution over Chebyshev polynomials.

    .. math::
        z' = \sum_{j=0}^{k} T_j(\hat L)\,(x W + c) \odot w^j + b, \qquad
        T_j = 2 \hat L T_{j-1} - T_{j-2}, \quad T_1 = \hat L, \quad T_0 = I

    with :math:`\hat L = 2 L / \lambda_{max} - I = -D^{-1/2} A D^{-1/2}` for
    :math:`\lambda_{max} = 2`. In place of PyG's ``ChebConv(d, d', K=3)`` write
    ``LiChebConv(d, d', k=2)``: k counts hops, K counted polynomials.

    Arguments and shapes as for :class:`~lookhops.nn.Convolution`; the anchors, on request,
    stand for :math:`(\ldots, n, k + 1, d')`.
    """

    name = "licheb"
    recurrence = staticmethod(chebyshev)
    operator = staticmethod(Adjacency.chebyshev)  # the scaled Laplacian


class LiMixHopConv(LightConv):
    r"""LiMixHop: the light convolution over powers of the normalised adjacency.

    .. math::
        z' = \sum_{j=0}^{k} \hat A^j (x W + c) \odot w^j + b, \qquad
        \hat A = \hat D^{-1/2} (A + I) \hat D^{-1/2}

    with :math:`\hat D` the degrees of :math:`A + I`.

    Arguments and shapes as for :class:`~lookhops.nn.Convolution`; the anchors, on request,
    stand for :math:`(\ldots, n, k + 1, d')`.
    """

    name = "limixhop"
    recurrence = staticmethod(powers)
    operator = staticmethod(Adjacency.mixhop)  # the normalised adjacency with self-loops

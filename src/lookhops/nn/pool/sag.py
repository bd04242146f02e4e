"""SAG pooling, the baseline that scores a node by its features and its neighbours'."""

import torch
from torch import Tensor

from lookhops.nn.linear import Linear
from lookhops.nn.pool.base import GivenAnchors, NodePooling
from lookhops.nn.pool.topk import Direction
from lookhops.ops import Adjacency
from lookhops.ops.dense import linear_scores


class SAG(NodePooling):
    r"""The `self-attention pooling <https://arxiv.org/abs/1904.08082>`_ of Lee et al.

    .. math::
        w_i = \tanh\Bigl(\pm \bigl(\theta_1 \cdot x_i + t +
        \theta_2 \cdot \textstyle\sum_{j \in N(i)} v_{ij}\, x_j\bigr)\Bigr), \qquad
        x'_i = w_i x_i, \qquad V' = \mathrm{top}_{\lceil \rho n \rceil}\{w_i\}

    with all edges between kept nodes: PyG's ``SAGPooling`` with its default scorer, ``GraphConv``.
    The sign is that of a number PyG keeps as a parameter, though it can learn nothing: dividing it
    by its magnitude leaves no gradient. The :math:`v_{ij}` are the edges' weights times their
    factors, one where they have none.

    Arguments and shapes as for :class:`~lookhops.nn.NodePooling`.
    """

    name = "sag"

    def __init__(self, in_channels: int, ratio: float = 0.5) -> None:
        super().__init__(in_channels, ratio)
        self.own = Linear(in_channels, 1)
        self.neighbours = Linear(in_channels, 1, bias=False)
        self.sign = Direction(1)

    def score(self, x: Tensor, adjacency: Adjacency, anchors: GivenAnchors) -> Tensor:
        # Channels are summed first, neighbours after.
        both = linear_scores(x, torch.cat((self.own.weight, self.neighbours.weight), dim=-2))
        own, neighbours = both.unsqueeze(-1).unbind(-3)
        around = adjacency.links(both.dtype)(neighbours)
        return torch.tanh(self.sign(own + self.own.bias.unsqueeze(-2) + around))

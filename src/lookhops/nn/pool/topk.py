"""TopK pooling, the baseline that scores a node by its features alone."""

import torch
from torch import Tensor

from lookhops.nn.linear import Linear
from lookhops.nn.pool.base import GivenAnchors, NodePooling
from lookhops.ops import Adjacency
from lookhops.ops.dense import linear_scores
from lookhops.ops.gate import unit


class Direction(Linear):
    r"""How far each node lies along a learned direction, :math:`x_i \cdot p / \|p\|`.

    Shapes:
        - x :math:`(\ldots, n, d)`
        - output :math:`(\ldots, n)`
    """

    def __init__(self, in_channels: int) -> None:
        super().__init__(in_channels, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return linear_scores(x, self.weight * unit(self.weight)).squeeze(-2)


class TopK(NodePooling):
    r"""The pooling of `Graph U-Nets <https://arxiv.org/abs/1905.05178>`_.

    .. math::
        w_i = \tanh\bigl(x_i \cdot p / \|p\|\bigr), \qquad x'_i = w_i x_i, \qquad
        V' = \mathrm{top}_{\lceil \rho n \rceil}\{w_i\}

    with all edges between kept nodes: PyG's ``TopKPooling``.

    Arguments and shapes as for :class:`~lookhops.nn.NodePooling`.
    """

    name = "topk"
    reads_edges = False

    def __init__(self, in_channels: int, ratio: float = 0.5) -> None:
        super().__init__(in_channels, ratio)
        self.direction = Direction(in_channels)

    def score(self, x: Tensor, adjacency: Adjacency, anchors: GivenAnchors) -> Tensor:
        return torch.tanh(self.direction(x))

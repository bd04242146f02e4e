"""iPool, the baseline without parameters: keep what the neighbours do not tell."""

import torch
from torch import Tensor

from lookhops.nn.pool.base import GivenAnchors, NodePooling
from lookhops.ops import Adjacency, SparseMatrix


class IPool(NodePooling):
    r"""The `information-based pooling <https://arxiv.org/abs/1907.00832>`_ of Gao et al.

    .. math::
        w_i = \bigl\| x_i - (D^{-1} A x)_i \bigr\|_1, \qquad x'_i = x_i, \qquad
        V' = \mathrm{top}_{\lceil \rho n \rceil}\{w_i\}

    with all edges between kept nodes. The paper's criterion is the entropy of a node given its
    neighbourhood: a node that its neighbours predict well tells little that they do not. It is
    measured by how far the node lies from that prediction, here the mean of its neighbours, channel
    by channel; the mean of none is zero. The layer has no parameters, and what a node carries on is
    not scaled.

    What the paper leaves to choose, or has more of, and what is done here: neighbourhoods are of
    one hop; the best nodes of each graph are taken at once (the greedy form); and the coarser graph
    has the edges between kept nodes, as that of the other poolings that drop nodes.

    Arguments and shapes as for :class:`~lookhops.nn.NodePooling`.
    """

    name = "ipool"

    def score(self, x: Tensor, adjacency: Adjacency, anchors: GivenAnchors) -> Tensor:
        return information_score(x, adjacency.random_walk(x.dtype))

    def size(self, x: Tensor) -> Tensor:
        """A node may be close to its neighbours however large they all are."""
        return x.detach().abs().sum(-1).flatten()

    def reduce(self, x: Tensor, score: Tensor) -> Tensor:
        return x


@torch.no_grad()
def information_score(x: Tensor, walk: SparseMatrix) -> Tensor:
    r""":math:`\| x_i - (P x)_i \|_1`, shape (..., n): it ranks nodes and has no gradient.

    Args:
        x: Node features, shape :math:`(\ldots, n, d)`.
        walk: The means over neighbours, :math:`P = D^{-1} A`.
    """
    return (x - walk(x)).abs().sum(-1)


@torch.no_grad()
def information_size(x: Tensor, walk: SparseMatrix) -> Tensor:
    r""":math:`\| x_i \|_1 + \sum_j |P_{ij}|\, \| x_j \|_1`, shape (..., n): scores round as these.

    A node may be close to its neighbours however large they all are, and weights or factors of its
    edges may make more of them than their mean. Arguments as for :func:`information_score`.
    """
    own = x.abs().sum(-1, keepdim=True)
    value = None if walk.value is None else walk.value.abs()
    return (own + SparseMatrix(walk.pattern, value)(own)).squeeze(-1)

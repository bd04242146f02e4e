"""The anchors: what the paper's figure aggregates, and its two readings, merge and score."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lookhops.ops.dense import scores_beside
from lookhops.ops.merge import merge
from lookhops.ops.product import SparseMatrix
from lookhops.ops.recurrences import Recurrence, polynomial_sum


@dataclass(eq=False)
class Anchors:
    r"""The anchor vectors :math:`Z = [Z^0 \| \ldots \| Z^k]`, :math:`Z^j = T_j z`, of every node.

    One tensor of shape :math:`(\ldots, n, k + 1, d')`, two readings: the convolution **merges** it
    channel by channel, the pooling **scores** it. Neither needs the tensor: both readings are
    linear in :math:`z`, and :math:`T_j(A)^\top = T_j(A^\top)`, so they run along the recurrence
    forwards and backwards and keep only :math:`z`.

    Args:
        recurrence: :func:`~lookhops.ops.chebyshev` or :func:`~lookhops.ops.powers`.
        matrix: The operator :math:`A` of one hop.
        z: The projected features, shape :math:`(\ldots, n, d')`.
        k: The number of hops.
        offset: A vector :math:`c` of shape :math:`(\ldots, d')` to be added to every row of
            :math:`z`: a bias that fast kernels add as they read.
    """

    recurrence: Recurrence
    matrix: SparseMatrix
    z: Tensor
    k: int
    offset: Tensor | None = None

    @property
    def start(self) -> Tensor:
        """The anchors of no hop, z with its offset."""
        if self.offset is None:
            return self.z
        return self.z + self.offset.to(self.z.dtype).unsqueeze(-2)

    @property
    def shape(self) -> torch.Size:
        r"""Shape of the tensor that they stand for, :math:`(\ldots, n, k + 1, d')`."""
        return torch.Size((*self.z.shape[:-1], self.k + 1, self.z.shape[-1]))

    def stack(self) -> Tensor:
        r"""The anchors themselves, shape :math:`(\ldots, n, k + 1, d')`."""
        return torch.stack(list(self.recurrence(self.matrix, self.start, self.k)), dim=-2)

    def merge(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        r""":math:`\sum_j z_i^j \odot w^j + b` for every node, shape :math:`(\ldots, n, d')`.

        Args:
            weight: The :math:`w^j`, shape :math:`(\ldots, k + 1, d')`.
            bias: The :math:`b`, shape :math:`(\ldots, d')`.
        """
        weight = weight.to(self.z.dtype)
        bias = torch.zeros_like(weight[..., 0, :]) if bias is None else bias.to(self.z.dtype)
        return merge(self.recurrence, self.matrix, self.z, weight, bias, self.offset)

    def score(self, theta: Tensor) -> Tensor:
        r""":math:`\sum_j \theta^j \cdot z_i^j` for every node, shape :math:`(\ldots, n)`.

        Channels are summed before the hops are taken, so a hop costs one channel, not d'. A merge
        that follows reads the same z, so that its gradient and that of the score are added at once.

        Args:
            theta: The attention weights :math:`\theta^j`, shape :math:`(\ldots, k + 1, d')`.
        """
        theta = theta.to(self.z.dtype)
        self.z, terms = scores_beside(self.z, theta)
        if self.offset is not None:
            terms = terms + theta @ self.offset.to(theta.dtype).unsqueeze(-1)
        total = polynomial_sum(self.recurrence, self.matrix, terms.unsqueeze(-1).unbind(-3))
        return total.squeeze(-1)

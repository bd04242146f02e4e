"""Anchors of features that nobody differentiates: the hops are taken before the projection."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from lookhops.hops.anchors import Anchors, Recurrence
from lookhops.hops.product import SparseMatrix


class EarlyAnchors(Anchors):
    r"""The anchors :math:`Z^j = T_j (x P + c)` as :math:`[T_j x, T_j 1] \, [P; c]`.

    The first layer's input has no gradient, and often fewer channels than its output. Its hops are
    constants then: one dense product gives the merge, and one gives its gradient, which no longer
    runs over the edges.

    Args:
        recurrence: :func:`~lookhops.hops.chebyshev` or :func:`~lookhops.hops.powers`.
        matrix: The operator :math:`A` of one hop.
        x: The features before projection, shape :math:`(n, d)`, without gradient.
        k: The number of hops.
        projection: :math:`P^\top`, shape :math:`(d', d)`.
        offset: The :math:`c`, shape :math:`(d')`.
    """

    def __init__(
        self,
        recurrence: Recurrence,
        matrix: SparseMatrix,
        x: Tensor,
        k: int,
        projection: Tensor,
        offset: Tensor,
    ) -> None:
        super().__init__(recurrence, matrix, x, k, offset)
        self.projection = torch.cat((projection.mT, offset.unsqueeze(0)))  # (d + 1, d')
        with torch.no_grad():
            with_one = torch.cat((x, x.new_ones(len(x), 1)), dim=1)
            self.hops = torch.cat(list(recurrence(matrix, with_one, k)), dim=1)

    @staticmethod
    def fit(x: Tensor, k: int, projection: Tensor) -> bool:
        """Whether these anchors can be had so, and are worth it: a product not much wider."""
        plain = x.dtype == projection.dtype and x.dtype in (torch.float32, torch.float64)
        if x.requires_grad or not plain or x.device.type != "cpu" or x.dim() + projection.dim() > 4:
            return False
        if torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"):
            return False
        if unpack_dual(x).tangent is not None:  # forward-mode differentiation
            return False
        return (k + 1) * (x.shape[1] + 1) <= 2 * projection.shape[0]

    @property
    def start(self) -> Tensor:
        """The anchors of no hop: the projected features."""
        return self.hops[:, : len(self.projection)] @ self.projection

    @property
    def shape(self) -> torch.Size:
        r"""Shape of the tensor that they stand for, :math:`(n, k + 1, d')`."""
        return torch.Size((len(self.hops), self.k + 1, self.projection.shape[1]))

    def stack(self) -> Tensor:
        r"""The anchors themselves, shape :math:`(n, k + 1, d')`."""
        return self.hops.unflatten(1, (self.k + 1, len(self.projection))) @ self.projection

    def merge(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        r""":math:`\sum_j z_i^j \odot w^j + b` for every node, shape :math:`(n, d')`.

        Args:
            weight: The :math:`w^j`, shape :math:`(k + 1, d')`.
            bias: The :math:`b`, shape :math:`(d')`.
        """
        rows = (self.projection * weight.unsqueeze(-2)).flatten(0, 1)
        if bias is not None:  # its row meets the column of ones
            rows[len(self.projection) - 1] += bias
        return self.hops @ rows

    def score(self, theta: Tensor) -> Tensor:
        r""":math:`\sum_j \theta^j \cdot z_i^j` for every node, shape :math:`(n)`.

        Args:
            theta: The attention weights :math:`\theta^j`, shape :math:`(k + 1, d')`.
        """
        return self.hops @ (theta @ self.projection.mT).flatten()

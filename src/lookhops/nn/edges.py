"""The factors that every layer learns from the features of edges."""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor, nn

from lookhops.nn.linear import Linear
from lookhops.ops.batch import EdgeInputs
from lookhops.ops.dense import linear_scores


class EdgeFactors(nn.Module):
    r"""A factor for each edge and each layer, learned from the features of the edge.

    .. math::
        f_{ij} = 2\, \mathrm{sigmoid}\bigl(\gamma\,(t \cdot l_{ij} +
        v \cdot \mathrm{ReLU}(U a_{ij} + u))\bigr)

    with the one-hot labels :math:`l_{ij}` of an edge, for which :math:`t` is a table, and its
    numbers :math:`a_{ij}`. Every layer has its own :math:`t, v, U, u`. Factors lie between 0 and 2,
    so that no number of hops makes them run away. They begin around one, at random: layers that
    tell kinds of edges apart from the start learn what these mean, where equal factors seldom part.
    Adam moves every parameter equally far in a step; :math:`\gamma` lets so few of them keep up
    with the many others of a layer.

    Args:
        num_numbers: Columns of numbers.
        num_labels: Columns of one-hot labels.
        layers: Number of layers.
        hidden: Channels of the network for numbers, of each layer.

    Shapes:
        - columns :math:`(\ldots, e, f)`, numbers first
        - output :math:`(\ldots, \text{layers}, e)`
    """

    GAMMA = 10.0
    START = 2.0  # what the sigmoid of a label takes at most to begin with: 0.24 to 1.76

    def __init__(self, num_numbers: int, num_labels: int, layers: int, hidden: int = 8) -> None:
        super().__init__()
        self.num_numbers, self.num_labels = num_numbers, num_labels
        self.layers, self.hidden = layers, hidden
        self.table = nn.Parameter(torch.empty(layers, num_labels)) if num_labels else None
        self.inner = Linear(num_numbers, layers * hidden) if num_numbers else None
        self.outer = nn.Parameter(torch.empty(layers, hidden)) if num_numbers else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new parameters."""
        bound = self.START / self.GAMMA
        if self.table is not None:
            nn.init.uniform_(self.table, -bound, bound)
        if self.inner is not None and self.outer is not None:
            self.inner.reset_parameters()
            nn.init.uniform_(self.outer, -bound / sqrt(self.hidden), bound / sqrt(self.hidden))

    def forward(self, columns: Tensor) -> Tensor:
        """The factors of all layers at once."""
        raw: Tensor | None = None
        if self.table is not None:
            raw = linear_scores(columns[..., self.num_numbers :], self.table)
        if self.inner is not None and self.outer is not None:
            inner = torch.relu(self.inner(columns[..., : self.num_numbers]))
            parts = inner.unflatten(-1, (self.layers, self.hidden))
            own = (parts * self.outer.to(inner.dtype).unsqueeze(-3)).sum(-1).mT
            raw = own if raw is None else raw + own
        assert raw is not None
        return 2 * torch.sigmoid(self.GAMMA * raw)

    def of(self, edges: EdgeInputs) -> Tensor:
        """The factors of the adjacency's edges in each layer, shape (layers, e)."""
        factors = self(edges.columns)
        factors = factors.movedim(-2, 0).flatten(1)
        return factors if edges.place is None else factors.index_select(1, edges.place)

    def extra_repr(self) -> str:
        """Columns and layers, as printing the module shows them."""
        return f"{self.num_numbers} numbers, {self.num_labels} labels, layers={self.layers}"

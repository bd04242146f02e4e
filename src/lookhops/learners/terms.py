"""Answers that are sums over the parts of a graph."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Terms:
    r"""The :math:`c` scores of one target for :math:`g` graphs with :math:`n` nodes, as sums.

    Scores are numbers in the target's units, or logits of classes. For each graph

    .. math::
        \text{score} = \text{baseline} + \sum_i \text{node}_i
        + \sum_{i, t} \text{neighbourhood}_{it} + \sum_q \text{total}_q + \sum_f \text{feature}_f,

    and of a graph without nodes, or without pairs of them, something more.

    All are float64.

    Args:
        scores: Shape (g, c).
        baseline: The scores of an average training graph, shape (c).
        neighbourhoods: Of the neighbourhoods with 0, 1, ... hops of each node, shape (n, h + 1, c).
        nodes: Of each node besides, shape (n, c).
        totals: Of each of :func:`~lookhops.neighbourhoods.graph_totals`, shape (g, q, c), where any
            is read.
        features: Of the features of whole graphs, numbers first, shape (g, f, c).
        mean_totals: The mean of each total in the training part, shape (q).
        mean_features: The same of each feature, 0 of labels, shape (f).
    """

    scores: Tensor
    baseline: Tensor
    neighbourhoods: Tensor
    nodes: Tensor
    totals: Tensor | None
    features: Tensor
    mean_totals: Tensor | None
    mean_features: Tensor

    def to(self, device: torch.device) -> Terms:
        """The same on a device."""
        each = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        moved = {name: own.to(device) for name, own in each.items() if own is not None}
        return replace(self, **moved)

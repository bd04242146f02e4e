"""What a network is told of average nodes and edges: where explanations start from."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lookhops.encoding import Encoding
from lookhops.encoding.edges import number_columns
from lookhops.encoding.learnt import Learnt
from lookhops.neighbourhoods.totals import DEGREES

# Totals begin with two sizes, and counts and shares of each degree.
_FIRST_LABEL = 2 + 2 * DEGREES


def average_node(encoding: Encoding, learnt: Learnt) -> Tensor:
    """What is told of an average training node, shape (d).

    Numbers have the mean of what is told, labels the mean share of each value among the nodes of a
    graph (zero where the model reads no totals and so does not know it), blanks none. A network
    that is told of no features is told a one.
    """
    nodes = encoding.nodes
    if not nodes.width:
        return torch.ones(1, dtype=torch.float64)
    scale = learnt.scales.nodes
    numbers = _zeros(len(nodes.attributes)) if scale is None else scale.fill.double().flatten()
    labels = _label_shares(nodes.sizes, learnt.whole.mean, _FIRST_LABEL)
    return torch.cat((numbers, _zeros(len(encoding.blanks)), labels))


def average_edge(encoding: Encoding, learnt: Learnt) -> Tensor:
    """The same of an average edge, shape (f)."""
    edges = encoding.edges
    assert edges is not None
    scale, columns = learnt.scales.edges, number_columns(edges)
    numbers = _zeros(len(columns)) if scale is None else scale.fill.double().flatten()[columns]
    first = _FIRST_LABEL + 2 * sum(encoding.nodes.sizes) + len(encoding.nodes.attributes)
    labels = _label_shares(edges.sizes, learnt.whole.mean, first)
    return torch.cat((numbers, _zeros(len(encoding.edge_blanks)), labels))


def _label_shares(sizes: Sequence[int], mean: Tensor | None, at: int) -> Tensor:
    """The mean shares of labels, of each of which totals have the counts and then the shares."""
    parts = []
    for size in sizes:
        parts.append(_zeros(size) if mean is None else mean[at + size : at + 2 * size].double())
        at += 2 * size
    return torch.cat(parts) if parts else _zeros(0)


def _zeros(size: int) -> Tensor:
    return torch.zeros(size, dtype=torch.float64)

"""Whether an answer needs the nodes that an explanation names, and whether they are enough."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from lookhops.graphs import Graphs
from lookhops.graphs.indexing import row_offsets, take
from lookhops.models.predictor import Predictor

Array = NDArray[np.float64]

#: Shares of the edges that are taken away, inside and outside of what is named, and how often.
INSIDE, OUTSIDE, DRAWS = 0.3, 0.3, 5


def top_nodes(score: Array, size: NDArray[np.int64], node_ptr: NDArray[np.int64]) -> Array:
    """The nodes with the highest scores of each graph, shape (n), booleans.

    Args:
        score: Of each node, shape (n).
        size: How many of each graph, shape (g).
        node_ptr: Node offsets of the graphs, shape (g + 1).
    """
    graph = np.repeat(np.arange(len(size)), np.diff(node_ptr))
    order = np.lexsort((-score, graph))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order)) - node_ptr[graph[order]]
    return np.asarray(rank < size[graph])


def without_edges(graphs: Graphs, keep: torch.Tensor) -> Graphs:
    """The same nodes with the edges that ``keep`` marks, shape (e)."""
    return replace(
        graphs,
        row_ptr=row_offsets(graphs.target[keep], graphs.num_nodes),
        source=graphs.source[keep],
        edge_labels=take(graphs.edge_labels, keep.nonzero().flatten()),
        edge_attributes=take(graphs.edge_attributes, keep.nonzero().flatten()),
    )


def robust_fidelity(
    predictor: Predictor, graphs: Graphs, named: Array, classes: NDArray[np.int64], seed: int = 0
) -> tuple[float, float]:
    r"""Fidelity in the robust form of Zheng et al. (2024): what few edges more or less change.

    .. math::
        \mathrm{Fid}^+ = p(G) - \mathbb{E}\, p(G \setminus \alpha E_s), \qquad
        \mathrm{Fid}^- = p(G) - \mathbb{E}\, p(G \setminus \alpha (E \setminus E_s))

    with the probability :math:`p` of the class that is explained, the edges :math:`E_s` that touch
    named nodes, and a random share :math:`\alpha` of them taken away: the graph stays like those
    that the model knows, as taking all of them away does not.

    Args:
        predictor: The model.
        graphs: The graphs.
        named: The nodes that an explanation names, shape (n), booleans.
        classes: The class that is explained of each graph, shape (g).
        seed: Of the draws.

    Returns:
        The two means over graphs: the first is high and the second near zero where the named nodes
        are those that matter.
    """
    rows = np.arange(len(graphs))
    whole = predictor.predict(graphs).probabilities[rows, classes]
    mask = torch.from_numpy(np.asarray(named)).to(graphs.device)
    inside = mask[graphs.source.long()] | mask[graphs.target.long()]
    low = torch.minimum(graphs.source, graphs.target).long()
    high = torch.maximum(graphs.source, graphs.target).long()
    _, pair = torch.unique(low * graphs.num_nodes + high, return_inverse=True)
    draws = torch.Generator().manual_seed(seed)
    found = []
    for part, share in ((inside, INSIDE), (~inside, OUTSIDE)):
        left = []
        for _ in range(DRAWS):
            chance = torch.rand(int(pair.max()) + 1 if len(pair) else 0, generator=draws)
            keep = ~part | (chance.to(graphs.device)[pair] >= share)
            less = predictor.predict(without_edges(graphs, keep))
            left.append(whole - less.probabilities[rows, classes])
        found.append(float(np.mean(left)))
    return found[0], found[1]

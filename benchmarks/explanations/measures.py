"""How well scores of nodes point at those that decide, and whether the answer needs these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata

from lookhops.graphs import Graphs
from lookhops.graphs.indexing import row_offsets
from lookhops.learners.hop_fingerprint import HopFingerprint
from lookhops.models.predictor import Predictor

Array = NDArray[np.float64]

#: Shares of the edges that are taken away, inside and outside of what is named, and how often.
INSIDE, OUTSIDE, DRAWS = 0.3, 0.3, 5
#: Parts of the graphs of which each is tested once after learning from the others.
FOLDS = 5


def node_auc(share: Array, truth: NDArray[np.bool_], node_ptr: NDArray[np.int64]) -> Array:
    """Of each graph, the chance that a true node has a larger share than another one, ties half.

    Args:
        share: Of each node, shape (n).
        truth: Which nodes decide, shape (n).
        node_ptr: Node offsets of the graphs, shape (g + 1).

    Returns:
        Shape (g); NaN where all nodes decide, or none.
    """
    found = np.full(len(node_ptr) - 1, np.nan)
    for number, part in enumerate(_parts(node_ptr)):
        true = truth[part]
        count, others = int(true.sum()), int((~true).sum())
        if count and others:
            ranks = rankdata(share[part])[true].sum()
            found[number] = (ranks - count * (count + 1) / 2) / (count * others)
    return found


def precision_at_size(share: Array, truth: NDArray[np.bool_], node_ptr: NDArray[np.int64]) -> Array:
    """Of each graph, which share of its m largest nodes is true, for the m nodes that decide.

    Where nodes of equal share stand at the limit, it is the mean over their orders. Arguments and
    NaN as for :func:`node_auc`.
    """
    found = np.full(len(node_ptr) - 1, np.nan)
    for number, part in enumerate(_parts(node_ptr)):
        own, true = share[part], truth[part]
        size = int(true.sum())
        if 0 < size < len(own):
            limit = np.sort(own)[-size]
            above, level = own > limit, own == limit
            chance = (size - above.sum()) / level.sum()
            found[number] = (true[above].sum() + chance * true[level].sum()) / size
    return found


def agreement(shares: Sequence[Array], node_ptr: NDArray[np.int64]) -> float:
    """How much several explanations of the same graphs agree: the mean rank correlation.

    Spearman's correlation of the nodes of each graph, over all pairs of explanations; graphs in
    which one of the two knows no order are left out. NaN where none is left.

    Args:
        shares: One of each explanation, shape (n).
        node_ptr: Node offsets of the graphs, shape (g + 1).
    """
    found = []
    for part in _parts(node_ptr):
        ranks = [rankdata(share[part]) for share in shares]
        spread = [rank - rank.mean() for rank in ranks]
        for one, two in combinations(spread, 2):
            size = np.sqrt((one**2).sum() * (two**2).sum())
            if size > 0:
                found.append((one * two).sum() / size)
    return float(np.mean(found)) if found else float("nan")


def _parts(node_ptr: NDArray[np.int64]) -> list[slice]:
    return [slice(*ends) for ends in pairwise(node_ptr)]


def top_nodes(score: Array, size: NDArray[np.int64], node_ptr: NDArray[np.int64]) -> Array:
    """The nodes with the highest scores of each graph, shape (n), booleans; of equals any.

    Args:
        score: Of each node, shape (n).
        size: How many of each graph, shape (g).
        node_ptr: Node offsets of the graphs, shape (g + 1).
    """
    graph = np.repeat(np.arange(len(size)), np.diff(node_ptr))
    chance = np.random.default_rng(0).random(len(score))  # the order of nodes may tell the class
    order = np.lexsort((chance, -score, graph))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order)) - node_ptr[graph[order]]
    return np.asarray(rank < size[graph])


def without_edges(graphs: Graphs, keep: torch.Tensor) -> Graphs:
    """The same nodes with the edges that ``keep`` marks, shape (e)."""
    return replace(
        graphs,
        row_ptr=row_offsets(graphs.target[keep], graphs.num_nodes),
        source=graphs.source[keep],
        edges=graphs.edges.take(keep.nonzero().flatten()),
    )


def only_nodes(graphs: Graphs, keep: torch.Tensor) -> Graphs:
    """The nodes that ``keep`` marks, shape (n), and the edges between them."""
    node, inside = keep.nonzero().flatten(), keep[graphs.source.long()] & keep[graphs.target.long()]
    edge = inside.nonzero().flatten()
    number = keep.cumsum(0) - 1
    target = number[graphs.target.long()[edge]].to(graphs.target.dtype)
    before = torch.nn.functional.pad(keep.cumsum(0), (1, 0))
    return replace(
        graphs,
        node_ptr=before[graphs.node_ptr.long()].to(graphs.node_ptr.dtype),
        row_ptr=row_offsets(target, len(node)),
        source=number[graphs.source.long()[edge]].to(graphs.source.dtype),
        nodes=graphs.nodes.take(node),
        edges=graphs.edges.take(edge),
        node_ids=None,
    )


def retrained_accuracy(graphs: Graphs, score: Array) -> float:
    """What can still be learnt from the half of each graph that an explanation names.

    Each graph is cut down to the half of its nodes with the highest scores and the edges between
    them; its size says nothing of the class then. A linear model of exact neighbourhoods
    (:class:`~lookhops.HopFingerprint`) learns the classes anew from these parts: its accuracy over
    five folds. High where the named half holds what decides.

    Args:
        graphs: Graphs with classes that the explained model did not learn from.
        score: Of each node, shape (n).
    """
    from sklearn.linear_model import RidgeClassifier
    from sklearn.model_selection import StratifiedKFold
    from sklearn.pipeline import make_pipeline

    ptr = graphs.node_ptr.cpu().numpy()
    half = top_nodes(score, (np.diff(ptr) + 1) // 2, ptr)
    parts = only_nodes(graphs.to("cpu"), torch.from_numpy(np.asarray(half)))
    assert parts.y is not None
    model, y = make_pipeline(HopFingerprint(h=3), RidgeClassifier()), parts.y.numpy()
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(y, y)
    right = []
    for train, test in folds:
        model.fit(parts.select(torch.from_numpy(train)), y[train])
        right += (model.predict(parts.select(torch.from_numpy(test))) == y[test]).tolist()
    return float(np.mean(right))


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

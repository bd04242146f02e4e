"""How well shares of nodes point at the nodes that truly decide, and at each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Array = NDArray[np.float64]


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

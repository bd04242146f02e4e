"""The greedy matching of edges, which takes them by falling score."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.nn.kernels import matching as kernels
from lookhops.nn.ranking import nearness, on_cpu
from lookhops.ops import Adjacency


def matched_nodes(
    score: Tensor, adjacency: Adjacency, bounds: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The nodes that :func:`greedy_matching` brings together.

    Args:
        score: Of each edge, shape (e).
        adjacency: The edges.
        bounds: First node of each graph and the one after its last, shape (2, graphs), where the
            nodes of each graph stand together. A GPU is then not waited for.

    Returns:
        The node that each is matched with, itself where there is none, and the edge that was taken,
        at the first of its two nodes, -1 elsewhere; both of shape (n), 64-bit.
    """
    node = torch.arange(adjacency.num_nodes, device=score.device)
    if bounds is not None and kernels.fits(score):
        when = adjacency.order, adjacency.present
        ends = adjacency.source, adjacency.target, adjacency.pattern.row_ptr
        partner, taken = kernels.match(score, *when, *ends, bounds, nearness(score.dtype))
        return torch.where(partner < 0, node, partner), taken.long()
    edge = greedy_matching(score, adjacency)
    source = adjacency.source.index_select(0, edge).long()
    target = adjacency.target.index_select(0, edge).long()
    taken = torch.full_like(node, -1).scatter(0, torch.minimum(source, target), edge)
    return node.scatter(0, source, target).scatter(0, target, source), taken


def greedy_matching(score: Tensor, adjacency: Adjacency) -> Tensor:
    """The edges that are taken one by one by falling score, each unless an end is taken already.

    Computed in rounds: an edge that beats all its neighbours is taken whatever happens elsewhere,
    and then they are out. Few rounds are needed, since they shrink everywhere at once. Scores
    within rounding (:func:`~lookhops.nn.ranking.nearness`) of the highest at a node count as equal
    there, and the edge that was given first is the best; where that leads in a circle, and no edge
    is the best at both of its ends, the scores decide as they are. Graphs do not change each other:
    one that is stuck in a circle stays so until all others are, or are done.

    Args:
        score: Of each edge, shape (e).
        adjacency: The edges; those that are not present are not taken.

    Returns:
        Numbers of the edges, round by round.
    """
    edge = torch.arange(adjacency.num_edges, device=score.device)
    source, target = adjacency.source.long(), adjacency.target.long()
    given = edge if adjacency.order is None else adjacency.order
    score = torch.where(score.isnan(), torch.inf, score)
    if adjacency.present is not None:
        edge = adjacency.present.nonzero().flatten()
        source, target, given, score = source[edge], target[edge], given[edge], score[edge]
    nodes, reach = adjacency.num_nodes, nearness(score.dtype)
    if on_cpu(score) and score.dtype in (torch.float32, torch.float64):
        rest = given.numpy(), source.numpy(), target.numpy(), nodes, reach
        found = torch.from_numpy(match_arrays(score.numpy(), *rest))
    else:
        found = match_tensors(score, given, source, target, nodes, reach)
    return edge.index_select(0, found)


def match_tensors(
    score: Tensor, given: Tensor, source: Tensor, target: Tensor, nodes: int, reach: float
) -> Tensor:
    """The places of the edges that are taken.

    Args:
        score: Of each edge, shape (e).
        given: When each edge was given, shape (e), all different.
        source, target: Its ends, shape (e).
        nodes: How many nodes there are.
        reach: How far below the highest score at a node others count as equal to it.
    """
    edge = torch.arange(score.numel(), device=score.device)
    taken = [edge[:0]]
    while edge.numel():
        wins = _best_at_both_ends(score, given, source, target, nodes, reach)
        if not wins.numel():
            wins = _best_at_both_ends(score, given, source, target, nodes, 0.0)
        taken.append(edge.index_select(0, wins))
        free = torch.ones(nodes, dtype=torch.bool, device=score.device)
        free.index_fill_(0, source.index_select(0, wins), False)
        free.index_fill_(0, target.index_select(0, wins), False)
        left = (free.index_select(0, source) & free.index_select(0, target)).nonzero().flatten()
        edge, source, target, given, score = (
            part.index_select(0, left) for part in (edge, source, target, given, score)
        )
    return torch.cat(taken)


def _best_at_both_ends(
    score: Tensor, given: Tensor, source: Tensor, target: Tensor, nodes: int, reach: float
) -> Tensor:
    """The edges that were given first among those within ``reach`` of the highest, at both ends."""
    lowest = score.new_full((nodes,), -torch.inf)
    for end in (source, target):
        lowest.scatter_reduce_(0, end, score, "amax")
    lowest -= reach
    none = torch.iinfo(given.dtype).max
    first = given.new_full((nodes,), none)
    for end in (source, target):
        place = torch.where(score >= lowest.index_select(0, end), given, none)
        first.scatter_reduce_(0, end, place, "amin")
    wins = first.index_select(0, source) == given
    return (wins & (first.index_select(0, target) == given)).nonzero().flatten()


def match_arrays(
    score: Array, given: Array, source: Array, target: Array, nodes: int, reach: float
) -> Array:
    """:func:`match_tensors` in NumPy: on the CPU its small steps take half the time."""
    edge = np.arange(len(score))
    taken = [edge[:0]]
    while len(edge):
        wins = _best_arrays(score, given, source, target, nodes, reach)
        if not len(wins):
            wins = _best_arrays(score, given, source, target, nodes, 0.0)
        taken.append(edge.take(wins))
        free = np.ones(nodes, dtype=bool)
        free[source.take(wins)] = free[target.take(wins)] = False
        left = np.flatnonzero(free.take(source) & free.take(target))
        edge, source, target, given, score = (
            part.take(left) for part in (edge, source, target, given, score)
        )
    return np.concatenate(taken)


def _best_arrays(
    score: Array, given: Array, source: Array, target: Array, nodes: int, reach: float
) -> Array:
    """As :func:`_best_at_both_ends`; of all edges only those near the highest are compared."""
    lowest = np.full(nodes, -np.inf, dtype=score.dtype)
    for end in (source, target):
        np.maximum.at(lowest, end, score)
    lowest -= reach
    first = np.full(nodes, np.iinfo(given.dtype).max)
    near = [score >= lowest.take(end) for end in (source, target)]
    for end, own in zip((source, target), map(np.flatnonzero, near), strict=True):
        np.minimum.at(first, end.take(own), given.take(own))
    both = np.flatnonzero(near[0] & near[1])
    wanted = given.take(both)
    wins = first.take(source.take(both)) == wanted
    return both[wins & (first.take(target.take(both)) == wanted)]

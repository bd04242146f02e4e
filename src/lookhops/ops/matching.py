# mypy: allow-untyped-defs, allow-incomplete-defs
"""The greedy matching of edges, which takes them by falling score."""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.ops.adjacency import Adjacency
from lookhops.ops.gpu import available, tl, triton
from lookhops.ops.ranking import nearness

LEAST, MOST = 64, 1024  # edges that a program looks at together
A_WARP = 64  # of them: at least 32, so that no two threads look at the same one


def asks_no_device() -> bool:
    """Whether a matching never asks a GPU for a value: without its kernel every round does."""
    return triton is not None or not torch.cuda.is_available()


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
    if bounds is not None and score.is_cuda and available() and score.numel() > 0:
        when = adjacency.order, adjacency.present
        ends = adjacency.source, adjacency.target, adjacency.pattern.row_ptr
        partner, taken = match_by_kernel(score, *when, *ends, bounds, nearness(score.dtype))
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
    within rounding (:func:`~lookhops.ops.ranking.nearness`) of the highest at a node count as equal
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
    return edge.index_select(0, match_tensors(score, given, source, target, nodes, reach))


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


def match_by_kernel(
    score: Tensor,
    given: Tensor | None,
    present: Tensor | None,
    source: Tensor,
    target: Tensor,
    row_ptr: Tensor,
    bounds: Tensor,
    reach: float,
) -> tuple[Tensor, Tensor]:
    """The node that each is matched with, and the edge at the first of the two, -1 for none.

    Args:
        score: Of each edge, shape (e), single or double precision.
        given: When each edge was given, shape (e), all different; none means in this order.
        present: Which edges may be taken; none means all.
        source, target: Ends of each edge, by target.
        row_ptr: First edge into each node, and the end, shape (n + 1).
        bounds: First node of each graph and the one after its last, shape (2, graphs).
        reach: How far below the highest score at a node others count as equal to it.

    Returns:
        Two tensors of shape (n), 32-bit.
    """
    nodes, graphs = row_ptr.numel() - 1, bounds.shape[1]
    found = torch.full((2, nodes), -1, dtype=torch.int32, device=score.device)
    partner, taken = found.unbind()
    best, first = torch.empty_like(taken, dtype=score.dtype), torch.empty_like(taken)
    if graphs == 0:
        return partner, taken
    block = triton.next_power_of_2(score.numel() // graphs + 1)
    block = min(max(block, LEAST), MOST)
    edges = (score.contiguous(), given, present, source, target)
    sizes = {"BLOCK": block, "num_warps": max(block // A_WARP, 1), "num_stages": 1}
    of_nodes = (best, first, partner, taken)
    _match_kernel[(graphs,)](*edges, row_ptr, *bounds, *of_nodes, REACH=reach, **sizes)
    return partner, taken


if triton is not None:
    NONE = tl.constexpr(2**31 - 1)  # given after every edge

    @triton.jit
    def _load_edges(source, target, given, present, begin, end, BLOCK: tl.constexpr):
        """Some edges of a graph: their numbers, ends, places in time, and which there are."""
        edge = begin + tl.arange(0, BLOCK)
        here = edge < end
        if present is not None:
            here = here & (tl.load(present + edge, mask=here, other=0) != 0)
        tail = tl.load(source + edge, mask=here, other=0)
        head = tl.load(target + edge, mask=here, other=0)
        when = edge
        if given is not None:
            when = tl.load(given + edge, mask=here, other=0).to(tl.int32)
        return edge, tail, head, when, here

    @triton.jit
    def _load_score(score, edge, here):
        """Scores of edges; NaN is above all."""
        value = tl.load(score + edge, mask=here, other=0.0)
        return tl.where(value != value, float("inf"), value)

    @triton.jit
    def _free(partner, node, here):
        """Which nodes no edge took so far."""
        return here & (tl.load(partner + node, mask=here, other=0) < 0)

    @triton.jit
    def _bid(best, first, node, value, when, here, reach):
        """Note an edge at one of its ends if none there was given before it and is as good."""
        highest = tl.load(best + node, mask=here, other=0.0, cache_modifier=".cg")
        tl.atomic_min(first + node, when, mask=here & (value >= highest - reach), sem="relaxed")

    @triton.jit
    def _noted(first, node, when, here):
        """Which edges are those that were noted at one of their ends."""
        return here & (tl.load(first + node, mask=here, other=0, cache_modifier=".cg") == when)

    @triton.jit
    def _match_kernel(
        score,
        given,
        present,
        source,
        target,
        row_ptr,
        start,
        end,
        best,
        first,
        partner,
        taken,
        REACH: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        """Round after round: the edges that are the best at both ends take these.

        What a program's threads tell each other goes through memory, with a barrier between. A
        round in which no edge wins changes nothing, and the next one takes scores as they are.
        """
        graph = tl.program_id(0)
        node, last_node = tl.load(start + graph).to(tl.int32), tl.load(end + graph).to(tl.int32)
        edge, last = tl.load(row_ptr + node), tl.load(row_ptr + last_node)
        near = tl.full((), REACH, best.dtype.element_ty)
        reach = near
        left = last - edge
        while left > 0:
            for begin in range(node, last_node, BLOCK):
                own = begin + tl.arange(0, BLOCK)
                tl.store(best + own, float("-inf"), mask=own < last_node)
                tl.store(first + own, NONE, mask=own < last_node)
            tl.debug_barrier()
            left = edge * 0
            for begin in range(edge, last, BLOCK):
                number, tail, head, when, here = _load_edges(
                    source, target, given, present, begin, last, BLOCK
                )
                here = _free(partner, tail, here) & _free(partner, head, here)
                value = _load_score(score, number, here)
                tl.atomic_max(best + tail, value, mask=here, sem="relaxed")
                tl.atomic_max(best + head, value, mask=here, sem="relaxed")
                left += tl.sum(here.to(tl.int32), axis=0)
            tl.debug_barrier()
            for begin in range(edge, last, BLOCK):
                number, tail, head, when, here = _load_edges(
                    source, target, given, present, begin, last, BLOCK
                )
                here = _free(partner, tail, here) & _free(partner, head, here)
                value = _load_score(score, number, here)
                _bid(best, first, tail, value, when, here, reach)
                _bid(best, first, head, value, when, here, reach)
            tl.debug_barrier()
            wins = edge * 0
            for begin in range(edge, last, BLOCK):
                number, tail, head, when, here = _load_edges(
                    source, target, given, present, begin, last, BLOCK
                )
                # Only free edges are noted, and no two were given at the same time.
                won = _noted(first, tail, when, here) & _noted(first, head, when, here)
                tl.store(partner + tail, head, mask=won)
                tl.store(partner + head, tail, mask=won)
                tl.store(taken + tl.minimum(tail, head), number, mask=won)
                wins += tl.sum(won.to(tl.int32), axis=0)
            tl.debug_barrier()
            reach = tl.where(wins > 0, near, near * 0)

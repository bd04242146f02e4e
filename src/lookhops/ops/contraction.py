"""What contracts edges: a greedy matching, the nodes that it merges, and the edges between them."""

from typing import NamedTuple

import torch
from torch import Tensor

from lookhops.graphs.indexing import to_offsets
from lookhops.ops.adjacency import Adjacency
from lookhops.ops.gpu import available, tl, triton
from lookhops.ops.pattern import Pattern, group
from lookhops.ops.product import csr_product, sum_into
from lookhops.ops.ranking import nearness

LEAST, MOST = 64, 1024  # edges that a program of the matching looks at together
A_WARP = 64  # of them: at least 32, so that no two threads look at the same one


def asks_no_device() -> bool:
    """Whether a matching never asks a GPU for a value: without its kernel every round does."""
    return triton is not None or not torch.cuda.is_available()


def matched_nodes(
    score: Tensor, adjacency: Adjacency, bounds: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The nodes that :func:`greedy_matching` brings together, given the score of each edge.

    With ``bounds`` (:attr:`GraphBatch.bounds`) a GPU is not waited for.

    Returns:
        The node that each is matched with, itself where there is none, and the edge that was taken,
        at the first of its two nodes, -1 elsewhere; both of shape (n), 64-bit.
    """
    node = torch.arange(adjacency.num_nodes, device=score.device)
    if bounds is not None and score.is_cuda and available() and score.numel() > 0:
        partner, taken = match_by_kernel(score, adjacency, bounds)
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
    one that is stuck in a circle stays so until all others are, or are done. Gives the numbers of
    the edges, round by round.
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

    All tensors have shape (e); ``given`` says when each edge was given, ``reach`` how far below the
    highest score at a node others count as equal to it.
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


def match_by_kernel(score: Tensor, adjacency: Adjacency, bounds: Tensor) -> tuple[Tensor, Tensor]:
    """:func:`matched_nodes` by a kernel, in 32 bits, -1 where nothing is matched."""
    nodes, graphs = adjacency.num_nodes, bounds.shape[1]
    partner, taken = torch.full((2, nodes), -1, dtype=torch.int32, device=score.device).unbind()
    best, first = torch.empty_like(taken, dtype=score.dtype), torch.empty_like(taken)
    if graphs == 0:
        return partner, taken
    block = triton.next_power_of_2(score.numel() // graphs + 1)
    block = min(max(block, LEAST), MOST)
    given = (score.contiguous(), adjacency.order, adjacency.present, adjacency.source)
    given = (*given, adjacency.target, adjacency.pattern.row_ptr, *bounds)
    sizes = {"BLOCK": block, "num_warps": max(block // A_WARP, 1), "num_stages": 1}
    found = (best, first, partner, taken)
    _match_kernel[(graphs,)](*given, *found, REACH=nearness(score.dtype), **sizes)
    return partner, taken


def scores_of_taken(score: Tensor, taken: Tensor) -> Tensor:
    """The score of the edge that was taken at each node, one where there is none, shape (n)."""
    return _OfTaken.apply(score, taken)


class _OfTaken(torch.autograd.Function):
    """No edge is named twice: the gradient is a scatter, not a sum."""

    @staticmethod
    def forward(ctx, score, taken):
        place = torch.where(taken < 0, score.numel(), taken)
        ctx.save_for_backward(place)
        ctx.edges = score.numel()
        return torch.cat((score, score.new_ones(1))).index_select(0, place)

    @staticmethod
    def backward(ctx, grad):
        place, edges = ctx.saved_tensors[0], ctx.edges
        return grad.new_zeros(edges + 1).scatter(0, place, grad)[:edges], None


def merge_nodes(x: Tensor, gate: Tensor, member: Tensor, there: Tensor, number: Tensor) -> Tensor:
    """Rows of the gate times the sum of their two members that are there: a sparse product.

    The members have shape (rows, 2); ``number`` is the row into which each node went, shape (n).
    """
    count = torch.arange(max(member.numel(), len(x)) + 1, device=x.device)
    nodes = count[: len(x)]
    second = member[:, 0].index_select(0, number) != nodes  # which of its row's members a node is
    transpose = count[: len(x) + 1], number, 2 * number + second
    value = (gate[:, None] * there).flatten()
    return csr_product(x, value, count[: member.numel() + 1 : 2], member.flatten(), *transpose)


class MergedEdges(NamedTuple):
    """What became of edges when nodes were merged."""

    adjacency: Adjacency
    first: Tensor  # whether each old edge is the first of those that became one, shape (e)
    number: Tensor  # the merged edge that each old one became, -1 for none, shape (e)


def merge_edges(
    adjacency: Adjacency, number: Tensor, rows: int, masked: bool = False
) -> MergedEdges:
    """The edges between merged nodes, by target, then source.

    Args:
        adjacency: The edges as they were.
        number: The row of the merged node into which each node went.
        rows: How many rows there are.
        masked: Whether there are as many edges as before, those that are no more being padding of
            weight zero: nothing is then asked of the device.
    """
    present = adjacency.present
    if masked:
        real = ~adjacency.pattern.is_padding
        present = real if present is None else real & present
    source = number.index_select(0, adjacency.source)
    target = number.index_select(0, adjacency.target)
    if present is not None:
        target = torch.where(present, target, rows)  # behind all others
    row_ptr, order = _by_ends(source, target, rows + 1)
    source, target = source.index_select(0, order), target.index_select(0, order)
    there = target < rows
    starts = there.clone()
    starts[1:] &= (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    before = to_offsets(starts.long())
    if masked:
        run = torch.arange(1, before.numel(), device=before.device)
        first = torch.searchsorted(before[1:], run).clamp(max=before.numel() - 2)
    else:
        first = starts.nonzero().flatten()
    row, column = target.index_select(0, first).int(), source.index_select(0, first).int()
    if masked:
        real = torch.arange(len(first), device=first.device) < before[-1]
        row, column = torch.where(real, row, rows - 1), torch.where(real, column, rows - 1)
    pattern = Pattern(before.index_select(0, row_ptr[: rows + 1]).int(), column, row=row)
    went = torch.empty_like(order).scatter(0, order, torch.where(there, before[1:] - 1, -1))
    weight = None
    if adjacency.weight is not None and adjacency.weighted:
        weight = sum_into(adjacency.weight, went, len(first))
    merged = Adjacency(pattern, weight, symmetric=adjacency.symmetric)
    if masked and weight is None:
        merged = merged.masked(real)
    return MergedEdges(merged, torch.empty_like(starts).scatter(0, order, starts), went)


def _by_ends(source: Tensor, target: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Where the edges into each target start, and the edges by target, then source, then order."""
    if source.is_cuda:  # one sort of both ends in one number
        key, order = (target * size + source).sort(stable=True)
        numbers = torch.arange(size + 1, device=key.device)
        return torch.searchsorted(key, numbers * size), order
    order = group(source, size)[1]
    row_ptr, by_target = group(target.index_select(0, order), size)
    return row_ptr, order.index_select(0, by_target).long()


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

# mypy: allow-untyped-defs, allow-incomplete-defs
"""Triton kernels that lay out a batch: three launches, where PyTorch's operators take fifty.

:func:`lay_out` stands for :func:`lookhops.training.layout.lay_out`, which tests hold it to.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.ops.kernels import available, tl, triton

MOST_GRAPHS = 4096  # of a member's batch: one program adds up their sizes
BLOCK = 256  # slots, or places of edges, that a program takes


def fits(index: Tensor) -> bool:
    """Whether :func:`lay_out` can take batches of these graphs."""
    return index.is_cuda and available() and 0 < index.shape[1] <= MOST_GRAPHS


def lay_out(
    index: Tensor,
    node_ptr: Tensor,
    row_ptr: Tensor,
    source: Tensor,
    first_node: Tensor | None,
    nodes: int,
    edges: int,
) -> tuple[Tensor, ...]:
    """Node, place, alive, graph, segments; offsets, columns, rows and numbers of the edges."""
    members, size = index.shape
    slots = members * nodes

    def new(*shape: int, dtype: torch.dtype = torch.long) -> Tensor:
        return torch.empty(*shape, dtype=dtype, device=index.device)

    segments, node, graph = new(2, members * size), new(slots), new(slots)
    place = node if first_node is None else new(slots)
    alive = new(slots, dtype=torch.bool)
    shifts, totals = new(3, members * size), new(members)
    new_ptr, column, row = (new(n, dtype=torch.int) for n in (slots + 1, edges, edges))
    edge = new(edges)
    tables, found = (node_ptr, row_ptr, first_node), (segments, shifts, totals)
    sizes = {"SIZE": triton.next_power_of_2(size), "num_warps": 4}
    _graphs_kernel[(members,)](
        index.contiguous(), *tables, *found, members * size, size, nodes, **sizes
    )
    out = (node, None if first_node is None else place, alive, graph, new_ptr)
    sizes = {"STEPS": size.bit_length(), "BLOCK": BLOCK, "num_warps": 4}
    _slots_kernel[members, triton.cdiv(nodes, BLOCK)](
        *found,
        row_ptr,
        *out,
        members,
        size,
        nodes,
        MEMBERS=triton.next_power_of_2(members),
        **sizes,
    )
    given = (new_ptr, row_ptr, source, node, column, row, edge)
    sizes = {"STEPS": slots.bit_length(), "BLOCK": BLOCK, "num_warps": 4}
    _places_kernel[(triton.cdiv(edges, BLOCK),)](*given, slots, edges, **sizes)
    return node, place, alive, graph, segments, new_ptr, column, row, edge


if triton is not None:

    @triton.jit
    def _graphs_kernel(
        index,
        node_ptr,
        row_ptr,
        first_node,
        segments,
        shifts,
        totals,
        graphs,
        size,
        nodes,
        SIZE: tl.constexpr,
    ):
        """A member's graphs: their slots, how far nodes and edges move, and how many edges.

        The three rows of shifts: from slots to nodes, from slots to places in the larger set, and
        from edges of all graphs to those of the member.
        """
        member = tl.program_id(0)
        at = tl.arange(0, SIZE)
        inside = at < size
        number = tl.load(index + member * size + at, mask=inside, other=-1)
        there = number >= 0
        first = tl.load(node_ptr + number, mask=there, other=0)
        last = tl.load(node_ptr + number + 1, mask=there, other=0)
        first_edge = tl.load(row_ptr + first, mask=there, other=0)
        last_edge = tl.load(row_ptr + last, mask=there, other=0)
        end = tl.cumsum(last - first, axis=0)
        start = end - (last - first)
        place = member * size + at
        tl.store(segments + place, start + member * nodes, mask=inside)
        tl.store(segments + graphs + place, end + member * nodes, mask=inside)
        tl.store(shifts + place, first - start, mask=inside)
        if first_node is not None:
            outside = tl.load(first_node + number, mask=there, other=0)
            tl.store(shifts + graphs + place, outside - start, mask=inside)
        count = last_edge - first_edge
        before = tl.cumsum(count, axis=0) - count
        tl.store(shifts + 2 * graphs + place, before - first_edge, mask=inside)
        tl.store(totals + member, tl.sum(count, axis=0))

    @triton.jit
    def _slots_kernel(
        segments,
        shifts,
        totals,
        row_ptr,
        node,
        place,
        alive,
        graph,
        new_ptr,
        members,
        size,
        nodes,
        STEPS: tl.constexpr,
        BLOCK: tl.constexpr,
        MEMBERS: tl.constexpr,
    ):
        """What stands at the slots of a member, and where the edges into them begin."""
        member = tl.program_id(0)
        each = tl.arange(0, MEMBERS)
        count = tl.load(totals + each, mask=each < members, other=0)
        earlier = tl.sum(tl.where(each < member, count, 0), axis=0)  # edges of other members
        own = tl.sum(tl.where(each == member, count, 0), axis=0)
        at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        inside = at < nodes
        slot = (member * nodes + at).to(tl.int64)
        graphs = members * size
        low = _count_up_to(segments + graphs + member * size, size, slot, STEPS)
        here = inside & (low < size)
        own_graph = member * size + tl.minimum(low, size - 1)
        tl.store(graph + slot, own_graph, mask=inside)
        tl.store(alive + slot, here, mask=inside)
        found = tl.where(here, at + tl.load(shifts + own_graph, mask=here, other=0), 0)
        tl.store(node + slot, found, mask=inside)
        if place is not None:
            outside = at + tl.load(shifts + graphs + own_graph, mask=here, other=0)
            tl.store(place + slot, tl.where(here, outside, 0), mask=inside)
        begin = tl.load(row_ptr + found, mask=here, other=0)
        begin += tl.load(shifts + 2 * graphs + own_graph, mask=here, other=0)
        begin = earlier + tl.where(here, begin, own)
        tl.store(new_ptr + slot, begin.to(tl.int32), mask=inside)
        if member == members - 1:  # the last offset is the end
            tl.store(new_ptr + slot + 1, (earlier + own).to(tl.int32), mask=at == nodes - 1)

    @triton.jit
    def _places_kernel(
        new_ptr,
        row_ptr,
        source,
        node,
        column,
        row,
        edge,
        slots,
        edges,
        STEPS: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        """Which edge stands at each place, its source and its target."""
        entry = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = entry < edges
        there = inside & (entry < tl.load(new_ptr + slots))
        target = tl.minimum(_count_up_to(new_ptr + 1, slots, entry, STEPS), slots - 1)
        first = tl.load(new_ptr + target, mask=there, other=0)
        own = tl.load(node + target, mask=there, other=0)
        found = tl.load(row_ptr + own, mask=there, other=0) + (entry - first)
        found = tl.where(there, found, 0)
        began = tl.load(source + found, mask=there, other=0).to(tl.int64)
        # A graph moves as a whole: sources shift as far as their target did.
        began = tl.where(there, began + target - own, slots - 1)
        tl.store(column + entry, began.to(tl.int32), mask=inside)
        tl.store(row + entry, target.to(tl.int32), mask=inside)
        tl.store(edge + entry, found, mask=inside)

    @triton.jit
    def _count_up_to(ends, size, value, STEPS: tl.constexpr):
        """How many of the ``size`` ascending ends are not above each value: a binary search."""
        low = tl.zeros(value.shape, tl.int32)
        high = low + size
        for _ in tl.static_range(STEPS):
            middle = (low + high) // 2
            open = low < high
            below = open & (tl.load(ends + middle, mask=open, other=0) <= value)
            low = tl.where(below, middle + 1, low)
            high = tl.where(open & ~below, middle, high)
        return low

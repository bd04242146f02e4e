"""A batch of fixed shape: which node and edge of all graphs stands where, and one-hot labels.

By index arithmetic, or in one to three launches, where PyTorch's operators take fifty.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lookhops.graphs.features import feature_columns
from lookhops.graphs.indexing import to_offsets
from lookhops.ops.gpu import can_run_on, launch_over, tl, triton
from lookhops.ops.pattern import Pattern

MOST_GRAPHS = 4096  # of a member's batch: one program adds up their sizes
BLOCK = 256  # slots, or edges, that a program takes
ELEMENTS = 2048  # of one-hot labels that a program writes
MOST_COLUMNS, MOST_LABELS = 1024, 16


@dataclass(frozen=True, eq=False)
class Tables:
    """Where the nodes and edges of all graphs stand, on the device, in 64 bits."""

    node_ptr: Tensor  # first node of each graph, and the end
    row_ptr: Tensor  # first edge into each node, and the end
    source: Tensor  # of each edge
    first_node: Tensor | None = None  # of each graph, its number in a larger set


@dataclass(frozen=True, eq=False)
class Layout:
    """A batch for each member: what stands at its slots, members one after the other."""

    node: Tensor  # node of all graphs at each slot, shape (members * nodes); 0 where there is none
    place: Tensor  # its number in the larger set, where there is one
    alive: Tensor  # whether there is a node
    graph: Tensor  # the place of its graph in the batch; padding has the member's last
    segments: Tensor  # first slot of each graph, and the one after its last, (2, members * size)
    pattern: Pattern  # padding edges are loops of the last slot, which is never used
    edge: Tensor  # edge of all graphs at each place of the pattern; 0 where there is none


def lay_out(index: Tensor, tables: Tables, nodes: int, edges: int) -> Layout:
    """Lay out one batch for each member, by index arithmetic alone.

    Args:
        index: Graphs of each member's batch, shape (members, size), -1 for no graph.
        tables: All graphs.
        nodes: Slots of each member.
        edges: Places for the edges of all members.
    """
    members, size = index.shape
    if can_run_on(index) and size <= MOST_GRAPHS:
        return _lay_out_by_kernels(index, tables, nodes, edges)
    number = index.clamp(min=0)
    first = tables.node_ptr[number]
    count = torch.where(index >= 0, tables.node_ptr[number + 1] - first, 0)
    end = count.cumsum(1)
    start = end - count
    # Each slot's graph in the batch; slots past the last graph are padding.
    slot = torch.arange(nodes, device=index.device).expand(members, -1).contiguous()
    graph = torch.searchsorted(end, slot, right=True)
    alive = graph < size
    graph = graph.clamp(max=size - 1)
    node = torch.where(alive, (first - start).gather(1, graph) + slot, 0)
    place = node
    if tables.first_node is not None:
        shift = tables.first_node[number] - start
        place = torch.where(alive, shift.gather(1, graph) + slot, 0)
    offset = torch.arange(members, device=index.device)[:, None]
    return Layout(
        node.flatten(),
        place.flatten(),
        alive.flatten(),
        (graph + offset * size).flatten(),
        torch.stack((start, end)).add(offset * nodes).flatten(1),
        *_edges(tables, node.flatten(), alive.flatten(), edges),
    )


def _edges(tables: Tables, node: Tensor, alive: Tensor, count: int) -> tuple[Pattern, Tensor]:
    """The edges between the chosen nodes, and the number of each in the whole set."""
    degree = torch.where(alive, tables.row_ptr[node + 1] - tables.row_ptr[node], 0)
    row_ptr = to_offsets(degree)
    entry = torch.arange(count, device=node.device)
    row = torch.searchsorted(row_ptr[1:], entry, right=True).clamp(max=node.numel() - 1)
    there = entry < row_ptr[-1]
    edge = torch.where(there, tables.row_ptr[node[row]] + entry - row_ptr[row], 0)
    # A graph moves as a whole: sources shift as far as their target did.
    column = torch.where(there, tables.source[edge] + row - node[row], node.numel() - 1)
    return Pattern(row_ptr.int(), column.int(), row=row.int()), edge


def _lay_out_by_kernels(index: Tensor, tables: Tables, nodes: int, edges: int) -> Layout:
    members, size = index.shape
    slots, first_node = members * nodes, tables.first_node

    def new(*shape: int, dtype: torch.dtype = torch.long) -> Tensor:
        return torch.empty(*shape, dtype=dtype, device=index.device)

    segments, node, graph = new(2, members * size), new(slots), new(slots)
    place = node if first_node is None else new(slots)
    alive = new(slots, dtype=torch.bool)
    shifts, totals = new(3, members * size), new(members)
    row_ptr, column, row = (new(n, dtype=torch.int) for n in (slots + 1, edges, edges))
    edge = new(edges)
    given, found = (tables.node_ptr, tables.row_ptr, first_node), (segments, shifts, totals)
    sizes = {"SIZE": triton.next_power_of_2(size), "num_warps": 4}
    counts = members * size, size, nodes
    _graphs_kernel[(members,)](index.contiguous(), *given, *found, *counts, **sizes)
    out = (node, None if first_node is None else place, alive, graph, row_ptr)
    sizes = {"STEPS": size.bit_length(), "MEMBERS": triton.next_power_of_2(members)}
    _slots_kernel[members, triton.cdiv(nodes, BLOCK)](
        *found, tables.row_ptr, *out, members, size, nodes, BLOCK=BLOCK, **sizes, num_warps=4
    )
    placed = (row_ptr, tables.row_ptr, tables.source, node, column, row, edge, slots, edges)
    launch_over(_places_kernel, edges, BLOCK, *placed, STEPS=slots.bit_length())
    pattern = Pattern(row_ptr, column, row=row)
    return Layout(node, place, alive, graph, segments, pattern, edge)


def one_hot(labels: Tensor, node: Tensor, sizes: Sequence[int], dtype: torch.dtype) -> Tensor:
    """The one-hot labels of these nodes, shape (m, the sum of the sizes).

    Args:
        labels: Of all nodes, shape (n, labels).
        node: The numbers of those that are wanted, shape (m).
        sizes: How many values each label has.
        dtype: Type of the result.
    """
    rows, columns = node.numel(), sum(sizes)
    few = 0 < len(sizes) <= MOST_LABELS and columns <= MOST_COLUMNS
    if not few or not rows or not can_run_on(labels):
        return feature_columns(None, labels.index_select(0, node), sizes, dtype)
    out = torch.empty(rows, columns, dtype=dtype, device=node.device)
    block = triton.next_power_of_2(columns)
    each = max(ELEMENTS // block, 1)
    starts = tuple(sum(sizes[:i]) for i in range(len(sizes)))
    given = (labels.contiguous(), node, out, starts, rows, columns)
    _one_hot_kernel[(triton.cdiv(rows, each),)](*given, len(sizes), each, block)
    return out


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

    @triton.jit
    def _one_hot_kernel(
        labels,
        node,
        out,
        starts,
        rows,
        columns,
        COUNT: tl.constexpr,
        ROWS: tl.constexpr,
        COLUMNS: tl.constexpr,
    ):
        """One where a column is that of a row's label, else zero."""
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        column = tl.arange(0, COLUMNS)
        live = row < rows
        number = tl.load(node + row, mask=live, other=0).to(tl.int64)
        hit = tl.zeros((ROWS, COLUMNS), tl.float32)
        for i in tl.static_range(COUNT):
            label = tl.load(labels + number * COUNT + i, mask=live, other=0).to(tl.int32)
            hit += (column[None, :] == (starts[i] + label)[:, None]).to(tl.float32)
        place = row.to(tl.int64)[:, None] * columns + column[None, :]
        here = live[:, None] & (column < columns)[None, :]
        tl.store(out + place, hit.to(out.dtype.element_ty), mask=here)

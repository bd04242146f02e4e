"""Which node and which edge of all graphs stands where in a batch of fixed shape."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lookhops.ops import Pattern
from lookhops.training import layout_kernels


@dataclass(frozen=True, eq=False)
class Tables:
    """Where the nodes and edges of all graphs stand, on the device.

    Args:
        node_ptr: First node of each graph, and the end, shape (g + 1), 64-bit.
        row_ptr: First edge into each node, and the end, shape (n + 1), 64-bit.
        source: Source of each edge, shape (e).
        first_node: Where the graphs are some of a larger set: the number there of the first node of
            each, shape (g); else none.
    """

    node_ptr: Tensor
    row_ptr: Tensor
    source: Tensor
    first_node: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Layout:
    """A batch for each member: what stands at its slots, members one after the other.

    Args:
        node: Node of all graphs at each slot, shape (members * nodes); 0 where there is none.
        place: Its number in the larger set, where there is one.
        alive: Whether there is a node.
        graph: The place of its graph in the batch; padding has the member's last.
        segments: First slot of each place in the batch, and the one after its last, shape
            (2, members * size).
        pattern: The edges. Padding edges, past the last row's end, are loops of the last slot,
            which is never used.
        edge: Edge of all graphs at each place of the pattern; 0 where there is none.
    """

    node: Tensor
    place: Tensor
    alive: Tensor
    graph: Tensor
    segments: Tensor
    pattern: Pattern
    edge: Tensor


def lay_out(index: Tensor, tables: Tables, nodes: int, edges: int) -> Layout:
    """Lay out one batch for each member, by index arithmetic alone.

    Args:
        index: Graphs of each member's batch, shape (members, size), -1 for no graph.
        tables: All graphs.
        nodes: Slots of each member.
        edges: Places for the edges of all members.
    """
    if layout_kernels.fits(index):
        given = (tables.node_ptr, tables.row_ptr, tables.source, tables.first_node)
        made = layout_kernels.lay_out(index, *given, nodes, edges)
        node, place, alive, graph, segments, row_ptr, column, row, edge = made
        pattern = _pattern(row_ptr, column, row)
        return Layout(node, place, alive, graph, segments, pattern, edge)
    members, size = index.shape
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


def _edges(tables: Tables, node: Tensor, alive: Tensor, room: int) -> tuple[Pattern, Tensor]:
    """The edges between the chosen nodes, and the number of each in the whole set."""
    degree = torch.where(alive, tables.row_ptr[node + 1] - tables.row_ptr[node], 0)
    row_ptr = torch.cat((degree.new_zeros(1), degree.cumsum(0)))
    entry = torch.arange(room, device=node.device)
    row = torch.searchsorted(row_ptr[1:], entry, right=True).clamp(max=node.numel() - 1)
    there = entry < row_ptr[-1]
    edge = torch.where(there, tables.row_ptr[node[row]] + entry - row_ptr[row], 0)
    # A graph moves as a whole: sources shift as far as their target did.
    column = torch.where(there, tables.source[edge] + row - node[row], node.numel() - 1)
    return _pattern(row_ptr.int(), column.int(), row.int()), edge


def _pattern(row_ptr: Tensor, column: Tensor, row: Tensor) -> Pattern:
    pattern = Pattern(row_ptr, column)
    pattern.__dict__["row"] = row  # known already
    return pattern

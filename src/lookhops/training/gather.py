"""Batches of fixed capacity, gathered on the device that holds the graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np
import torch
from torch import Tensor

from lookhops.encoding import Encoding
from lookhops.encoding.scale import Scale, Scales
from lookhops.encoding.whole import WholeColumns
from lookhops.graphs import Graphs
from lookhops.hops import Adjacency, Pattern
from lookhops.nn import EdgeInputs, GraphNetwork, Level
from lookhops.nn.whole import WholeInputs

NODE_STEP = 256  # capacities are multiples of this: dense layers and kernels take whole blocks
EDGE_STEP = 1024
PIECE = 1024  # batches of a plan that are looked at together


@dataclass(frozen=True)
class Capacity:
    """Room for a batch.

    Args:
        nodes: Nodes of each member.
        edges: Edges of all members.
        entries: Entries of sparse rows, of all members.
        own_edges: Edges of each member, where something is told of edges.
    """

    nodes: int
    edges: int
    entries: int = 0
    own_edges: int = 0

    @classmethod
    def of(
        cls,
        plan: np.ndarray,
        nodes: np.ndarray,
        edges: np.ndarray,
        entries: np.ndarray | None = None,
        tells_edges: bool = False,
    ) -> Capacity:
        """The room that a plan of graphs, shape (members, batches, size), needs.

        Args:
            plan: Numbers of graphs, -1 for none.
            nodes: Nodes of each graph.
            edges: Edges of each graph.
            entries: Entries of each graph's sparse row, shape (members, graphs).
            tells_edges: Whether something is told of edges.
        """

        if plan.shape[1] > PIECE:  # of long plans what is held at a time is bounded
            pieces = np.array_split(plan, -(-plan.shape[1] // PIECE), axis=1)
            found = [cls.of(piece, nodes, edges, entries, tells_edges) for piece in pieces]
            return cls(*(max(each) for each in zip(*map(astuple, found), strict=True)))

        def most(values: np.ndarray, axes: int | tuple[int, ...]) -> int:
            return int(np.where(plan >= 0, values, 0).sum(axes).max(initial=0))

        own_entries = 0
        if entries is not None:
            own = np.take_along_axis(entries, plan.reshape(len(plan), -1), 1)
            own_entries = most(own.reshape(plan.shape), (0, 2))
        own_edges = most(edges[plan], 2) if tells_edges else 0
        return cls(most(nodes[plan], 2), most(edges[plan], (0, 2)), own_entries, own_edges)

    @classmethod
    def likely(
        cls,
        members: int,
        size: int,
        nodes: np.ndarray,
        edges: np.ndarray,
        entries: np.ndarray | None = None,
        tells_edges: bool = False,
    ) -> Capacity:
        """Room that shuffled batches seldom outgrow: four standard deviations above the mean."""

        def above(values: np.ndarray, count: int) -> int:
            count = min(count, len(values) * max(count // size, 1))
            return int(count * values.mean() + 4 * np.sqrt(count) * values.std())

        more = 0 if entries is None else above(entries.flatten(), members * size)
        own_edges = above(edges, size) if tells_edges else 0
        return cls(above(nodes, size), above(edges, members * size), more, own_edges)

    def holds(self, needed: Capacity) -> bool:
        """Whether there is room; one node more than needed, for padding edges to hold on to."""
        enough = self.edges >= needed.edges and self.entries >= needed.entries
        return self.nodes > needed.nodes and enough and self.own_edges >= needed.own_edges

    def grown(self, needed: Capacity) -> Capacity:
        """The next capacity that holds both."""
        nodes = max(self.nodes, needed.nodes + 1)
        others = (
            max(self.edges, needed.edges),
            max(self.entries, needed.entries),
            max(self.own_edges, needed.own_edges),
        )
        rounded = (-(-count // EDGE_STEP) * EDGE_STEP for count in others)
        return Capacity(-(-nodes // NODE_STEP) * NODE_STEP, *rounded)


class Gatherer:
    """Makes levels of fixed shape from packed graphs, by index arithmetic alone.

    Args:
        graphs: All graphs, on the device.
        encoding: What a network is told of nodes and edges.
        model: One of the networks: it says what it reads.
        first_node: Where the graphs are some of a larger set: the number there of the first node of
            each, shape (graphs).
    """

    def __init__(
        self,
        graphs: Graphs,
        encoding: Encoding,
        model: GraphNetwork,
        first_node: Tensor | None = None,
    ) -> None:
        self.graphs = graphs
        self.first_node = first_node
        self.encoding = encoding
        self.uses_edges = model.uses_edges
        self.tells_edges = model.edge_channels > 0
        self.undirected = graphs.is_undirected
        self.symmetric = model.uses_edges and graphs.is_symmetric
        self.node_ptr = graphs.node_ptr.long()
        self.row_ptr = graphs.row_ptr.long()

    def __call__(self, index: Tensor, room: Capacity, dtype: torch.dtype, scales: Scales) -> Level:
        """A level with one batch for each member.

        Args:
            index: Graphs of each member's batch, shape (members, size), -1 for no graph.
            room: Shapes to fill.
            dtype: Type of the features.
            scales: The members' scales of numbers.
        """
        members, size = index.shape
        number = index.clamp(min=0)
        first = self.node_ptr[number]
        count = torch.where(index >= 0, self.node_ptr[number + 1] - first, 0)
        end = count.cumsum(1)
        start = end - count
        # Each slot's graph in the batch; slots past the last graph are padding.
        slot = torch.arange(room.nodes, device=index.device).expand(members, -1).contiguous()
        graph = torch.searchsorted(end, slot, right=True)
        alive = graph < size
        graph = graph.clamp(max=size - 1)
        node = torch.where(alive, (first - start).gather(1, graph) + slot, 0)
        place = node
        if self.first_node is not None:
            shift = self.first_node[number] - start
            place = torch.where(alive, shift.gather(1, graph) + slot, 0)
        offset = torch.arange(members, device=index.device)[:, None]
        pattern, old = self._edges(node.flatten(), alive.flatten(), room.edges)
        x = self.encoding.columns(self.graphs, node.flatten(), dtype, scales.nodes)
        return Level(
            x=x.view(members, room.nodes, -1),
            adjacency=self._adjacency(pattern, old, dtype),
            graph=(graph + offset * size).flatten(),
            num_graphs=members * size,
            alive=alive.flatten(),
            segments=torch.stack((start, end)).add(offset * room.nodes).flatten(1),
            place=place.flatten(),
            edges=self._edge_inputs(pattern, old, members, room, dtype, scales.edges),
        )

    def _adjacency(self, pattern: Pattern, old: Tensor, dtype: torch.dtype) -> Adjacency:
        """The edges with their weights, where they have any."""
        weight = self.encoding.edge_weight(self.graphs, old, dtype) if self.uses_edges else None
        symmetric = self.undirected if weight is None else self.symmetric
        return Adjacency(pattern, weight, symmetric=symmetric)

    def _edge_inputs(
        self,
        pattern: Pattern,
        old: Tensor,
        members: int,
        room: Capacity,
        dtype: torch.dtype,
        scale: Scale | None,
    ) -> EdgeInputs | None:
        """What is told of the edges, a slice for each member.

        Args:
            pattern: The edges of all members.
            old: Number of each in the whole set.
            members: Number of members.
            room: Shapes to fill.
            dtype: Type of the columns.
            scale: The members' scales of the edges' numbers.
        """
        if not self.tells_edges:
            return None
        first = pattern.row_ptr[:: room.nodes][:members].long()  # edge of each member
        slot = torch.arange(room.own_edges, device=old.device)
        edge = (first[:, None] + slot).clamp(max=old.numel() - 1)  # past its end: anybody's
        columns = self.encoding.edge_columns(self.graphs, old[edge].flatten(), dtype, scale)
        member = pattern.row.long() // room.nodes
        place = torch.arange(old.numel(), device=old.device) - first[member]
        place = member * room.own_edges + place.clamp(max=room.own_edges - 1)
        return EdgeInputs(columns.view(members, room.own_edges, -1), place, self.symmetric)

    def _edges(self, node: Tensor, alive: Tensor, room: int) -> tuple[Pattern, Tensor]:
        """The edges between the chosen nodes, and the number of each in the whole set.

        Padding edges are loops of the last, unused node.
        """
        degree = torch.where(alive, self.row_ptr[node + 1] - self.row_ptr[node], 0)
        row_ptr = torch.cat((degree.new_zeros(1), degree.cumsum(0)))
        entry = torch.arange(room, device=node.device)
        row = torch.searchsorted(row_ptr[1:], entry, right=True).clamp(max=node.numel() - 1)
        there = entry < row_ptr[-1]
        old = torch.where(there, self.row_ptr[node[row]] + entry - row_ptr[row], 0)
        # A graph moves as a whole: sources shift as far as their target did.
        column = torch.where(there, self.graphs.source[old] + row - node[row], node.numel() - 1)
        pattern = Pattern(row_ptr.int(), column.int())
        pattern.__dict__["row"] = row.int()  # known already
        return pattern, old


class WholeGatherer:
    """Makes what a batch tells of whole graphs, for the members of a stack.

    Args:
        members: The graphs as each member is told of them.
        sizes: Size of each member's vocabulary; the tables of a stack are as long as the longest.
    """

    def __init__(self, members: Sequence[WholeColumns], sizes: Sequence[int]) -> None:
        self.totals = self.indices = self.offsets = None
        #: Entries of each graph, shape (members, graphs), in main memory.
        self.counts: np.ndarray | None = None
        totals = [member.totals for member in members if member.totals is not None]
        if totals:
            self.totals = torch.stack(totals)
        rows = [member.rows for member in members if member.rows is not None]
        if rows:
            longest = max(sizes)
            self.counts = torch.stack([one.offsets.diff() for one in rows]).cpu().numpy()
            self.indices = torch.cat([one.indices + i * longest for i, one in enumerate(rows)])
            ends = torch.tensor([0] + [one.indices.numel() for one in rows]).cumsum(0)
            parts = [one.offsets[:-1] + int(ends[i]) for i, one in enumerate(rows)]
            self.offsets = torch.cat((*parts, ends[-1:].to(self.indices.device)))
            self.graphs, self.ends = len(rows[0]), ends[:-1].to(self.indices.device)

    def one(self, index: Tensor) -> WholeInputs:
        """What is told of the graphs at ``index``, shape (size), of a stack of one member."""
        room = 0 if self.counts is None else int(self.counts[0, index.cpu().numpy()].sum())
        made = self(index[None], room)
        totals = None if made.totals is None else made.totals[0]
        return replace(made, number=made.number[0], totals=totals)

    def __call__(self, index: Tensor, room: int) -> WholeInputs:
        """What is told of the graphs at ``index``, shape (members, size), -1 for no graph.

        Args:
            index: Graphs of each member's batch.
            room: Entries to make room for.
        """
        number = index.clamp(min=0)
        totals = None if self.totals is None else self._totals_of(number)
        if self.indices is None or self.offsets is None:
            return WholeInputs(self._numbers(number), totals)
        old_row = self._rows(number).flatten()
        first = self.offsets[old_row]
        count = torch.where(index.flatten() >= 0, self.offsets[old_row + 1] - first, 0)
        offsets = torch.cat((count.new_zeros(1), count.cumsum(0)))
        entry = torch.arange(room, device=index.device)
        row = torch.searchsorted(offsets[1:], entry, right=True).clamp(max=count.numel() - 1)
        there = entry < offsets[-1]
        old = torch.where(there, first[row] + entry - offsets[row], 0)
        place = old - self._before(old_row, row, index.shape[1])
        return WholeInputs(self._numbers(number), totals, self.indices[old], offsets, row, place)

    def _numbers(self, number: Tensor) -> Tensor:
        """Numbers of graphs in the whole set."""
        return number

    def _totals_of(self, number: Tensor) -> Tensor:
        assert self.totals is not None
        wide = number.unsqueeze(-1).expand(-1, -1, self.totals.shape[-1])
        return self.totals.gather(1, wide)

    def _rows(self, number: Tensor) -> Tensor:
        """The sparse rows of the members' graphs: those of all graphs, member after member."""
        member = torch.arange(len(number), device=number.device)[:, None]
        return number + member * self.graphs

    def _before(self, old_row: Tensor, row: Tensor, size: int) -> Tensor:
        """How far an entry's number here is above that among all entries of its member."""
        return self.ends[row // size]


class WindowWholeGatherer(WholeGatherer):
    """The same for a window of a larger set, in which every graph is of one member.

    Args:
        number: Number of each graph in the whole set, shape (g).
        totals: Its totals, shape (g, q), or none.
        indices: The neighbourhood of each entry, graph after graph, or none.
        offsets: First entry of each graph, and the end, shape (g + 1), or none.
        first_entry: Number of that entry among all of its member's, shape (g), or none.
    """

    def __init__(
        self,
        number: Tensor,
        totals: Tensor | None,
        indices: Tensor | None,
        offsets: Tensor | None,
        first_entry: Tensor | None,
    ) -> None:
        self.counts = None
        self.number, self.totals = number, totals
        self.indices, self.offsets, self.first_entry = indices, offsets, first_entry

    def _numbers(self, number: Tensor) -> Tensor:
        return self.number[number]

    def _totals_of(self, number: Tensor) -> Tensor:
        assert self.totals is not None
        return self.totals[number]

    def _rows(self, number: Tensor) -> Tensor:
        return number

    def _before(self, old_row: Tensor, row: Tensor, size: int) -> Tensor:
        assert self.offsets is not None
        assert self.first_entry is not None
        return (self.offsets[old_row] - self.first_entry[old_row])[row]

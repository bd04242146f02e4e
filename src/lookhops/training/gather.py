"""Batches, and what they hold of whole graphs, gathered on the device that holds the graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from lookhops.encoding import Encoding
from lookhops.encoding.graph_encoding import GraphColumns
from lookhops.encoding.scale import Scale, Scales
from lookhops.graphs import Graphs
from lookhops.graphs.indexing import segment_of
from lookhops.nn import EdgeInputs, GraphBatch, GraphNetwork
from lookhops.ops import Adjacency, Pattern
from lookhops.ops.batch import WholeInputs
from lookhops.ops.layout import Tables, lay_out
from lookhops.training.batches import Capacity, makes_links


class Gatherer:
    """Makes batches of fixed shape from packed graphs, by index arithmetic alone.

    Args:
        graphs: All graphs, on the device.
        encoding: The columns of nodes and edges that a network reads.
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
        self.encoding = encoding
        self.uses_edges = model.uses_edges
        self.tells_edges = model.edge_channels > 0
        #: Whether links between nodes get room for all that there could be: steps over such batches
        #: can be recorded, which only pays on a GPU.
        self.room_for_links = makes_links(model) and graphs.device.type == "cuda"
        self.undirected = graphs.is_undirected
        self.symmetric = model.uses_edges and graphs.is_symmetric
        ends = graphs.node_ptr.long(), graphs.row_ptr.long()
        self.tables = Tables(*ends, graphs.source, first_node)

    def __call__(
        self, index: Tensor, room: Capacity, dtype: torch.dtype, scales: Scales
    ) -> GraphBatch:
        """A batch with one batch for each member.

        Args:
            index: Graphs of each member's batch, shape (members, size), -1 for no graph.
            room: Shapes to fill.
            dtype: Type of the features.
            scales: The members' scales of numbers.
        """
        members, size = index.shape
        made = lay_out(index, self.tables, room.nodes, room.edges)
        x = self.encoding.encode_nodes(self.graphs, made.node, dtype, scales.nodes)
        return GraphBatch(
            x=x.view(members, room.nodes, -1),
            adjacency=self._adjacency(made.pattern, made.edge, dtype),
            graph=made.graph,
            num_graphs=members * size,
            alive=made.alive,
            segments=made.segments,
            place=made.place,
            edges=self._edge_inputs(made.pattern, made.edge, members, room, dtype, scales.edges),
            largest=room.largest,
            extent=room.extent(members, members * size) if self.room_for_links else None,
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
        """The features of the edges, a slice for each member.

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
        columns = self.encoding.encode_edges(self.graphs, old[edge].flatten(), dtype, scale)
        member = pattern.row.long() // room.nodes
        place = torch.arange(old.numel(), device=old.device) - first[member]
        place = member * room.own_edges + place.clamp(max=room.own_edges - 1)
        return EdgeInputs(columns.view(members, room.own_edges, -1), place, self.symmetric)


class WholeGatherer:
    """Gathers the features of whole graphs, for the members of a stack.

    Args:
        members: The features of whole graphs, in the columns of each member.
        sizes: Size of each member's vocabulary; the tables of a stack are as long as the longest.
    """

    def __init__(self, members: Sequence[GraphColumns], sizes: Sequence[int]) -> None:
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
        """Those of the graphs at ``index``, shape (size), of a stack of one member."""
        room = 0 if self.counts is None else int(self.counts[0, index.cpu().numpy()].sum())
        made = self(index[None], room)
        totals = None if made.totals is None else made.totals[0]
        return replace(made, number=made.number[0], totals=totals)

    def every(self, number: Tensor) -> WholeInputs:
        """:meth:`one` of all graphs in their order, of which nothing has to be gathered.

        Args:
            number: Their numbers.
        """
        totals = None if self.totals is None else self.totals[0]
        if self.indices is None or self.offsets is None:
            return WholeInputs(number, totals)
        place = torch.arange(self.indices.numel(), device=self.indices.device)
        row = segment_of(self.offsets, self.indices.numel())
        return WholeInputs(number, totals, self.indices, self.offsets, row, place)

    def __call__(self, index: Tensor, room: int) -> WholeInputs:
        """Those of the graphs at ``index``, shape (members, size), -1 for no graph.

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

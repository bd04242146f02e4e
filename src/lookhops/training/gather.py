"""Batches, and what they hold of whole graphs, gathered on the device that holds the graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from lookhops.encoding import Encoding
from lookhops.encoding.graph_encoding import GraphColumns
from lookhops.encoding.scale import Scale, Scales
from lookhops.graphs import Graphs
from lookhops.graphs.indexing import segment_of, to_offsets
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
        weight = None
        if self.uses_edges:
            weight = self.encoding.edge_weight(self.graphs, made.edge, dtype)
        symmetric = self.undirected if weight is None else self.symmetric
        x = self.encoding.encode_nodes(self.graphs, made.node, dtype, scales.nodes)
        return GraphBatch(
            x=x.view(members, room.nodes, -1),
            adjacency=Adjacency(made.pattern, weight, symmetric=symmetric),
            graph=made.graph,
            num_graphs=members * size,
            alive=made.alive,
            segments=made.segments,
            place=made.place,
            edges=self._edge_inputs(made.pattern, made.edge, members, room, dtype, scales.edges),
            largest=room.largest,
            extent=room.extent(members, members * size) if self.room_for_links else None,
        )

    def _edge_inputs(
        self,
        pattern: Pattern,
        old: Tensor,
        members: int,
        room: Capacity,
        dtype: torch.dtype,
        scale: Scale | None,
    ) -> EdgeInputs | None:
        """The features of the edges, of which ``old`` are the numbers, a slice for each member."""
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


@dataclass(frozen=True, eq=False)
class WholeGatherer:
    """Gathers the features of whole graphs, for the members of a stack.

    Its tables have a row for every graph of every member, member after member; those of a window of
    a larger set, in which each graph is of one member, a row for each graph.

    Args:
        totals: Shape (rows, q), or none.
        indices: The neighbourhood of each entry, row after row, or none.
        offsets: First entry of each row, and the end, shape (rows + 1), or none.
        first_entry: Number of that entry among all of its member's, shape (rows), or none.
        number: Number of each graph in the whole set, shape (rows); none where they are the same.
        stride: Rows of each member, 0 for a window.
        counts: Entries of each graph, shape (members, graphs), in main memory, where known.
    """

    totals: Tensor | None = None
    indices: Tensor | None = None
    offsets: Tensor | None = None
    first_entry: Tensor | None = None
    number: Tensor | None = None
    stride: int = 0
    counts: np.ndarray | None = None

    @classmethod
    def of(cls, members: Sequence[GraphColumns], sizes: Sequence[int]) -> WholeGatherer:
        """Of all graphs.

        Args:
            members: The features of whole graphs, in the columns of each member.
            sizes: Size of each member's vocabulary; tables of a stack are as long as the longest.
        """
        each = [member.totals for member in members if member.totals is not None]
        totals, stride = (torch.cat(each), len(each[0])) if each else (None, 0)
        rows = [member.rows for member in members if member.rows is not None]
        if not rows:
            return cls(totals, stride=stride)
        longest = max(sizes)
        counts = [one.offsets.diff() for one in rows]
        return cls(
            totals,
            torch.cat([one.indices + i * longest for i, one in enumerate(rows)]),
            to_offsets(torch.cat(counts)),
            torch.cat([one.offsets[:-1] for one in rows]),
            stride=len(rows[0]),
            counts=torch.stack(counts).cpu().numpy(),
        )

    def one(self, index: Tensor) -> WholeInputs:
        """Those of the graphs at ``index``, shape (size), of a stack of one member."""
        room = 0 if self.counts is None else int(self.counts[0, index.cpu().numpy()].sum())
        made = self(index[None], room)
        totals = None if made.totals is None else made.totals[0]
        return replace(made, number=made.number[0], totals=totals)

    def every(self, number: Tensor) -> WholeInputs:
        """:meth:`one` of all graphs in their order, of which nothing has to be gathered."""
        if self.indices is None or self.offsets is None:
            return WholeInputs(number, self.totals)
        place = torch.arange(self.indices.numel(), device=self.indices.device)
        row = segment_of(self.offsets, self.indices.numel())
        return WholeInputs(number, self.totals, self.indices, self.offsets, row, place)

    def __call__(self, index: Tensor, room: int) -> WholeInputs:
        """Those of the graphs at ``index``, shape (members, size), -1 for no graph.

        Args:
            index: Graphs of each member's batch.
            room: Entries to make room for.
        """
        graph = index.clamp(min=0)
        own = graph + self.stride * torch.arange(len(graph), device=graph.device)[:, None]
        number = graph if self.number is None else self.number[graph]
        totals = None if self.totals is None else self.totals[own]
        if self.indices is None or self.offsets is None or self.first_entry is None:
            return WholeInputs(number, totals)
        own = own.flatten()
        first = self.offsets[own]
        count = torch.where(index.flatten() >= 0, self.offsets[own + 1] - first, 0)
        offsets = torch.cat((count.new_zeros(1), count.cumsum(0)))
        entry = torch.arange(room, device=index.device)
        row = torch.searchsorted(offsets[1:], entry, right=True).clamp(max=count.numel() - 1)
        there = entry < offsets[-1]
        old = torch.where(there, first[row] + entry - offsets[row], 0)
        place = old - (first - self.first_entry[own])[row]
        return WholeInputs(number, totals, self.indices[old], offsets, row, place)

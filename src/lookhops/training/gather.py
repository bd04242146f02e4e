"""Batches of fixed capacity, gathered on the device that holds the graphs."""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.encoding import Encoding
from lookhops.encoding.scale import Scale, Scales
from lookhops.graphs import Graphs
from lookhops.nn import EdgeInputs, GraphBatch, GraphNetwork
from lookhops.ops import Adjacency, Pattern
from lookhops.ops.layout import Tables, lay_out
from lookhops.training.batches import Capacity, makes_links


class Gatherer:
    """Makes batches of fixed shape from packed graphs, by index arithmetic alone.

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
        columns = self.encoding.encode_edges(self.graphs, old[edge].flatten(), dtype, scale)
        member = pattern.row.long() // room.nodes
        place = torch.arange(old.numel(), device=old.device) - first[member]
        place = member * room.own_edges + place.clamp(max=room.own_edges - 1)
        return EdgeInputs(columns.view(members, room.own_edges, -1), place, self.symmetric)

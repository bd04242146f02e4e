"""A batch of graphs between two layers, and what pooling makes of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.graphs.indexing import to_offsets
from lookhops.ops.adjacency import Adjacency
from lookhops.ops.pattern import group
from lookhops.ops.product import sum_into

#: What rounding, and the layers that it goes through, may have done to a maximum, as a share of it.
NEAR = 1e-4


@dataclass(frozen=True)
class Extent:
    r"""How large the graphs of any batch can be, known without asking the device.

    Of a graph of n nodes a pooling keeps :math:`c = \lceil \rho n \rceil \le \rho n + 1` clusters,
    with at most :math:`c (c - 1) \le \rho^2 n^2 + \rho n` links between them.
    """

    graphs: int
    nodes: int  # that live, of all graphs together
    squares: int  # what the squares of each graph's number of them add up to
    widest: int  # nodes of one graph, dead ones too

    def links(self, ratio: float) -> int:
        """The most links between clusters, where this fraction of the nodes is kept."""
        return int(ratio**2 * self.squares + ratio * self.nodes) + 1

    def kept(self, ratio: float) -> Extent:
        """The extent of these clusters, whose dead nodes keep their places."""
        nodes = int(ratio * self.nodes) + self.graphs
        squares = int(ratio**2 * self.squares + 2 * ratio * self.nodes) + self.graphs
        return replace(self, nodes=nodes, squares=squares)


@dataclass(frozen=True, eq=False)
class EdgeInputs:
    r"""What a batch tells of its edges.

    With stacked members every member's edges have a slice of their own, as long as the longest; the
    adjacency numbers the edges of all members through.

    Args:
        columns: Numbers, then one-hot labels, of each edge, shape :math:`(\ldots, e, f)`.
        place: Where each edge of the adjacency stands in ``columns``, flattened but for the last
            axis; none means that they stand in the same order.
        symmetric: Whether the two directions of every edge have the same features.
    """

    columns: Tensor
    place: Tensor | None = None
    symmetric: bool = False


@dataclass(frozen=True, eq=False)
class WholeInputs:
    r"""What a batch tells of whole graphs: :math:`g` graphs, :math:`e` entries of sparse rows.

    With stacked members the graphs of all members are numbered through, member after member, and
    ``indices`` count through the tables of all members.
    """

    number: Tensor  # of each graph in the whole set, (..., g)
    totals: Tensor | None = None  # (..., g, q)
    indices: Tensor | None = None  # the neighbourhood of each entry, (e)
    offsets: Tensor | None = None  # first entry of each graph, and the end, (g + 1); then padding
    row: Tensor | None = None  # graph of each entry, (e); of padding any
    place: Tensor | None = None  # of each entry in the whole set: its random draws follow from it


@dataclass(frozen=True, eq=False)
class GraphBatch:
    r"""The graph signal G(V, E, X) of the paper, for a whole batch.

    In **compacted** form dropped nodes are gone. In **masked** form every tensor keeps its shape,
    ``alive`` says which nodes still count, and edges that are gone have weight zero.

    Args:
        x: Node features, shape :math:`(\ldots, n, d)`; with leading axes the graphs of all slices
            are numbered through.
        adjacency: The edges.
        graph: Graph of each node, ascending, as long as all slices together.
        num_graphs: Number of graphs, all slices together.
        alive: Which nodes still count, shaped like ``graph``; none means all.
        edge_alive: Which edges still count; none means all.
        segments: First node of each graph and the one after its last, shape (2, graphs), where the
            caller knows it; padding nodes belong to no graph's range.
        place: Number of each node in the whole data set, shaped like ``graph``, from which its
            random draws follow; none numbers the nodes of each slice from 0.
        whole: Inputs of the readings of whole graphs, which pooling leaves alone; or none.
        edges: Features of the edges with which the batch began, or none.
        edge_now: The edge of this batch into which each of those went, -1 for none; none means that
            they are the same.
        largest: The most nodes that a graph has, where the caller knows it, else 0.
        near_ties: Whether nodes that are the largest but for rounding share the gradient of a
            maximum, as an explanation wants it; else those that are equal to the last bit do.
        extent: How large the graphs can be, where the caller knows it: layers that make new edges
            then keep to fixed shapes, in masked form.
    """

    x: Tensor
    adjacency: Adjacency
    graph: Tensor
    num_graphs: int
    alive: Tensor | None = None
    edge_alive: Tensor | None = None
    segments: Tensor | None = None
    place: Tensor | None = None
    whole: WholeInputs | None = None
    edges: EdgeInputs | None = None
    edge_now: Tensor | None = None
    largest: int = 0
    near_ties: bool = False
    extent: Extent | None = None

    @classmethod
    def of(cls, x: Tensor, adjacency: Adjacency, graph: Tensor | None) -> GraphBatch:
        """What a PyG user gave, as a batch; without ``graph`` all nodes are one graph."""
        if graph is None:
            graph = torch.zeros(x.shape[0], dtype=torch.long, device=x.device)
        if graph.shape != x.shape[:1]:
            raise LookHopsError(
                f"batch names the graph of each of the {x.shape[0]} nodes; "
                f"it cannot have shape {tuple(graph.shape)}."
            )
        if torch.compiler.is_compiling():  # no value can be read: allow for a graph a node
            return cls(x, adjacency, graph, x.shape[0])
        return cls(x, adjacency, graph, int(graph.max()) + 1 if graph.numel() else 0)

    @property
    def tolerance(self) -> float:
        """How far below a maximum, as a share of it, nodes may be to share its gradient."""
        return NEAR if self.near_ties else 0.0

    @property
    def bounds(self) -> Tensor:
        """First node of each graph and the one after its last, shape (2, graphs)."""
        if self.segments is not None:
            return self.segments
        numbers = torch.arange(self.num_graphs, device=self.graph.device, dtype=self.graph.dtype)
        start = torch.searchsorted(self.graph, numbers)
        return torch.stack((start, torch.searchsorted(self.graph, numbers, right=True)))

    @property
    def sizes(self) -> Tensor:
        """How many living nodes each graph has, shape (graphs)."""
        return self.graph.new_zeros(self.num_graphs).index_add(0, self.graph, self._counts)

    @property
    def _counts(self) -> Tensor:
        """One for each living node, else zero, shape (n)."""
        return torch.ones_like(self.graph) if self.alive is None else self.alive.to(self.graph)

    @property
    def places(self) -> Tensor:
        """Number of each node in the whole data set, shape (..., n)."""
        if self.place is not None:
            return self.place.view(self.x.shape[:-1])
        return torch.arange(self.x.shape[-2], device=self.x.device).expand(self.x.shape[:-1])

    @property
    def positions(self) -> Tensor:
        """Which of its graph's living nodes each is, from 0 up, and -1 for the dead; shape (n)."""
        start, order = group(self.graph, self.num_graphs)
        alive = self._counts.long()
        before = to_offsets(alive.index_select(0, order))
        first = before.index_select(0, start[:-1]).index_select(0, self.graph)
        position = torch.empty_like(alive).scatter(0, order.long(), before[:-1]) - first
        return torch.where(alive > 0, position, -1)

    def with_x(self, x: Tensor) -> GraphBatch:
        """The same graphs with other features."""
        return replace(self, x=x)

    def with_factors(self, factors: Tensor) -> GraphBatch:
        """The same graphs, their edges multiplied by factors of those with which the batch began.

        The factors have shape (e); an edge that stands for several has the mean of theirs.
        """
        assert self.edges is not None
        adjacency = self.adjacency.times(self._of_edges_now(factors), self.edges.symmetric)
        return replace(self, adjacency=adjacency)

    @property
    def edge_columns(self) -> Tensor | None:
        """Features of each edge of the adjacency, shape (e, f), or none."""
        if self.edges is None:
            return None
        columns, place = self.edges.columns.flatten(0, -2), self.edges.place
        return self._of_edges_now(columns if place is None else columns.index_select(0, place))

    def _of_edges_now(self, values: Tensor) -> Tensor:
        """Values of the edges with which the batch began, as means over those of each edge now."""
        if self.edge_now is None:
            return values
        size = self.adjacency.num_edges
        total = sum_into(values, self.edge_now, size)
        count = sum_into(values.new_ones(len(values)), self.edge_now, size)
        return total / count.clamp(min=1).view(-1, *[1] * (values.dim() - 1))

    def pooled(self, by: Pooled, masked: bool) -> GraphBatch:
        """The next batch, given what a pooling answered; in masked form dead nodes are zero."""
        assert by.x is not None
        zero = by.zeroed or not masked
        batch = self.with_x(by.x if zero else by.x * by.node.view(*by.x.shape[:-1], 1))
        if by.adjacency is None:
            return batch.drop(by.node, by.edge, masked)
        present = by.adjacency.present if masked else None
        batch = replace(batch, adjacency=by.adjacency, edge_alive=present, extent=by.extent)
        if by.edge_cluster is None:  # new edges, which have no features
            batch = replace(batch, edges=None, edge_now=None)
        elif self.edges is not None:
            batch = replace(batch, edge_now=self._edges_went(by.edge_cluster))
        if masked:
            return replace(batch, alive=by.node)
        if by.adjacency.num_nodes < self.adjacency.num_nodes:  # of the nodes that stay alone
            return replace(batch, **self._of_nodes(by.node, self.rows(by.node)))
        every = torch.ones_like(by.adjacency.source, dtype=torch.bool)
        return batch.drop(by.node, every, masked)

    def drop(self, node: Tensor, edge: Tensor, masked: bool) -> GraphBatch:
        """The graphs of these nodes and edges; in masked form all features stay as they are."""
        if masked:
            adjacency = self.adjacency.masked(edge)
            return replace(self, adjacency=adjacency, alive=node, edge_alive=edge)
        kept, stay, edge_now = self.rows(node), edge.nonzero().flatten(), None
        if self.edges is not None:
            edge_now = self._edges_went(torch.where(edge, edge.cumsum(0) - 1, -1))
        return replace(
            self,
            x=self.x.index_select(0, kept),
            adjacency=self.adjacency.compacted(node, edge, kept, stay),
            edge_now=edge_now,
            **self._of_nodes(node, kept),
        )

    def rows(self, node: Tensor) -> Tensor:
        """The rows that are left in compacted form, given which nodes stay."""
        if self.x.dim() != 2:
            raise LookHopsError("Stacked members keep different nodes: pool them with masked=True.")
        return node.nonzero().flatten()  # index_select has the faster gradient

    def _of_nodes(self, node: Tensor, kept: Tensor) -> dict[str, Any]:
        """What is known of the nodes that stay, beside their features and edges."""
        graph, place = (x.index_select(0, kept) for x in (self.graph, self.places))
        segments = self.segments
        if segments is not None:
            before = to_offsets(node.to(segments.dtype))
            segments = before.index_select(0, segments.flatten()).view_as(segments)
        return {"graph": graph, "segments": segments, "place": place}

    def _edges_went(self, number: Tensor) -> Tensor:
        """Where the edges with which the batch began are, given where those of this batch went."""
        if self.edge_now is None:
            return number
        return torch.cat((number, number.new_full((1,), -1)))[self.edge_now]  # -1 is the last


@dataclass(frozen=True, eq=False)
class Pooled:
    """What a pooling answered, in terms of the nodes and edges that it was given.

    Args:
        score: Select: score of each node, flat.
        node: Select: which nodes stay.
        edge: Connect: which of the edges stay.
        x: Reduce: what the nodes carry on, for all nodes, shape (..., n, d); none where only the
            choice was asked for.
        adjacency: Connect: the new edges, for poolings that make new ones: between all nodes, or as
            ``x`` then is, of those that stay alone.
        cluster: Select: the node into which each one went, for poolings that merge nodes.
        loss: What the layer adds to the training loss of each graph, shape (graphs); none adds
            nothing.
        edge_cluster: Connect: the new edge into which each one went, -1 for none, for poolings that
            merge edges.
        extent: Connect: how large the graphs can be now, where that is known.
        zeroed: Reduce: whether ``x`` is zero already at the nodes that go.
    """

    score: Tensor
    node: Tensor
    edge: Tensor
    x: Tensor | None = None
    adjacency: Adjacency | None = None
    cluster: Tensor | None = None
    loss: Tensor | None = None
    edge_cluster: Tensor | None = None
    extent: Extent | None = None
    zeroed: bool = False

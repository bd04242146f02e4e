"""A batch of graphs between two layers, and what pooling makes of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lookhops.errors import LookHopsError
from lookhops.hops import Adjacency


@dataclass(frozen=True, eq=False)
class Level:
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
    """

    x: Tensor
    adjacency: Adjacency
    graph: Tensor
    num_graphs: int
    alive: Tensor | None = None
    edge_alive: Tensor | None = None

    def with_x(self, x: Tensor) -> Level:
        """The same graphs with other features."""
        return replace(self, x=x)

    def keep(self, x: Tensor, node: Tensor, edge: Tensor, masked: bool) -> Level:
        """The graphs of the kept nodes and edges, with features ``x`` (still of all nodes)."""
        if masked:
            x = x * node.view(*x.shape[:-1], 1)
            adjacency = self.adjacency.masked(edge)
            return replace(self, x=x, adjacency=adjacency, alive=node, edge_alive=edge)
        if x.dim() != 2:
            raise LookHopsError("Stacked seeds keep different nodes: pool them with masked=True.")
        adjacency = self.adjacency.compacted(node, edge)
        kept = node.nonzero().flatten()  # index_select has the faster gradient
        return replace(self, x=x.index_select(0, kept), adjacency=adjacency, graph=self.graph[kept])


@dataclass(frozen=True, eq=False)
class Pooled:
    """What a pooling layer decided, in terms of the nodes and edges that it was given.

    Args:
        score: Score of each node, flat.
        node: Which nodes stay.
        edge: Which edges stay.
        cluster: For poolings that merge nodes, the node into which each one went.
    """

    score: Tensor
    node: Tensor
    edge: Tensor
    cluster: Tensor | None = None


def top_of_each(
    score: Tensor, segment: Tensor, num_segments: int, ratio: float, alive: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    r"""The :math:`\lceil \rho m \rceil` highest scores among the :math:`m` of each segment.

    Of equal scores the earlier one ranks higher. Nothing depends on other segments.

    Args:
        score: Shape :math:`(n)`.
        segment: Segment of each element, ascending, shape :math:`(n)`.
        num_segments: How many segments there are.
        ratio: The fraction :math:`\rho` to keep.
        alive: Which elements count at all; none means all.

    Returns:
        The elements by segment and falling score, and which places of that order are kept.
    """
    score = score.detach()
    counted = torch.ones_like(segment, dtype=torch.bool) if alive is None else alive
    score = torch.where(counted, score, -torch.inf)
    order = score.argsort(descending=True, stable=True)
    order = order[segment[order].argsort(stable=True)]
    size = segment.new_zeros(num_segments, dtype=torch.long)
    start = size.index_add(0, segment, torch.ones_like(segment, dtype=torch.long)).cumsum(0)
    count = size.index_add(0, segment, counted.long())
    # Forgive the rounding of ratio * n: 0.7 of 10 is 7, not 7.000000000000001.
    wanted = (count.double() * ratio - 1e-7).ceil().long()
    size_before = torch.cat((start.new_zeros(1), start[:-1]))
    rank = torch.arange(segment.numel(), device=segment.device) - size_before[segment]
    return order, rank < wanted[segment]

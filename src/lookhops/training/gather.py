"""Batches of fixed capacity, gathered on the device that holds the graphs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lookhops.encoding import Encoding
from lookhops.graphs import Graphs
from lookhops.hops import Adjacency, Pattern
from lookhops.nn import Level

NODE_STEP = 256  # capacities are multiples of this: dense layers and kernels take whole blocks
EDGE_STEP = 1024


@dataclass(frozen=True)
class Capacity:
    """Room for a batch: nodes of each member, edges of all members together."""

    nodes: int
    edges: int

    @classmethod
    def of(cls, plan: np.ndarray, nodes: np.ndarray, edges: np.ndarray) -> Capacity:
        """The room that a plan of graphs, shape (members, batches, size), needs."""
        real = plan >= 0
        node_count = np.where(real, nodes[plan], 0).sum(2)
        edge_count = np.where(real, edges[plan], 0).sum((0, 2))
        return cls(int(node_count.max(initial=0)), int(edge_count.max(initial=0)))

    @classmethod
    def likely(cls, members: int, size: int, nodes: np.ndarray, edges: np.ndarray) -> Capacity:
        """Room that shuffled batches seldom outgrow: four standard deviations above the mean."""

        def above(values: np.ndarray, count: int) -> int:
            count = min(count, len(values) * max(count // size, 1))
            return int(count * values.mean() + 4 * np.sqrt(count) * values.std())

        return cls(above(nodes, size), above(edges, members * size))

    def holds(self, needed: Capacity) -> bool:
        """Whether there is room; one node more than needed, for padding edges to hold on to."""
        return self.nodes > needed.nodes and self.edges >= needed.edges

    def grown(self, needed: Capacity) -> Capacity:
        """The next capacity that holds both."""
        nodes = max(self.nodes, needed.nodes + 1)
        edges = max(self.edges, needed.edges)
        return Capacity(-(-nodes // NODE_STEP) * NODE_STEP, -(-edges // EDGE_STEP) * EDGE_STEP)


class Gatherer:
    """Makes levels of fixed shape from packed graphs, by index arithmetic alone."""

    def __init__(self, graphs: Graphs, encoding: Encoding) -> None:
        self.graphs = graphs
        self.encoding = encoding
        self.undirected = graphs.is_undirected
        self.node_ptr = graphs.node_ptr.long()
        self.row_ptr = graphs.row_ptr.long()

    def __call__(self, index: Tensor, room: Capacity, dtype: torch.dtype) -> Level:
        """A level with one batch for each member.

        Args:
            index: Graphs of each member's batch, shape (members, size), -1 for no graph.
            room: Shapes to fill.
            dtype: Type of the features.
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
        offset = torch.arange(members, device=index.device)[:, None]
        pattern = self._edges(node.flatten(), alive.flatten(), room.edges)
        x = self.encoding.columns(self.graphs, node.flatten(), dtype)
        return Level(
            x=x.view(members, room.nodes, -1),
            adjacency=Adjacency(pattern, symmetric=self.undirected),
            graph=(graph + offset * size).flatten(),
            num_graphs=members * size,
            alive=alive.flatten(),
            segments=torch.stack((start, end)).add(offset * room.nodes).flatten(1),
            place=node.flatten(),
        )

    def _edges(self, node: Tensor, alive: Tensor, room: int) -> Pattern:
        """The edges between the chosen nodes; padding edges are loops of the last, unused node."""
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
        return pattern

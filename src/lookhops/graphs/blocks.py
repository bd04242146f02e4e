"""Going through a set of graphs block by block, so that what is held at a time is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from lookhops.graphs.indexing import segment_of

if TYPE_CHECKING:
    from lookhops.graphs.packed import PackedGraphs

#: Nodes and edges of a block, together; a graph that is larger is a block of its own.
BLOCK = 1 << 24


def graph_ranges(graphs: PackedGraphs, most: int = BLOCK) -> Iterator[tuple[int, int]]:
    """First graph of each block, and the one after its last: all graphs, in their order.

    Args:
        graphs: The graphs.
        most: Nodes and edges of a block, together.
    """
    count = len(graphs)
    size = graphs.node_ptr.cpu().numpy().astype(np.int64) + graphs.edge_ptr.cpu().numpy()
    first = 0
    while first < count:
        after = int(np.searchsorted(size, size[first] + most, side="right")) - 1
        after = min(max(after, first + 1), count)
        yield first, after
        first = after


@dataclass(frozen=True, eq=False)
class EdgeBlock:
    """The edges of a block of graphs, whose nodes are numbered from 0.

    Args:
        row_ptr: Edge offsets of the target nodes.
        source: Source node of each edge.
        edges: Where these edges stand among all.
    """

    row_ptr: Tensor
    source: Tensor
    edges: slice

    @property
    def num_nodes(self) -> int:
        """Nodes of the block."""
        return self.row_ptr.numel() - 1

    @cached_property
    def target(self) -> Tensor:
        """Target node of each edge."""
        return segment_of(self.row_ptr, self.source.numel())


def edge_blocks(graphs: PackedGraphs, most: int = BLOCK) -> Iterator[EdgeBlock]:
    """The edges of all graphs, block by block; arguments as for :func:`graph_ranges`."""
    for first, after in graph_ranges(graphs, most):
        node, end = graphs.node_ptr[[first, after]].tolist()
        edges = slice(*graphs.edge_ptr[[first, after]].tolist())
        rows = graphs.row_ptr[node : end + 1] - edges.start
        yield EdgeBlock(rows, graphs.source[edges] - node, edges)

"""Edges of packed graphs in other orders and directions, and block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from lookhops.graphs.indexing import pair_keys, row_offsets, segment_of, spread, stable_argsort

if TYPE_CHECKING:
    from lookhops.graphs import Graphs

#: Nodes and edges of a block, together; a graph that is larger is a block of its own.
BLOCK = 1 << 24


def graph_ranges(graphs: Graphs, most: int = BLOCK) -> Iterator[tuple[int, int]]:
    """First graph of each block, and the one after its last: all graphs, in their order."""
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


def edge_blocks(graphs: Graphs, most: int = BLOCK) -> Iterator[EdgeBlock]:
    """The edges of all graphs, block by block; arguments as for :func:`graph_ranges`."""
    for first, after in graph_ranges(graphs, most):
        node, end = graphs.node_ptr[[first, after]].tolist()
        edges = slice(*graphs.edge_ptr[[first, after]].tolist())
        rows = graphs.row_ptr[node : end + 1] - edges.start
        yield EdgeBlock(rows, graphs.source[edges] - node, edges)


def undirected(graphs: Graphs) -> Graphs:
    """Every edge in both directions; see :meth:`Graphs.undirected`."""
    source = torch.cat((graphs.source, graphs.target)).long()
    target = torch.cat((graphs.target, graphs.source)).long()
    origin = torch.arange(graphs.num_edges, device=graphs.device).repeat(2)
    # The sort is stable: of equal pairs, one given in this direction comes before one turned.
    pairs = pair_keys(source, target, graphs.num_nodes)
    order = stable_argsort(pairs)
    repeated = pairs[order].diff() == 0
    order = torch.cat((order[:1], order[1:][~repeated]))
    return replace(
        graphs,
        source=source[order].to(graphs.source.dtype),
        row_ptr=row_offsets(target[order], graphs.num_nodes),
        edges=graphs.edges.take(origin[order]),
    )


def by_source(graphs: Graphs) -> tuple[Tensor, Tensor]:
    """The edges' order by source, then target, and their nodes' numbers within each graph."""
    order = stable_argsort(pair_keys(graphs.target, graphs.source, graphs.num_nodes))
    start = spread(graphs.node_ptr[:-1], graphs.edge_ptr, graphs.num_edges)
    return order, (graphs.edge_index - start)[:, order]


def as_known(graphs: Graphs, found: Graphs) -> Graphs:
    """``found``, whose edges are some or all of these: what is known of them holds there too."""
    for known in ("is_undirected", "is_symmetric"):
        if graphs.__dict__.get(known):
            found.__dict__[known] = True
    return found


def go_both_ways(graphs: Graphs) -> bool:
    """Whether every edge is there in both directions; see :attr:`Graphs.is_undirected`."""
    return all(_is_own_transpose(block) for block in edge_blocks(graphs))


def _is_own_transpose(block: EdgeBlock) -> bool:
    if block.source.device.type == "cpu":  # SciPy transposes without a sort
        from scipy.sparse import csr_array

        values = np.ones(block.source.numel(), np.bool_)
        there = csr_array(
            (values, block.source.numpy().copy(), block.row_ptr.numpy()),
            shape=(block.num_nodes, block.num_nodes),
        )
        back = there.T.tocsr()
        there.sort_indices()
        rows = np.array_equal(there.indptr, back.indptr)
        return rows and np.array_equal(there.indices, back.indices)
    source, target, nodes = block.source, block.target, block.num_nodes
    keys = pair_keys(source, target, nodes), pair_keys(target, source, nodes)
    return torch.equal(*(key[stable_argsort(key)] for key in keys))


def have_equal_features(graphs: Graphs) -> bool:
    """Whether edges that go both ways have the same features both ways."""
    features = graphs.edges.tensors.values()
    for block in edge_blocks(graphs) if features else ():
        back = stable_argsort(pair_keys(block.target, block.source, block.num_nodes))
        pairs = ((own[block.edges], own[block.edges][back]) for own in features)
        if not all(bool(torch.isclose(*pair, 0, 0, equal_nan=True).all()) for pair in pairs):
            return False
    return True


def number_of_pairs(graphs: Graphs) -> int:
    """Pairs of nodes with an edge in one direction or both."""
    found = 0
    for block in edge_blocks(graphs):
        low, high = block.source.minimum(block.target), block.source.maximum(block.target)
        found += pair_keys(low, high, block.num_nodes).unique().numel()
    return found

"""Edges of packed graphs in other orders and directions, and block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from lookhops.graphs.choosing import slice_of
from lookhops.graphs.indexing import pair_keys, row_offsets, spread, stable_argsort

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


def graph_blocks(graphs: Graphs, most: int = BLOCK) -> Iterator[Graphs]:
    """All graphs, block by block; arguments as for :func:`graph_ranges`."""
    return (slice_of(graphs, *span) for span in graph_ranges(graphs, most))


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


def go_both_ways(graphs: Graphs) -> bool:
    """Whether every edge is there in both directions; see :attr:`Graphs.is_undirected`."""
    return all(map(_is_own_transpose, graph_blocks(graphs)))


def _is_own_transpose(block: Graphs) -> bool:
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
    for block in graph_blocks(graphs) if graphs.edges.width else ():
        back = stable_argsort(pair_keys(block.target, block.source, block.num_nodes))
        pairs = ((rows, rows[back]) for rows in block.edges.tensors.values())
        if not all(bool(torch.isclose(*pair, 0, 0, equal_nan=True).all()) for pair in pairs):
            return False
    return True


def number_of_pairs(graphs: Graphs) -> int:
    """Pairs of nodes with an edge in one direction or both."""
    found = 0
    for block in graph_blocks(graphs):
        low, high = block.source.minimum(block.target), block.source.maximum(block.target)
        found += pair_keys(low, high, block.num_nodes).unique().numel()
    return found

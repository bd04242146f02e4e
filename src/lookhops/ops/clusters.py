"""Links between overlapping clusters of nodes, by sparse products alone."""

from collections.abc import Iterator

import torch
from torch import Tensor

from lookhops.graphs.indexing import counts_of, to_offsets
from lookhops.ops.adjacency import Adjacency
from lookhops.ops.batch import GraphBatch
from lookhops.ops.pattern import Pattern, group
from lookhops.ops.product import SparseMatrix

#: Rows, columns, and values where there are any.
Entries = tuple[Tensor, Tensor, Tensor | None]

#: Numbers in a dense matrix that is held for a moment: in a cache, or in a GPU's large memory.
BUDGET = {"cpu": 1 << 22, "cuda": 1 << 28}


def links_between(
    members: SparseMatrix, weight: Tensor | None, keep: Tensor, batch: GraphBatch
) -> Adjacency:
    r""":math:`A' = S A S^\top` between kept clusters, without its diagonal.

    Clusters of different graphs share no node, so a dense matrix over all nodes needs only as many
    columns as the largest graph has clusters: column c holds the c-th cluster of every graph. In
    that form :math:`A'` takes two sparse products. They are taken for a few graphs at a time, or a
    few columns of a large graph: what is held beside the links themselves stays small.

    Args:
        members: :math:`S`, the share of each node (column) in each cluster (row).
        weight: The entries of :math:`A`, which has the pattern of :math:`S`; none for links without
            weight, wherever :math:`A'` has an entry.
        keep: Which clusters are kept, shape :math:`(n)`; the others' rows are empty.
        batch: The graphs.
    """
    kept, graph = keep.nonzero().flatten(), batch.graph
    if (graph[1:] < graph[:-1]).any():  # graphs that lie apart are taken for one
        graph = torch.zeros_like(graph)
    nodes = torch.bincount(graph, minlength=batch.num_graphs)
    clusters = torch.bincount(graph[kept], minlength=batch.num_graphs)
    first = (clusters.cumsum(0) - clusters)[graph]  # the first cluster of each node's graph
    place = torch.where(keep, keep.cumsum(0) - 1 - first, -1)  # which of its graph's clusters
    pieces = [
        _links(members, weight, place, start, end, width)
        for start, end, width in _runs(nodes.tolist(), clusters.tolist(), BUDGET[keep.device.type])
    ]
    target, column, value = _concatenate(pieces)
    source = kept[first[target] + column]
    apart = (source != target).nonzero().flatten()
    target, source = target.index_select(0, apart), source.index_select(0, apart)
    links = Pattern(to_offsets(counts_of(target, keep.numel())).int(), source.int())
    value = None if value is None else value.index_select(0, apart)
    return Adjacency(links, value, symmetric=batch.adjacency.symmetric)


def _runs(nodes: list[int], clusters: list[int], budget: int) -> Iterator[tuple[int, int, int]]:
    """Runs of graphs that fit the budget: first node, last, and clusters of the largest graph."""
    start = end = width = 0
    for size, count in zip(nodes, clusters, strict=True):
        if end > start and (end + size - start) * max(width, count) > budget:
            yield start, end, width
            start, width = end, 0
        end, width = end + size, max(width, count)
    yield start, end, width


def _links(
    members: SparseMatrix, weight: Tensor | None, place: Tensor, start: int, end: int, width: int
) -> Entries:
    """The entries of A' in the rows from start to end, row by row."""
    every = members.pattern
    entries = slice(*every.row_ptr[[start, end]].tolist())
    row_ptr = every.row_ptr[start : end + 1] - entries.start
    pattern = Pattern(row_ptr, every.column[entries] - start)
    place = place[start:end]
    cluster = place.index_select(0, pattern.row)
    step = max(BUDGET[place.device.type] // max(end - start, 1), 1)
    pieces: list[Entries] = [(place[:0], place[:0], None if weight is None else weight[:0])]
    for left in range(0, width, step):
        shape = (end - start, min(step, width - left))
        entry = ((cluster >= left) & (cluster < left + step)).nonzero().flatten()
        index = (pattern.column[entry].long(), cluster[entry] - left)
        ones = torch.ones_like(entry, dtype=torch.float32)
        there = product(pattern, None, None, ones, index, shape) != 0
        row, column = (there & (place >= 0)[:, None]).nonzero().unbind(1)
        value = None
        if weight is not None and members.value is not None:
            share = members.value[entries]
            value = product(pattern, share, weight[entries], share[entry], index, shape)
            value = value[row, column]
        pieces.append((row + start, column + left, value))
    row, column, value = _concatenate(pieces)
    if len(pieces) > 2:  # the columns of a large graph came a few at a time
        order = group(row - start, end - start)[1]
        row, column = row[order], column[order]
        value = None if value is None else value[order]
    return row, column, value


def product(
    pattern: Pattern,
    share: Tensor | None,
    weight: Tensor | None,
    part: Tensor,
    index: tuple[Tensor, Tensor],
    shape: tuple[int, int],
) -> Tensor:
    """Columns of S A S^T, from the entries of S that belong to these clusters."""
    # Not index_put, which sorts on a GPU.
    flat = index[0] * shape[1] + index[1]
    tall = part.new_zeros(shape[0] * shape[1]).scatter_add(0, flat, part).view(shape)
    return SparseMatrix(pattern, share)(SparseMatrix(pattern, weight)(tall))


def _concatenate(pieces: list[Entries]) -> Entries:
    """All entries together."""
    rows, columns, values = zip(*pieces, strict=True)
    return torch.cat(rows), torch.cat(columns), None if values[0] is None else torch.cat(values)

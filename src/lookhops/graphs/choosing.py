"""Choosing graphs out of a set, joining sets, and edges in both directions, without a loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.graphs.features import OWNERS, join_features
from lookhops.graphs.indexing import (
    elements_of,
    join_texts,
    pair_keys,
    row_offsets,
    spread,
    stable_argsort,
    take,
    to_offsets,
)

if TYPE_CHECKING:
    from lookhops.graphs import Graphs

#: Nodes and edges of a block, together; a graph that is larger is a block of its own.
BLOCK = 1 << 24
Index = int | Tensor | Sequence[int] | np.ndarray | slice


def as_index(index: Index, count: int, device: torch.device) -> Tensor:
    """Numbers of the chosen ones among ``count`` graphs, each from 0."""
    if isinstance(index, slice):
        return torch.from_numpy(np.arange(count)[index].copy()).to(device)
    given = torch.as_tensor(index, device=device)
    if given.dtype == torch.bool:
        if given.shape != (count,):
            raise LookHopsError(f"A mask over {count} graphs needs {count} entries.")
        return given.nonzero().flatten()
    if given.numel() and (given.dim() > 1 or given.is_floating_point()):
        raise LookHopsError("Graphs are chosen by a list of whole numbers, a mask or a slice.")
    given = given.long().flatten()
    outside = given[(given < -count) | (given >= count)]
    if outside.numel():
        raise LookHopsError(f"No graph has number {int(outside[0])}: there are {count}, from 0.")
    return torch.where(given < 0, given + count, given)


def select(graphs: Graphs, index: Index) -> Graphs:
    """The graphs at ``index`` with their columns and ids; see :meth:`Graphs.select`."""
    chosen = as_index(index, len(graphs), graphs.device)
    host = chosen.cpu().numpy() if graphs.columns else None
    columns = {key: column[host] for key, column in graphs.columns.items()}
    ids = graphs.node_ids
    if ids is not None:
        ids = ids.take(elements_of(graphs.node_ptr, chosen)[0].cpu().numpy())
    return replace(gather(graphs, chosen), columns=columns, node_ids=ids)


def gather(graphs: Graphs, index: Tensor) -> Graphs:
    """The graphs with these numbers, without their columns and the ids of their nodes."""
    node, node_ptr, node_shift = elements_of(graphs.node_ptr, index)
    edge, edge_ptr, edge_shift = elements_of(graphs.edge_ptr, index)
    nodes, edges = node.numel(), edge.numel()
    row_ptr = graphs.row_ptr.new_full((nodes + 1,), edges)
    row_ptr[:-1] = graphs.row_ptr.index_select(0, node) - spread(edge_shift, node_ptr, nodes)
    source = graphs.source.index_select(0, edge) - spread(node_shift, edge_ptr, edges)
    _ = graphs.is_undirected  # found out once for all choices
    return graphs.changed(
        node_ptr=node_ptr,
        row_ptr=row_ptr,
        source=source,
        nodes=graphs.nodes.take(node),
        edges=graphs.edges.take(edge),
        whole=graphs.whole.take(index),
        y=take(graphs.y, index),
        columns={},
        node_ids=None,
        skipped=(),
    )


def slice_of(graphs: Graphs, first: int, after: int) -> Graphs:
    """The graphs from ``first`` to before ``after``; only offsets and sources are copied."""
    node, end = graphs.node_ptr[[first, after]].tolist()
    edge, last = graphs.row_ptr[[node, end]].tolist()
    nodes, edges, chosen = slice(node, end), slice(edge, last), slice(first, after)
    return graphs.changed(
        node_ptr=graphs.node_ptr[first : after + 1] - node,
        row_ptr=graphs.row_ptr[node : end + 1] - edge,
        source=graphs.source[edges] - node,
        nodes=graphs.nodes.map(itemgetter(nodes)),
        edges=graphs.edges.map(itemgetter(edges)),
        whole=graphs.whole.map(itemgetter(chosen)),
        y=None if graphs.y is None else graphs.y[chosen],
        columns={key: column[chosen] for key, column in graphs.columns.items()},
        node_ids=None if graphs.node_ids is None else graphs.node_ids.cut(node, end),
        skipped=(),
    )


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


def concatenate(parts: Sequence[Graphs]) -> Graphs:
    """Several sets as one: the graphs of the first, then those of the second, ...

    All must have the same features of nodes and of edges, by the same names. What the sources said
    besides (``columns``) is left out; targets and ids of nodes too, unless every set has them.
    """
    first = parts[0]
    features: dict[str, Any] = {}
    for owner in OWNERS:
        for part in parts:
            if part.features[owner].names != first.features[owner].names:
                raise LookHopsError(
                    f"{part.name} and {first.name} differ in their features ({owner}): they do "
                    "not make one set."
                )
        features[owner] = join_features([part.features[owner] for part in parts])
    same = all(part.targets == first.targets and part.y is not None for part in parts)
    ids = [part.node_ids for part in parts if part.node_ids is not None]
    start = to_offsets(torch.tensor([part.num_nodes for part in parts])).tolist()
    joined = replace(
        first,
        node_ptr=to_offsets(torch.cat([part.node_ptr.diff() for part in parts])),
        row_ptr=to_offsets(torch.cat([part.row_ptr.diff() for part in parts])),
        source=torch.cat([part.source + s for part, s in zip(parts, start[:-1], strict=True)]),
        **features,
        y=torch.cat([part.y for part in parts if part.y is not None]) if same else None,
        targets=first.targets if same else (),
        columns={},
        node_ids=join_texts(ids) if len(ids) == len(parts) else None,
        skipped=(),
    )
    if all(part.__dict__.get("is_undirected") for part in parts):  # known, so known of all
        joined.__dict__["is_undirected"] = True
    return joined


T = TypeVar("T")


class Skipped(NamedTuple):
    """A row of a source, counted from 0, that gave no graph, and why."""

    row: int
    id: str
    reason: str

    def record(self) -> dict[str, str]:
        """The row as JSON can hold it."""
        return {"id": self.id, "skipped": self.reason}


def in_input_order(
    of_graphs: Sequence[T], of_skipped: Sequence[T], rows: Sequence[Skipped]
) -> list[T]:
    """What belongs to the graphs and to the rows that gave none, in the order of the input."""
    if not rows:
        return [*of_graphs]
    skipped = {row.row: value for row, value in zip(rows, of_skipped, strict=True)}
    others = iter(of_graphs)
    total = len(of_graphs) + len(of_skipped)
    return [skipped[row] if row in skipped else next(others) for row in range(total)]


def kept_rows(graphs: Graphs) -> list[int]:
    """The row of each graph in its source."""
    gone = {one.row for one in graphs.skipped}
    return [row for row in range(len(graphs) + len(gone)) if row not in gone]


# -------------------------------------------------------------------- edges


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

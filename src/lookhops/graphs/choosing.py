"""Choosing graphs out of a set, by index arithmetic: nothing loops over graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from lookhops.errors import LookHopsError
from lookhops.graphs.indexing import elements_of, spread, take

if TYPE_CHECKING:
    from lookhops.graphs import Graphs

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


def gather(graphs: Graphs, index: Tensor) -> Graphs:
    """The graphs with these numbers, without their columns."""
    node, node_ptr, node_shift = elements_of(graphs.node_ptr, index)
    edge, edge_ptr, edge_shift = elements_of(graphs.edge_ptr, index)
    nodes, edges = node.numel(), edge.numel()
    row_ptr = graphs.row_ptr.new_full((nodes + 1,), edges)
    row_ptr[:-1] = graphs.row_ptr.index_select(0, node) - spread(edge_shift, node_ptr, nodes)
    source = graphs.source.index_select(0, edge) - spread(node_shift, edge_ptr, edges)
    chosen = replace(
        graphs,
        node_ptr=node_ptr,
        row_ptr=row_ptr,
        source=source,
        attributes=take(graphs.attributes, node),
        labels=take(graphs.labels, node),
        edge_attributes=take(graphs.edge_attributes, edge),
        edge_labels=take(graphs.edge_labels, edge),
        y=take(graphs.y, index),
        columns={},
    )
    if graphs.is_undirected:  # then so is any choice of its graphs: not to be found out again
        chosen.__dict__["is_undirected"] = True
    return chosen

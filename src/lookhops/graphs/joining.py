"""Several sets of graphs as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from lookhops.errors import LookHopsError
from lookhops.graphs.graphs import Graphs
from lookhops.graphs.indexing import to_offsets

_FEATURES = ("num_features", "label_sizes", "num_edge_features", "edge_label_sizes")


def concatenate(parts: Sequence[Graphs]) -> Graphs:
    """Several sets as one: the graphs of the first, then those of the second, ...

    All must have the same features of nodes and of edges. What the sources said besides
    (``columns``) is left out; classes too, unless every set has them.
    """
    first = parts[0]
    for part in parts:
        if any(getattr(part, key) != getattr(first, key) for key in _FEATURES):
            raise LookHopsError(
                f"{part.name} has {part.num_features} features a node and "
                f"{part.num_edge_features} an edge, {first.name} has {first.num_features} and "
                f"{first.num_edge_features}: they do not make one set."
            )
    start = to_offsets(torch.tensor([part.num_nodes for part in parts])).tolist()
    joined = replace(
        first,
        node_ptr=to_offsets(torch.cat([part.node_ptr.diff() for part in parts])),
        row_ptr=to_offsets(torch.cat([part.row_ptr.diff() for part in parts])),
        source=torch.cat([part.source + s for part, s in zip(parts, start[:-1], strict=True)]),
        attributes=_cat([part.attributes for part in parts]),
        labels=_cat([part.labels for part in parts]),
        edge_attributes=_cat([part.edge_attributes for part in parts]),
        edge_labels=_cat([part.edge_labels for part in parts]),
        y=_cat([part.y for part in parts]),
        columns={},
    )
    if all(part.__dict__.get("is_undirected") for part in parts):  # known, so known of all
        joined.__dict__["is_undirected"] = True
    return joined


def _cat(parts: Sequence[Tensor | None]) -> Tensor | None:
    known = [part for part in parts if part is not None]
    return torch.cat(known) if len(known) == len(parts) else None

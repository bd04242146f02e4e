"""A data set repeated: as many graphs as one likes, made by index arithmetic."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from lookhops.graphs import Graphs


def repeated(graphs: Graphs, count: int) -> Graphs:
    """The first ``count`` graphs of a set that is repeated without end."""
    times = -(-count // len(graphs))

    def offsets(ptr: Tensor) -> Tensor:
        shift = torch.arange(times, dtype=ptr.dtype)[:, None] * ptr[-1]
        return torch.cat((ptr[:1], (ptr[1:] + shift).flatten()))

    def rows(values: Tensor | None) -> Tensor | None:
        return None if values is None else values.repeat(times, *[1] * (values.dim() - 1))

    shift = torch.arange(times, dtype=torch.int32)[:, None] * graphs.num_nodes
    whole = replace(
        graphs,
        node_ptr=offsets(graphs.node_ptr),
        row_ptr=offsets(graphs.row_ptr),
        source=(graphs.source + shift).flatten(),
        attributes=rows(graphs.attributes),
        labels=rows(graphs.labels),
        edge_attributes=rows(graphs.edge_attributes),
        edge_labels=rows(graphs.edge_labels),
        y=rows(graphs.y),
        columns={},
        name=f"{graphs.name}, {count:,} graphs",
    )
    nodes = int(whole.node_ptr[count])
    edges = int(whole.row_ptr[nodes])
    cut = {
        name: None if value is None else value[:end].clone()
        for end, names in (
            (count, ("y",)),
            (nodes, ("attributes", "labels")),
            (edges, ("source", "edge_attributes", "edge_labels")),
        )
        for name in names
        for value in (getattr(whole, name),)
    }
    return replace(
        whole, node_ptr=whole.node_ptr[: count + 1], row_ptr=whole.row_ptr[: nodes + 1], **cut
    )

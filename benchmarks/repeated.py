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

    def rows(values: Tensor) -> Tensor:
        return values.repeat(times, *[1] * (values.dim() - 1))

    shift = torch.arange(times, dtype=torch.int32)[:, None] * graphs.num_nodes
    whole = replace(
        graphs,
        node_ptr=offsets(graphs.node_ptr),
        row_ptr=offsets(graphs.row_ptr),
        source=(graphs.source + shift).flatten(),
        nodes=graphs.nodes.map(rows),
        edges=graphs.edges.map(rows),
        y=None if graphs.y is None else rows(graphs.y),
        columns={},
        name=f"{graphs.name}, {count:,} graphs",
    )
    nodes = int(whole.node_ptr[count])
    edges = int(whole.row_ptr[nodes])
    return replace(
        whole,
        node_ptr=whole.node_ptr[: count + 1],
        row_ptr=whole.row_ptr[: nodes + 1],
        source=whole.source[:edges].clone(),
        nodes=whole.nodes.map(lambda own: own[:nodes].clone()),
        edges=whole.edges.map(lambda own: own[:edges].clone()),
        y=None if whole.y is None else whole.y[:count].clone(),
    )

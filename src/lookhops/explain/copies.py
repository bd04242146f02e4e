"""Several copies of a batch side by side: points of a path, and networks of a stack."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from lookhops.nn import Level
from lookhops.ops import Adjacency, Pattern
from lookhops.training.capacity import NODE_STEP


def copies(level: Level, points: int, networks: int | None = None) -> Level:
    """The graphs of a level several times, one copy after the other, with new numbers.

    Features, of nodes and of edges, are left as they are: the caller has those of the copies.

    Args:
        level: The batch, in compacted form.
        points: How many copies.
        networks: Of a stack of networks: each has so many copies, and then as many nodes that do
            not count as kernels take whole blocks. Poolings keep all shapes.
    """
    edges, stack, size = level.adjacency, networks or 1, points * level.adjacency.num_nodes
    assert edges.order is None
    pad = 0 if networks is None else -size % NODE_STEP

    def numbered(values: Tensor, step: int, more: int = 0) -> Tensor:
        """Numbers of each network's copies, (..., networks, m), in each higher by ``step``."""
        first = step * torch.arange(stack * points, dtype=values.dtype, device=values.device)
        first = first.view(stack, points) + more * torch.arange(stack).to(first)[:, None]
        return (values[..., None, None, :] + first[..., None]).flatten(-2)

    def padded(values: Tensor) -> Tensor:
        """Values of nodes; those that do not count have the last one's."""
        return torch.cat((values, values[:, -1:].expand(-1, pad)), 1).flatten()

    ends = edges.pattern.row_ptr
    row_ptr = torch.cat((ends[:1], padded(numbered(ends[1:], edges.num_edges))))
    pattern = Pattern(row_ptr, numbered(edges.source, edges.num_nodes, pad).flatten())
    weight = None if edges.weight is None else edges.weight.repeat(stack * points)
    alive = None
    if networks is not None:
        place = torch.arange(size + pad, device=ends.device)
        alive = (place < size).repeat(networks)
    return replace(
        level,
        adjacency=Adjacency(pattern, weight, symmetric=edges.symmetric),
        graph=padded(numbered(level.graph, level.num_graphs)),
        num_graphs=stack * points * level.num_graphs,
        alive=alive,
        segments=numbered(level.bounds, edges.num_nodes, pad).flatten(1),
        place=None,  # nothing is drawn
        whole=None,
        near_ties=True,  # with average features many nodes are equal but for rounding
        edges=None if level.edges is None else replace(level.edges, place=None),
    )

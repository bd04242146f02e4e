"""Graphs for which rounding decides what a pooling keeps.

Scores within :func:`~lookhops.ops.ranking.nearness` of the last one that is kept count as equal to
it: the same rule in an exported file. Scores that are just so far from it count as equal or not as
the last digits fall, and those are others in every runtime.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.models.export.module import ExportedModel
from lookhops.nn.pool import NodePooling
from lookhops.ops.batch import GraphBatch, Pooled

#: How far two runtimes may be apart, in roundings of the numbers that scores are computed from.
ROUNDINGS = 8
#: How often scores are moved by so much.
DRAWS = 32


def rests_on_rounding(model: ExportedModel, given: Mapping[str, Array]) -> Array:
    """Of which graphs a pooling may keep other nodes or edges in another runtime, shape (g).

    Each pooling decides again with scores that were moved at random by a few roundings.

    Args:
        model: The model; its poolings are watched from here on.
        given: The graphs, as :meth:`~lookhops.models.export.inputs.Inputs.arrays` gives them.
    """
    found = torch.zeros(len(given["graph_sizes"]), dtype=torch.bool)
    for layer in model.modules():
        if isinstance(layer, NodePooling):
            _watch(layer, found)
    with torch.no_grad():
        model(**{name: torch.from_numpy(own.copy()) for name, own in given.items()})
    return found.numpy()


def _watch(pool: NodePooling, found: Tensor) -> None:
    """Mark the graphs whose nodes or edges hang on a few roundings, whenever the layer decides."""
    decide, generator = pool.decide, torch.Generator().manual_seed(0)

    def watched(batch: GraphBatch, score: Tensor, node: Tensor | None = None) -> Pooled:
        pooled = decide(batch, score, node)
        size = pool.size(batch.x)
        size = score.abs() if size is None else size.view_as(score)
        reach = ROUNDINGS * torch.finfo(score.dtype).eps * size
        for _ in range(DRAWS):
            moved = 2 * torch.rand(score.shape, generator=generator, dtype=score.dtype) - 1
            other = decide(batch, score + reach * moved)
            found[batch.graph[other.node != pooled.node]] = True
            found[batch.graph[batch.adjacency.target[other.edge != pooled.edge]]] = True
        return pooled

    pool.decide = watched  # type: ignore[method-assign]

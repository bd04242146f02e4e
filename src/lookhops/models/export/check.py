"""An exported model held against the folder that it was made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.words import counted
from lookhops.encoding.columns import NOT_SEEN, Columns
from lookhops.encoding.scale import Scale
from lookhops.graphs import Graphs
from lookhops.graphs.features import Features
from lookhops.models import Predictor
from lookhops.models.export.module import ExportedModel, Inputs
from lookhops.models.folder import Checkpoint
from lookhops.nn.pool import NodePooling
from lookhops.ops.batch import GraphBatch, Pooled

#: More than rounding does, as a share of the largest answer, or of 1.
NOTABLE = 1e-4
#: Most nodes of a graph that is made up.
MOST_NODES = 100
#: How far two runtimes may be apart, in roundings of the numbers that scores are computed from.
ROUNDINGS = 8
#: How often scores are moved by so much.
DRAWS = 32


@dataclass(frozen=True)
class Difference:
    """How far an exported model is from our own answers.

    Args:
        graphs: How many were compared.
        largest: The largest difference of any answer, but for those graphs that rounding decides;
            of numbers, in the targets' units.
        decided_by_rounding: Graphs with a notable difference for which rounding decides which nodes
            or edges a pooling keeps, in LookHops as elsewhere.
        largest_of_those: Their largest difference.
        is_small: Whether nothing but rounding makes a difference.
    """

    graphs: int
    largest: float
    decided_by_rounding: int
    largest_of_those: float
    is_small: bool

    def __str__(self) -> str:
        """The largest differences."""
        if not self.decided_by_rounding:
            return f"{self.largest:.1e}"
        others = counted(self.decided_by_rounding, "graph")
        return (
            f"{self.largest:.1e}; {self.largest_of_those:.1e} in {others} where rounding decides "
            "what pooling keeps"
        )


def compare(
    predictor: Predictor, run: Callable[[Mapping[str, Array]], Array], graphs: Graphs
) -> Difference:
    """Answers of an exported model (``run``) to graphs, beside those of ours on the CPU."""
    inputs = Inputs.of(predictor.encoding)
    found = run(inputs.arrays(graphs))
    ours = np.concatenate([one.output for one in predictor.predict(graphs).targets], axis=1)
    error = np.abs(found - ours).max(1)
    notable = error > NOTABLE * np.abs(ours).max(initial=1)
    by_rounding = np.zeros_like(notable)
    if notable.any():
        again = graphs[np.flatnonzero(notable)]
        by_rounding[notable] = rests_on_rounding(
            ExportedModel(predictor.checkpoint).eval(), inputs.arrays(again)
        )
    return Difference(
        graphs=len(graphs),
        largest=float(error[~by_rounding].max(initial=0)),
        decided_by_rounding=int(by_rounding.sum()),
        largest_of_those=float(error[by_rounding].max(initial=0)),
        is_small=not (notable & ~by_rounding).any(),
    )


# Scores within lookhops.ops.ranking.nearness of the last one that is kept count as equal to it: the
# same rule in an exported file. Scores that are just so far from it count as equal or not as the
# last digits fall, and those are others in every runtime.


def rests_on_rounding(model: ExportedModel, given: Mapping[str, Array]) -> Array:
    """Of which graphs a pooling may keep other nodes or edges in another runtime, shape (g).

    Each pooling decides again with scores that were moved at random by a few roundings: the model's
    poolings are watched from here on.
    """
    found = torch.zeros(len(given["graph_sizes"]), dtype=torch.bool)
    for layer in model.modules():
        if isinstance(layer, NodePooling):
            _watch(layer, found)
    with torch.no_grad():
        model(**{name: torch.from_numpy(array.copy()) for name, array in given.items()})
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


def made_up(checkpoint: Checkpoint, count: int, seed: int = 0) -> Graphs:
    """Graphs in a model's columns, of the sizes that it was trained on, all else at random.

    Some values of labels are not seen by the model, some numbers are blank, some nodes alone.
    """
    generator = np.random.default_rng(seed)
    low, high = checkpoint.config.get("facts", {}).get("nodes_range", (1, MOST_NODES))
    low = min(max(low, 1), MOST_NODES)
    sizes = generator.integers(low, min(max(high, low), MOST_NODES) + 1, size=count)
    first = np.cumsum(sizes) - sizes
    node = np.arange(sizes.sum())
    start = np.repeat(first, sizes)
    # A tree on most nodes, and a few edges more.
    before = start + (generator.random(len(node)) * (node - start)).astype(int)
    linked = (node > start) & (generator.random(len(node)) < 0.95)
    more = start + (generator.random(len(node)) * np.repeat(sizes, sizes)).astype(int)
    extra = (more != node) & (generator.random(len(node)) < 0.1)
    ends = np.stack(
        (np.concatenate((node[linked], node[extra])), np.concatenate((before[linked], more[extra])))
    )
    pairs = np.unique(np.sort(ends, axis=0), axis=1)
    source, target = (torch.from_numpy(np.concatenate(both)) for both in (pairs, pairs[::-1]))
    encoding, scales = checkpoint.encoding, checkpoint.preprocessing(checkpoint.answering[0]).scales
    return Graphs.from_edges(
        source,
        target,
        torch.from_numpy(sizes),
        nodes=_features(encoding.nodes, encoding.by_name, scales.nodes, len(node), generator),
        edges=_features(
            encoding.edges or Columns(), encoding.by_name, scales.edges, pairs.shape[1], generator
        ).map(lambda columns: columns.repeat(2, 1)),
        whole=_features(encoding.whole or Columns(), True, None, count, generator),
        name="made-up graphs",
        featuriser=encoding.featuriser,
    )


def _features(
    columns: Columns,
    not_seen: bool,
    scale: Scale | None,
    rows: int,
    generator: np.random.Generator,
) -> Features:
    """Labels, and numbers about as large as the training part's; weights are not below zero."""
    values = tuple((*known, NOT_SEEN) if not_seen else known for known in columns.values)
    labels = [generator.integers(0, len(known), size=rows) for known in values]
    numbers = generator.standard_normal((rows, len(columns.numbers)))
    if scale is not None:
        numbers = numbers / np.asarray(scale.factor) + np.asarray(scale.shift)
    if columns.weight is not None:
        weight = columns.numbers.index(columns.weight)
        numbers[:, weight] = np.abs(numbers[:, weight])
    for column, name in enumerate(columns.numbers):
        if name in columns.blanks:
            numbers[generator.random(rows) < 0.1, column] = np.nan
    return Features(
        torch.from_numpy(numbers).float(),
        columns.numbers,
        torch.from_numpy(np.stack(labels, 1)) if labels else None,
        columns.labels,
        values if labels else (),
    )

"""What was answered to test graphs, as a report reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lookhops.arrays import Array
from lookhops.tasks import Classification, Task
from lookhops.tasks.task import Head


@dataclass(frozen=True, eq=False)
class Answers:
    """What the seeds answered to their test graphs: the content of ``predictions.csv``.

    Args:
        seed: Seed of each answer, shape (n).
        graph: Number of the graph, shape (n).
        ids: What the graph is called.
        targets: The truth, of classes their numbers, NaN where it is blank, shape (n, targets).
        values: Calibrated probabilities and numbers, shape (n, channels).
        nodes: Nodes of the graph, shape (n); none in folders of earlier versions.
    """

    seed: Array
    graph: Array
    ids: Sequence[str]
    targets: Array
    values: Array
    nodes: Array | None = None

    def __len__(self) -> int:
        return len(self.seed)

    @property
    def true(self) -> Array:
        """Of one target of classes: number of the true class, shape (n)."""
        return self.targets[:, 0].astype(np.int64)

    @property
    def p(self) -> Array:
        """Of one target of classes: calibrated probabilities, shape (n, classes)."""
        return self.values

    def rows(self, which: Array) -> Answers:
        """The answers in these rows, by their numbers."""
        ids = [self.ids[row] for row in which.tolist()]
        nodes = None if self.nodes is None else self.nodes[which]
        own = self.seed[which], self.graph[which], ids, self.targets[which], self.values[which]
        return Answers(*own, nodes)

    def of_seed(self, seed: int) -> Answers:
        """The answers of one seed."""
        return self.rows(np.flatnonzero(self.seed == seed))

    def of(self, head: Head) -> Answers:
        """The answers to one target, of graphs that have it."""
        column = max(head.column, 0)
        known = self.rows(np.flatnonzero(~np.isnan(self.targets[:, column])))
        targets, values = known.targets[:, [column]], known.values[:, head.channels]
        return Answers(known.seed, known.graph, known.ids, targets, values, known.nodes)


def read_answers(rows: pd.DataFrame, task: Task) -> Answers:
    """The answers in the rows of ``predictions.csv``, whose cells are text."""
    truth, given = columns_of(task)
    targets = [_numbers(rows[name], head) for name, head in zip(truth, task.heads, strict=True)]
    nodes = rows["nodes"].astype(np.int64).to_numpy() if "nodes" in rows else None
    return Answers(
        rows["seed"].astype(np.int64).to_numpy(),
        rows["graph"].astype(np.int64).to_numpy(),
        rows["id"].tolist(),
        np.stack(targets, 1),
        rows[given].astype(float).to_numpy(),
        nodes,
    )


def columns_of(task: Task) -> tuple[list[str], list[str]]:
    """The columns of ``predictions.csv`` that hold the truth, and those with the answers."""
    count = len(task.heads)
    return list(task.columns[:count]), list(task.columns[count:])


def _numbers(cells: pd.Series, head: Head) -> Array:
    """The truth as numbers, of classes their places; NaN where a cell is blank."""
    if not isinstance(head.task, Classification):
        return np.array([float(cell) if cell else np.nan for cell in cells])
    places = {name: float(place) for place, name in enumerate(head.task.class_names)}
    return np.array([places.get(cell, np.nan) for cell in cells])

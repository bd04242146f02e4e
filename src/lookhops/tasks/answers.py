"""What the answers to one target know of themselves, whatever their kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from lookhops.core.arrays import Array
from lookhops.core.charts import Chart
from lookhops.core.words import percent
from lookhops.tasks.metrics import Metric

#: The values of a column of a table, and how they are written out; nothing where they are text.
Column = tuple[Sequence[Any] | np.ndarray, str]


class TargetAnswers(ABC):
    """Answers to one target of some graphs. Subclasses are frozen dataclasses.

    Their lists and arrays have one row a graph.
    """

    name: str  #: of the target; nothing where it is the only one and has none
    models: int  #: how many networks answered: the members of all seeds
    found_in: ClassVar[str]  #: what is answered, and the attribute that has it

    @property
    @abstractmethod
    def output(self) -> Array:
        """The answers by channel, shape (g, channels)."""

    @property
    def chosen(self) -> Array | None:
        """The channel that is answered, shape (g); none where all channels are the answer."""
        return None

    @abstractmethod
    def explained(self, graph: int) -> str:
        """What is explained of a graph: the class that is answered, or the target."""

    @abstractmethod
    def shared(self) -> Array:
        """What an explanation shares out, shape (g): log-odds of the class, or the number."""

    @abstractmethod
    def record(self, graph: int) -> dict[str, Any]:
        """The answer to one graph, as JSON can hold it."""

    @abstractmethod
    def said(self, graph: int, named: bool = False) -> str:
        """The answer to one graph in words; ``named``: with the name of the target."""

    @abstractmethod
    def columns(self, coverage: float) -> dict[str, Column]:
        """The answers as columns of a table; ``coverage``: of sets and intervals."""

    @abstractmethod
    def charts(
        self, truth: Array, ids: Sequence[str], nodes: Array | None, n: str
    ) -> Sequence[Chart]:
        """The answers beside the truth.

        Args:
            truth: Numbers of classes or measured numbers, all known, shape (g).
            ids: What the graphs are called.
            nodes: Their numbers of nodes, where known, shape (g).
            n: Sample sizes, for the captions.
        """

    def rows(self, which: Any) -> Self:
        """The answers to some of the graphs."""
        return rowwise([self], lambda parts: parts[0][which])


def rowwise(parts: Sequence[Any], join: Callable[[list[Any]], Any]) -> Any:
    """A dataclass whose rows (of lists, arrays and further dataclasses) come from some parts."""
    changed: dict[str, Any] = {}
    for own in fields(parts[0]):
        values = [getattr(part, own.name) for part in parts]
        if own.name == "targets":
            each = zip(*values, strict=True)
            changed["targets"] = tuple(rowwise(targets, join) for targets in each)
        elif isinstance(values[0], list | np.ndarray):
            changed[own.name] = join(values)
        elif is_dataclass(values[0]):
            changed[own.name] = rowwise(values, join)
    return replace(parts[0], **changed)


@dataclass(frozen=True, eq=False)
class TestAnswers:
    """What the seeds answered to those of their test graphs whose target is known.

    Args:
        seed: Seed of each answer, shape (n).
        graph: Number of the graph, shape (n).
        ids: What the graph is called.
        truth: Numbers of classes or measured numbers, shape (n).
        values: Calibrated answers, shape (n, channels).
        nodes: Nodes of the graph, where known, shape (n).
    """

    __test__ = False  # not a test of pytest's

    seed: Array
    graph: Array
    ids: Sequence[str]
    truth: Array
    values: Array
    nodes: Array | None

    def __len__(self) -> int:
        return len(self.seed)

    def of_seed(self, seed: int) -> TestAnswers:
        """The answers of one seed."""
        rows = np.flatnonzero(self.seed == seed)
        found: TestAnswers = rowwise([self], lambda parts: np.asarray(parts[0])[rows])
        return found


@dataclass(frozen=True, eq=False)
class Tested:
    """How one target was answered in the tests of a model.

    Args:
        n: Sample sizes, for captions.
        summary: Mean and spread over the seeds of each metric, by its name.
        seeds: Metrics and calibration of each seed.
        overview: What :meth:`Task.overview` says.
        answers: The answers, where they were kept.
    """

    n: str
    summary: Mapping[str, Any]
    seeds: Mapping[int, Mapping[str, Any]]
    overview: Mapping[str, Any]
    answers: TestAnswers | None

    def score(self, metric: Metric) -> str:
        """The mean of a metric over the seeds, as it is written."""
        found = self.summary.get(metric.name)
        return metric.written(found["mean"]) if found else "not known"

    def covered(self, regions: str, more: str) -> str:
        """How often regions held the truth, and more of them; nothing where it is not known."""
        if (coverage := self.summary.get("coverage")) is None:
            return ""
        seeds = " (mean of seeds)" if len(self.seeds) > 1 else ""
        share = percent(coverage["mean"])
        return f" Its 90% {regions} held the truth of {share} of the test graphs{seeds}{more}."

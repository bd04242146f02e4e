"""Answers to one target of some graphs, as records, in words, as columns and as charts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from lookhops.core.arrays import Array, resolving
from lookhops.core.charts import Chart
from lookhops.core.words import percent
from lookhops.tasks.charts import confusion_chart, number_charts, ranking_curves, three_digits
from lookhops.tasks.metrics import Metric, confusion_matrix

if TYPE_CHECKING:
    from lookhops.tasks.task import Head

#: The values of a column of a table, and how they are written out; nothing where they are text.
Column = tuple[Sequence[Any] | np.ndarray, str]
#: Probabilities beyond these log-odds are taken for 0 and 1.
MOST_LOG_ODDS = 20.0


def rowwise(parts: Sequence[Any], join: Callable[[list[Any]], Any]) -> Any:
    """A dataclass whose rows (of lists, arrays and further dataclasses) come from some parts."""
    changed: dict[str, Any] = {}
    for entry in fields(parts[0]):
        values = [getattr(part, entry.name) for part in parts]
        if entry.name == "targets":
            each = zip(*values, strict=True)
            changed["targets"] = tuple(rowwise(targets, join) for targets in each)
        elif isinstance(values[0], list | np.ndarray):
            changed[entry.name] = join(values)
        elif is_dataclass(values[0]):
            changed[entry.name] = rowwise(values, join)
    return replace(parts[0], **changed)


@dataclass(frozen=True, eq=False)
class Ensemble:
    """What all networks of a model answer about one target of some graphs."""

    name: str  #: of the target; nothing where it is the only one
    mean: Array  #: the mean over the seeds of their answers, shape (g, channels)
    alone: Array  #: the answers of each network, shape (networks, g, channels)
    calibrations: Sequence[Mapping[str, float]]  #: those of the seed of each network
    regions: Array | None  #: what :meth:`TargetTask.regions` gave, if anything


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers to one target: lists and arrays have one row a graph."""

    name: str
    spread: Array
    models: int

    def rows(self, which: Any) -> Self:
        """The answers to some of the graphs."""
        return rowwise([self], lambda parts: parts[0][which])


@dataclass(frozen=True, eq=False)
class ClassAnswers(Answers):
    """Answers to which class each graph is of.

    Args:
        name: Of the target; nothing where it is the only one.
        spread: Standard deviation over the networks of the answered class's probability, shape (g).
        models: How many networks answered: the members of all seeds.
        class_names: Names of the classes.
        probabilities: Calibrated, the mean over seeds, shape (g, classes).
        numbers: Number of the class that is answered, shape (g).
        agreement: The share of networks that, asked alone, answer the same class, shape (g).
        sets: Which classes the conformal set holds, shape (g, classes); none where the model has
            no validation answers to make it from.
    """

    class_names: tuple[str, ...]
    probabilities: Array
    numbers: Array
    agreement: Array
    sets: Array | None = None

    #: What is answered, and the attribute that has it.
    found_in: ClassVar[str] = "a class; it is in `classes`"

    @property
    def classes(self) -> list[str]:
        """Name of the class that is answered, for each graph."""
        return [self.class_names[number] for number in self.numbers.tolist()]

    @property
    def output(self) -> Array:
        """The answers by channel, shape (g, channels)."""
        return self.probabilities

    @property
    def chosen(self) -> Array:
        """The channel that is answered, shape (g)."""
        return self.numbers

    def explained(self, graph: int) -> str:
        """What is explained of a graph: the class that is answered."""
        return self.class_names[self.numbers[graph]]

    def shared(self) -> Array:
        """What an explanation shares out, shape (g): log-odds of the class that is answered.

        NaN where they are too large to be known.
        """
        p = self.probabilities[np.arange(len(self.numbers)), self.numbers].astype(np.float64)
        with np.errstate(divide="ignore"):
            odds = np.log(p / (1 - p))
        return np.where(np.abs(odds) <= MOST_LOG_ODDS, odds, np.nan)

    def named_set(self, graph: int) -> list[str]:
        """Names of the classes in a graph's conformal set."""
        held = () if self.sets is None else np.flatnonzero(self.sets[graph])
        return [self.class_names[number] for number in held]

    def record(self, graph: int) -> dict[str, Any]:
        """The answer to one graph, as JSON can hold it."""
        p = self.probabilities[graph].tolist()
        return {
            "class": self.class_names[self.numbers[graph]],
            "probabilities": dict(zip(self.class_names, p, strict=True)),
            **({} if self.sets is None else {"set": self.named_set(graph)}),
            "agreement": float(self.agreement[graph]),
            "spread": float(self.spread[graph]),
        }

    def said(self, graph: int, named: bool = False) -> str:
        """The answer to one graph in words: ``high (62%)``; ``named``: after the target."""
        number = self.numbers[graph]
        said = f"{self.class_names[number]} ({self.probabilities[graph, number]:.0%})"
        return f"{self.name} {said}" if named else said

    def columns(self, coverage: float) -> dict[str, Column]:
        """The class, the probability of each, the set, and how far the networks agree."""
        found: dict[str, Column] = {"predicted": (self.classes, "")}
        for name, column in zip(self.class_names, self.probabilities.T, strict=True):
            found[f"p_{name}"] = column, "%.4f"
        if self.sets is not None:
            found[f"set_{100 * coverage:g}"] = self._sets_in_words(self.sets), ""
        if self.models > 1:
            found |= {"agreement": (self.agreement, "%.2f"), "spread": (self.spread, "%.4f")}
        return found

    def _sets_in_words(self, sets: Array) -> list[str]:
        """The conformal set of each graph in words: few are different."""
        if not len(sets):
            return []
        _, first, which = np.unique(sets, axis=0, return_index=True, return_inverse=True)
        said = np.array([" | ".join(self.named_set(graph)) for graph in first], dtype=object)
        return said[which.ravel()].tolist()

    def charts(self, truth: Array, ids: Sequence[str], nodes: Array | None, n: str) -> list[Chart]:
        """The confusion matrix, and ROC and precision-recall curves.

        Args:
            truth: Numbers of classes, all known, shape (g).
            ids, nodes: What the graphs are called, and their sizes where known.
            n: Sample sizes, for the captions.
        """
        y, names = truth.astype(np.int64), self.class_names
        matrix = confusion_matrix(y, self.numbers, len(names))
        drawn = confusion_chart(matrix, names, f"Confusion matrix. {n}.")
        return [drawn, *ranking_curves(y, self.probabilities, names, n)]


@dataclass(frozen=True, eq=False)
class NumberAnswers(Answers):
    """Answers to how large something is of each graph.

    Args:
        name: Of the target.
        spread: Standard deviation over the networks, shape (g).
        models: How many networks answered: the members of all seeds.
        values: The mean over seeds, shape (g).
        intervals: Lower and upper end of the conformal interval, shape (g, 2); none where the model
            has no validation answers to make it from.
    """

    values: Array
    intervals: Array | None = None

    found_in: ClassVar[str] = "a number; it is in `values`"
    chosen: ClassVar[None] = None  # all channels are the answer

    @property
    def output(self) -> Array:
        """The numbers, shape (g, 1)."""
        return self.values[:, None]

    def explained(self, graph: int) -> str:
        """What is explained of a graph: the target."""
        return self.name

    def shared(self) -> Array:
        """What an explanation shares out: the numbers."""
        return self.values

    def record(self, graph: int) -> dict[str, Any]:
        """The answer to one graph, as JSON can hold it: an end that is not known is none."""
        ends = () if self.intervals is None else self.intervals[graph].tolist()
        return {
            "value": float(self.values[graph]),
            **({"interval": [end if isfinite(end) else None for end in ends]} if ends else {}),
            "spread": float(self.spread[graph]),
        }

    def said(self, graph: int, named: bool = False) -> str:
        """The answer to one graph in words: ``logS −2.31``."""
        return f"{self.name} {three_digits(self.values[graph])}"

    def columns(self, coverage: float) -> dict[str, Column]:
        """The number, its interval, and the spread of the networks."""
        written = resolving(self.values, self.intervals)
        found: dict[str, Column] = {"predicted": (self.values, written)}
        if self.intervals is not None:
            for name, ends in zip(("low", "high"), self.intervals.T, strict=True):
                found[f"{name}_{100 * coverage:g}"] = ends, written
        if self.models > 1:
            found["spread"] = self.spread, "%.4g"
        return found

    def charts(self, truth: Array, ids: Sequence[str], nodes: Array | None, n: str) -> list[Chart]:
        """Predicted against measured, residuals, and the error by the size of graphs."""
        return number_charts(truth, self.values, ids, nodes, self.name, n)


#: Answers to one target of some graphs, by its kind.
TargetAnswers = ClassAnswers | NumberAnswers


@dataclass(frozen=True, eq=False)
class TestAnswers:
    """What the seeds answered to those of their test graphs whose target is known: n rows."""

    __test__ = False  # not a test of pytest's

    seed: Array  #: of each answer
    graph: Array  #: its number
    ids: Sequence[str]  #: what it is called
    truth: Array  #: numbers of classes, or measured numbers
    values: Array  #: calibrated answers, shape (n, channels)
    nodes: Array | None  #: of the graph, where known

    def __len__(self) -> int:
        return len(self.seed)

    def of_seed(self, seed: int) -> TestAnswers:
        """The answers of one seed."""
        found: TestAnswers = rowwise([self], lambda each: np.asarray(each[0])[self.seed == seed])
        return found


@dataclass(frozen=True, eq=False)
class Tested:
    """How one target was answered in the tests of a model."""

    n: str  #: sample sizes, for captions
    summary: Mapping[str, Any]  #: mean and spread over the seeds of each metric, by its name
    seeds: Mapping[int, Mapping[str, Any]]  #: metrics and calibration of each seed
    overview: Mapping[str, Any]  #: what :meth:`Task.overview` says
    answers: TestAnswers | None  #: where they were kept

    @classmethod
    def of(
        cls, metrics: Mapping[str, Any], head: Head, n: str = "", answers: TestAnswers | None = None
    ) -> Tested:
        """What the ``metrics`` of a model hold of one target, under the names of its own task."""
        seeds = {int(seed): head.values(one) for seed, one in metrics["seeds"].items()}
        overview = metrics["targets"][head.name] if head.name else metrics
        return cls(n, head.values(metrics["summary"]), seeds, overview, answers)

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

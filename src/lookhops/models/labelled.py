"""How well a trained model answers graphs whose truth is known."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.reading import called
from lookhops.graphs import Graphs, Target
from lookhops.models.answers import Predictions
from lookhops.models.config import commonest_key
from lookhops.models.predictor import Predictor
from lookhops.sources.splits.given import target_in
from lookhops.tasks import Metric, TargetAnswers
from lookhops.tasks.conformal import COVERAGE
from lookhops.tasks.metrics import COUNTED, LEAST_OF_CLASS, RESAMPLES, exact_interval, interval
from lookhops.tasks.task import Head


@dataclass(frozen=True)
class Measured:
    """Metrics of some graphs, each with the interval of its bootstrap where there is one.

    Args:
        graphs: How many graphs have a truth to compare with.
        values: Each metric by its name, none where it is not defined.
        intervals: The middle 95% of its values in redrawn sets of the graphs. Where redrawn sets
            give the same, as of a share of 0 or 1: the exact binomial interval if it counts graphs,
            else none. None too for metrics over classes where there are ``too_few``.
        too_few: Classes with fewer than 10 graphs, and how many they have: three that happen to be
            right are right in every redrawn set.
    """

    graphs: int
    values: dict[str, float | None]
    intervals: dict[str, list[float] | None]
    too_few: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class TargetEvaluation:
    """How well one target is answered."""

    name: str
    metrics: tuple[Metric, ...]  # in the order of tables
    answers: TargetAnswers
    truth: Array  # numbers of classes or measured numbers, NaN where there is none, shape (g)
    all: Measured
    new: Measured | None  # on graphs that the model has not seen; none where these are all or none


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How well a model answers some graphs.

    Args:
        graphs: The graphs.
        answers: All answers to them.
        targets: How well each target is answered.
        part: Of each graph, shape (g): ``train`` or ``val`` where the model has seen it, else an
            empty text.
        coverage: Of sets and intervals.
    """

    graphs: Graphs
    answers: Predictions
    targets: tuple[TargetEvaluation, ...]
    part: Array
    coverage: float

    def count(self, part: str) -> int:
        """How many graphs were in a part: ``train``, ``val`` or neither (an empty text)."""
        return int((self.part == part).sum())

    def to_dict(self) -> dict[str, Any]:
        """The numbers, as JSON can hold them."""
        return {
            "graphs": len(self.graphs),
            "in_training_part": self.count("train"),
            "in_validation_part": self.count("val"),
            "unlike": int(self.answers.unlike.sum()),
            "coverage_asked": self.coverage,
            "targets": {
                one.name: {"all": vars(one.all), "new": one.new and vars(one.new)}
                for one in self.targets
            },
        }


def evaluate(
    predictor: Predictor,
    graphs: Graphs,
    coverage: float = COVERAGE,
    resamples: int = RESAMPLES,
) -> Evaluation:
    """Compare a model's answers with the truth.

    Args:
        predictor: The model.
        graphs: Graphs with the model's targets; targets that they lack are left out.
        coverage: Of sets and intervals.
        resamples: How often the graphs are redrawn for the intervals.
    """
    if graphs.y is None or not len(graphs):
        raise LookHopsError(
            f"{graphs.name}: the graphs have no target to compare with; in a table, name the "
            "column that has it (--target)."
        )
    read = predictor.read(graphs)
    answers = predictor.predict(read, coverage)
    part = predictor.reference.part_of(read)
    everything = np.ones(len(graphs), dtype=bool)
    new = part == ""
    found = []
    for head, target in zip(predictor.task.heads, answers.targets, strict=True):
        truth = _truth(head, graphs)
        if truth is None:
            continue
        measure = partial(_measured, head, target, truth, _naive(predictor, head), resamples)
        of_new = None if new.all() else measure(new)
        of_new = of_new if of_new is not None and of_new.graphs else None
        name, metrics = head.name or graphs.targets[0].name, _metrics(head, coverage)
        found.append(TargetEvaluation(name, metrics, target, truth, measure(everything), of_new))
    if not any(one.all.graphs for one in found):
        known = ", ".join(target.name for target in graphs.targets)
        raise LookHopsError(
            f"{graphs.name}: no graph has a value of what the model answers; it has {known}."
        )
    return Evaluation(graphs, answers, tuple(found), part, coverage)


def _naive(predictor: Predictor, head: Head) -> Tensor | None:
    """What the networks that answer would answer if they looked at no graph.

    Of several seeds: the mean of their training parts' means, or the commonest class in them all.
    """
    scales, columns = predictor.target_scales, head.fitted or slice(None)
    each = [scales[seed][columns] for seed in predictor.answering if seed in scales]
    commonest = predictor.config.get("commonest", {}).get(commonest_key(head))
    return head.task.typical(each, commonest)


def _truth(head: Head, graphs: Graphs) -> Array | None:
    """The values of a target, shape (g); none where the graphs do not have it."""
    is_only = not head.name and len(graphs.targets) == 1  # whatever it is called
    name = graphs.targets[0].name if is_only else head.title
    if called(name, [target.name for target in graphs.targets]) is None:
        return None
    return target_in(Target(name, head.task.class_names, head.task.words), graphs)[1]


def _metrics(head: Head, coverage: float) -> tuple[Metric, ...]:
    """What is measured of a target."""
    titles = {
        "ece_after": "calibration error",
        "coverage": f"in {100 * coverage:g}% {head.task.regions_are}",
        "set_size": f"classes in a {100 * coverage:g}% set",
        "interval_width": f"{100 * coverage:g}% interval, width",
    }
    titles |= {one.name: f"{titles['coverage']}, {one.of_class}" for one in head.task.class_metrics}
    return tuple(
        replace(metric, title=titles.get(metric.name, metric.title))
        for metric in (*head.task.metrics, *head.task.class_metrics)
        if metric.shown and metric.name != "ece_before"
    )


def _measured(
    head: Head,
    answers: TargetAnswers,
    truth: Array,
    naive: Tensor | None,
    resamples: int,
    which: Array,
) -> Measured:
    """The metrics of the graphs among ``which``, booleans of shape (g), whose truth is known."""

    def measure(rows: Array) -> dict[str, float | None]:
        y = torch.from_numpy(truth[rows])
        without = head.task.naive(y if naive is None else naive, y)
        found = dict.fromkeys(without) if naive is None else without
        return found | head.task.measure(answers.rows(rows), y)

    rows = np.flatnonzero(which & ~np.isnan(truth))
    if not len(rows):
        return Measured(0, {}, {})
    generator = np.random.default_rng(0)
    draws: dict[str, list[float]] = {}
    for _ in range(resamples):
        drawn = rows[generator.integers(len(rows), size=len(rows))]
        for name, value in measure(drawn).items():
            draws.setdefault(name, []).append(np.nan if value is None else value)
    # A redrawn set repeats graphs, and repeats look badly calibrated.
    draws.pop("ece_after", None)
    intervals = {name: interval(np.array(values)) for name, values in draws.items()}
    labels = head.task.count_labels(torch.from_numpy(truth[rows]))
    too_few = {name: count for name, count in labels.items() if 0 < count < LEAST_OF_CLASS}
    values = measure(rows)
    for metric in (*head.task.metrics, *head.task.class_metrics):
        name = metric.name
        if metric.over_classes and too_few:
            intervals[name] = None
        elif (metric.of_class or name in COUNTED) and not intervals.get(name):
            share, count = values.get(name), labels.get(metric.of_class, len(rows))
            intervals[name] = None if share is None else exact_interval(share, count)
    return Measured(len(rows), values, intervals, too_few)

"""What is asked of a graph, as one object: from the head of the network to the page."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.graphs import Graphs
from lookhops.tasks.metrics import Metric

if TYPE_CHECKING:
    from lookhops.tasks.target_task import TargetTask

#: A tensor that may be left out.
Maybe = Tensor | None
#: What turns outputs into answers, fitted on a validation part; JSON can hold it.
Calibration = Mapping[str, float]
#: Metrics by their names, none where one is not defined.
MetricValues = dict[str, float | None]
Tensors = Sequence[Tensor]
Value = TypeVar("Value")
T = TypeVar("T", Tensor, Array, Maybe)


class Task(ABC):
    """What is asked. Subclasses are frozen dataclasses whose fields JSON can hold.

    Methods for training take the network's raw output, shape (..., g, out_channels), work on the
    device of their tensors, over any leading axes (the members of a stack), without asking the
    host. The others take outputs in the units of the targets (:meth:`in_units`), shape
    (g, out_channels), and work in main memory. A graph whose target is blank counts nowhere.

    A task of several targets is made of simple ones; what it is given it hands to them, each its
    own channels. What simple ones say besides is in :class:`TargetTask`.
    """

    kind: ClassVar[str]
    main: ClassVar[Metric]  #: the metric that ranks models
    ranked_by: ClassVar[Metric]  #: what counts in the mean score of several targets
    shares: ClassVar[tuple[str, ...]] = ()  #: further metrics that every record of a run holds
    words: ClassVar[str]  #: what the values are: ``classes``, ``numbers``; ``--task`` takes it
    regions_are: ClassVar[str]  #: what conformal regions are called
    unit: ClassVar[str]  #: what a neighbourhood adds its weight to

    name: str  #: what is asked for
    class_names: tuple[str, ...]  #: the choices; none where there is nothing to choose from

    @property
    @abstractmethod
    def metrics(self) -> tuple[Metric, ...]:
        """All that :meth:`evaluate` and :meth:`naive` measure, in the order of tables."""

    @property
    def watched(self) -> Metric:
        """What :meth:`scores` measures while training."""
        return self.main

    @property
    @abstractmethod
    def heads(self) -> Sequence[Head]:
        """Its targets one by one."""

    @property
    @abstractmethod
    def out_channels(self) -> int:
        """Width of the network's output."""

    def to_dict(self) -> dict[str, Any]:
        """The task as JSON can hold it; :func:`~lookhops.tasks.task_from_dict` reads it."""
        return {"kind": self.kind, **asdict(self)}  # type: ignore[call-overload]

    @abstractmethod
    def targets(self, graphs: Graphs) -> Tensor:
        """What the loss compares with, float64, NaN where blank, shape (g, ...)."""

    @abstractmethod
    def known(self, target: Tensor) -> Tensor:
        """Which graphs have something to learn from, shape (g), booleans."""

    @abstractmethod
    def lacking(self, target: Tensor, train: Tensor) -> str | None:
        """What the training graphs, given by their numbers, lack to learn from; none or words."""

    @abstractmethod
    def fit(self, train_target: Tensor) -> Tensor | None:
        """What is taken from a training part, if anything, 1-D; engines stack it over members."""

    @property
    def fitted_size(self) -> int:
        """How many numbers :meth:`fit` gives; 0 where none."""
        return 0

    @property
    def num_fitted(self) -> int:
        """How many of these answers need too, so that a model keeps them; 0 of classes alone."""
        return self.fitted_size if any(not head.task.class_names for head in self.heads) else 0

    @abstractmethod
    def losses(
        self, output: Tensor, target: Tensor, fitted: Maybe = None, real: Maybe = None
    ) -> tuple[Tensor, Tensor]:
        """Mean loss over the graphs, and the weight of that mean, shapes (...).

        Args:
            output: Shape (..., g, out_channels).
            target: What :meth:`targets` gave, shape (..., g, ...).
            fitted: What :meth:`fit` gave.
            real: Which places hold a graph and not padding, shape (..., g); none means all.
        """

    @abstractmethod
    def scores(
        self, output: Tensor, target: Tensor, fitted: Maybe = None, real: Maybe = None
    ) -> tuple[Tensor, Tensor]:
        """Mean of the watched metric over the graphs, and the weight of that mean, shapes (...)."""

    def in_units(self, output: Tensor, fitted: Tensor | None) -> Tensor:
        """The network's output in the units of the targets; of classes it is as it was."""
        return output

    @abstractmethod
    def calibrate(
        self, output: Tensor, target: Tensor, unseen: Maybe = None, deviation: Maybe = None
    ) -> Calibration:
        """What turns outputs into answers, and how far regions reach, by a validation part.

        Args:
            output: For its graphs.
            target: Theirs.
            unseen: Outputs for the same graphs by networks that these had no part in choosing;
                conformal regions are made from them. By default as ``output``.
            deviation: What :meth:`deviation` gave for these graphs.
        """

    def conformal_scores(
        self, output: Tensor, target: Tensor, calibration: Calibration, deviation: Maybe = None
    ) -> list[Array]:
        """How far the truth of validation graphs is from their answers, for each target."""
        answers = self.answers(output, calibration)
        return [
            head.task.distances(head.of(answers), head.target(target), head.deviation(deviation))
            for head in self.heads
        ]

    def conformal_regions(
        self,
        answers: Array,
        scores: Sequence[Sequence[Array]],
        coverage: float,
        deviations: Sequence[Maybe],
    ) -> list[Array]:
        """Sets or intervals of each target, one row a graph (:mod:`~lookhops.tasks.conformal`).

        Args:
            answers: Those of each seed, shape (seeds, g, channels).
            scores: What :meth:`conformal_scores` gave for each seed's validation part.
            coverage: The probability with which a region is to hold the truth.
            deviations: What :meth:`deviation` gave for the answers of each seed.
        """
        found = []
        for head, of_target in zip(self.heads, zip(*scores, strict=True), strict=True):
            each = [
                as_array(one)[:, 0] for one in map(head.deviation, deviations) if one is not None
            ]
            expected = np.stack(each) if len(each) == len(deviations) else None
            found.append(head.task.regions(head.of(answers), of_target, coverage, expected))
        return found

    def deviation(self, outputs: Sequence[Tensor], variance: Maybe = None) -> Maybe:
        """How far from the truth a model expects its answers to be, float64, shape (g, targets).

        None where it does not say, and NaN for classes, whose probabilities say it.

        Args:
            outputs: Those of each member: the farther they are apart, the less sure is their mean.
            variance: What :meth:`~lookhops.learners.Fitted.variance` says, the mean over members.
        """
        if variance is None and len(outputs) == 1:
            return None
        found = [
            head.task.expected_error([*map(head.of, outputs)], head.of(variance))
            for head in self.heads
        ]
        known = next((one for one in found if one is not None), None)
        if known is None:
            return None
        blank = torch.full_like(known, torch.nan)
        return torch.stack([blank if one is None else one for one in found], -1)

    def average(self, outputs: Sequence[Tensor]) -> Tensor:
        """Outputs of several networks as those of one, whose answers are the mean of theirs."""
        return torch.stack(list(outputs)).mean(0)

    @abstractmethod
    def answers(self, output: Tensor, calibration: Calibration) -> Tensor:
        """Calibrated answers, float64; an empty calibration leaves them as the network has them."""

    @abstractmethod
    def evaluate(
        self, output: Tensor, target: Tensor, by: Calibration | None = None, deviation: Maybe = None
    ) -> MetricValues:
        """Each metric of the outputs.

        Args:
            output: For some graphs.
            target: Theirs.
            by: With a calibration also the metrics about it, and the calibration itself.
            deviation: What :meth:`deviation` gave for these graphs.
        """

    @abstractmethod
    def naive(self, train_target: Tensor, target: Tensor) -> MetricValues:
        """What the commonest class, or the mean, of the training part gets on other targets."""

    def resampled(self, output: Tensor, target: Tensor) -> dict[str, Array]:
        """Bootstrap draws, shape (resamples), of the metrics that are given with an interval."""
        return {}

    def overview(
        self, outputs: Tensors, targets: Tensors, calibrations: Sequence[Calibration] = ()
    ) -> dict[str, Any]:
        """What is said of the test graphs of all seeds together, as JSON can hold it."""
        return {}

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Heads of a table of targets and answers: the targets', then those of the answers."""

    @abstractmethod
    def labels(self, target: Any) -> tuple[str, ...]:
        """One graph's targets, each as a table shows it; empty where it is blank."""

    @property
    @abstractmethod
    def asked(self) -> str:
        """What is known of the graphs: ``in 3 classes``, ``with a measured logS``."""


class Head(NamedTuple):
    """One target of a task, and where its numbers stand."""

    name: str  #: nothing where it is the only one
    task: TargetTask
    column: int = -1  #: among the targets; -1 where it is the only one
    channels: slice = slice(None)  #: of the output and of the answers
    fitted: slice | None = None  #: of what was fitted; none where it takes nothing

    @property
    def title(self) -> str:
        """The name of the target, or of what is asked for."""
        return self.name or self.task.name

    def of(self, outputs: T) -> T:
        """Its own channels of outputs or answers, if there are any."""
        return None if outputs is None else outputs[..., self.channels]

    def target(self, target: Tensor) -> Tensor:
        """Its own target of those that :meth:`Task.targets` gave."""
        return target if self.column < 0 else target[..., self.column]

    def deviation(self, deviation: Maybe) -> Maybe:
        """Its own column of what :meth:`Task.deviation` gave, shape (g, 1)."""
        column = max(self.column, 0)
        return None if deviation is None else deviation[:, column : column + 1]

    def values(self, named: Mapping[str, Value]) -> dict[str, Value]:
        """What metrics or a calibration hold under its name."""
        prefix = self.key("")
        return {k[len(prefix) :]: v for k, v in named.items() if k.startswith(prefix)}

    def named(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """Metrics or a calibration of it as they are called among those of all targets."""
        return {self.key(name): value for name, value in values.items()}

    def key(self, name: str) -> str:
        """What a metric of it is called among those of all targets."""
        return f"{self.name}: {name}" if self.name else name


def as_array(values: Tensor) -> Array:
    """A tensor in main memory as NumPy sees it."""
    return np.asarray(values.detach().cpu())

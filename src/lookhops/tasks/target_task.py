"""What is asked about one target of graphs: the task of a head."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from numpy.random import Generator
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.charts import Chart
from lookhops.graphs import Graphs
from lookhops.graphs.targets import target_columns
from lookhops.tasks.answers import Ensemble, TargetAnswers, Tested
from lookhops.tasks.metrics import Metric
from lookhops.tasks.task import Calibration, Head, Maybe, MetricValues, Task


class TargetTask(Task):
    """What is asked about one target: the task of a head.

    A new kind of question is a subclass, whose fields are among those that
    :func:`lookhops.tasks.task_of` gives, an entry in :data:`lookhops.tasks.KINDS` and, if its
    values are not classes, one in :data:`lookhops.graphs.targets.NUMBERS`.
    """

    loss: str  #: its name
    class_weights: bool  #: whether it weighs classes by their rarity in the training part
    calibrated: tuple[str, ...] = ()  #: what :meth:`calibrate` gives of any validation part

    @property
    def heads(self) -> Sequence[Head]:
        return (Head("", self),)

    def targets(self, graphs: Graphs) -> Tensor:
        """The number of the class, or the number, of each graph, shape (g)."""
        [(_, values)] = target_columns(graphs.y, graphs.targets)
        return torch.from_numpy(values).to(graphs.device)

    def known(self, target: Tensor) -> Tensor:
        return ~target.isnan()

    def weights(self, target: Tensor, real: Maybe, dtype: torch.dtype) -> Tensor:
        """One for each graph whose target is known, zero for others and for padding."""
        return (self.known(target) if real is None else self.known(target) & real).to(dtype)

    @abstractmethod
    def label(self, target: Any) -> str:
        """One graph's target as a table shows it; empty where it is blank."""

    def labels(self, target: Any) -> tuple[str, ...]:
        return (self.label(target),)

    @abstractmethod
    def parse(self, cells: Sequence[str]) -> Array:
        """A column of float64 from labels, NaN where empty; ValueError where one is strange."""

    @property
    def choices(self) -> dict[str, Any]:
        """What a client has to know of the answers beside their name: the classes, if any."""
        return {"classes": list(self.class_names)} if self.class_names else {}

    @abstractmethod
    def in_card(self, name: str, code: Callable[[str], str], most: int) -> str:
        """What is answered, for a model card: ``code`` writes names, at most so many are listed."""

    def decided(self, answers: Array, calibration: Calibration) -> Array | None:
        """The channel that is answered, shape (g); none where all channels are the answer."""
        return None

    @abstractmethod
    def answer(self, given: Ensemble) -> TargetAnswers:
        """What all networks answer together."""

    def expected_error(self, outputs: Sequence[Tensor], variance: Maybe) -> Maybe:
        """Its own :meth:`deviation`, shape (g)."""
        return None

    @abstractmethod
    def distances(self, answers: Tensor, target: Tensor, deviation: Maybe = None) -> Array:
        """Its own :meth:`conformal_scores`, of answers, shape (n, 2) or (n)."""

    @abstractmethod
    def regions(
        self, answers: Array, scores: Sequence[Array], coverage: float, deviation: Any = None
    ) -> Array:
        """Its own :meth:`conformal_regions`; ``deviation`` has shape (seeds, g)."""

    def outputs(self, answers: Array) -> Array:
        """Outputs in the units of the targets, from the numbers that a learner answers with.

        Of classes these are log-probabilities already.
        """
        return answers

    @property
    def class_metrics(self) -> tuple[Metric, ...]:
        """What :meth:`measure` also gives, of the graphs of each class."""
        return ()

    @abstractmethod
    def measure(self, answers: Any, target: Tensor) -> MetricValues:
        """Each metric of the answers to new graphs, whose targets are all known."""

    @abstractmethod
    def typical(self, fitted: Sequence[Tensor], commonest: str | None) -> Tensor | None:
        """The answer that looks at no graph, as a target, shape (1); none where it is not known.

        ``commonest`` is the label that most graphs of all training parts have; none of numbers.
        """

    def count_labels(self, target: Tensor) -> dict[str, int]:
        """How many graphs have each label; nothing of numbers."""
        return {}

    @abstractmethod
    def agreement(self, answers: Any, truth: Array) -> tuple[float, int]:
        """How well answers agree with what :meth:`parse` gave: a sum, and the number of graphs."""

    @abstractmethod
    def agreement_in_words(self, total: float, count: int, when: str) -> str:
        """Sums of :meth:`agreement`: ``20 of 24 as labelled (83.3%)``, the count with ``when``."""

    @abstractmethod
    def sides(self, weight: Array, fitted: Sequence[Tensor]) -> dict[str, Array]:
        """What neighbourhoods add to the answer, shape (f), for each class or way it may go.

        ``weight`` is what each adds to the outputs, shape (f, channels), ``fitted`` of each seed.
        """

    @abstractmethod
    def results(self, tested: Tested) -> str:
        """What the tests of a model have shown, in a sentence or two."""

    def held_by_class(self, overview: Mapping[str, Any]) -> str:
        """How many test graphs of each class have it in their set; empty where not known."""
        return ""

    @abstractmethod
    def charts(self, tested: Tested) -> Sequence[Chart]:
        """Charts of these tests."""

    def redrawn(
        self, truth: Array, values: Array, calibration: Calibration, generator: Generator
    ) -> dict[str, Array]:
        """Bootstrap draws, shape (resamples), of metrics that :meth:`resampled` does not give.

        They are of one seed's test graphs with a known ``truth``, shape (n), and of its answers to
        them, shape (n, channels).
        """
        return {}

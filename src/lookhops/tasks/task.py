"""What is asked of a graph, as one object: head, loss, metrics, labels, what counts as better."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import floor, inf, log10
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookhops.graphs import Graphs
from lookhops.words import MINUS, NONE

#: A tensor that may be left out.
Maybe = Tensor | None
#: What turns outputs into answers, learnt from a validation part; JSON can hold it.
Calibration = Mapping[str, float]


@dataclass(frozen=True)
class Metric:
    """One number about a model's answers.

    Args:
        name: Its key in configs, stores and exports.
        title: What tables call it.
        higher_is_better: Whether more of it is better.
        share: Whether it is a share, from 0 to 1, shown in per cent.
        shown: Whether tables of results have a row for it.
        about_calibration: Whether it is about how sure the answers are, not how right.
    """

    name: str
    title: str
    higher_is_better: bool = True
    share: bool = True
    shown: bool = True
    about_calibration: bool = False

    def written(self, *values: float | None, joint: str = " ± ") -> str:
        """Values of it as tables show them: ``77.5 %``, ``77.5 ± 1.3 %``, ``0.532 ± 0.021``.

        Args:
            values: One, or two that belong together: mean and spread, the ends of an interval.
            joint: What stands between two: ``" to "`` for an interval.

        Returns:
            Shares in per cent with one digit; other numbers with three significant digits of the
            first, in thousands with commas; a dash where there is no value.
        """
        known = [value for value in values if value is not None]
        if not known:
            return NONE
        if self.share:
            texts = [f"{100 * value:.1f}" for value in known]
        else:
            size = abs(known[0])
            digits = 2 - floor(log10(size)) if 0 < size < inf else 2
            texts = [f"{value:,.{max(digits, 0)}f}" for value in known]
        return joint.join(texts).replace("-", MINUS) + (" %" if self.share else "")


class Task(ABC):
    """What is asked. Subclasses are frozen dataclasses whose fields JSON can hold.

    Methods for training take the network's raw output, shape (..., g, out_channels), work on the
    device of their tensors, over any leading axes (the members of a stack), without asking the
    host. The others take outputs in the units of the targets (:meth:`in_units`), shape
    (g, out_channels), and work in main memory. A graph whose target is blank counts nowhere.

    A task of several targets is made of simple ones; what it is given it hands to them, each its
    own channels.
    """

    kind: ClassVar[str]
    main: ClassVar[Metric]  #: the metric that ranks models

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
    def out_channels(self) -> int:
        """Width of the network's output."""

    def to_dict(self) -> dict[str, Any]:
        """The task as JSON can hold it; :func:`~lookhops.tasks.task_from_dict` reads it."""
        return {"kind": self.kind, **asdict(self)}  # type: ignore[call-overload]

    # ---------------------------------------------------------------- training

    @abstractmethod
    def targets(self, graphs: Graphs) -> Tensor:
        """What the loss compares with, shape (g, ...)."""

    @abstractmethod
    def known(self, target: Tensor) -> Tensor:
        """Which graphs have something to learn from, shape (g), booleans."""

    @abstractmethod
    def lacking(self, target: Tensor, train: Tensor) -> str | None:
        """What the training part lacks to learn from, in words; none where it has all.

        Args:
            target: Of all graphs.
            train: Numbers of the training graphs.
        """

    @abstractmethod
    def fit(self, train_target: Tensor) -> Tensor | None:
        """What is taken from a training part, if anything, 1-D; engines stack it over members."""

    @property
    def num_fitted(self) -> int:
        """How many numbers of :meth:`fit` answers need too, and a model keeps; 0 where none."""
        return 0

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

    # ---------------------------------------------------------------- answers

    def in_units(self, output: Tensor, fitted: Tensor | None) -> Tensor:
        """The network's output in the units of the targets; of classes it is as it was."""
        return output

    @abstractmethod
    def calibrate(self, output: Tensor, target: Tensor) -> Calibration:
        """What turns outputs into answers, learnt from a validation part."""

    @abstractmethod
    def answers(self, output: Tensor, calibration: Calibration) -> Tensor:
        """Calibrated answers, float64; an empty calibration leaves them as the network has them."""

    @abstractmethod
    def evaluate(
        self, output: Tensor, target: Tensor, calibration: Calibration | None = None
    ) -> dict[str, float | None]:
        """Each metric by its name, none where it is not defined.

        With a calibration also the metrics about it, and the calibration itself.
        """

    @abstractmethod
    def naive(self, train_target: Tensor, target: Tensor) -> dict[str, float | None]:
        """What an answer that looks at no graph gets: the commonest class, the mean.

        Args:
            train_target: Targets of the training part, which the answer is learnt from.
            target: Those that it is measured on.
        """

    def nonconformity(self, answers: Tensor, target: Tensor) -> NDArray[Any]:
        """How far the targets are from calibrated answers, shape (n), of graphs that have one."""
        return np.zeros(0)

    def regions(
        self,
        answers: NDArray[Any],
        nonconformity: Sequence[NDArray[Any]],
        coverage: float,
    ) -> NDArray[Any] | None:
        """What the truth may be, with a probability of ``coverage`` (:mod:`.conformal`).

        Args:
            answers: Calibrated answers by each of the models, shape (models, g, ...).
            nonconformity: For each model that of its validation part.
            coverage: The probability.

        Returns:
            Of classes, which are in the set, shape (g, classes); of numbers, the ends of an
            interval, shape (g, 2).
        """
        return None

    def resampled(self, output: Tensor, target: Tensor) -> dict[str, NDArray[Any]]:
        """Bootstrap draws, shape (resamples), of the metrics that are given with an interval."""
        return {}

    def overview(self, outputs: Sequence[Tensor], targets: Sequence[Tensor]) -> dict[str, Any]:
        """What is said of the test graphs of all seeds together, as JSON can hold it."""
        return {}

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Heads of a table of targets and answers: the targets', then those of the answers."""

    @abstractmethod
    def label(self, target: Any) -> str:
        """One graph's target as a table shows it; empty where it is blank."""

    def labels(self, target: Any) -> tuple[str, ...]:
        """The same in a cell for each target."""
        return (self.label(target),)


def weights(known: Tensor, real: Tensor | None, dtype: torch.dtype) -> Tensor:
    """One for each graph whose target is known, zero for others and for padding."""
    return (known if real is None else known & real).to(dtype)


def as_array(values: Tensor) -> NDArray[Any]:
    """A tensor in main memory as NumPy sees it."""
    return np.asarray(values.detach().cpu())

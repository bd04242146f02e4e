"""What is asked of a graph, as one object: head, loss, metrics, labels, what counts as better."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import floor, inf, log10
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.words import MINUS, NONE
from lookhops.graphs import Graphs

#: A tensor that may be left out.
Maybe = Tensor | None
#: What turns outputs into answers, learnt from a validation part; JSON can hold it.
Calibration = Mapping[str, float]
Tensors = Sequence[Tensor]


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
        over_classes: Whether every class counts in it alike, however few graphs it has.
    """

    name: str
    title: str
    higher_is_better: bool = True
    share: bool = True
    shown: bool = True
    about_calibration: bool = False
    over_classes: bool = False

    @property
    def scale(self) -> float:
        """What values are multiplied by to be shown: 100 for shares, else 1."""
        return 100.0 if self.share else 1.0

    @property
    def heading(self) -> str:
        """Its title with its unit, above a column of values: ``accuracy, %``."""
        return f"{self.title}, %" if self.share else self.title

    def digits(self, size: float) -> int:
        """Digits after the point of values of about this size: one of shares, else three in all."""
        if self.share:
            return 1
        return max(2 - floor(log10(abs(size))), 0) if 0 < abs(size) < inf else 2

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
        digits = self.digits(known[0])
        texts = [f"{self.scale * value:,.{digits}f}" for value in known]
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
    def heads(self) -> Sequence[Head]:
        """Its targets one by one; of a simple task itself."""
        return (Head("", self),)

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
    def calibrate(self, output: Tensor, target: Tensor, unseen: Maybe = None) -> Calibration:
        """What turns outputs into answers, learnt from a validation part.

        Args:
            output: For its graphs.
            target: Theirs.
            unseen: Outputs for the same graphs by networks that these had no part in choosing;
                conformal regions are learnt from them. By default as ``output``.
        """

    def average(self, outputs: Sequence[Tensor]) -> Tensor:
        """Outputs of several networks as those of one, whose answers are the mean of theirs."""
        return torch.stack(list(outputs)).mean(0)

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
    def label(self, target: Any) -> str:
        """One graph's target as a table shows it; empty where it is blank."""

    def labels(self, target: Any) -> tuple[str, ...]:
        """The same in a cell for each target."""
        return (self.label(target),)


class Head(NamedTuple):
    """One target of a task, and where its numbers stand.

    Args:
        name: Of the target; nothing where it is the only one.
        task: What is asked of it.
        column: Its place among the targets; -1 where it is the only one.
        channels: Its channels of the output and of the answers.
        fitted: Its places in what was fitted; none where it takes nothing.
    """

    name: str
    task: Any
    column: int = -1
    channels: slice = slice(None)
    fitted: slice | None = None

    def target(self, target: Tensor) -> Tensor:
        """Its own target of those that :meth:`Task.targets` gave, as its task has it."""
        return target if self.column < 0 else self.task.as_target(target[..., self.column])

    def calibration(self, calibration: Calibration) -> Calibration:
        """What a calibration holds under its name."""
        prefix = self.key("")
        return {k[len(prefix) :]: v for k, v in calibration.items() if k.startswith(prefix)}

    def key(self, name: str) -> str:
        """What a metric of it is called among those of all targets."""
        return f"{self.name}: {name}" if self.name else name


def weights(known: Tensor, real: Tensor | None, dtype: torch.dtype) -> Tensor:
    """One for each graph whose target is known, zero for others and for padding."""
    return (known if real is None else known & real).to(dtype)


def as_array(values: Tensor) -> Array:
    """A tensor in main memory as NumPy sees it."""
    return np.asarray(values.detach().cpu())

"""Which of several classes a graph belongs to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.ops.log_likelihood import log_likelihood
from lookhops.tasks.conformal import (
    class_nonconformity,
    class_sets,
    conformal_quantile,
    with_likeliest,
)
from lookhops.tasks.metrics import (
    auroc,
    average_precision,
    bootstrap_auroc,
    calibration_error,
    confusion_matrix,
    fit_temperature,
    rates,
    two_class_rates,
)
from lookhops.tasks.task import Calibration, Maybe, Metric, Task, Tensors, as_array, weights
from lookhops.tasks.threshold import check_threshold, choose_threshold

ACCURACY = Metric("accuracy", "accuracy")
RATES = (
    ACCURACY,
    Metric("majority", "accuracy, commonest class"),
    Metric("balanced_accuracy", "balanced accuracy", over_classes=True),
    Metric("macro_f1", "macro-F1", over_classes=True),
    Metric("auroc", "AUROC", over_classes=True),
)
#: Of two classes, the second of which is looked for.
OF_TWO = (
    Metric("average_precision", "average precision", over_classes=True),
    Metric("f1", "F1", over_classes=True),
    Metric("mcc", "MCC", share=False, over_classes=True),
)
OTHERS = (
    Metric("loss", "loss", higher_is_better=False, share=False, shown=False),
    Metric("ece_before", "calibration error", False, about_calibration=True),
    Metric("ece_after", "calibration error, with temperature", False, about_calibration=True),
    Metric("coverage", "90% sets with the class", about_calibration=True),
    Metric("set_size", "classes in a 90% set", False, False, about_calibration=True),
)


@dataclass(frozen=True)
class Classification(Task):
    r"""One class out of several: softmax over the output, negative log-likelihood.

    .. math::
        \log p = \mathrm{log\,softmax}(o), \qquad
        \mathcal{L} = -\frac{\sum_i w_{y_i} \log p_{i, y_i}}{\sum_i w_{y_i}}

    Args:
        class_names: Names of the classes.
        class_weights: Whether the loss weighs classes by their rarity in the training part;
            else every :math:`w` is 1.
        threshold: Of two classes: the probability from which the second is answered, such as
            ``0.3``, or what it is chosen for on a validation part: ``f1`` (the highest F1 of the
            second class) or ``youden`` (the highest sum of both classes' recalls). By default the
            likelier class is answered.
    """

    class_names: tuple[str, ...]
    class_weights: bool = False
    threshold: str | None = None

    kind: ClassVar[str] = "classification"
    regions_are: ClassVar[str] = "sets"
    main: ClassVar[Metric] = ACCURACY

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Shares of right answers, ranking and calibration; of two classes some more."""
        return (*RATES, *(OF_TWO if self.out_channels == 2 else ()), *OTHERS)

    def __post_init__(self) -> None:
        object.__setattr__(self, "class_names", tuple(self.class_names))  # JSON gives a list
        if self.threshold is not None:
            check_threshold(self.threshold, self.class_names)

    @classmethod
    def of(
        cls, graphs: Graphs, class_weights: bool = False, threshold: str | None = None
    ) -> Classification:
        """The classes of these graphs, refused where there are none or one only."""
        if graphs.y is None:
            raise LookHopsError(
                f"{graphs.name}: the graphs have no classes to learn; name the column that has "
                "them (--target), or give graphs in tables a table of graphs with a column 'class'."
            )
        if len(graphs.y[graphs.y >= 0].unique()) < 2:
            raise LookHopsError(
                f"{graphs.name}: all graphs are of one class; there is nothing to learn."
            )
        return cls(graphs.class_names, class_weights, threshold)

    @property
    def out_channels(self) -> int:
        """One output a class."""
        return len(self.class_names)

    # ---------------------------------------------------------------- training

    def targets(self, graphs: Graphs) -> Tensor:
        """The number of each graph's class, shape (g)."""
        assert graphs.y is not None
        return graphs.y

    def known(self, target: Tensor) -> Tensor:
        """Where there is a class."""
        return target >= 0

    def lacking(self, target: Tensor, train: Tensor) -> str | None:
        """The classes that only graphs outside the training part have."""
        absent = set(target[self.known(target)].tolist()) - set(target[train].tolist())
        names = ", ".join(repr(self.class_names[c]) for c in sorted(absent))
        return f"class {names} has no graph" if absent else None

    def fit(self, train_target: Tensor) -> Tensor | None:
        """Class weights n / (classes * count), shape (classes), zero for absent ones."""
        if not self.class_weights:
            return None
        known = train_target[self.known(train_target)]
        count = torch.bincount(known, minlength=self.out_channels)
        weight = known.numel() / (self.out_channels * count.clamp(min=1).float())
        return torch.where(count > 0, weight, 0)

    def losses(
        self, output: Tensor, target: Tensor, fitted: Maybe = None, real: Maybe = None
    ) -> tuple[Tensor, Tensor]:
        """Weighted mean of the negative log-likelihood, and the sum of the weights."""
        return log_likelihood(output, target, fitted, real)

    def scores(
        self, output: Tensor, target: Tensor, fitted: Maybe = None, real: Maybe = None
    ) -> tuple[Tensor, Tensor]:
        """Accuracy, and the number of graphs."""
        weight = weights(self.known(target), real, torch.float64)
        total = weight.sum(-1)
        return ((output.argmax(-1) == target) * weight).sum(-1) / total.clamp(min=1), total

    # ---------------------------------------------------------------- answers

    def calibrate(self, output: Tensor, target: Tensor, unseen: Maybe = None) -> Calibration:
        """What a validation part says of the answers.

        Returns:
            The ``temperature`` that makes its classes likeliest, or 1 where that would make the
            calibration error worse; the ``conformal_quantile`` that sets of 90 % reach up to: 1,
            and all classes are in every set, where there are too few graphs to say more; and the
            ``threshold``, where there is to be one.
        """
        known = self.known(target)
        unseen = (output if unseen is None else unseen)[known]
        output, y = output[known], as_array(target[known])
        temperature = fit_temperature(as_array(output.double()), y)
        own, scaled = (as_array(self.answers(output, {"temperature": t})) for t in (1, temperature))
        if calibration_error(scaled, y) > calibration_error(own, y):
            temperature, scaled = 1.0, own
        apart = as_array(self.answers(unseen, {"temperature": temperature}))
        quantile = min(conformal_quantile(class_nonconformity(apart, y)), 1.0)
        found = {"temperature": temperature, "conformal_quantile": quantile}
        if self.threshold is not None:
            found["threshold"] = choose_threshold(scaled[:, 1], y, self.threshold)
        return found

    def decided(self, p: Array, calibration: Calibration) -> Array:
        """The class that is answered, shape (g): the likeliest, or by the threshold.

        Args:
            p: Calibrated probabilities, shape (g, classes).
            calibration: What :meth:`calibrate` gave.
        """
        if "threshold" not in calibration:
            return p.argmax(-1)
        return (p[..., 1] >= calibration["threshold"]).astype(np.int64)

    def average(self, outputs: Sequence[Tensor]) -> Tensor:
        r"""The logarithm of the mean :math:`\tfrac1m \sum_i \mathrm{softmax}(o_i)`."""
        likelihood = torch.stack(list(outputs)).log_softmax(-1)
        return likelihood.logsumexp(0) - math.log(len(outputs))

    def answers(self, output: Tensor, calibration: Calibration) -> Tensor:
        r"""Probabilities :math:`\mathrm{softmax}(o / T)`, shape (g, classes)."""
        return (output.double() / calibration.get("temperature", 1.0)).softmax(-1)

    def evaluate(
        self, output: Tensor, target: Tensor, calibration: Calibration | None = None
    ) -> dict[str, float | None]:
        """Rates, AUROC and loss; with a calibration also its error.

        AUROC and average precision are none where they are not defined. The calibration error is
        given before and after the temperature. ``coverage`` is the share of conformal sets of 90 %
        that hold the class.
        """
        known = self.known(target)
        output, target = output[known], target[known]
        y, p = as_array(target), as_array(self.answers(output, {}))
        calibrated = as_array(self.answers(output, calibration or {}))
        predicted = self.decided(calibrated, calibration or {})
        found = self.rates_of(predicted, output, target)
        if calibration is not None:
            found |= calibration
            found["ece_before"] = calibration_error(p, y)
            found["ece_after"] = calibration_error(calibrated, y)
            found |= self._conformal(calibrated, y, calibration.get("conformal_quantile", 1.0))
        return found

    def rates_of(self, predicted: Array, output: Tensor, target: Tensor) -> dict[str, float | None]:
        """Rates of the classes that are answered, and AUROC and loss of the outputs.

        Args:
            predicted: Number of the class that is answered, shape (g).
            output: Shape (g, classes).
            target: Classes, all known, shape (g).
        """
        y, p = as_array(target), as_array(self.answers(output, {}))
        matrix = confusion_matrix(y, predicted, self.out_channels)
        found: dict[str, float | None] = {
            **{name: float(value) for name, value in rates(matrix).items()},
            "auroc": auroc(p, y),
            "loss": float(self.losses(output.double(), target)[0]),
        }
        if self.out_channels == 2:
            found |= {"average_precision": average_precision(p[:, 1], y), **two_class_rates(matrix)}
        return found

    def naive(self, train_target: Tensor, target: Tensor) -> dict[str, float | None]:
        """``majority``: the share of the class that is commonest in the training part."""
        commonest = self.commonest(train_target)
        known = target[self.known(target)]
        return {"majority": float((known == commonest).double().mean()) if len(known) else None}

    def commonest(self, target: Tensor) -> int:
        """The number of the class that most of these graphs have."""
        return int(target[self.known(target)].mode().values)

    def _conformal(self, p: Array, y: Array, quantile: float) -> dict[str, float]:
        """How many conformal sets hold the true class, and how large they are."""
        sets = with_likeliest(1 - p <= quantile, p)
        held = np.take_along_axis(sets, y[:, None], 1)
        return {"coverage": float(held.mean()), "set_size": float(sets.sum(1).mean())}

    def nonconformity(self, answers: Tensor, target: Tensor) -> Array:
        """One less the probability of the true class."""
        return class_nonconformity(as_array(answers), as_array(target))

    def regions(self, answers: Array, nonconformity: Sequence[Array], coverage: float) -> Array:
        """Which classes are in the set, shape (g, classes)."""
        return class_sets(answers, nonconformity, coverage)

    def resampled(self, output: Tensor, target: Tensor) -> dict[str, Array]:
        """Of AUROC."""
        known = self.known(target)
        output, target = output[known], target[known]
        return {"auroc": bootstrap_auroc(as_array(self.answers(output, {})), as_array(target))}

    def overview(
        self, outputs: Tensors, targets: Tensors, calibrations: Sequence[Calibration] = ()
    ) -> dict[str, Any]:
        """The ``confusion`` matrix: true class by predicted class."""
        matrix = np.zeros((self.out_channels, self.out_channels), dtype=np.int64)
        each = calibrations or [{}] * len(outputs)
        for output, target, calibration in zip(outputs, targets, each, strict=True):
            known = self.known(target)
            p = as_array(self.answers(output[known], calibration))
            predicted = self.decided(p, calibration)
            matrix += confusion_matrix(as_array(target[known]), predicted, self.out_channels)
        return {"confusion": matrix.tolist()}

    def as_target(self, column: Tensor) -> Tensor:
        """Numbers of classes, -1 where blank, from a column of float64 with NaN there."""
        return column.nan_to_num(-1).long()

    @property
    def columns(self) -> tuple[str, ...]:
        """The true class, and the probability of each."""
        return ("class", *(f"p({name})" for name in self.class_names))

    def label(self, target: Any) -> str:
        """The name of a class; empty where it is blank."""
        return self.class_names[int(target)] if target >= 0 else ""

"""A number that was measured of each graph."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.charts import Chart
from lookhops.core.errors import LookHopsError
from lookhops.core.options import LOSSES
from lookhops.core.tensors import ABOVE_ZERO
from lookhops.core.words import counted
from lookhops.tasks.answers import Ensemble, NumberAnswers, Tested
from lookhops.tasks.charts import number_charts
from lookhops.tasks.conformal import (
    conformal_quantile,
    normalised,
    number_intervals,
    number_scores,
    scale_of,
)
from lookhops.tasks.metrics import Metric, bootstrap_means, number_errors
from lookhops.tasks.target_task import TargetTask
from lookhops.tasks.task import Calibration, Maybe, MetricValues, as_array

MAE = Metric("mae", "MAE", higher_is_better=False, share=False)
MEAN_MAE = Metric("mean_mae", "MAE, of the mean", False, share=False)
R2 = Metric("r2", "R²", share=False)
SPEARMAN = Metric("spearman", "Spearman", share=False)
INTERVALS = (
    Metric("coverage", "90% intervals with the number", about_calibration=True),
    Metric("interval_width", "90% interval, width", False, False, about_calibration=True),
)


class OneNumber(TargetTask):
    """What measured numbers and counts have in common; ``name`` is what is measured.

    A subclass says how the output of the network becomes a number and what is an error. Errors are
    compared on the scale of the number; a subclass may choose another scale.
    """

    name: str
    regions_are = "intervals"
    class_names = ()
    class_weights = False
    out_channels = 1

    @abstractmethod
    def fit(self, train_target: Tensor) -> Tensor:
        """What is taken from the training part, 1-D, float64; the mean comes first."""

    @abstractmethod
    def standardise(self, target: Tensor, fitted: Tensor) -> Tensor:
        """The target as the loss compares it with the output, shape (..., g)."""

    @abstractmethod
    def loss_of(self, output: Tensor, y: Tensor) -> Tensor:
        """The loss of each graph from its output and its standardised target, shape (..., g)."""

    @abstractmethod
    def errors(self, answer: Array, y: Array) -> MetricValues:
        """Each metric of numbers against those measured, shape (n); none where not defined."""

    def lacking(self, target: Tensor, train: Tensor) -> str | None:
        known = target[train][self.known(target[train])]
        if len(known.unique()) < 2:
            return f"{self.name!r} has not two different numbers"
        if known.max() - known.min() < ABOVE_ZERO:
            return f"the numbers of {self.name!r} differ by less than {ABOVE_ZERO:g}"
        return None

    def losses(
        self, output: Tensor, target: Tensor, fitted: Maybe = None, real: Maybe = None
    ) -> tuple[Tensor, Tensor]:
        assert fitted is not None
        y = self.standardise(target, fitted).to(output.dtype)
        return self._mean(output, y, real, self.loss_of)

    def _mean(
        self, output: Tensor, y: Tensor, real: Maybe, loss: Callable[[Tensor, Tensor], Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Mean of a loss over the graphs whose number is known, and how many there are."""
        weight = self.weights(y, real, output.dtype)
        pair = (torch.where(weight > 0, each, 0) for each in (output.squeeze(-1), y))
        total = weight.sum(-1)
        return (loss(*pair) * weight).sum(-1) / total.clamp(min=1), total

    def answers(self, output: Tensor, calibration: Calibration) -> Tensor:
        """The numbers, shape (g, 1)."""
        return output.double()

    def transformed(self, answers: Tensor) -> Tensor:
        """Numbers on the scale on which errors are compared."""
        return answers

    def variance_of(self, answers: Tensor, variance: Tensor) -> Tensor:
        """The variance of :meth:`transformed` answers from that of the answers."""
        return variance

    def expected_error(self, outputs: Sequence[Tensor], variance: Maybe) -> Tensor:
        """The root of the variance and of that over the members, shape (g)."""
        answers = torch.stack([self.answers(one, {}) for one in outputs])
        found = self.transformed(answers).var(0, correction=0)
        if variance is not None:
            found = found + self.variance_of(answers.mean(0), variance.double())
        return found[:, 0].sqrt()

    def distances(self, answers: Tensor, target: Tensor, deviation: Maybe = None) -> Array:
        """How far numbers are from those measured, and how far they were expected to be."""
        found, y = self.transformed(answers[:, 0]), self.transformed(target)
        expected = None if deviation is None else as_array(deviation)[:, 0]
        return number_scores(as_array(found), as_array(y), expected)

    def calibrate(
        self, output: Tensor, target: Tensor, unseen: Maybe = None, deviation: Maybe = None
    ) -> Calibration:
        """The ``conformal_quantile``: half the width of an interval of 90 % at scale 1.

        Where deviations say something, also their weight in the scale, ``deviation_weight``.
        Nothing where there are too few graphs to say; the numbers are answers as they are.
        """
        answers = self.answers(output if unseen is None else unseen, {})
        residuals, weight = normalised(self.distances(answers, target, deviation))
        half = conformal_quantile(residuals)
        if half == inf:
            return {}
        return {"conformal_quantile": half, **({"deviation_weight": weight} if weight else {})}

    def regions(
        self, answers: Array, scores: Sequence[Array], coverage: float, deviation: Any = None
    ) -> Array:
        """The ends of intervals, shape (g, 2) (see :func:`~.conformal.number_intervals`)."""
        return number_intervals(answers[..., 0], scores, coverage, deviation)

    def width(self, answer: Array, half: Array | float) -> float:
        """The mean width of intervals that reach up to a distance, or one a graph."""
        return float(np.mean(2 * half))

    def evaluate(
        self, output: Tensor, target: Tensor, by: Calibration | None = None, deviation: Maybe = None
    ) -> MetricValues:
        """The errors; with a calibration also how often intervals hold the number, and how wide."""
        known = self.known(target)
        answers, y = self.answers(output, {})[known], target[known]
        measured = self.errors(as_array(answers)[:, 0], as_array(y))
        if by is None:
            return measured
        held = width = None
        if (half := by.get("conformal_quantile")) is not None:
            expected = None if deviation is None else as_array(deviation)[as_array(known), 0]
            reach = half * scale_of(expected, by.get("deviation_weight", 0.0))
            held = float((self.distances(answers, y) <= reach).mean())
            width = self.width(as_array(answers)[:, 0], reach)
        return {**measured, **by, "coverage": held, "interval_width": width}

    def measure(self, answers: NumberAnswers, target: Tensor) -> MetricValues:
        """The errors, and how often the intervals hold the number."""
        y = as_array(target.double())
        found = self.errors(answers.values, y)
        if answers.intervals is not None:
            low, high = answers.intervals.T
            width = float((high - low).mean())
            found["coverage"] = float(((low <= y) & (y <= high)).mean())
            found["interval_width"] = width if isfinite(width) else None
        return found

    def naive(self, train_target: Tensor, target: Tensor) -> MetricValues:
        """The errors of the training part's mean: ``mean_mae``, ``mean_rmse``."""
        known = as_array(target[self.known(target)].double())
        found = self.errors(known * 0 + float(self.fit(train_target)[0]), known)
        names = {metric.name for metric in self.metrics}
        return {of_mean: found[name] for name in found if (of_mean := f"mean_{name}") in names}

    def typical(self, fitted: Sequence[Tensor], commonest: str | None) -> Tensor:
        """The mean of the training parts' means."""
        return torch.stack([one.double() for one in fitted]).mean(0)[:1]

    def answer(self, given: Ensemble) -> NumberAnswers:
        """The mean, and how far the networks are from it."""
        spread, values = given.alone.std(0)[:, 0], given.mean[:, 0]
        return NumberAnswers(self.name, spread, len(given.alone), values, given.regions)

    def agreement(self, answers: NumberAnswers, truth: Array) -> tuple[float, int]:
        """The sum of the absolute errors."""
        errors = np.abs(answers.values - truth)[np.isfinite(truth)]
        return float(errors.sum()), len(errors)

    def agreement_in_words(self, total: float, count: int, when: str) -> str:
        """``mean error 0.5 in 24 graphs with a measured logS``."""
        graphs = counted(count, "graph")
        return f"mean error {total / count:.3g} in {graphs}{when} {self.asked}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The number that was measured, and the one that is answered."""
        return (self.name, f"predicted {self.name}")

    def label(self, target: Any) -> str:
        return f"{float(target):.15g}" if target == target else ""

    def parse(self, cells: Sequence[str]) -> Array:
        return np.array([float(cell) if cell else np.nan for cell in cells])

    @property
    def asked(self) -> str:
        """``with a measured logS``."""
        return f"with a measured {self.name}"

    def in_card(self, name: str, code: Callable[[str], str], most: int) -> str:
        """``a number, logS``."""
        return f"a {self.words.removesuffix('s')}, {code(self.name)}"

    def results(self, tested: Tested) -> str:
        """The mean error, that of the mean, the intervals."""
        mae, mean, width = (tested.score(m) for m in (MAE, MEAN_MAE, INTERVALS[1]))
        return (
            f"On the test graphs the model missed {self.name} by {mae} on average; the mean of "
            f"the training graphs misses it by {mean}."
            f"{tested.covered(self.regions_are, f'; they are {width} wide')}"
        )

    def charts(self, tested: Tested) -> list[Chart]:
        """Predicted against measured, residuals, and the error by the size of graphs."""
        if (found := tested.answers) is None:
            return []
        predicted = found.values[:, 0]
        return number_charts(found.truth, predicted, found.ids, found.nodes, self.name, tested.n)


@dataclass(frozen=True)
class Regression(OneNumber):
    r"""One number: the loss compares it with the target, standardised by the training part.

    .. math::
        \mathcal{L} = \frac1g \sum_i \ell\Bigl(o_i - \frac{y_i - \mu}{\sigma}\Bigr), \qquad
        \text{answer: } \mu + \sigma o_i

    with the mean :math:`\mu` and the standard deviation :math:`\sigma` of the training part, and
    :math:`\ell(e)` as ``mse`` :math:`e^2`, as ``mae`` :math:`|e|`, as ``huber`` :math:`e^2 / 2`
    up to 1 and :math:`|e| - 1/2` beyond.

    Args:
        name: What is measured.
        loss: ``mse``, ``mae`` or ``huber``.
    """

    name: str
    loss: str = "mse"

    kind = "regression"
    main = MAE
    ranked_by = R2
    words = "numbers"
    unit = "the number"
    fitted_size = 2
    metrics = (
        MAE,
        MEAN_MAE,
        Metric("rmse", "RMSE", False, share=False),
        Metric("mean_rmse", "RMSE, of the mean", False, share=False),
        R2,
        SPEARMAN,
        *INTERVALS,
    )

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise LookHopsError(f"loss is one of {', '.join(LOSSES)}, not {self.loss!r}.")

    def fit(self, train_target: Tensor) -> Tensor:
        """Mean and standard deviation of the training part, shape (2), float64."""
        known = train_target[self.known(train_target)].double()
        spread = known.std(correction=0) if len(known) else known.new_ones(())
        mean = known.mean() if len(known) else known.new_zeros(())
        return torch.stack((mean, torch.where(spread > 0, spread, 1.0)))

    def standardise(self, target: Tensor, fitted: Tensor) -> Tensor:
        return (target - fitted[..., :1]) / fitted[..., 1:]

    def loss_of(self, output: Tensor, y: Tensor) -> Tensor:
        error = output - y
        if self.loss == "mse":
            return error.square()
        size = error.abs()
        return size if self.loss == "mae" else torch.where(size < 1, error.square() / 2, size - 0.5)

    def scores(
        self, output: Tensor, target: Tensor, fitted: Maybe = None, real: Maybe = None
    ) -> tuple[Tensor, Tensor]:
        """Mean absolute error in the target's units, and the number of graphs."""
        return self._mean(self.in_units(output, fitted), target, real, lambda o, y: (o - y).abs())

    def in_units(self, output: Tensor, fitted: Maybe) -> Tensor:
        r""":math:`\mu + \sigma o`, float64, shape (..., g, 1)."""
        assert fitted is not None
        mean, spread = fitted.double()[..., None, :].split(1, -1)
        return mean + spread * output.double()

    def errors(self, answer: Array, y: Array) -> MetricValues:
        """MAE, RMSE, R² and Spearman's correlation, the last two none where not defined."""
        return number_errors(answer, y)

    def resampled(self, output: Tensor, target: Tensor) -> dict[str, Array]:
        """Of MAE and RMSE."""
        known = self.known(target)
        error = as_array(output[known, 0].double() - target[known])
        draws = bootstrap_means({"mae": np.abs(error), "rmse": error**2})
        return draws | {"rmse": np.sqrt(draws["rmse"])}

    def sides(self, weight: Array, fitted: Sequence[Tensor]) -> dict[str, Array]:
        """For high and for low values, in units of the target."""
        spread = float(np.mean([float(one[1]) for one in fitted]))
        return {"high": spread * weight[:, 0], "low": -spread * weight[:, 0]}

"""A count of something in each graph: a whole number from 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.special import xlogy
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.tasks.conformal import number_intervals
from lookhops.tasks.metrics import Metric, bootstrap_means, number_errors
from lookhops.tasks.numbers import INTERVALS, MAE, MEAN_MAE, SPEARMAN, OneNumber
from lookhops.tasks.task import Calibration, Maybe, MetricValues, as_array

DEVIANCE = Metric("deviance", "Poisson deviance", False, share=False)
D2 = Metric("d2", "D²", share=False)
#: Counts expected of a graph are at least this, so that their logarithm is finite.
LEAST = 1e-6
#: Below this count the variance of a square root is that of this count.
LEAST_MEAN = 0.25


@dataclass(frozen=True)
class Counts(OneNumber):
    r"""A count: the network gives the logarithm of a Poisson rate, relative to the mean count.

    .. math::
        \mathcal{L} = \frac1g \sum_i \Bigl(e^{o_i} - z_i o_i + z_i \ln z_i - z_i\Bigr), \quad
        z_i = \frac{y_i}{\mu}, \qquad \text{answer: } \mu\, e^{o_i}

    with the mean :math:`\mu` of the training part: half the Poisson deviance in units of
    :math:`\mu`, zero where the rates are the counts. Errors of conformal intervals are compared on
    the scale of square roots, where counts vary alike whatever their size; they end at whole
    numbers.

    Args:
        name: What is counted.
    """

    name: str

    kind = "counts"
    main = DEVIANCE
    ranked_by = D2
    words = "counts"
    unit = "the logarithm of the count"
    loss = "poisson"
    fitted_size = 1
    metrics = (
        DEVIANCE,
        Metric("mean_deviance", f"{DEVIANCE.title}, of the mean", False, share=False),
        D2,
        MAE,
        MEAN_MAE,
        SPEARMAN,
        *INTERVALS,
    )

    def fit(self, train_target: Tensor) -> Tensor:
        """The mean count of the training part, shape (1), float64; 1 where it is 0."""
        known = train_target[self.known(train_target)].double()
        mean = known.mean() if len(known) else known.new_ones(())
        return torch.where(mean > 0, mean, 1.0)[None]

    def standardise(self, target: Tensor, fitted: Tensor) -> Tensor:
        return target / fitted

    def loss_of(self, output: Tensor, y: Tensor) -> Tensor:
        r"""Half the Poisson deviance :math:`e^o - y o + y \ln y - y`: zero where the rate is y."""
        return output.exp() - y * output + torch.xlogy(y, y) - y

    def scores(
        self, output: Tensor, target: Tensor, fitted: Maybe = None, real: Maybe = None
    ) -> tuple[Tensor, Tensor]:
        """Mean Poisson deviance, and the number of graphs."""
        mean, graphs = self._mean(self.in_units(output, fitted), target, real, self.loss_of)
        return 2 * mean, graphs

    def in_units(self, output: Tensor, fitted: Maybe) -> Tensor:
        r"""The logarithm of the rate, :math:`\ln \mu + o`, float64, shape (..., g, 1)."""
        assert fitted is not None
        return fitted.double()[..., None, :].log() + output.double()

    def average(self, outputs: Sequence[Tensor]) -> Tensor:
        """The logarithm of the mean rate."""
        return torch.stack(list(outputs)).logsumexp(0) - math.log(len(outputs))

    def answers(self, output: Tensor, calibration: Calibration) -> Tensor:
        """The rates: the counts that are expected, shape (g, 1)."""
        return output.double().exp()

    def outputs(self, answers: Array) -> Array:
        return np.log(np.maximum(answers, LEAST))

    def errors(self, answer: Array, y: Array) -> MetricValues:
        """Mean Poisson deviance, D², MAE and Spearman's correlation; none where not defined.

        D² is the share of the deviance from the mean of ``y`` that the answers explain.
        """
        found = number_errors(answer, y)
        deviance = d2 = None
        if len(y):
            deviance = float(deviances(answer, y).mean())
            of_mean = float(deviances(np.full_like(y, y.mean()), y).mean())
            d2 = 1 - deviance / of_mean if np.ptp(y) > 0 else None
        return {"deviance": deviance, "d2": d2, "mae": found["mae"], "spearman": found["spearman"]}

    def resampled(self, output: Tensor, target: Tensor) -> dict[str, Array]:
        """Of the deviance and of MAE."""
        known = self.known(target)
        answer, y = as_array(self.answers(output[known, 0], {})), as_array(target[known])
        return bootstrap_means({"mae": np.abs(answer - y), "deviance": deviances(answer, y)})

    def transformed(self, answers: Tensor) -> Tensor:
        return answers.sqrt()

    def variance_of(self, answers: Tensor, variance: Tensor) -> Tensor:
        r"""To first order :math:`\operatorname{Var} \sqrt a = \operatorname{Var} a / 4 a`."""
        return variance / (4 * answers.clamp(min=LEAST_MEAN))

    def regions(
        self, answers: Array, scores: Sequence[Array], coverage: float, deviation: Any = None
    ) -> Array:
        """The least and the largest count of each interval, shape (g, 2)."""
        roots = number_intervals(np.sqrt(answers[..., 0]), scores, coverage, deviation)
        return counts_within(roots, answers[..., 0].mean(0))

    def width(self, answer: Array, half: Array | float) -> float:
        """The mean of the differences of the ends."""
        reach = np.multiply.outer(half, np.array([-1.0, 1.0]))
        ends = counts_within(np.sqrt(answer)[:, None] + reach, answer)
        return float((ends[:, 1] - ends[:, 0]).mean())

    def sides(self, weight: Array, fitted: Sequence[Tensor]) -> dict[str, Array]:
        """For high and for low counts, in units of their logarithm."""
        return {"high": weight[:, 0], "low": -weight[:, 0]}

    @property
    def asked(self) -> str:
        """``with a count of rings``."""
        return f"with a count of {self.name}"


def deviances(answer: Array, y: Array) -> Array:
    r"""Poisson deviances :math:`2 (y \ln (y / a) - y + a)` of rates from counts, shape (n)."""
    answer = np.maximum(answer, LEAST)
    found: Array = 2 * (xlogy(y, y / answer) - y + answer)
    return found


def counts_within(roots: Array, answers: Array) -> Array:
    """The least and the largest count whose square root is in an interval, shape (g, 2).

    The ends of the intervals are ``roots``, shape (g, 2). The count that is nearest to the answer,
    shape (g), is always in it.
    """
    low, high = np.maximum(roots, 0).T ** 2
    nearest = np.rint(answers)
    ends = np.minimum(np.ceil(low - 1e-9), nearest), np.maximum(np.floor(high + 1e-9), nearest)
    return np.stack(ends, axis=1) + 0.0  # no -0

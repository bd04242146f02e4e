"""A number that was measured of each graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.options import LOSSES
from lookhops.graphs import Graphs
from lookhops.tasks.conformal import (
    conformal_quantile,
    number_intervals,
    number_nonconformity,
)
from lookhops.tasks.metrics import bootstrap_errors, number_errors
from lookhops.tasks.task import Calibration, Maybe, Metric, Task, as_array, weights

MAE = Metric("mae", "MAE", higher_is_better=False, share=False)


@dataclass(frozen=True)
class Regression(Task):
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

    kind: ClassVar[str] = "regression"
    regions_are: ClassVar[str] = "intervals"
    main: ClassVar[Metric] = MAE

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise LookHopsError(f"loss is one of {', '.join(LOSSES)}, not {self.loss!r}.")

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Errors beside those of the mean, and how well numbers and ranks agree."""
        return (
            MAE,
            Metric("mean_mae", "MAE, of the mean", False, share=False),
            Metric("rmse", "RMSE", False, share=False),
            Metric("mean_rmse", "RMSE, of the mean", False, share=False),
            Metric("r2", "R²", share=False),
            Metric("spearman", "Spearman", share=False),
            Metric("coverage", "90% intervals with the number", about_calibration=True),
            Metric("interval_width", "90% interval, width", False, False, about_calibration=True),
        )

    @property
    def out_channels(self) -> int:
        """One output."""
        return 1

    # ---------------------------------------------------------------- training

    def targets(self, graphs: Graphs) -> Tensor:
        """The number of each graph, shape (g)."""
        assert graphs.y is not None
        return graphs.y

    def known(self, target: Tensor) -> Tensor:
        """Where there is a number."""
        return ~target.isnan()

    def lacking(self, target: Tensor, train: Tensor) -> str | None:
        """Whether the training part has no number, or one only."""
        known = target[train][self.known(target[train])].unique()
        return None if len(known) > 1 else f"{self.name!r} has not two different numbers"

    def fit(self, train_target: Tensor) -> Tensor:
        """Mean and standard deviation of the training part, shape (2), float64."""
        known = train_target[self.known(train_target)].double()
        spread = known.std(correction=0) if len(known) else known.new_ones(())
        mean = known.mean() if len(known) else known.new_zeros(())
        return torch.stack((mean, torch.where(spread > 0, spread, 1.0)))

    @property
    def num_fitted(self) -> int:
        """Mean and standard deviation."""
        return 2

    def losses(
        self, output: Tensor, target: Tensor, fitted: Maybe = None, real: Maybe = None
    ) -> tuple[Tensor, Tensor]:
        """Mean loss, and the number of graphs."""
        assert fitted is not None
        scaled = (target - fitted[..., :1]) / fitted[..., 1:]
        return self._mean(output, scaled.to(output.dtype), real, self._loss)

    def scores(
        self, output: Tensor, target: Tensor, fitted: Maybe = None, real: Maybe = None
    ) -> tuple[Tensor, Tensor]:
        """Mean absolute error in the target's units, and the number of graphs."""
        return self._mean(self.in_units(output, fitted), target, real, torch.abs)

    def _mean(self, output: Tensor, y: Tensor, real: Maybe, loss: Any) -> tuple[Tensor, Tensor]:
        """Mean of a loss over the graphs whose number is known, and how many there are."""
        weight = weights(self.known(y), real, output.dtype)
        error = torch.where(weight > 0, output.squeeze(-1) - y, 0)
        total = weight.sum(-1)
        return loss(error).sum(-1) / total.clamp(min=1), total

    def _loss(self, error: Tensor) -> Tensor:
        if self.loss == "mse":
            return error.square()
        size = error.abs()
        return size if self.loss == "mae" else torch.where(size < 1, error.square() / 2, size - 0.5)

    # ---------------------------------------------------------------- answers

    def in_units(self, output: Tensor, fitted: Maybe) -> Tensor:
        r""":math:`\mu + \sigma o`, float64, shape (..., g, 1)."""
        assert fitted is not None
        mean, spread = fitted.double()[..., None, :].split(1, -1)
        return mean + spread * output.double()

    def calibrate(self, output: Tensor, target: Tensor, unseen: Maybe = None) -> Calibration:
        """The ``conformal_quantile``: half the width of an interval of 90 %.

        Nothing where there are too few graphs to say; the numbers are answers as they are.
        """
        half = conformal_quantile(self.nonconformity(output if unseen is None else unseen, target))
        return {} if half == inf else {"conformal_quantile": half}

    def answers(self, output: Tensor, calibration: Calibration) -> Tensor:
        """The numbers, shape (g, 1)."""
        return output.double()

    def evaluate(
        self, output: Tensor, target: Tensor, calibration: Calibration | None = None
    ) -> dict[str, float | None]:
        """MAE, RMSE, R² and Spearman's correlation, the last two none where not defined."""
        known = self.known(target)
        answer = self.answers(output, calibration or {})[known, 0]
        y, found = as_array(target[known].double()), as_array(answer)
        measured: dict[str, float | None] = {**number_errors(found, y)}
        if calibration is not None:
            half = calibration.get("conformal_quantile")
            held = None if half is None else float((np.abs(found - y) <= half).mean())
            width = None if half is None else 2 * half
            measured |= {**calibration, "coverage": held, "interval_width": width}
        return measured

    def nonconformity(self, answers: Tensor, target: Tensor) -> Array:
        """How far numbers are from those measured."""
        return number_nonconformity(as_array(answers.double())[:, 0], as_array(target.double()))

    def regions(self, answers: Array, nonconformity: Sequence[Array], coverage: float) -> Array:
        """The ends of intervals, shape (g, 2) (see :func:`~.conformal.number_intervals`)."""
        return number_intervals(answers[..., 0], nonconformity, coverage)

    def naive(self, train_target: Tensor, target: Tensor) -> dict[str, float | None]:
        """``mean_mae`` and ``mean_rmse``: the errors of the training part's mean."""
        known = as_array(target[self.known(target)].double())
        mean = float(self.fit(train_target)[0])
        found = number_errors(known * 0 + mean, known)
        return {f"mean_{name}": found[name] for name in ("mae", "rmse")}

    def resampled(self, output: Tensor, target: Tensor) -> dict[str, Array]:
        """Of MAE and RMSE."""
        known = self.known(target)
        return bootstrap_errors(as_array(output[known, 0].double() - target[known]))

    def as_target(self, column: Tensor) -> Tensor:
        """The column as it is: NaN where blank."""
        return column

    @property
    def columns(self) -> tuple[str, ...]:
        """The number that was measured, and the one that is answered."""
        return (self.name, f"predicted {self.name}")

    def label(self, target: Any) -> str:
        """The number; empty where it is blank."""
        return f"{float(target):.6g}" if target == target else ""

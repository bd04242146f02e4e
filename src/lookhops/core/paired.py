"""Means of paired differences over splits, with tests that know that splits overlap."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

#: Of intervals.
CONFIDENCE = 0.95
#: Differences are told from chance where p is below this.
ALPHA = 0.05
#: Differences that differ by so small a share of their size are the same.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95% interval and the test that it is zero."""

    mean: float
    low: float  # as the mean where values are all the same
    high: float
    p: float  # two-sided
    n: int  # how many values it is the mean of
    variance: float  # of the mean: the square of its standard error
    freedom: float  # degrees of freedom

    @property
    def interval(self) -> tuple[float, float] | None:
        """Its 95% interval as it is shown: none where it has no width and so says nothing."""
        return (self.low, self.high) if self.variance > 0 else None

    @classmethod
    def of(cls, mean: float, variance: float, freedom: float, n: int) -> Estimate:
        """The estimate with this mean and variance, by Student's t.

        Values that are all the same have no spread to judge by: two may be so by chance, and are
        judged by their signs; of more there is no doubt.
        """
        from scipy.stats import t  # takes its time to import

        error = sqrt(variance)
        if error == 0:
            p = 1.0 if mean == 0 else 0.5 if n == 2 else 0.0
            return cls(mean, mean, mean, p, n, 0.0, freedom)
        half = float(t.ppf((1 + CONFIDENCE) / 2, freedom)) * error
        p = float(2 * t.sf(abs(mean) / error, freedom))
        return cls(mean, mean - half, mean + half, p, n, variance, freedom)


def corrected_t(differences: ArrayLike, test_to_train: float) -> Estimate:
    r"""The corrected resampled t-test of Nadeau and Bengio, on paired differences.

    Training parts drawn from one set overlap, so the differences :math:`d_1, \ldots, d_n` are not
    independent and :math:`s^2 / n` is too small. Their correction:

    .. math::
        t = \bar d \Big/ \sqrt{\Bigl(\tfrac1n + \tfrac{n_{test}}{n_{train}}\Bigr) s^2}

    with :math:`n - 1` degrees of freedom.

    Args:
        differences: One for each split, shape (n), n at least 2.
        test_to_train: Test graphs over training graphs: 1/8 for the paper's splits.
    """
    array = np.asarray(differences, dtype=float)
    n = array.size
    if n < 2:
        raise ValueError("A test needs two differences or more.")
    same = np.ptp(array) <= ROUNDING * np.abs(array).max()
    variance = 0.0 if same else (1 / n + test_to_train) * float(array.var(ddof=1))
    return Estimate.of(float(array.mean()), variance, n - 1, n)

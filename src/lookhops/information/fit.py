"""How fast the gain dies away, and how many hops that makes worth looking at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Rates of decay that are tried: from a gain that grows to one that is gone after a hop.
SLOWEST, FASTEST = -1.0, 20.0
# Grids that are searched, each ten times finer than the one before: beyond this is rounding.
ROUNDS = 13


@dataclass(frozen=True)
class Decay:
    r"""The curve :math:`a e^{-bk}` with the least squared distance to the gains.

    Args:
        a: Height.
        b: Rate.
        r2: Share of the gains' variance that it explains.
        mse: Mean squared distance.
    """

    a: float
    b: float
    r2: float
    mse: float

    def __call__(self, k: np.ndarray | float) -> np.ndarray:
        """The fitted gain at k."""
        return np.asarray(self.a * np.exp(-self.b * np.asarray(k)))


def fit_decay(k: np.ndarray, gain: np.ndarray) -> Decay:
    """Fit a e^(-b k) to gains, shape (m): least squares, as the paper does."""
    a, b = fit_rates(k, gain[None])
    residual = gain - a * np.exp(-b * k)
    variance = ((gain - gain.mean()) ** 2).sum()
    r2 = 1 - (residual**2).sum() / variance if variance > 0 else float("nan")
    return Decay(float(a[0]), float(b[0]), float(r2), float((residual**2).mean()))


def fit_rates(k: np.ndarray, gain: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Fit many curves at once: gains (m, len(k)), heights and rates (m).

    For a given :math:`b` the best :math:`a` is known, :math:`\sum y e^{-bk} / \sum e^{-2bk}`, which
    leaves one number to search: on a grid first, as there may be more than one valley, then on
    ever finer grids around its lowest point.
    """
    # From the fastest on: of curves that fit alike, the one that falls faster.
    rates = np.linspace(FASTEST, SLOWEST, 421)[None]
    step = (FASTEST - SLOWEST) / 420
    every = np.arange(len(gain))
    for _ in range(ROUNDS):
        # From the first k on, so that nothing overflows or vanishes at the ends of the search.
        curve = np.exp(-rates[:, :, None] * (k - k[0]))
        height = (gain[:, None] * curve).sum(axis=2) / (curve**2).sum(axis=2)
        misfit = ((gain[:, None] - height[:, :, None] * curve) ** 2).sum(axis=2)
        lowest = np.argmin(misfit, axis=1)
        b = np.broadcast_to(rates, misfit.shape)[every, lowest]
        a = height[every, lowest] * np.exp(b * k[0])
        rates = np.clip(b[:, None] + step * np.linspace(1, -1, 21), SLOWEST, FASTEST)
        step /= 10
    return a, b


def smallest_k(b: np.ndarray | float, epsilon: float) -> np.ndarray:
    r"""The smallest k >= 1 with :math:`e^{-bk} \le` epsilon; infinite where gains do not decay."""
    rate = np.asarray(b, dtype=np.float64)
    with np.errstate(divide="ignore"):
        # The small number: a k that meets epsilon exactly is not lost to rounding.
        hops = np.ceil(-np.log(epsilon) / np.maximum(rate, 0) - 1e-9)
    return np.maximum(hops, 1)

"""How fast the gain dies away, and how many hops that makes worth looking at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Rates of decay that are tried: from a gain that grows to one that is gone after a hop.
SLOWEST, FASTEST = -1.0, 20.0


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
    leaves one number to search: on a grid first, as there may be more than one valley, then by
    narrowing the interval around its lowest point.
    """
    grid = np.linspace(FASTEST, SLOWEST, 421)  # of curves that fit alike, the one that falls faster
    lowest = np.argmin(_misfit(k, gain, np.broadcast_to(grid, (len(gain), grid.size))), axis=1)
    left = grid[np.minimum(lowest + 1, grid.size - 1)]
    right = grid[np.maximum(lowest - 1, 0)]
    golden = (np.sqrt(5) - 1) / 2
    for _ in range(60):
        width = golden * (right - left)
        inner = np.stack((right - width, left + width), axis=1)
        misfit = _misfit(k, gain, inner)
        take_left = misfit[:, 0] < misfit[:, 1]
        left = np.where(take_left, left, inner[:, 0])
        right = np.where(take_left, inner[:, 1], right)
    b = (left + right) / 2
    return _height(k, gain, b[:, None])[:, 0], b


def _height(k: np.ndarray, gain: np.ndarray, b: np.ndarray) -> np.ndarray:
    # Measured from the first k, so that nothing overflows or vanishes at the ends of the search.
    curve = np.exp(-b[:, :, None] * (k - k[0]))
    at_first = (gain[:, None] * curve).sum(axis=2) / (curve**2).sum(axis=2)
    return at_first * np.exp(b * k[0])


def _misfit(k: np.ndarray, gain: np.ndarray, b: np.ndarray) -> np.ndarray:
    curve = np.exp(-b[:, :, None] * (k - k[0]))
    height = (gain[:, None] * curve).sum(axis=2) / (curve**2).sum(axis=2)
    return ((gain[:, None] - height[:, :, None] * curve) ** 2).sum(axis=2)


def smallest_k(b: np.ndarray | float, epsilon: float) -> np.ndarray:
    r"""The smallest k >= 1 with :math:`e^{-bk} \le` epsilon; infinite where gains do not decay."""
    rate = np.asarray(b, dtype=np.float64)
    with np.errstate(divide="ignore"):
        # The small number: a k that meets epsilon exactly is not lost to rounding.
        hops = np.ceil(-np.log(epsilon) / np.maximum(rate, 0) - 1e-9)
    return np.maximum(hops, 1)

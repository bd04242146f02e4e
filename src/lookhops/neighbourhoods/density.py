"""Gaussian kernel densities of many values, and the divergence of one from another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

# The divergence is a sum over this many points, with this inside its logarithm (the paper's code).
POINTS = 1000
FLOOR = 1e-15

# A kernel is cut where it is 1e-20 of its peak, far below the floor: the floor decides the tails.
CUT = 9.6
# Binned values lie on a lattice at least this many times finer than the bandwidth. A density z
# bandwidths from its only value is then off by at most z^2 / (8 * FINENESS^2) of itself.
FINENESS = 16
# With this few values the plain sum is as fast as the binned one; in a square of all pairs, more.
FEW_VALUES = 24
FEW_PAIRED = 1024
# A lattice finer than this against the points would have more cells than most samples have values.
FINEST = 64
# Entropies this close are one value: the difference is the rounding of sums in another order.
SAME = 1e-11


@dataclass(frozen=True, eq=False)
class Sample:
    r"""Distinct values :math:`v_j`, each met :math:`m_j` times: what a density is made of."""

    values: np.ndarray
    counts: np.ndarray

    @classmethod
    def observed(cls, values: np.ndarray, same: float = SAME) -> Sample:
        """A sample of single observations; values as close as ``same`` count as one."""
        ordered = np.sort(values)
        bounds = run_bounds(ordered[1:] - ordered[:-1] > same)
        return cls(ordered[bounds[:-1]], np.diff(bounds).astype(np.float64))

    @cached_property
    def total(self) -> int:
        """The number of observations, n."""
        return int(self.counts.sum())

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        return float(self.values.min()), float(self.values.max())

    @cached_property
    def weights(self) -> np.ndarray:
        r"""The share of each value, :math:`w_j = m_j / n`."""
        return self.counts / self.total

    @cached_property
    def concentration(self) -> float:
        r"""The sum of squared weights, :math:`\sum_j w_j^2`."""
        return float(self.weights @ self.weights)

    @cached_property
    def bandwidth(self) -> float:
        r"""Silverman's factor times the weighted standard deviation; 0 where all values agree.

        .. math:: h = \left(\tfrac{3 n}{4}\right)^{-1/5}
            \sqrt{\frac{\sum_j w_j (v_j - \bar v)^2}{1 - \sum_j w_j^2}}

        It is that of SciPy's ``gaussian_kde`` for distinct values with their counts as weights.
        """
        low, high = self.ends
        if high - low <= SAME:
            return 0.0
        variance = self.weights @ (self.values - self.weights @ self.values) ** 2
        return silverman(self.total) * math.sqrt(variance / (1 - self.concentration))


def run_bounds(changes: np.ndarray) -> np.ndarray:
    """Where runs begin, and the last ends: ``changes`` says which differ from the one before."""
    return np.concatenate(([0], np.flatnonzero(changes) + 1, [changes.size + 1]))


def share(position: np.ndarray, counts: np.ndarray, cells: int) -> np.ndarray:
    """Share counts at positions from 0 to ``cells`` - 1 between the whole numbers beside them."""
    left = position.astype(np.int64)
    right_share = (position - left) * counts
    mass = np.bincount(left, counts - right_share, cells)
    mass[1:] += np.bincount(left, right_share, cells)[:-1]
    return mass


def silverman(total: np.ndarray | float) -> Any:
    """Silverman's factor for this many observations of one dimension."""
    return (0.75 * total) ** -0.2


def evaluate(sample: Sample, low: float, high: float) -> np.ndarray:
    """The density at ``POINTS`` even points from ``low`` to ``high``, which enclose all values.

    Few values are summed as they are; many are put on a fine lattice first (see ``FINENESS``).
    """
    step = (high - low) / (POINTS - 1)
    finer = max(1, math.ceil(step * FINENESS / sample.bandwidth))
    if sample.values.size <= FEW_VALUES or finer > FINEST:
        return evaluate_exactly(sample, np.linspace(low, high, POINTS))
    cell = step / finer
    mass = share((sample.values - low) / cell, sample.counts, (POINTS - 1) * finer + 1)
    # Sharing a value between its two neighbours widens it; the kernel is narrowed by as much.
    width = math.sqrt(sample.bandwidth**2 - cell**2 / 6)
    return convolve(mass, width / cell, finer) / (sample.total * width * math.sqrt(2 * math.pi))


def evaluate_exactly(sample: Sample, points: np.ndarray) -> np.ndarray:
    """The density of a sample at any points, shape (p): the plain sum, a slice at a time."""
    density = np.zeros(points.size)
    for start in range(0, sample.values.size, 1024):
        part = slice(start, start + 1024)
        distance = (points[:, None] - sample.values[part]) / sample.bandwidth
        density += np.exp(-0.5 * distance**2) @ sample.counts[part]
    return density / (sample.total * sample.bandwidth * math.sqrt(2 * math.pi))


def global_density(values: np.ndarray) -> np.ndarray:
    r"""The kernel density :math:`G_c` of a channel at each of its values, shape (n)."""
    values = values.astype(np.float64)
    low, scale = values.min(), np.ptp(values)
    values = (values - low) / scale  # features come in any unit
    sample = Sample.observed(values, same=0.0)
    if sample.values.size <= FEW_PAIRED:
        which = np.searchsorted(sample.values, values)
        return evaluate_exactly(sample, sample.values)[which] / scale
    cell = sample.bandwidth / FINENESS
    mass = share(sample.values / cell, sample.counts, int(1 / cell) + 2)
    # The lattice widens a value once when it is shared out and once when it is read between points.
    width = math.sqrt(sample.bandwidth**2 - cell**2 / 3)
    density = convolve(mass, width / cell)
    density /= sample.total * scale * width * math.sqrt(2 * math.pi)
    return np.interp(values / cell, np.arange(density.size), density)


def convolve(mass: np.ndarray, width: float, every: int = 1) -> np.ndarray:
    """Convolve with a Gaussian of this width in cells, peak 1, and keep one point in ``every``.

    A plain sum of positive terms: unlike a Fourier transform, it leaves no rounding noise of the
    size of the peak in the tails, where the divergence would read it.
    """
    reach = min(math.ceil(CUT * width / every), math.ceil(mass.size / every))
    offsets = np.arange(-reach * every, (reach + 1) * every)
    kernel = np.exp(-0.5 * (offsets / width) ** 2).reshape(-1, every)
    rows = (mass.size - 1) // every + 1
    padded = np.zeros((rows + 2 * reach, every))
    padded.reshape(-1)[reach * every : reach * every + mass.size] = mass
    density = np.zeros(rows)
    for i in range(every):
        density += np.correlate(padded[:, i], kernel[:, i], "valid")
    return density


def divergence(new: Sample, old: Sample) -> float:
    r"""Kullback-Leibler divergence of the density of one sample from that of another.

    .. math:: \mathrm{KL}(P \| Q) = \frac{b - a}{1000} \sum_{j=1}^{1000}
        P(x_j) \log \frac{P(x_j) + 10^{-15}}{Q(x_j) + 10^{-15}}

    with 1,000 even points :math:`x_j` from the smaller minimum :math:`a` to the larger maximum
    :math:`b` of the two. NaN where either has no density (all its values agree).
    """
    if new.bandwidth == 0 or old.bandwidth == 0:
        return math.nan
    low, high = min(new.ends + old.ends), max(new.ends + old.ends)
    p, q = evaluate(new, low, high), evaluate(old, low, high)
    return float(p @ np.log((p + FLOOR) / (q + FLOOR))) * (high - low) / POINTS

"""The bootstrap: information gain of graphs drawn again and again from those that we have.

The neighbourhoods of a graph do not depend on which other graphs were drawn, so that a resample is
a product: how often each unit was drawn, times how many of its nodes have each entropy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lookhops.information.compositions import Entropies
from lookhops.information.density import CUT, FLOOR, POINTS, share, silverman
from lookhops.information.entropy import Scope

# More graphs than this are drawn in as many random bundles: as good a bootstrap, and no slower for
# a million graphs.
UNITS = 128
# Cells to a bandwidth. It is coarser than for the estimate itself: an interval needs fewer digits.
CELLS_PER_BANDWIDTH = 2
MOST_CELLS = 4096


@dataclass(frozen=True)
class Resampling:
    """Which graphs were drawn how often.

    Args:
        weights: How often each unit was drawn in each resample, shape (r, u).
        unit: The unit of each graph, shape (g); any number for graphs that do not take part.
    """

    weights: np.ndarray
    unit: np.ndarray

    @classmethod
    def draw(cls, scope: Scope, count: int, seed: int) -> Resampling:
        """Draw as many graphs as there are, with replacement, ``count`` times."""
        generator = np.random.default_rng(seed)
        nodes = np.diff(scope.structure.node_ptr)
        graphs = scope.members[nodes[scope.members] > 0]  # those without nodes tell nothing
        units = min(graphs.size, UNITS) if count else 1
        unit = np.zeros(nodes.size, dtype=np.int64)
        unit[graphs] = generator.permutation(graphs.size) % units
        weights = generator.multinomial(units, np.full(units, 1 / units), size=count)
        return cls(weights.astype(np.float64), unit)

    @property
    def units(self) -> int:
        """How many graphs or bundles of graphs are drawn from."""
        return self.weights.shape[1]


def resampled_divergences(hops: Sequence[Entropies], weights: np.ndarray) -> np.ndarray:
    """KL of each hop's density from the one before in each resample, shape (r, K - 1).

    Args:
        hops: The entropies of one channel, for k = 1 to K.
        weights: How often each unit was drawn, shape (r, u).
    """
    samples = [one.sample for one in hops]
    # Even cells over the entropies at all k, fine enough for the narrowest density.
    low, high = min(s.low for s in samples), max(s.high for s in samples)
    narrowest = min((s.bandwidth for s in samples if s.bandwidth > 0), default=1.0)
    cell = max(narrowest / CELLS_PER_BANDWIDTH, (high - low) / (MOST_CELLS - 2))
    cells = int((high - low) / cell) + 2
    units = weights.shape[1]
    by_unit = [
        share((one.values - low) / cell + one.unit * cells, one.counts, units * cells)
        for one in hops
    ]
    # One product for all k: many small ones make the threads of a busy machine wait for each other.
    drawn = weights @ np.hstack([mass.reshape(units, cells) for mass in by_unit])
    densities = [
        _densities(mass, whole.reshape(units, cells).sum(axis=0), sample.concentration) / cell
        for mass, whole, sample in zip(
            np.split(drawn, len(hops), axis=1), by_unit, samples, strict=True
        )
    ]
    ends = np.array([_ends(one, weights > 0) for one in hops])  # (K, 2, r)
    found = np.full((len(weights), len(hops) - 1), np.nan)
    for k in range(1, len(hops)):
        if samples[k].bandwidth == 0 or samples[k - 1].bandwidth == 0:
            continue
        p, q = densities[k], densities[k - 1]
        summand = p * np.log((p + FLOOR) / (q + FLOOR))
        lowest, highest = ends[k - 1 : k + 1, 0].min(axis=0), ends[k - 1 : k + 1, 1].max(axis=0)
        # Most resamples have the same smallest and largest value.
        distinct, which = np.unique(np.stack((lowest, highest)), axis=1, return_inverse=True)
        for i, (a, b) in enumerate(distinct.T):
            # The sum over 1,000 points, read between the cells, is a weighted sum of the cells.
            points = (np.linspace(a, b, POINTS) - low) / cell
            rows = which.reshape(-1) == i
            times = share(points, np.ones(POINTS), cells)
            found[rows, k - 1] = summand[rows] @ times * ((b - a) / POINTS)
    return found


def _ends(entropies: Entropies, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest entropy of each resample, given which units it drew (r, u)."""
    low = np.full(drawn.shape[1], math.inf)
    high = -low
    np.minimum.at(low, entropies.unit, entropies.values)
    np.maximum.at(high, entropies.unit, entropies.values)
    return np.where(drawn, low, math.inf).min(axis=1), np.where(drawn, high, -math.inf).max(axis=1)


def _densities(mass: np.ndarray, whole: np.ndarray, concentration: float) -> np.ndarray:
    """Each resample's kernel density over cells of width 1, with its own bandwidth.

    Args:
        mass: What the resamples hold in each cell, shape (r, cells).
        whole: What the whole sample holds there, shape (cells).
        concentration: That of the whole sample.
    """
    total = mass.sum(axis=1)
    held = mass / total[:, None]
    place = np.arange(whole.size)
    # Sharing values out to two points has widened them by 1/6 of a squared cell.
    variance = np.maximum(held @ place**2 - (held @ place) ** 2 - 1 / 6, 1e-6)
    # How many values agree is known for the sample; for a resample it is scaled by the cells'.
    whole = whole / whole.sum()
    variance /= np.maximum(1 - concentration * (held**2).sum(axis=1) / (whole @ whole), 1e-6)
    width = silverman(total) * np.sqrt(variance)
    width = np.sqrt(np.maximum(width**2 - 1 / 6, 1 / 16))[:, None]
    reach = min(math.ceil(CUT * width.max()), whole.size)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    kernel /= width * math.sqrt(2 * math.pi)
    wide = [np.correlate(one, near, "full") for one, near in zip(held, kernel, strict=True)]
    return np.stack(wide)[:, reach:-reach]

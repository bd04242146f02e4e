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
from lookhops.information.density import CUT, FLOOR, POINTS, Sample, share, silverman
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


@dataclass(frozen=True)
class Lattice:
    """Even cells over the entropies of one channel at all k.

    Args:
        low: The first point.
        cell: From one point to the next.
        cells: How many points there are.
    """

    low: float
    cell: float
    cells: int

    @classmethod
    def over(cls, samples: Sequence[Sample]) -> Lattice:
        """A lattice over all values, fine enough for the narrowest density."""
        low, high = min(s.low for s in samples), max(s.high for s in samples)
        narrowest = min((s.bandwidth for s in samples if s.bandwidth > 0), default=1.0)
        cell = max(narrowest / CELLS_PER_BANDWIDTH, (high - low) / (MOST_CELLS - 2))
        return cls(low, cell, int((high - low) / cell) + 2)

    def histograms(self, entropies: Entropies, units: int) -> np.ndarray:
        """Each unit's nodes, shared between the two points beside their entropies, (u, cells)."""
        count, unit, start = entropies.entries
        place = (entropies.values - self.low) / self.cell
        left = np.minimum(place.astype(np.int64), self.cells - 2)
        right_share = np.repeat(place - left, np.diff(start)) * count
        cell = np.repeat(left, np.diff(start)) + unit * np.int64(self.cells)
        mass = np.bincount(cell, count - right_share, units * self.cells)
        mass[1:] += np.bincount(cell, right_share, units * self.cells - 1)
        return mass.reshape(units, self.cells)


def resampled_divergences(hops: Sequence[Entropies], weights: np.ndarray) -> np.ndarray:
    """KL of each hop's density from the one before in each resample, shape (r, K - 1).

    Args:
        hops: The entropies of one channel, for k = 1 to K.
        weights: How often each unit was drawn, shape (r, u).
    """
    samples = [one.sample for one in hops]
    lattice = Lattice.over(samples)
    by_unit = [lattice.histograms(one, weights.shape[1]) for one in hops]
    # One product for all k: many small ones make the threads of a busy machine wait for each other.
    drawn = np.split(weights @ np.hstack(by_unit), len(hops), axis=1)
    densities = [_densities(*one, lattice) for one in zip(drawn, samples, strict=True)]
    ends = np.array([_ends(one, weights > 0) for one in hops])  # (K, 2, r)
    found = np.full((len(weights), len(hops) - 1), np.nan)
    for k in range(1, len(hops)):
        if samples[k].bandwidth == 0 or samples[k - 1].bandwidth == 0:
            continue
        p, q = densities[k], densities[k - 1]
        summand = p * np.log((p + FLOOR) / (q + FLOOR))
        low, high = ends[k - 1 : k + 1, 0].min(axis=0), ends[k - 1 : k + 1, 1].max(axis=0)
        # Most resamples have the same smallest and largest value.
        distinct, which = np.unique(np.stack((low, high)), axis=1, return_inverse=True)
        for i, (a, b) in enumerate(distinct.T):
            # The sum over 1,000 points, read between the cells, is a weighted sum of the cells.
            points = (np.linspace(a, b, POINTS) - lattice.low) / lattice.cell
            times = share(points, np.ones(POINTS), lattice.cells)
            rows = np.flatnonzero(which.reshape(-1) == i)
            found[rows, k - 1] = summand[rows] @ times * ((b - a) / POINTS)
    return found


def _ends(entropies: Entropies, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest entropy of each resample, given which units it drew (r, u)."""
    _, unit, start = entropies.entries
    values = np.repeat(entropies.values, np.diff(start))
    low = np.full(drawn.shape[1], math.inf)
    high = -low
    np.minimum.at(low, unit, values)
    np.maximum.at(high, unit, values)
    return (
        np.where(drawn, low, math.inf).min(axis=1),
        np.where(drawn, high, -math.inf).max(axis=1),
    )


def _densities(mass: np.ndarray, sample: Sample, lattice: Lattice) -> np.ndarray:
    """Each resample's kernel density, with its own bandwidth, at the lattice's points."""
    total = mass.sum(axis=1)
    share = mass / total[:, None]
    place = np.arange(lattice.cells)
    mean = share @ place
    # Sharing values out to two points has widened them by 1/6 of a squared cell.
    variance = np.maximum(share @ place**2 - mean**2 - 1 / 6, 1e-6)
    # How many values agree is known for the sample; for a resample it is scaled by the cells'.
    whole = sample.spread(lattice.low, lattice.cell, lattice.cells) / sample.total
    concentration = sample.concentration * (share**2).sum(axis=1) / (whole @ whole)
    variance /= np.maximum(1 - concentration, 1e-6)
    width = np.array([silverman(n) for n in total]) * np.sqrt(variance)
    width = np.sqrt(np.maximum(width**2 - 1 / 6, 1 / 16))
    reach = min(math.ceil(CUT * width.max()), lattice.cells)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width[:, None]) ** 2)
    kernel /= lattice.cell * width[:, None] * math.sqrt(2 * math.pi)
    wide = [np.correlate(s, one, "full") for s, one in zip(share, kernel, strict=True)]
    return np.stack(wide)[:, reach:-reach]

"""The bootstrap: information gain of graphs drawn again and again from those that we have.

The neighbourhoods of a graph do not depend on which other graphs were drawn, so that a resample is
a weighted sum of the graphs' own histograms of entropies, made once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lookhops.information.density import CUT, FLOOR, POINTS, Sample, share, silverman
from lookhops.information.histograms import CountedHistograms, Histograms, Lattice
from lookhops.information.views import View

# More graphs than this are drawn in as many random bundles: as good a bootstrap, and no slower for
# a million graphs.
UNITS = 128
# Histograms are held for as many channels at once as fit in this many bytes.
HELD_BYTES = 1 << 29


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
    def draw(cls, view: View, count: int, seed: int) -> Resampling:
        """Draw as many graphs as there are, with replacement, ``count`` times."""
        generator = np.random.default_rng(seed)
        nodes = np.diff(view.structure.node_ptr)
        graphs = view.members[nodes[view.members] > 0]  # those without nodes tell nothing
        units = min(graphs.size, UNITS)
        unit = np.zeros(nodes.size, dtype=np.int64)
        unit[graphs] = generator.permutation(graphs.size) % units
        weights = generator.multinomial(units, np.full(units, 1 / units), size=count)
        return cls(weights.astype(np.float64), unit)


def resampled_divergences(
    histograms: Histograms, samples: Sequence[Sample], weights: np.ndarray
) -> np.ndarray:
    """KL of each hop's density from the one before in each resample, shape (r, K - 1).

    Args:
        histograms: The entropies of one channel, unit by unit.
        samples: The entropies of all graphs for k = 1 to K.
        weights: How often each unit was drawn, shape (r, u).
    """
    lattice = histograms.lattice
    # One product for all k: many small ones make the threads of a busy machine wait for each other.
    by_unit = np.ascontiguousarray(histograms.mass.transpose(1, 0, 2)).reshape(weights.shape[1], -1)
    drawn_mass = (weights @ by_unit).reshape(len(weights), len(samples), lattice.cells)
    densities = [_densities(drawn_mass[:, k], lattice, one) for k, one in enumerate(samples)]
    drawn = weights > 0
    low = np.where(drawn, histograms.low[:, None], math.inf).min(axis=2)
    high = np.where(drawn, histograms.high[:, None], -math.inf).max(axis=2)
    found = np.full((len(weights), len(samples) - 1), np.nan)
    for k in range(1, len(samples)):
        if samples[k].bandwidth == 0 or samples[k - 1].bandwidth == 0:
            continue
        p, q = densities[k], densities[k - 1]
        summand = p * np.log((p + FLOOR) / (q + FLOOR))
        ends = np.stack((low[k - 1 : k + 1].min(axis=0), high[k - 1 : k + 1].max(axis=0)), axis=1)
        # Most resamples have the same smallest and largest value.
        for (a, b), rows in _groups(ends):
            # The sum over 1,000 points, read between the cells, is a weighted sum of the cells.
            points = (np.linspace(a, b, POINTS) - lattice.low) / lattice.cell
            times = share(points, np.ones(POINTS), lattice.cells)
            found[rows, k - 1] = summand[rows] @ times * ((b - a) / POINTS)
    return found


def _groups(pairs: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The distinct rows of an array, each with the numbers of the rows that are equal to it."""
    distinct, which = np.unique(pairs, axis=0, return_inverse=True)
    which = which.reshape(-1)
    for i, pair in enumerate(distinct):
        yield pair, np.flatnonzero(which == i)


def _densities(mass: np.ndarray, lattice: Lattice, sample: Sample) -> np.ndarray:
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


def resample_counted(
    view: View,
    samples: Sequence[Sequence[Sample]],
    largest: int,
    resampling: Resampling,
    progress: Callable[[str, float], None],
) -> np.ndarray:
    """Divergences of the counted channels in each resample, shape (c, r, K - 1).

    Args:
        view: The graphs.
        samples: Their entropies, for each channel and k.
        largest: The most nodes that any node sees at any k.
        resampling: Which graphs were drawn.
        progress: Told what is being done and how much of it.
    """
    lattices = [Lattice.over(one, math.log(largest)) for one in samples]
    units = resampling.weights.shape[1]
    room = 8 * view.max_k * units * max(lattice.cells for lattice in lattices)
    some = max(1, HELD_BYTES // room)
    found: list[np.ndarray] = []
    for start in range(0, len(samples), some):
        part = lattices[start : start + some]
        histograms = CountedHistograms(view, start, part, resampling.unit, units)
        for seen in view.counted(range(start, start + len(part))):
            histograms.add(*seen)
        for one in histograms:
            divergence = resampled_divergences(one, samples[len(found)], resampling.weights)
            found.append(divergence)
            progress("resampling", len(found) / len(samples))
    return np.array(found)

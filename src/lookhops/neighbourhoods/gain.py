r"""The information gain of each further hop, its bootstrap, and how fast it dies away.

.. math:: IG(k) = \frac{1}{d} \sum_c \mathrm{KL}\left(P_c^{(k)} \,\|\, P_c^{(k-1)}\right)

with :math:`P_c^{(k)}` the density of kInfo over all nodes in channel :math:`c`. The neighbourhoods
of a graph do not depend on which other graphs were drawn, so that a resample is a product: how
often each unit was drawn, times how many of its nodes have each entropy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from lookhops.neighbourhoods.compositions import CompositionCounter, Entropies
from lookhops.neighbourhoods.density import CUT, FLOOR, POINTS, Sample, divergence, share, silverman
from lookhops.neighbourhoods.entropy import Scope

# More graphs than this are drawn in as many random bundles: as good a bootstrap, and no slower for
# a million graphs.
UNITS = 128
# Cells to a bandwidth. It is coarser than for the estimate itself: an interval needs fewer digits.
CELLS_PER_BANDWIDTH = 2
MOST_CELLS = 4096


@dataclass(frozen=True)
class Resampling:
    """Which graphs were drawn how often."""

    weights: np.ndarray  # how often each unit was drawn in each resample, (r, u)
    unit: np.ndarray  # of each graph, (g); any number for graphs that do not take part

    @classmethod
    def draw(cls, scope: Scope, count: int, seed: int) -> Resampling:
        """Draw as many graphs as there are, with replacement, ``count`` times."""
        generator = np.random.default_rng(seed)
        nodes = scope.nodes_per_graph
        graphs = scope.members[nodes[scope.members] > 0]  # those without nodes add nothing
        units = min(graphs.size, UNITS) if count else 1
        unit = np.zeros(nodes.size, dtype=np.int64)
        unit[graphs] = generator.permutation(graphs.size) % units
        weights = generator.multinomial(units, np.full(units, 1 / units), size=count)
        return cls(weights.astype(np.float64), unit)


def resampled_divergences(hops: Sequence[Entropies], weights: np.ndarray) -> np.ndarray:
    """KL of each hop's density from the one before in each resample, shape (r, K - 1)."""
    samples = [one.sample for one in hops]
    # Even cells over the entropies at all k, fine enough for the narrowest density.
    low, high = min(s.ends[0] for s in samples), max(s.ends[1] for s in samples)
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
    parts = zip(np.split(drawn, len(hops), axis=1), by_unit, samples, strict=True)
    densities = [
        _densities(mass, total.reshape(units, cells).sum(axis=0), sample.concentration) / cell
        for mass, total, sample in parts
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


def _densities(mass: np.ndarray, of_sample: np.ndarray, concentration: float) -> np.ndarray:
    """The kernel density of each resample, which holds ``mass`` (r, cells), with its own bandwidth.

    ``of_sample`` (cells) is what the sample that they were drawn from holds, of a concentration.
    """
    total = mass.sum(axis=1)
    held = mass / total[:, None]
    cell = np.arange(of_sample.size)
    # Sharing values out to two points has widened them by 1/6 of a squared cell.
    variance = np.maximum(held @ cell**2 - (held @ cell) ** 2 - 1 / 6, 1e-6)
    # How many values agree is known for the sample; for a resample it is scaled by the cells'.
    of_sample = of_sample / of_sample.sum()
    same = concentration * (held**2).sum(axis=1) / (of_sample @ of_sample)
    variance /= np.maximum(1 - same, 1e-6)
    width = silverman(total) * np.sqrt(variance)
    width = np.sqrt(np.maximum(width**2 - 1 / 6, 1 / 16))[:, None]
    reach = min(math.ceil(CUT * width.max()), of_sample.size)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    kernel /= width * math.sqrt(2 * math.pi)
    wide = [np.correlate(one, near, "full") for one, near in zip(held, kernel, strict=True)]
    return np.stack(wide)[:, reach:-reach]


# Called with what is being done and how much of it, from 0 to 1.
Progress = Callable[[str, float], None]


class Gains(NamedTuple):
    """Divergences of the densities from one hop to the next, for k = 2 to K."""

    by_channel: np.ndarray  # (K - 1, d)
    mean: np.ndarray  # over the channels that have a density, or NaN, (K - 1)
    resampled: np.ndarray  # the same in each resample, (r, K - 1)


def measure(scope: Scope, resampling: Resampling, progress: Progress) -> Gains:
    """Information gains of the graphs in scope, and of the resamples of them."""
    columns = scope.channels.columns
    measured = np.empty((columns.size, scope.max_k - 1))
    resampled = np.empty((columns.size, len(resampling.weights), scope.max_k - 1))
    channels = chain(_counted(scope, resampling, progress), _summed(scope, resampling))
    for c, hops in enumerate(channels):
        measured[c] = [divergence(new.sample, old.sample) for old, new in pairwise(hops)]
        if len(resampling.weights):
            resampled[c] = resampled_divergences(hops, resampling.weights)
        progress("densities", (c + 1) / columns.size)
    by_channel = measured[np.argsort(columns)].T
    return Gains(by_channel, _mean(by_channel, axis=1), _mean(resampled, axis=0))


def _counted(scope: Scope, resampling: Resampling, progress: Progress) -> Iterator[list[Entropies]]:
    """For each counted channel: the entropies of the nodes for k = 1 to K."""
    if not scope.channels.counted.size:
        return
    units = resampling.weights.shape[1]
    counter = CompositionCounter(scope.channels.most, units, scope.max_k)
    done = 0
    for block, size, channel, ones in scope.counted():
        counter.add(resampling.unit[block.graphs][block.graph], size, channel, ones)
        done += block.nodes.size
        progress("neighbourhoods", done / scope.num_nodes)
    yield from counter.entropies(scope.channels.ratio)


def _summed(scope: Scope, resampling: Resampling) -> Iterator[list[Entropies]]:
    """The same for each summed channel."""
    unit_of_node = np.repeat(resampling.unit, scope.nodes_per_graph)
    for columns, nodes, entropy in scope.summed():
        unit, counts = unit_of_node[nodes], np.ones(nodes.size)
        for c in range(columns.size):
            yield [Entropies(h, unit, counts, Sample.observed(h)) for h in entropy[:, c]]


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """NumPy's ``nanmean``, without a warning where all are NaN."""
    count = (~np.isnan(values)).sum(axis=axis)
    return np.where(count > 0, np.nansum(values, axis=axis) / np.maximum(count, 1), np.nan)


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

    For a given :math:`b` the best :math:`a` is :math:`\sum y e^{-bk} / \sum e^{-2bk}`. The best
    :math:`b` is searched on a grid, as there may be several valleys, then on ever finer ones.
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

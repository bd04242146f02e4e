r"""The information gain of each further hop.

.. math:: IG(k) = \frac{1}{d} \sum_c \mathrm{KL}\left(P_c^{(k)} \,\|\, P_c^{(k-1)}\right)

with :math:`P_c^{(k)}` the density of kInfo over all nodes in channel :math:`c`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lookhops.information.density import Sample, divergence
from lookhops.information.histograms import summed_histograms
from lookhops.information.resample import Resampling, resample_counted, resampled_divergences
from lookhops.information.tally import Tally
from lookhops.information.views import View

# Told what is being done and how much of it, from 0 to 1.
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Gains:
    """Divergences of the densities from one hop to the next, for k = 2 to K.

    Args:
        by_channel: Of each channel in use, in the order of the columns of ``x``, (K - 1, d); NaN
            where kInfo is the same for all nodes, at k or k - 1, and so has no density.
        resampled: Mean over the channels in each resample, shape (r, K - 1).
    """

    by_channel: np.ndarray
    resampled: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """IG(k): mean over the channels that have a density, shape (K - 1); NaN where none has."""
        return _mean(self.by_channel, axis=1)


def measure(view: View, resampling: Resampling, progress: Progress) -> Gains:
    """Information gains of the graphs in a view, and of the resamples of them."""
    counted, counted_again = _counted(view, resampling, progress)
    summed, summed_again = _summed(view, resampling, progress)
    order = np.argsort(view.channels.columns)
    resampled = np.zeros((0, view.max_k - 1))
    if len(resampling.weights):
        resampled = _mean(np.array(counted_again + summed_again), axis=0)
    return Gains(np.array(counted + summed)[order].T, resampled)


def _counted(
    view: View, resampling: Resampling, progress: Progress
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Divergences of the counted channels, and those of the resamples."""
    if not view.channels.counted.size:
        return [], []
    tallies = tally(view, progress)
    samples = list(zip(*(t.samples(view.channels.ratio) for t in tallies), strict=True))
    measured = []
    for one in samples:
        measured.append(divergences(one))
        progress("densities", len(measured) / len(samples))
    if not len(resampling.weights):
        return measured, []
    largest = max(t.largest for t in tallies)
    return measured, list(resample_counted(view, samples, largest, resampling, progress))


def _summed(
    view: View, resampling: Resampling, progress: Progress
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Divergences of the summed channels, and those of the resamples."""
    measured, resampled = [], []
    node_ptr, weights = view.structure.node_ptr, resampling.weights
    graph = np.repeat(np.arange(node_ptr.size - 1), np.diff(node_ptr))
    for columns, nodes, entropy in view.summed():
        unit = resampling.unit[graph[nodes]]
        for c in range(columns.size):
            samples = [Sample.observed(values) for values in entropy[:, c]]
            measured.append(divergences(samples))
            if len(weights):
                histograms = summed_histograms(entropy[:, c], unit, weights.shape[1], samples)
                resampled.append(resampled_divergences(histograms, samples, weights))
            progress("continuous features", len(measured) / view.channels.summed.size)
    return measured, resampled


def divergences(samples: Sequence[Sample]) -> np.ndarray:
    """KL of each hop's density from the one before, k = 2 to K, shape (K - 1); NaN where none."""
    return np.array([divergence(new, old) for old, new in pairwise(samples)])


def tally(view: View, progress: Progress) -> list[Tally]:
    """Compositions of the neighbourhoods in the counted channels, for k = 1 to K."""
    tallies = [Tally(view.channels.most) for _ in range(view.max_k)]
    done = 0
    for block, size, channel, ones in view.counted():
        columns = tallies[0].columns(channel)[block.graph]
        for k, one in enumerate(tallies):
            one.add(size[k], columns, ones[k])
        done += block.nodes.size
        progress("neighbourhoods", done / view.num_nodes)
    return tallies


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """Mean of what is not NaN, NaN where all is, without a warning."""
    known = ~np.isnan(values)
    count = known.sum(axis=axis)
    total = np.where(known, values, 0).sum(axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)

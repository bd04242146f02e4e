r"""The information gain of each further hop.

.. math:: IG(k) = \frac{1}{d} \sum_c \mathrm{KL}\left(P_c^{(k)} \,\|\, P_c^{(k-1)}\right)

with :math:`P_c^{(k)}` the density of kInfo over all nodes in channel :math:`c`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

from lookhops.information.compositions import CompositionCounter, Entropies
from lookhops.information.density import Sample, divergence
from lookhops.information.entropy import Scope
from lookhops.information.resample import Resampling, resampled_divergences

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
    return Gains(measured[np.argsort(columns)].T, _mean(resampled, axis=0))


def _counted(scope: Scope, resampling: Resampling, progress: Progress) -> Iterator[list[Entropies]]:
    """For each counted channel: the entropies of all nodes for k = 1 to K."""
    if not scope.channels.counted.size:
        return
    counter = CompositionCounter(scope.channels.most, resampling.units, scope.max_k)
    done = 0
    for block, size, channel, ones in scope.counted():
        counter.add(resampling.unit[block.graphs][block.graph], size, channel, ones)
        done += block.nodes.size
        progress("neighbourhoods", done / scope.num_nodes)
    yield from counter.entropies(scope.channels.ratio)


def _summed(scope: Scope, resampling: Resampling) -> Iterator[list[Entropies]]:
    """For each summed channel: the entropies of all nodes for k = 1 to K."""
    unit_of_node = np.repeat(resampling.unit, np.diff(scope.structure.node_ptr))
    for columns, nodes, entropy in scope.summed():
        unit, counts = unit_of_node[nodes], np.ones(nodes.size)
        for c in range(columns.size):
            yield [Entropies(h, unit, counts, Sample.observed(h)) for h in entropy[:, c]]


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """Mean of what is not NaN, NaN where all is, without a warning."""
    known = ~np.isnan(values)
    count = known.sum(axis=axis)
    total = np.where(known, values, 0).sum(axis=axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)

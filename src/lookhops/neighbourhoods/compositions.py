"""What nodes see in two-valued channels, counted: how often each composition was met.

A composition is how many nodes a neighbourhood has, and how many of them hold the upper value of a
channel. It is a pair of whole numbers, so that nothing here depends on rounding: neighbourhoods
that are made up differently are two values of the density even where their entropies agree, as
those of all-lower and all-upper neighbourhoods of one size do.

For each k the counts are a sparse matrix, compositions by units. A unit is what the bootstrap
draws: a graph, or a bundle of graphs. Sums over the units are the counts of the whole set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lookhops.neighbourhoods.density import Sample, run_bounds

# So many keys wait at each k before they are merged.
PENDING = 1 << 20
# Different keys, ascending, and how often each was met.
KeyCounts = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Entropies:
    """The entropies of the nodes in one channel at one k: so many nodes of each unit have each."""

    values: np.ndarray  # (e), as `unit` and `counts`
    unit: np.ndarray
    counts: np.ndarray
    sample: Sample  # of all units together


class CompositionCounter:
    """Counts compositions for k = 1 to K, block by block.

    Each is one whole number, its key: the size, then the column, then the unit. Column 0 stands for
    the size alone, which all nodes have; then come the numbers of ones in the first channel, from 0
    on, those in the second, and so on. Compositions without ones are not stored, as in most graphs
    most labels are absent: they are what is left of the nodes that see so many nodes.
    """

    def __init__(self, most: np.ndarray, units: int, max_k: int) -> None:
        # `most`: the most upper values that a neighbourhood can hold in each channel, (c)
        widths = np.append(1, most + 1)
        self._start = np.cumsum(widths)[:-1]  # the column of no ones in each channel
        self._columns = int(widths.sum())
        self._units = units
        self._counts: list[list[KeyCounts]] = [[] for _ in range(max_k)]

    def add(
        self, unit: np.ndarray, size: np.ndarray, channel: np.ndarray, ones: np.ndarray
    ) -> None:
        """Count the neighbourhoods of nodes of these units (n), the others as ``Scope.counted``
        yields them."""
        row = self._columns * self._units
        kind = np.int32 if (int(size.max()) + 1) * row < 2**31 else np.int64
        column = (self._start[channel] * self._units + unit[:, None]).astype(kind)
        for counts, k_size, k_ones in zip(self._counts, size.astype(kind), ones, strict=True):
            first = k_size * row
            keys = column + first[:, None]
            keys += k_ones * self._units
            for met in (first + unit.astype(kind), keys[k_ones > 0]):
                counts.append(np.unique(met, return_counts=True))
            if sum(len(met) for met, _ in counts[1:]) > PENDING:
                counts[:] = [_merged(counts)]

    def entropies(self, ratio: np.ndarray) -> Iterator[list[Entropies]]:
        """For each channel: the entropies for k = 1 to K. It can be asked once."""
        hops = []
        while self._counts:  # lists of keys are large: each goes when it is merged
            hops.append(self._by_channel(*_merged(self._counts.pop(0))))
        for channel, one in enumerate(ratio):
            yield [self._entropies(channel, one, *hop) for hop in hops]

    def _by_channel(
        self, keys: np.ndarray, counts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Keys and counts, sizes alone first, then by channel, and where each channel begins."""
        first = np.zeros(self._columns, dtype=bool)
        first[self._start] = True
        # As small integers, which NumPy sorts in one sweep; -1: without ones, to be left out.
        channels = self._start.size
        kind = np.int16 if channels < 2**15 else np.int64
        group_of_column = np.where(first, -1, np.cumsum(first)).astype(kind)
        group = group_of_column[keys // self._units % self._columns]
        order = np.argsort(group, kind="stable")
        start = np.searchsorted(group[order], np.arange(channels + 2))
        order = order[start[0] :]
        return keys[order], counts[order], start - start[0]

    def _entropies(
        self, channel: int, ratio: float, keys: np.ndarray, counts: np.ndarray, start: np.ndarray
    ) -> Entropies:
        """The entropies in one channel at one k."""
        alone, here = slice(start[1]), slice(*start[channel + 1 : channel + 3])
        column = keys[here] // self._units % self._columns
        same_size = np.searchsorted(keys[alone], keys[here] - column * self._units)
        without = counts[alone] - np.bincount(same_size, counts[here], start[1])
        left = np.flatnonzero(without)
        composition, unit = np.divmod(np.append(keys[left], keys[here]), self._units)
        count = np.append(without[left], counts[here])
        bounds = run_bounds(composition[1:] != composition[:-1])
        size, column = np.divmod(composition[bounds[:-1]], self._columns)
        values = two_valued_entropy(size, np.maximum(column - self._start[channel], 0), ratio)
        sample = Sample(values, np.add.reduceat(count, bounds[:-1]))
        return Entropies(np.repeat(values, np.diff(bounds)), unit, count, sample)


def _merged(parts: list[KeyCounts]) -> KeyCounts:
    """The keys of several parts, and the sums of their counts."""
    keys, counts = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = run_bounds(keys[1:] != keys[:-1])[:-1]
    return keys[first], np.add.reduceat(counts[order], first)


def two_valued_entropy(size: np.ndarray, ones: np.ndarray, ratio: np.ndarray | float) -> np.ndarray:
    r"""The entropy of neighbourhoods in a two-valued channel.

    Scaling the densities changes nothing, so let the lower value have density 1 and the upper one
    :math:`r`: of :math:`s` nodes, :math:`m` with the upper value,
    :math:`H = \log(s - m + m r) - m r \log r / (s - m + m r)`.
    """
    upper = ones * ratio
    total = size - ones + upper
    return np.log(total) - upper * np.log(ratio) / total

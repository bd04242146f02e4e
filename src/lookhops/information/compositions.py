"""What nodes see in two-valued channels: for each k a sparse matrix, units by compositions.

A composition is how many nodes a neighbourhood has, and how many of them hold the upper value of a
channel. It is a pair of whole numbers, so that nothing here depends on rounding: neighbourhoods
that are made up differently are two values of the density even where their entropies agree, as
those of all-lower and all-upper neighbourhoods of one size do.

A unit is what the bootstrap draws: a graph, or a bundle of graphs. Column sums of the matrix are
the counts of the whole set; weights times the matrix are those of a resample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from lookhops.information.density import Sample

# Compositions are counted in a table of at most this many cells for each k, or sorted.
TABLE_KEYS = 1 << 23
# Compositions of this many neighbourhoods wait at each k before they are sorted and counted.
PENDING = 1 << 23


@dataclass(frozen=True)
class Entropies:
    """The entropies of the nodes in one channel at one k, unit by unit.

    Args:
        values: The entropies, shape (m).
        entries: How many nodes of a unit have one of them, the unit, and where the entries of each
            entropy begin: a sparse matrix (u, m) by columns, without empty rows.
        sample: The same for all units together.
    """

    values: np.ndarray
    entries: tuple[np.ndarray, np.ndarray, np.ndarray]
    sample: Sample


@dataclass(frozen=True)
class Compositions:
    """The compositions that were met at one k, channel by channel.

    Those without upper values are not stored, as in most graphs most labels are absent: they are
    what is left of the nodes that see so many nodes.

    Args:
        matrix: How many nodes of each unit have each composition, shape (u, m).
        size: How many nodes the neighbourhood has, shape (m).
        ones: How many of them hold the upper value, 1 or more, shape (m).
        start: Where the compositions of each channel begin, and where the last ends, shape (c + 1).
        seen: The distinct numbers of nodes seen, ascending, shape (s).
        by_size: How many nodes of each unit see so many nodes, shape (u, s).
    """

    matrix: sparse.csc_array
    size: np.ndarray
    ones: np.ndarray
    start: np.ndarray
    seen: np.ndarray
    by_size: np.ndarray

    def entropies(self, channel: int, ratio: float) -> Entropies:
        """The entropies in one channel, given the ratio of its two global densities."""
        first, last = self.start[channel : channel + 2]
        size, ones = self.size[first:last], self.ones[first:last]
        pointer = self.matrix.indptr[first : last + 1]
        unit = self.matrix.indices[pointer[0] : pointer[-1]]
        count = self.matrix.data[pointer[0] : pointer[-1]]
        place = np.repeat(np.searchsorted(self.seen, size), np.diff(pointer))
        cells = unit * np.int64(self.seen.size) + place
        with_ones = np.bincount(cells, count, self.by_size.size).reshape(self.by_size.shape)
        without = (self.by_size - with_ones).T
        rest, rest_unit = np.nonzero(without)
        held = np.bincount(rest, minlength=self.seen.size)  # in how many units
        left = np.flatnonzero(held)
        values = np.concatenate((np.log(self.seen[left]), two_valued_entropy(size, ones, ratio)))
        entries = (
            np.concatenate((without[rest, rest_unit], count)),
            np.concatenate((rest_unit, unit)),
            np.concatenate(([0], np.cumsum(held[left]), pointer[1:] - pointer[0] + rest.size)),
        )
        counts = np.add.reduceat(entries[0], entries[2][:-1])
        return Entropies(values, entries, Sample.counted(values, counts))


class CompositionCounter:
    """Counts compositions for k = 1 to K, block by block.

    Each is one whole number: its size, then its channel and ones, then the unit. The size alone,
    which all nodes have, stands before the first channel.

    Args:
        most: The most upper values that a neighbourhood can hold in each channel, shape (c).
        units: How many units there are.
        max_k: The largest number of hops, K.
    """

    def __init__(self, most: np.ndarray, units: int, max_k: int) -> None:
        widths = np.append(1, most + 1)
        self._start = np.cumsum(widths)[:-1]  # the column of no ones in each channel
        self._channel = np.repeat(np.arange(-1, most.size), widths)  # of each column
        self._units = units
        self._counts = [_KeyCounts() for _ in range(max_k)]

    def add(
        self, unit: np.ndarray, size: np.ndarray, channel: np.ndarray, ones: np.ndarray
    ) -> None:
        """Count the neighbourhoods of some nodes.

        Args:
            unit: The unit of each node's graph, shape (n).
            size: How many nodes each node sees, shape (K, n), 1 or more.
            channel: Channels, shape (n, l); any where there are no ones.
            ones: How many of the nodes seen hold the upper value there, shape (K, n, l).
        """
        row = self._channel.size * self._units
        kind = np.int32 if (int(size.max()) + 1) * row < 2**31 else np.int64
        column = (self._start[channel] * self._units + unit[:, None]).astype(kind)
        for counts, k_size, k_ones in zip(self._counts, size.astype(kind), ones, strict=True):
            first = k_size * row
            keys = column + first[:, None]
            keys += k_ones if self._units == 1 else k_ones * self._units
            # All units together have few compositions, which a table counts fastest.
            if self._units == 1 and (int(k_size.max()) + 1) * row <= TABLE_KEYS:
                counts.add_to_table(first)
                counts.add_to_table(keys.reshape(-1))
            else:
                counts.add(first + unit.astype(kind))
                counts.add(keys[k_ones > 0])

    def compositions(self) -> list[Compositions]:
        """What was counted, for k = 1 to K; it can be asked once."""
        found = []
        while self._counts:
            found.append(self._compositions(*self._counts.pop(0).result()))
        return found

    def _compositions(self, keys: np.ndarray, counts: np.ndarray) -> Compositions:
        composition, unit = np.divmod(keys, self._units)
        first = np.flatnonzero(np.diff(composition, prepend=-1))
        size, column = np.divmod(composition[first], self._channel.size)
        pointer = np.append(first, keys.size)
        matrix = sparse.csc_array((counts, unit, pointer), (self._units, first.size))
        sizes = np.flatnonzero(column == 0)
        # As small integers, which NumPy sorts in one sweep.
        kind = np.int16 if self._start.size < 2**15 else np.int64
        channel = self._channel.astype(kind)[column]
        ones = column - np.append(self._start, 0)[channel]
        order = np.argsort(channel, kind="stable")
        order = order[ones[order] > 0]
        return Compositions(
            matrix=matrix[:, order],
            size=size[order],
            ones=ones[order],
            start=np.searchsorted(channel[order], np.arange(self._start.size + 1)),
            seen=size[sizes],
            by_size=matrix[:, sizes].toarray(),
        )


class _KeyCounts:
    """How often each of many whole numbers was met."""

    def __init__(self) -> None:
        self._table = self._keys = self._counts = np.zeros(0, dtype=np.int32)
        # One array for all that wait: many small ones would leave holes in the memory.
        self._pending = np.empty(PENDING, dtype=np.int32)
        self._waiting = 0

    def add_to_table(self, keys: np.ndarray) -> None:
        """Count small numbers, in a table."""
        largest = int(keys.max())
        if largest >= self._table.size:
            grown = np.zeros(largest + 1 + largest // 2, dtype=np.int32)
            grown[: self._table.size] = self._table
            self._table = grown
        np.add.at(self._table, keys, np.int32(1))

    def add(self, keys: np.ndarray) -> None:
        """Count any numbers, by sorting them."""
        for start in range(0, keys.size, PENDING):
            part = keys[start : start + PENDING]
            if self._waiting + part.size > PENDING:
                self._count_pending()
            if part.dtype != self._pending.dtype:
                self._pending = self._pending.astype(np.int64)
            self._pending[self._waiting : self._waiting + part.size] = part
            self._waiting += part.size

    def _count_pending(self) -> None:
        keys = self._pending[: self._waiting]
        keys.sort()
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        self._merge(keys[first], np.diff(first, append=keys.size))
        self._waiting = 0

    def _merge(self, keys: np.ndarray, counts: np.ndarray) -> None:
        if self._keys.size:
            weights = np.concatenate((self._counts, counts))
            keys, which = np.unique(np.concatenate((self._keys, keys)), return_inverse=True)
            counts = np.bincount(which, weights, keys.size)
        self._keys, self._counts = keys, counts.astype(np.int32)

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """The numbers, ascending, and how often each was met."""
        small = np.flatnonzero(self._table)
        if small.size:
            self._merge(small, self._table[small])
        if self._waiting:
            self._count_pending()
        return self._keys, self._counts


def two_valued_entropy(size: np.ndarray, ones: np.ndarray, ratio: np.ndarray | float) -> np.ndarray:
    r"""The entropy of neighbourhoods in a two-valued channel.

    Scaling the densities changes nothing, so let the lower value have density 1 and the upper one
    :math:`r`: of :math:`s` nodes, :math:`m` with the upper value,
    :math:`H = \log(s - m + m r) - m r \log r / (s - m + m r)`.

    Args:
        size: Nodes, 1 or more.
        ones: How many of them hold the upper value.
        ratio: Density at the upper value over that at the lower.
    """
    upper = ones * ratio
    total = size - ones + upper
    return np.log(total) - upper * np.log(ratio) / total

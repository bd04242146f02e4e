"""How often each composition of a neighbourhood was met: so many nodes, so many upper values."""

from __future__ import annotations

import numpy as np

from lookhops.information.density import Sample
from lookhops.information.views import counted_entropy

# Compositions are counted in a table of at most this many cells, and beyond it in sorted lists.
TABLE_CELLS = 1 << 25


class Tally:
    """Counts of (channel, size, ones) at one k, filled block by block.

    A composition is a row of the table, its size, and a column, its channel and ones. It is a pair
    of whole numbers, so that nothing here depends on rounding: neighbourhoods that are made up
    differently are two values of the density even where their entropies agree, as those of
    all-lower and all-upper neighbourhoods of one size do.

    Args:
        most: The most ones that a neighbourhood can have in each channel, shape (c).
    """

    def __init__(self, most: np.ndarray) -> None:
        # The last column takes what belongs to no channel.
        self._widths = np.append(most + 1, 1)
        self._start = np.cumsum(self._widths) - self._widths
        self._stride = int(self._widths.sum())
        self._table = np.zeros((0, self._stride), dtype=np.int32)
        self._far_keys = self._far_counts = np.zeros(0, dtype=np.int64)
        self._sizes = np.zeros(0, dtype=np.int64)

    def columns(self, channel: np.ndarray) -> np.ndarray:
        """The column of no ones in each channel; -1 is no channel."""
        return self._start[channel]

    def add(self, size: np.ndarray, columns: np.ndarray, ones: np.ndarray) -> None:
        """Count neighbourhoods: sizes (n), their channels' columns (n, l) and ones (n, l)."""
        largest = int(size.max())
        self._sizes = _grown(self._sizes, largest + 1)
        self._sizes += np.bincount(size, minlength=len(self._sizes))
        keys = columns + ones
        keys += (size * self._stride)[:, None]
        keys = keys.reshape(-1)
        rows = TABLE_CELLS // self._stride
        if largest >= rows:
            far = keys >= rows * self._stride
            self._add_far(keys[far])
            keys = keys[~far]
        if largest >= len(self._table):
            self._table = _grown(self._table, min(largest + 1 + largest // 2, rows))
        np.add.at(self._table.reshape(-1), keys, np.int32(1))

    def _add_far(self, keys: np.ndarray) -> None:
        keys, counts = np.unique(keys, return_counts=True)
        both = np.concatenate((self._far_keys, keys))
        self._far_keys, which = np.unique(both, return_inverse=True)
        weights = np.concatenate((self._far_counts, counts))
        self._far_counts = np.bincount(which, weights, len(self._far_keys)).astype(np.int64)

    @property
    def largest(self) -> int:
        """The most nodes of any neighbourhood."""
        return len(self._sizes) - 1

    def compositions(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For each channel: size, ones and count of each composition that was met."""
        near = np.flatnonzero(self._table)
        keys = np.concatenate((near, self._far_keys))
        counts = np.concatenate((self._table.reshape(-1)[near], self._far_counts))
        size, column = np.divmod(keys, self._stride)
        # As small integers, which NumPy sorts in one sweep.
        kind = np.int16 if self._start.size < 2**15 else np.int64
        of_column = np.repeat(np.arange(self._start.size, dtype=kind), self._widths)
        channel = of_column[column]
        ones = column - self._start[channel]
        order = np.argsort(channel, kind="stable")
        order = order[ones[order] > 0]
        parts = np.searchsorted(channel[order], np.arange(self._start.size))
        found = []
        for i in range(self._start.size - 1):
            part = order[parts[i] : parts[i + 1]]
            # What has no ones is the rest: in a graph that lacks a label it was not counted.
            with_ones = np.bincount(size[part], counts[part], len(self._sizes))
            without = self._sizes - with_ones.astype(np.int64)
            rest = np.flatnonzero(without)
            found.append(
                (
                    np.concatenate((rest, size[part])),
                    np.concatenate((np.zeros_like(rest), ones[part])),
                    np.concatenate((without[rest], counts[part])),
                )
            )
        return found

    def samples(self, ratio: np.ndarray) -> list[Sample]:
        """The entropies of each channel, given the ratios of their global densities, shape (c)."""
        return [
            Sample.counted(counted_entropy(size, ones, r), count)
            for (size, ones, count), r in zip(self.compositions(), ratio, strict=True)
        ]


def _grown(array: np.ndarray, rows: int) -> np.ndarray:
    """The array with at least so many rows, new ones zero."""
    if len(array) >= rows:
        return array
    grown = np.zeros((rows, *array.shape[1:]), dtype=array.dtype)
    grown[: len(array)] = array
    return grown

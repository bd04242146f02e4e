"""Histograms of entropies, one for each graph or bundle of graphs, that a bootstrap adds up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from lookhops.information.blocks import Block
from lookhops.information.density import Sample
from lookhops.information.views import View, counted_entropy

# Cells to a bandwidth. It is coarser than for the estimate itself: an interval needs fewer digits.
CELLS_PER_BANDWIDTH = 2
MOST_CELLS = 4096


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
    def over(cls, samples: Sequence[Sample], reach: float = -math.inf) -> Lattice:
        """A lattice over all values and up to ``reach``, fine enough for the narrowest density."""
        low, high = min(s.low for s in samples), max(reach, *(s.high for s in samples))
        narrowest = min((s.bandwidth for s in samples if s.bandwidth > 0), default=1.0)
        cell = max(narrowest / CELLS_PER_BANDWIDTH, (high - low) / (MOST_CELLS - 2))
        return cls(low, cell, int((high - low) / cell) + 2)

    def place(self, values: np.ndarray) -> np.ndarray:
        """Where values are, in cells."""
        return (values - self.low) / self.cell

    def matrix(self, values: np.ndarray) -> sparse.csr_array:
        """The shares of each value at each point, shape (len(values), cells)."""
        place = self.place(values)
        left = np.clip(place.astype(np.int64), 0, self.cells - 2)
        shares = np.stack((1 - (place - left), place - left), axis=1).reshape(-1)
        columns = np.stack((left, left + 1), axis=1).reshape(-1)
        pointer = np.arange(0, 2 * values.size + 1, 2)
        return sparse.csr_array((shares, columns, pointer), (values.size, self.cells))


@dataclass(frozen=True)
class Histograms:
    """The entropies of one channel, unit by unit, for k = 1 to K.

    Args:
        lattice: Where the cells are.
        mass: How many nodes each cell got, shape (K, u, cells).
        low: The smallest entropy of each unit, shape (K, u); infinite where it has no nodes.
        high: The largest, shape (K, u).
    """

    lattice: Lattice
    mass: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def empty(cls, lattice: Lattice, max_k: int, units: int) -> Histograms:
        """Without any nodes."""
        ends = np.full((max_k, units), math.inf)
        return cls(lattice, np.zeros((max_k, units, lattice.cells)), ends, -ends)

    def note_ends(self, k: int, unit: np.ndarray, values: np.ndarray) -> None:
        """Lower the lows and raise the highs of some units."""
        np.minimum.at(self.low[k], unit, values)
        np.maximum.at(self.high[k], unit, values)


def share_out(
    histogram: np.ndarray, row: np.ndarray, place: np.ndarray, count: np.ndarray | float = 1.0
) -> None:
    """Share values out to the two cells beside them, in their rows of ``histogram`` (u, cells)."""
    cells = histogram.shape[1]
    left = np.clip(place.astype(np.int64), 0, cells - 2)
    right_share = (place - left) * count
    left_share = count - right_share
    left += row * cells
    flat = histogram.reshape(-1)
    np.add.at(flat, left.reshape(-1), left_share.reshape(-1))
    left += 1
    np.add.at(flat, left.reshape(-1), right_share.reshape(-1))


def summed_histograms(
    entropy: np.ndarray, unit: np.ndarray, units: int, samples: Sequence[Sample]
) -> Histograms:
    """The entropies of one summed channel, unit by unit.

    Args:
        entropy: Entropies of the nodes, shape (K, n).
        unit: The unit of each node's graph, shape (n).
        units: How many units there are.
        samples: The same entropies as samples, K of them.
    """
    found = Histograms.empty(Lattice.over(samples), len(entropy), units)
    for k, values in enumerate(entropy):
        share_out(found.mass[k], unit, found.lattice.place(values))
        found.note_ends(k, unit, values)
    return found


class CountedHistograms:
    """The entropies of some counted channels, unit by unit, filled block by block.

    In most graphs most labels are absent, and then the entropy of a node is the logarithm of how
    many nodes it sees. So all nodes are taken to see no upper value, and those of graphs that have
    one are moved.

    Args:
        view: The graphs.
        first: The first of the channels.
        lattices: One for each channel.
        unit: The unit of each graph.
        units: How many units there are.
    """

    def __init__(
        self, view: View, first: int, lattices: Sequence[Lattice], unit: np.ndarray, units: int
    ) -> None:
        self._first, self._lattices, self._unit, self._units = first, lattices, unit, units
        widest = max(lattices, key=lambda lattice: lattice.cells)
        self._low, self._cell = np.array([(one.low, one.cell) for one in (*lattices, widest)]).T
        self._ratio = np.append(view.channels.ratio[first : first + len(lattices)], 1.0)
        self._moved = Histograms.empty(widest, view.max_k, len(lattices) * units + 1)
        self._sizes = np.zeros((view.max_k, units, 1))

    def add(self, block: Block, size: np.ndarray, channel: np.ndarray, ones: np.ndarray) -> None:
        """Add what ``View.counted`` yields for these channels."""
        count, unit = len(self._lattices), self._unit[block.graphs]
        mine = np.where(channel < 0, count, channel - self._first)  # none has a row of its own
        have = np.minimum(mine * self._units + unit[:, None], count * self._units)
        low, cell, ratio = self._low[mine], self._cell[mine], self._ratio[mine]
        graph_lacking, lacking = np.nonzero(~_present(mine, count))
        lack = lacking * self._units + unit[graph_lacking]
        order = np.argsort(block.graph, kind="stable")
        graph, size, ones = block.graph[order], size[:, order], ones[:, order]
        starts = np.flatnonzero(np.diff(graph, prepend=-1))
        # Channel after channel, not node after node: what lies together is written together.
        row, row_low, row_cell, row_ratio = (
            np.ascontiguousarray(one[graph].T) for one in (have, low, cell, ratio)
        )
        self._sizes = _widened(self._sizes, int(size.max()) + 1)
        for k, k_size in enumerate(size):
            entropy = counted_entropy(k_size, np.ascontiguousarray(ones[k].T), row_ratio)
            share_out(self._moved.mass[k], row, (entropy - row_low) / row_cell)
            for extreme in (np.minimum, np.maximum):
                self._moved.note_ends(k, have.T, extreme.reduceat(entropy, starts, axis=1))
                all_lower = np.log(extreme.reduceat(k_size, starts))
                self._moved.note_ends(k, lack, all_lower[graph_lacking])
            # Each graph's nodes of one size are taken away together.
            pair, times = np.unique(graph * self._sizes.shape[2] + k_size, return_counts=True)
            g, seen = np.divmod(pair, self._sizes.shape[2])
            np.add.at(self._sizes[k], (unit[g], seen), times)
            place = (np.log(seen) - low[g].T) / cell[g].T
            share_out(self._moved.mass[k], have[g].T, place, -times)

    def __iter__(self) -> Iterator[Histograms]:
        """The histograms of each channel."""
        log_size = np.log(np.maximum(np.arange(self._sizes.shape[2]), 1))
        by_size = np.ascontiguousarray(self._sizes.reshape(-1, log_size.size).T)
        for i, lattice in enumerate(self._lattices):
            rows = slice(i * self._units, (i + 1) * self._units)
            mass = self._moved.mass[:, rows, : lattice.cells]
            mass += (lattice.matrix(log_size).T @ by_size).T.reshape(mass.shape)
            mass[mass < 1e-6] = 0  # what was moved away leaves rounding
            yield Histograms(lattice, mass, self._moved.low[:, rows], self._moved.high[:, rows])


def _present(channel: np.ndarray, count: int) -> np.ndarray:
    """Which of ``count`` channels are in each row of ``channel`` (g, l), shape (g, count).

    Channel ``count`` is none.
    """
    present = np.zeros((len(channel), count + 1), dtype=bool)
    np.put_along_axis(present, channel, True, axis=1)
    return present[:, :count]


def _widened(sizes: np.ndarray, width: int) -> np.ndarray:
    """The array with at least so many columns in its last axis, new ones zero."""
    missing = width - sizes.shape[2]
    return sizes if missing <= 0 else np.pad(sizes, ((0, 0), (0, 0), (0, missing)))

"""What a batch tells of whole graphs, gathered on the device that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from lookhops.encoding.graph_encoding import GraphColumns
from lookhops.graphs.indexing import segment_of
from lookhops.ops.batch import WholeInputs


class WholeGatherer:
    """Makes what a batch tells of whole graphs, for the members of a stack.

    Args:
        members: The graphs as each member is told of them.
        sizes: Size of each member's vocabulary; the tables of a stack are as long as the longest.
    """

    def __init__(self, members: Sequence[GraphColumns], sizes: Sequence[int]) -> None:
        self.totals = self.indices = self.offsets = None
        #: Entries of each graph, shape (members, graphs), in main memory.
        self.counts: np.ndarray | None = None
        totals = [member.totals for member in members if member.totals is not None]
        if totals:
            self.totals = torch.stack(totals)
        rows = [member.rows for member in members if member.rows is not None]
        if rows:
            longest = max(sizes)
            self.counts = torch.stack([one.offsets.diff() for one in rows]).cpu().numpy()
            self.indices = torch.cat([one.indices + i * longest for i, one in enumerate(rows)])
            ends = torch.tensor([0] + [one.indices.numel() for one in rows]).cumsum(0)
            parts = [one.offsets[:-1] + int(ends[i]) for i, one in enumerate(rows)]
            self.offsets = torch.cat((*parts, ends[-1:].to(self.indices.device)))
            self.graphs, self.ends = len(rows[0]), ends[:-1].to(self.indices.device)

    def one(self, index: Tensor) -> WholeInputs:
        """What is told of the graphs at ``index``, shape (size), of a stack of one member."""
        room = 0 if self.counts is None else int(self.counts[0, index.cpu().numpy()].sum())
        made = self(index[None], room)
        totals = None if made.totals is None else made.totals[0]
        return replace(made, number=made.number[0], totals=totals)

    def every(self, number: Tensor) -> WholeInputs:
        """:meth:`one` of all graphs in their order, of which nothing has to be gathered.

        Args:
            number: Their numbers.
        """
        totals = None if self.totals is None else self.totals[0]
        if self.indices is None or self.offsets is None:
            return WholeInputs(number, totals)
        place = torch.arange(self.indices.numel(), device=self.indices.device)
        row = segment_of(self.offsets, self.indices.numel())
        return WholeInputs(number, totals, self.indices, self.offsets, row, place)

    def __call__(self, index: Tensor, room: int) -> WholeInputs:
        """What is told of the graphs at ``index``, shape (members, size), -1 for no graph.

        Args:
            index: Graphs of each member's batch.
            room: Entries to make room for.
        """
        number = index.clamp(min=0)
        totals = None if self.totals is None else self._totals_of(number)
        if self.indices is None or self.offsets is None:
            return WholeInputs(self._numbers(number), totals)
        old_row = self._rows(number).flatten()
        first = self.offsets[old_row]
        count = torch.where(index.flatten() >= 0, self.offsets[old_row + 1] - first, 0)
        offsets = torch.cat((count.new_zeros(1), count.cumsum(0)))
        entry = torch.arange(room, device=index.device)
        row = torch.searchsorted(offsets[1:], entry, right=True).clamp(max=count.numel() - 1)
        there = entry < offsets[-1]
        old = torch.where(there, first[row] + entry - offsets[row], 0)
        place = old - self._before(old_row, row, index.shape[1])
        return WholeInputs(self._numbers(number), totals, self.indices[old], offsets, row, place)

    def _numbers(self, number: Tensor) -> Tensor:
        """Numbers of graphs in the whole set."""
        return number

    def _totals_of(self, number: Tensor) -> Tensor:
        assert self.totals is not None
        wide = number.unsqueeze(-1).expand(-1, -1, self.totals.shape[-1])
        return self.totals.gather(1, wide)

    def _rows(self, number: Tensor) -> Tensor:
        """The sparse rows of the members' graphs: those of all graphs, member after member."""
        member = torch.arange(len(number), device=number.device)[:, None]
        return number + member * self.graphs

    def _before(self, old_row: Tensor, row: Tensor, size: int) -> Tensor:
        """How far an entry's number here is above that among all entries of its member."""
        return self.ends[row // size]


class WindowWholeGatherer(WholeGatherer):
    """The same for a window of a larger set, in which every graph is of one member.

    Args:
        number: Number of each graph in the whole set, shape (g).
        totals: Its totals, shape (g, q), or none.
        indices: The neighbourhood of each entry, graph after graph, or none.
        offsets: First entry of each graph, and the end, shape (g + 1), or none.
        first_entry: Number of that entry among all of its member's, shape (g), or none.
    """

    def __init__(
        self,
        number: Tensor,
        totals: Tensor | None,
        indices: Tensor | None,
        offsets: Tensor | None,
        first_entry: Tensor | None,
    ) -> None:
        self.counts = None
        self.number, self.totals = number, totals
        self.indices, self.offsets, self.first_entry = indices, offsets, first_entry

    def _numbers(self, number: Tensor) -> Tensor:
        return self.number[number]

    def _totals_of(self, number: Tensor) -> Tensor:
        assert self.totals is not None
        return self.totals[number]

    def _rows(self, number: Tensor) -> Tensor:
        return number

    def _before(self, old_row: Tensor, row: Tensor, size: int) -> Tensor:
        assert self.offsets is not None
        assert self.first_entry is not None
        return (self.offsets[old_row] - self.first_entry[old_row])[row]

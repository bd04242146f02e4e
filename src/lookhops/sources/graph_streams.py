"""Graphs that are all here, in parts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lookhops.core.arrays import Array
from lookhops.graphs import Graphs, Skipped, in_input_order
from lookhops.graphs.choosing import slice_of
from lookhops.graphs.targets import target_columns
from lookhops.sources.streams import PART, Part, Stream
from lookhops.sources.targets import target_cells

#: Rows that are written out at a time where they are passed over.
BLOCK = 4096
#: Graphs of a part on a GPU: more than of molecules, which take longer to parse than to answer.
GPU_GRAPHS = 131_072
#: Nodes of a part at most, in the mean.
NODES = 4_000_000


class GraphStream(Stream):
    """Graphs that are all here, or mapped from a file, in parts.

    Rows are the ``cells`` of the ``source`` that the graphs were read from; by default what each
    graph is called, what else is known of it, and its targets.
    """

    def __init__(
        self, graphs: Graphs, source: Stream | None = None, cells: Sequence[Sequence[Any]] = ()
    ) -> None:
        self.graphs, self.start = graphs, 0
        #: How many rows there are, those that gave no graph among them.
        self.total = len(graphs) + len(graphs.skipped)
        self._given = None if source is None else cells
        if source is not None:
            super().__init__(graphs.name, source.head, source.types)
            return
        columns = self._columns(slice(0))
        kinds = (column.dtype for column in columns.values())
        types = [kind if kind.kind in "biuf" else None for kind in kinds]
        super().__init__(graphs.name, ["id", *columns], [None, *types])

    def skip(self, count: int) -> Iterator[Sequence[Any]]:
        end = min(self.start + count, self.total)
        while self.start < end:
            for row in self.cells(self.start, min(self.start + BLOCK, end)):
                self.start += 1
                yield row

    def parts(self, size: int) -> Iterator[Part]:
        while self.start < self.total:
            first, after = self.start, min(self.start + size, self.total)
            self.start = after
            chosen, skipped = self._range(first, after)
            graphs = replace(slice_of(self.graphs, chosen.start, chosen.stop), skipped=skipped)
            yield Part(graphs, self.cells(first, after), _labels(graphs), after / self.total)

    def part_size(self, on_cpu: bool) -> int:
        fitting = NODES * len(self.graphs) // max(self.graphs.num_nodes, 1)
        return max(min(PART if on_cpu else GPU_GRAPHS, fitting), 1)

    def cells(self, first: int = 0, after: int | None = None) -> Sequence[Sequence[Any]]:
        after = self.total if after is None else after
        if self._given is not None:
            return self._given[first:after]
        chosen, skipped = self._range(first, after)
        ids = self.graphs.columns.get("id", np.arange(len(self.graphs)))[chosen]
        columns = [column.tolist() for column in self._columns(chosen).values()]
        rows = list(zip(map(str, ids.tolist()), *columns, strict=True))
        blank = [None] * len(columns)
        return in_input_order(rows, [(row.id, *blank) for row in skipped], skipped)

    def _columns(self, chosen: slice) -> dict[str, Array]:
        """What is known of some graphs besides their ids: columns, and targets that are none."""
        graphs = self.graphs
        found = {name: column[chosen] for name, column in graphs.columns.items() if name != "id"}
        y = None if graphs.y is None else graphs.y[chosen]
        for target, values in target_columns(y, graphs.targets):
            if target.name not in graphs.columns:
                found[target.name] = target_cells(target, values)
        return found

    def _range(self, first: int, after: int) -> tuple[slice, tuple[Skipped, ...]]:
        """The graphs of some rows, and the rows among them that gave none, numbered from 0."""
        skipped = self.graphs.skipped
        low, high = (bisect_left(skipped, row, key=lambda one: one.row) for row in (first, after))
        gone = (one._replace(row=one.row - first) for one in skipped[low:high])
        return slice(first - low, after - high), tuple(gone)


def _labels(graphs: Graphs) -> list[str]:
    """The one target of each row as text, where graphs have one; of skipped rows nothing."""
    texts, targets = [""] * len(graphs), target_columns(graphs.y, graphs.targets)
    if len(targets) == 1:
        cells = target_cells(*targets[0]).tolist()
        texts = [c if isinstance(c, str) else "" if c != c else repr(c) for c in cells]
    return in_input_order(texts, [""] * len(graphs.skipped), graphs.skipped)

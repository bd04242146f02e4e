"""A source of graphs that comes in parts, so that no more than a part is held at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from lookhops.core.arrays import Array
from lookhops.graphs import Graphs, Target, in_input_order
from lookhops.graphs.choosing import slice_of
from lookhops.graphs.targets import target_columns
from lookhops.sources.targets import target_cells

#: Rows that are written out at a time where they are passed over.
BLOCK = 4096
#: Rows of a part on the CPU, and on a GPU, where a step is recorded for each part: of
#: molecules, which take longer to parse than to answer, and of graphs that are there.
PART, GPU_PART, GPU_GRAPHS = 2048, 16_384, 131_072
#: Nodes of a part at most, in the mean, where it is known how large graphs are.
NODES = 4_000_000


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows of a source that follow each other.

    Args:
        graphs: Their graphs; rows that gave none are ``skipped``, numbered within the part.
        cells: What each row says, those that gave no graph too: texts, or values of the stream's
            types, of which None and NaN are blanks.
        labels: What each row says of the one target, as text; empty where it says nothing.
        share: How much of the source has been read, from 0 to 1; none where that is not known.
    """

    graphs: Graphs
    cells: Sequence[Sequence[Any]]
    labels: Sequence[str]
    share: float | None


class Stream(ABC):
    """A source in parts.

    Args:
        name: What to call the graphs.
        head: Names of the columns of its rows.
        types: Of each of them the type of its cells, as Arrow or NumPy has it; none of texts.
    """

    def __init__(self, name: str, head: list[str], types: Sequence[Any] | None = None) -> None:
        self.name, self.head = name, head
        self.types = [None] * len(head) if types is None else [*types]
        #: Columns that whoever reads the parts wants with the graphs, where there are such.
        self.features: Sequence[str] = ()

    @abstractmethod
    def skip(self, count: int) -> Iterator[Sequence[Any]]:
        """Pass over rows, at most so many, as they are asked for; what each of them says."""

    @abstractmethod
    def parts(self, size: int) -> Iterator[Part]:
        """The rows that follow, about so many at a time."""

    def part_size(self, on_cpu: bool) -> int:
        """How many rows are worth working on at a time, on the CPU or on a GPU."""
        return PART if on_cpu else GPU_PART

    def remarks(self) -> list[str]:
        """What is to be said in the end; refuses a source that gave nothing."""
        return []


class GivenRows(NamedTuple):
    """The rows that graphs were made of.

    Args:
        head: Names of the columns.
        types: Of each of them the type of its cells; none of texts.
        cells: The rows, those that gave no graph too.
    """

    head: list[str]
    types: Sequence[Any]
    cells: Sequence[Sequence[Any]]


class GraphStream(Stream):
    """Graphs that are all here, or mapped from a file, in parts.

    Args:
        graphs: The graphs.
        given: The rows that they were made of; by default rows say what each graph is called, what
            else is known of it, and its targets.
    """

    def __init__(self, graphs: Graphs, given: GivenRows | None = None) -> None:
        self.graphs, self.given, self.start = graphs, given, 0
        head, types = _known_columns(graphs) if given is None else given[:2]
        super().__init__(graphs.name, head, types)
        #: How many rows there are, those that gave no graph among them.
        self.total = len(graphs) + len(graphs.skipped)
        self._skipped_rows = np.array([row.row for row in graphs.skipped], dtype=np.int64)

    def skip(self, count: int) -> Iterator[Sequence[Any]]:
        """Pass over as many rows as are asked for; what each of them says."""
        end = min(self.start + count, self.total)
        while self.start < end:
            for row in self._cells(self.start, min(self.start + BLOCK, end)):
                self.start += 1
                yield row

    def parts(self, size: int) -> Iterator[Part]:
        """The rows that follow, so many at a time."""
        while self.start < self.total:
            first, after = self.start, min(self.start + size, self.total)
            self.start = after
            low, high = (int(i) for i in np.searchsorted(self._skipped_rows, (first, after)))
            skipped = tuple(
                one._replace(row=one.row - first) for one in self.graphs.skipped[low:high]
            )
            graphs = replace(slice_of(self.graphs, first - low, after - high), skipped=skipped)
            yield Part(graphs, self._cells(first, after), _labels(graphs), after / self.total)

    def part_size(self, on_cpu: bool) -> int:
        """How many rows are worth working on at a time, of graphs of this size."""
        fitting = NODES * len(self.graphs) // max(self.graphs.num_nodes, 1)
        return max(min(PART if on_cpu else GPU_GRAPHS, fitting), 1)

    def all_cells(self) -> Sequence[Sequence[Any]]:
        """What each row says."""
        return self._cells(0, self.total)

    def _cells(self, first: int, after: int) -> Sequence[Sequence[Any]]:
        if self.given is not None:
            return self.given.cells[first:after]
        low, high = (int(i) for i in np.searchsorted(self._skipped_rows, (first, after)))
        graphs = slice(first - low, after - high)
        ids = self.graphs.columns.get("id", np.arange(len(self.graphs)))[graphs]
        others = [column[graphs] for key, column in self.graphs.columns.items() if key != "id"]
        for target, values in _other_targets(self.graphs, graphs):
            others.append(target_cells(target, values))
        known = zip(map(str, ids.tolist()), *(one.tolist() for one in others), strict=True)
        skipped = [one._replace(row=one.row - first) for one in self.graphs.skipped[low:high]]
        blank = [None] * len(others)
        return in_input_order([*known], [(one.id, *blank) for one in skipped], skipped)


def _known_columns(graphs: Graphs) -> tuple[list[str], list[Any]]:
    """Names and types of the columns that say what is known of each graph."""
    columns = {key: column.dtype for key, column in graphs.columns.items() if key != "id"}
    for target, values in _other_targets(graphs, slice(0)):
        columns[target.name] = target_cells(target, values).dtype
    types = [None if kind.kind not in "biuf" else kind for kind in columns.values()]
    return ["id", *columns], [None, *types]


def _other_targets(graphs: Graphs, chosen: slice) -> list[tuple[Target, Array]]:
    """The targets of some graphs that are not among the columns too, with their values."""
    known = [] if graphs.y is None else target_columns(graphs.y[chosen], graphs.targets)
    return [(target, values) for target, values in known if target.name not in graphs.columns]


def _labels(graphs: Graphs) -> list[str]:
    """The one target of each row as text, where graphs have one; of skipped rows nothing."""
    none = [""] * len(graphs.skipped)
    if graphs.y is None or len(graphs.targets) != 1:
        return [""] * len(graphs) + none
    names, y = graphs.targets[0].classes, graphs.y.cpu()
    if names:
        known = [names[int(c)] if c >= 0 else "" for c in y.nan_to_num(-1).long().tolist()]
    else:
        known = ["" if value != value else repr(value) for value in y.tolist()]
    return in_input_order(known, none, graphs.skipped)

"""Rows of a source that gave no graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from lookhops.graphs import Graphs

T = TypeVar("T")


class Skipped(NamedTuple):
    """A row of a source that gave no graph.

    Args:
        row: Its number among the source's rows, from 0; the graphs are the other rows, in order.
        id: What the row is called.
        reason: Why there is no graph.
    """

    row: int
    id: str
    reason: str

    def record(self) -> dict[str, str]:
        """The row as JSON can hold it."""
        return {"id": self.id, "skipped": self.reason}


def in_input_order(
    of_graphs: Sequence[T], of_skipped: Sequence[T], rows: Sequence[Skipped]
) -> list[T]:
    """What belongs to the graphs and to the rows that gave none, in the order of the input.

    Args:
        of_graphs: One for each graph.
        of_skipped: One for each row without a graph.
        rows: Those rows.
    """
    if not rows:
        return [*of_graphs]
    found = {row.row: own for row, own in zip(rows, of_skipped, strict=True)}
    rest = iter(of_graphs)
    total = len(of_graphs) + len(of_skipped)
    return [found[row] if row in found else next(rest) for row in range(total)]


def kept_rows(graphs: Graphs) -> list[int]:
    """The row of each graph in its source."""
    gone = {one.row for one in graphs.skipped}
    return [row for row in range(len(graphs) + len(gone)) if row not in gone]

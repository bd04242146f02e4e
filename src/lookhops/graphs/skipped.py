"""Rows of a source that gave no graph."""

from __future__ import annotations

from typing import NamedTuple


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

"""When graphs were made or measured, as a column says: numbers or ISO dates."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from math import isfinite

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.graphs.targets import is_blank
from lookhops.sources.splits.groups import column_of


def times_of(graphs: Graphs, name: str, which: Tensor) -> Tensor:
    """The time of each of these graphs, as numbers that can be ordered, float64.

    Args:
        graphs: The graphs.
        name: Of the column: numbers, or ISO dates where the first value is no number.
        which: Numbers of the graphs.
    """
    column = column_of(graphs, name, f"--split time:{name}")
    cells = [(number, str(column[number]).strip()) for number in which.tolist()]
    as_numbers = bool(cells) and _read(float, cells[0][1]) is not None
    read, kind = (float, "number") if as_numbers else (_date, "ISO date such as 2024-05-31")
    found = []
    for number, cell in cells:
        value = None if is_blank(cell) else _read(read, cell)
        if value is None:
            what = "is blank" if is_blank(cell) else f"has {cell!r}, which is no {kind}"
            graph = graphs.columns["id"][number] if "id" in graphs.columns else number
            raise LookHopsError(
                f"{graphs.name}: the column {name!r} of graph {graph} {what}; a split by time "
                "takes numbers, or ISO dates."
            )
        found.append(value)
    return torch.tensor(found, dtype=torch.float64)


def _read(read: Callable[[str], float], cell: str) -> float | None:
    """What a cell says; none where it cannot be read."""
    try:
        value = read(cell)
    except (ValueError, OverflowError):
        return None
    return value if isfinite(value) else None


def _date(cell: str) -> float:
    """Seconds since 1970; a month is its first day, and what names no zone is in UTC."""
    whole = f"{cell}-01" if re.fullmatch(r"\d{4}-\d{2}", cell) else cell
    found = datetime.fromisoformat(whole)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()

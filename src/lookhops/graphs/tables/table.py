"""One table of graphs, nodes or edges, with where it came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from lookhops.core.errors import LookHopsError
from lookhops.graphs.column_finder import listed


@dataclass(frozen=True, eq=False)
class Table:
    """A table and how to speak of it.

    Args:
        origin: The file, or what the table holds, for messages.
        frame: The columns.
        where: What to call the row with a number from 0: ``line 12``.
    """

    origin: str
    frame: pd.DataFrame
    where: Callable[[int], str] = "row {} (from 0)".format

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [str(name) for name in self.frame.columns]

    def place(self, row: int | np.integer) -> str:
        """Where a row stands: ``edges.csv, line 12``."""
        return f"{self.origin}, {self.where(int(row))}"

    def ids(self, column: str) -> pd.Series:
        """A column of ids, whole numbers or texts; an id that is missing is refused by its row."""
        ids = self.frame[column]
        missing = ids.isna().to_numpy()
        if not pd.api.types.is_numeric_dtype(ids):
            ids = ids.astype(str)
            missing = missing | (ids == "").to_numpy()
        if missing.any():
            raise LookHopsError(
                f"{self.place(missing.argmax())}: the column {column!r} is empty there; every row "
                "needs its id."
            )
        exact = 2**53  # from here on floats skip whole numbers; infinity is none
        if pd.api.types.is_float_dtype(ids) and bool(
            ((ids == ids.round()) & (ids.abs() < exact)).all()
        ):
            ids = ids.astype(np.int64)  # whole numbers that a blank once made floats
        return ids if pd.api.types.is_integer_dtype(ids) else ids.astype(str)


def holds_decimals(column: pd.Series) -> bool:
    """Whether a column holds Python's ``Decimal`` numbers, as Parquet's become, and blanks."""
    if column.dtype.kind != "O":
        return False
    known = column.dropna()
    return (
        len(known) > 0
        and isinstance(known.iloc[0], Decimal)
        and all(isinstance(cell, Decimal) for cell in known)
    )


def as_table(given: Any, what: str) -> Table:
    """A table from what a user has.

    Args:
        given: A :class:`Table`; a pandas frame; a frame of polars, pyarrow or another library that
            speaks Arrow; a mapping of columns; a structured array; or, of edges, an array of shape
            (rows, 3) with graph, source and target.
        what: What it holds: ``graphs``, ``nodes`` or ``edges``.
    """
    if isinstance(given, Table):
        return given
    if isinstance(given, pd.DataFrame):
        frame = given.reset_index(drop=True)
    elif hasattr(given, "__arrow_c_stream__"):
        frame = _from_arrow(given, what)
    elif isinstance(given, np.ndarray) and given.dtype.names is None:
        if what != "edges" or given.ndim != 2 or given.shape[1] != 3:
            raise LookHopsError(
                f"{what}: an array of shape {given.shape} does not say what its columns are; give "
                "a mapping of names to columns, or edges as (rows, 3): graph, source, target."
            )
        frame = pd.DataFrame(given, columns=["graph", "source", "target"])
    elif isinstance(given, Mapping | np.ndarray):
        try:
            frame = pd.DataFrame(given)
        except ValueError as error:  # columns of different lengths
            raise LookHopsError(f"{what}: not a table ({error}).") from error
    else:
        raise LookHopsError(
            f"{what}: a table is a pandas or polars frame, a mapping of columns or an array, not "
            f"{type(given).__name__}."
        )
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        raise LookHopsError(f"{what}: two columns have the same name; they are {listed(names)}.")
    return Table(what, frame.set_axis(names, axis=1))


def _from_arrow(given: Any, what: str) -> pd.DataFrame:
    try:
        import pyarrow as pa
    except ImportError as error:
        raise LookHopsError(
            f"{what}: frames of {type(given).__module__.partition('.')[0]} are read with pyarrow: "
            "pip install pyarrow, or give a pandas frame."
        ) from error
    return pa.table(given).to_pandas()

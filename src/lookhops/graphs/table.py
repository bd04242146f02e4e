"""Tables of graphs, nodes and edges: columns that say what belongs together, and features."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import torch

from lookhops.core.errors import LookHopsError
from lookhops.core.reading import (
    AS_USUAL,
    SOURCE_NAMES,
    TABLES,
    TARGET_NAMES,
    Reading,
    listed,
    names_in,
)
from lookhops.graphs.columns import MOSTLY
from lookhops.graphs.features import BLANK, Column, Features
from lookhops.graphs.targets import PLAINLY, are_dates, meant_as_number

#: A column of whole numbers with at most this number of values is one of categories.
FEW_NUMBERS = 10
#: A column with more different texts than this holds names, remarks or dates, not categories.
MANY_TEXTS = 1000
# Names that are looked for, in this order, whatever their case, when no option names the column.
GRAPH_NAMES = ("graph", "graph_id", "graphid", "graph_name", "gid", "network", "network_id")
NODE_NAMES = ("node", "node_id", "nodeid", "vertex", "id", "name")
#: The columns of ids of each table: the option that names one, and its usual names.
ID_NAMES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "edges": {
        "graph_column": GRAPH_NAMES,
        "source_column": SOURCE_NAMES,
        "target_column": TARGET_NAMES,
    },
    "nodes": {"graph_column": GRAPH_NAMES, "node_column": NODE_NAMES},
    "graphs": {"graph_column": (*GRAPH_NAMES, "id", "name")},
}
#: Those without which a table says nothing, and what they say. The graph of an edge may be known
#: from its nodes.
NEEDED = (
    ("edges", "source_column", "where an edge begins"),
    ("edges", "target_column", "where an edge ends"),
    ("nodes", "node_column", "which node a row is"),
    ("graphs", "graph_column", "which graph a row is"),
    ("edges", "graph_column", "to which graph an edge belongs"),
)


@dataclass(frozen=True, eq=False)
class Table:
    """A table, and for messages where it is from and what its rows are called: ``line 12``."""

    origin: str  # a file, or what the table holds; empty where ``where`` says it
    frame: pd.DataFrame
    where: Callable[[int], str] = "row {} (from 0)".format

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [str(name) for name in self.frame.columns]

    def place(self, row: int | np.integer) -> str:
        """Where a row stands: ``edges.csv, line 12``."""
        where = self.where(int(row))
        return f"{self.origin}, {where}" if self.origin else where

    def ids(self, column: str | None) -> pd.Series | None:
        """A column of ids, whole numbers or texts; an id that is missing is refused by its row."""
        if column is None:
            return None
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
        if pd.api.types.is_float_dtype(ids):  # whole numbers that a blank once made floats
            exact = ids.abs() < 2**53  # from here on floats skip whole numbers
            if bool(((ids == ids.round()) & exact).all()):
                return ids.astype(np.int64)
        return ids if pd.api.types.is_integer_dtype(ids) else ids.astype(str)


def holds_decimals(column: pd.Series) -> bool:
    """Whether a column holds Python's ``Decimal`` numbers, as Parquet's become, and blanks."""
    if column.dtype.kind != "O":
        return False
    filled = column.dropna()
    return len(filled) > 0 and all(isinstance(cell, Decimal) for cell in filled)


@dataclass(frozen=True)
class Tables:
    """The tables of one set of graphs; see :meth:`lookhops.graphs.Graphs.from_tables`."""

    edges: Table
    nodes: Table | None = None
    graphs: Table | None = None
    reading: Reading = AS_USUAL

    def find(self, table: Table | None, option: str, usual: Sequence[str]) -> str | None:
        """The column of a table for which there is an option, or none."""
        if table is None:
            return None
        return self.reading.find(table.origin, table.names, option, usual, strict=False)

    def id_columns(self) -> dict[str, dict[str, str | None]]:
        """Of each table its columns of ids, by option; none where there is no such column."""
        found = {
            name: {
                option: self.find(getattr(self, name), option, usual)
                for option, usual in options.items()
            }
            for name, options in ID_NAMES.items()
        }
        needed = NEEDED[:-1] if found["nodes"]["graph_column"] else NEEDED
        for name, option, what in needed:
            table = getattr(self, name)
            if table is not None and found[name][option] is None:
                usual = ID_NAMES[name][option][0]
                raise LookHopsError(
                    f"{table.origin}: no column says {what}; the columns are "
                    f"{listed(table.names)}. Call one {usual!r}, or name it with {option} "
                    f"(--{option.replace('_', '-')})."
                )
        return found

    def check(self) -> None:
        """Refuse a table without rows, and a column that an option names and no table has."""
        given = [one for one in (self.graphs, self.nodes, self.edges) if one is not None]
        for table in given:
            if not len(table.frame) and (table is not self.edges or self.nodes is None):
                raise LookHopsError(f"{table.origin}: there are no rows below the columns' names.")
        names = {name.lower() for table in given for name in table.names}
        for option in fields(Reading):
            if option.name.endswith("_column") and TABLES in option.metadata["of"]:
                wanted = getattr(self.reading, option.name)
                if wanted is not None and wanted.strip().lower() not in names:
                    columns = "; ".join(f"{t.origin}: {listed(t.names)}" for t in given)
                    raise LookHopsError(
                        f"{option.name} (--{option.name.replace('_', '-')}): no column is called "
                        f"{wanted!r}. The columns are, in {columns}."
                    )


# -------------------------------------------------------------------- what a user has


def as_table(given: Any, what: str) -> Table:
    """A table of ``graphs``, ``nodes`` or ``edges`` from what a user has.

    That is a pandas frame; a frame of polars, pyarrow or another library with the Arrow interface;
    a mapping of columns; a structured array; or, of edges, an array of shape (rows, 3) with graph,
    source and target.
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


# -------------------------------------------------------------------- columns as features


def read_features(
    table: Table, columns: Iterable[str], rows: np.ndarray | None, reading: Reading
) -> tuple[Features, dict[str, str]]:
    """Columns as features, of all rows or of these; and why the others can be none, by name."""
    found: list[Column] = []
    left_out: dict[str, str] = {}
    columns = list(columns)
    decimals = [name for name in columns if holds_decimals(table.frame[name])]
    if decimals:
        plain = {name: table.frame[name].astype(np.float64) for name in decimals}
        table = replace(table, frame=table.frame.assign(**plain))
    for name in columns:
        if _is_number(table.frame[name], name, reading):
            found.append(Column(name, _tensor(_numbers(table, name), rows, np.float32)))
            continue
        try:
            codes, values = _categories(table, name, chosen=name in names_in(reading.categories))
            found.append(Column(name, _tensor(codes, rows, np.int32), values))
        except _NoCategories as reason:
            left_out[name] = str(reason)
    return Features.of(found), left_out


def _is_number(column: pd.Series, name: str, reading: Reading) -> bool:
    """Whether a column is read as numbers: as chosen, else by its type and its values."""
    if name in names_in(reading.categories):
        return False
    if name == "weight" or name in names_in(reading.numbers):
        return True
    types = pd.api.types
    if types.is_bool_dtype(column) or not types.is_numeric_dtype(column):
        return False
    different = column.iloc[: 100 * FEW_NUMBERS].unique()  # most columns show it in the first rows
    if len(different) <= FEW_NUMBERS + 1:
        different = column.unique()
    filled = pd.Series(different).dropna().to_numpy(dtype=np.float64)
    whole = np.isfinite(filled) & (filled == np.round(filled))
    return len(filled) > FEW_NUMBERS or not whole.all()


def _numbers(table: Table, name: str) -> np.ndarray:
    """A column as float64, NaN where a cell is empty."""
    column = table.frame[name]
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    with np.errstate(over="ignore"):
        wrong = np.isinf(numbers.astype(np.float32))
    if np.isnan(numbers).any():
        wrong |= np.isnan(numbers) & column.notna().to_numpy()
    if wrong.any():
        row = int(wrong.argmax())
        why = "is too large" if np.isfinite(numbers[row]) else "is not a finite number"
        raise LookHopsError(
            f"{table.place(row)}: {str(column.iloc[row])!r} in the column {name!r} {why}; mend it, "
            "or leave it empty."
        )
    return numbers


class _NoCategories(Exception):
    """Why a column is no feature."""


def _categories(table: Table, name: str, chosen: bool) -> tuple[np.ndarray, tuple[str, ...]]:
    """The place of each cell among the values, and the values: numbers by size, texts by letter."""
    column, types = table.frame[name], pd.api.types
    if types.is_datetime64_any_dtype(column) or types.is_timedelta64_dtype(column):
        raise _NoCategories("dates")
    try:
        codes, different = pd.factorize(column)
    except TypeError as error:
        raise _NoCategories("lists") from error
    if len(different) and all(isinstance(value, date | time | timedelta) for value in different):
        raise _NoCategories("dates")
    if types.is_numeric_dtype(column) and not types.is_bool_dtype(column):
        values = np.asarray(different, dtype=np.float64)
        whole = bool(np.all(values == np.round(values)))
        texts = [str(int(value)) if whole else str(value) for value in values]
        order = np.argsort(values)
    else:
        texts = [str(value) for value in different]
        if not chosen:
            _check_texts(table, name, codes, texts)
        order = np.array(sorted(range(len(texts)), key=texts.__getitem__), dtype=np.int64)
    place = np.empty(len(texts) + 1, dtype=np.int64)
    place[order], place[-1] = np.arange(len(texts)), len(texts)  # -1 is an empty cell
    blank = (BLANK,) if (codes < 0).any() else ()
    return place[codes], (*(texts[i] for i in order), *blank)


def _check_texts(table: Table, name: str, codes: np.ndarray, texts: list[str]) -> None:
    """Refuse texts that are no categories, and a column of numbers in which a few are text."""
    filled = codes[codes >= 0]
    if len(filled) and are_dates(texts):
        raise _NoCategories("dates")
    is_number = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").notna()
    numbers = is_number.to_numpy()[filled]
    if not numbers.all():
        row = int(np.flatnonzero(codes >= 0)[numbers.argmin()])
        first = f"{table.place(row)}: {texts[codes[row]]!r} in the column {name!r}"
        if numbers.mean() >= MOSTLY:
            raise LookHopsError(
                f"{first}, where {numbers.mean():.1%} are numbers; mend it, or read the column as "
                f"text with categories (--categories {name!r})."
            )
        strays = (text for text, plain in zip(texts, is_number, strict=True) if not plain)
        if all(meant_as_number(text) is not None for text in strays):
            warnings.warn(
                f"{first}, which looks like numbers, is read as text; {PLAINLY}.", stacklevel=4
            )
    if len(texts) > MANY_TEXTS:
        raise _NoCategories(f"{len(texts):,} different texts")
    if len(texts) == len(codes) > 2 * FEW_NUMBERS:
        raise _NoCategories("another text in each row")


def _tensor(column: np.ndarray, rows: np.ndarray | None, dtype: type[np.generic]) -> torch.Tensor:
    return torch.from_numpy((column if rows is None else column[rows]).astype(dtype))

"""Tables in files: ``.csv`` and ``.tsv``, also with ``.gz``, and ``.parquet``."""

from __future__ import annotations

import io
import warnings
from collections.abc import Set
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lookhops.core.errors import LookHopsError
from lookhops.core.options import AS_USUAL, Reading, names_in
from lookhops.graphs.column_finder import ColumnFinder
from lookhops.graphs.tables.columns import ID_NAMES
from lookhops.graphs.tables.table import Table
from lookhops.graphs.targets import BLANK_TEXTS, as_number
from lookhops.sources.parquet_files import explained_parquet, open_parquet
from lookhops.sources.text_tables import (
    PARQUET,
    TABLE_SUFFIXES,
    TextTable,
    say_points,
    suffix_of,
    with_points,
)

#: Cells that are empty, save in columns of ids, where only an empty text is. "Na" is sodium.
BLANKS = ["NaN", "None", *BLANK_TEXTS, *map(str.upper, BLANK_TEXTS)]


def read_table(
    path: Path, what: str, reading: Reading = AS_USUAL, remembered: Reading = AS_USUAL
) -> Table:
    """Read one table.

    Args:
        path: The file.
        what: What it holds: ``edges``, ``nodes`` or ``graphs``; tells which columns are ids, and
            those stay as they are written (007 is not 7).
        reading: The options that name those columns.
        remembered: The same of an earlier reading.
    """
    if suffix_of(path) not in TABLE_SUFFIXES:
        raise LookHopsError(f"{path}: tables are read from {', '.join(TABLE_SUFFIXES)} files.")
    if suffix_of(path) == PARQUET:
        return Table(str(path), read_parquet(path))
    text = TextTable(path)
    finder = ColumnFinder(path, reading, remembered)
    found = (finder.find(text.header, *names, strict=False) for names in ID_NAMES[what].items())
    ids = [name for name in found if name]
    frame = _frame(text, ids)
    if text.separator != ",":
        frame = _with_points(frame, path, {*ids, *names_in(reading.categories)})
    return Table(str(path), frame, text.where)


def read_parquet(path: Path) -> Any:
    """A Parquet file as a frame."""
    with explained_parquet(path):
        # Without what pandas noted for itself, which may be damaged.
        return open_parquet(path).read().replace_schema_metadata().to_pandas()


def _with_points(frame: pd.DataFrame, path: Path, kept: Set[str]) -> pd.DataFrame:
    """The columns but those that are kept with decimal commas as points."""
    numbers = {}
    for name in frame.columns:
        if name not in kept and pd.api.types.is_string_dtype(frame[name]):
            different = frame[name].dropna().unique().tolist()
            if (pointed := with_points(different)) is not None:
                values = dict(zip(different, map(as_number, pointed), strict=True))
                numbers[name] = frame[name].map(values).astype(np.float64)
    say_points(path, list(numbers))
    return frame.assign(**numbers)


def _frame(table: TextTable, ids: list[str]) -> pd.DataFrame:
    """The rows; columns of ids as text, others as pandas takes them."""
    table.check_lengths()
    # A column without a name is what pandas writes for the numbers of its rows.
    names = [name or f"\0{number}" for number, name in enumerate(table.header)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            frame = pd.read_csv(
                io.BytesIO(table.content),
                sep=table.separator,
                header=None,
                names=names,
                skiprows=table.begin,
                index_col=False,
                dtype=dict.fromkeys(ids, str),
                keep_default_na=False,
                na_values={name: BLANKS for name in names if name not in ids},
                skipinitialspace=True,
                low_memory=False,
            )
    except pd.errors.EmptyDataError:
        return pd.DataFrame(columns=[name for name in table.header if name])
    except UnicodeDecodeError as error:
        raise table.not_utf8() from error
    except (pd.errors.ParserError, pd.errors.ParserWarning, ValueError) as error:
        raise LookHopsError(f"{table.path}: not a table ({error}).") from error
    frame = frame[[name for name in table.header if name]]
    if f" {table.separator}".encode() in table.content:
        texts = [
            name for name in table.header if name and pd.api.types.is_string_dtype(frame[name])
        ]
        frame = frame.assign(**{name: frame[name].str.strip() for name in texts})
    return frame

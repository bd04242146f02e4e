"""Graphs from files of tables: edges, and where there are any, nodes and graphs."""

from __future__ import annotations

import io
import warnings
from collections.abc import Set
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lookhops.core.column_finder import ColumnFinder
from lookhops.core.errors import LookHopsError
from lookhops.core.options import AS_USUAL, Reading, names_in
from lookhops.graphs import Graphs
from lookhops.graphs.tables import packed
from lookhops.graphs.tables.table import ID_NAMES, Table, Tables
from lookhops.graphs.targets import BLANK_TEXTS, as_number
from lookhops.sources.node_link import read_node_link
from lookhops.sources.rows import (
    ParquetTable,
    TextTable,
    explained_parquet,
    open_table,
    say_points,
    with_points,
)
from lookhops.sources.targets import Offer, choose_columns
from lookhops.sources.text_files import (
    NODE_LINK,
    TABLE_SUFFIXES,
    stem_of,
    suffix_of,
    unpacked_suffix,
)

#: Cells that are empty, save in columns of ids, where only an empty text is. "Na" is sodium.
BLANKS = ["NaN", "None", *BLANK_TEXTS, *map(str.upper, BLANK_TEXTS)]


def read_tables(
    edges: Path | str,
    nodes: Path | str | None = None,
    graphs: Path | str | None = None,
    reading: Reading = AS_USUAL,
    *,
    remembered: Reading = AS_USUAL,
    name: str | None = None,
    need_targets: bool = True,
) -> Graphs:
    """Graphs of tables in files.

    Args:
        edges: A table of edges (``.csv``, ``.tsv``, ``.csv.gz``, ``.parquet``), or graphs in
            node-link form (``.jsonl``), which need no other table.
        nodes: A table of nodes.
        graphs: A table of graphs.
        reading: What the columns are, and how they are read.
        remembered: How an earlier set was read: its columns are looked for first.
        name: What to call the set; by default as the file of edges.
        need_targets: Whether a target that cannot be read is an error; else it stays a column.
    """
    path = Path(edges)
    if unpacked_suffix(path) == NODE_LINK:
        tables = read_node_link(path, reading, remembered)
    else:
        files = {"edges": path, "nodes": nodes, "graphs": graphs}
        read: dict[str, Any] = {
            what: read_table(Path(file), what, reading, remembered)
            for what, file in files.items()
            if file is not None
        }
        tables = Tables(**read, reading=reading, remembered=remembered)
    found = packed(tables)
    read_graphs = Graphs.from_edges(**found.fields, name=name or stem_of(path))
    offer = Offer(found.label, found.place, need_targets)
    return choose_columns(read_graphs, reading, remembered, offer)


# -------------------------------------------------------------------- one table


def read_table(
    path: Path, what: str, reading: Reading = AS_USUAL, remembered: Reading = AS_USUAL
) -> Table:
    """Read one table: all rows at once, column by column.

    Args:
        path: The file.
        what: What it holds: ``edges``, ``nodes`` or ``graphs``; tells which columns are ids, and
            those stay as they are written (007 is not 7).
        reading: The options that name those columns.
        remembered: The same of an earlier reading.
    """
    if suffix_of(path) not in TABLE_SUFFIXES:
        raise LookHopsError(f"{path}: tables are read from {', '.join(TABLE_SUFFIXES)} files.")
    rows = open_table(path)
    if isinstance(rows, ParquetTable):
        with explained_parquet(path):
            # Without what pandas noted for itself, which may be damaged.
            frame = rows.file.read().replace_schema_metadata().to_pandas()
        return Table(str(path), frame)
    finder = ColumnFinder(path, reading, remembered)
    found = (finder.find(rows.head, *names, strict=False) for names in ID_NAMES[what].items())
    ids = [name for name in found if name]
    frame = _frame(rows, ids)
    if rows.commas:
        frame = _with_points(frame, path, {*ids, *names_in(reading.categories)})
    return Table(str(path), frame, rows.where_row)


def _frame(table: TextTable, ids: list[str]) -> pd.DataFrame:
    """The rows; columns of ids as text, others as pandas takes them."""
    table.check_lengths()
    # A column without a name is what pandas writes for the numbers of its rows.
    names = [name or f"\0{number}" for number, name in enumerate(table.head)]
    named = [name for name in table.head if name]
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
        return pd.DataFrame(columns=named)
    except UnicodeDecodeError as error:
        raise table.file.not_utf8() from error
    except (pd.errors.ParserError, pd.errors.ParserWarning, ValueError) as error:
        raise LookHopsError(f"{table.path}: not a table ({error}).") from error
    frame = frame[named]
    if f" {table.separator}".encode() in table.content:
        texts = [name for name in named if pd.api.types.is_string_dtype(frame[name])]
        frame = frame.assign(**{name: frame[name].str.strip() for name in texts})
    return frame


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

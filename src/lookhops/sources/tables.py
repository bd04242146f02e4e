"""Graphs from files of tables: edges, and where there are any, nodes and graphs; or ``.jsonl``.

A ``.jsonl`` file has one graph a line, in the node-link form that NetworkX and D3 write:
``{"nodes": [{"id": "a", "age": 3}, ...], "edges": [{"source": "a", "target": "b"}]}`` (``links``
for ``edges`` too), with ``"directed": true`` where edges have a direction. What is known of the
graph, as its ``id`` and its ``class``, stands beside these or under ``"graph"``.
"""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lookhops.core.errors import LookHopsError
from lookhops.core.reading import AS_USUAL, Reading, names_in
from lookhops.core.schema import AtLeast, read
from lookhops.graphs import Graphs
from lookhops.graphs.from_tables import packed
from lookhops.graphs.table import ID_NAMES, Table, Tables
from lookhops.graphs.targets import BLANK_TEXTS, as_number
from lookhops.sources.rows import (
    NODE_LINK,
    TABLE_SUFFIXES,
    ParquetTable,
    TextFile,
    TextTable,
    explained_parquet,
    open_table,
    say_points,
    stem_of,
    suffix_of,
    unpacked_suffix,
    with_points,
)
from lookhops.sources.targets import choose_columns

#: Cells that are empty, save in columns of ids, where only an empty text is. "Na" is sodium.
BLANKS = ["NaN", "None", *BLANK_TEXTS, *map(str.upper, BLANK_TEXTS)]
#: The column that joins the three tables: no feature has its name.
LINE = "(line)"
#: What a line must hold at least.
_NODES: Any = Sequence[AtLeast({"id": Any})]  # type: ignore[misc]
_EDGES: Any = Sequence[AtLeast({"source": Any, "target": Any})]  # type: ignore[misc]
GRAPH = AtLeast({"nodes": _NODES, "edges?": _EDGES, "links?": _EDGES})
FORM = 'one is {"nodes": [{"id": 1}, ...], "edges": [{"source": 1, "target": 2}, ...]}'
_PARTS = ("nodes", "edges", "links", "graph", "directed", "multigraph")


def read_tables(
    edges: Path | str,
    nodes: Path | str | None = None,
    graphs: Path | str | None = None,
    reading: Reading = AS_USUAL,
    *,
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
        name: What to call the set; by default as the file of edges.
        need_targets: Whether a target that cannot be read is an error; else it stays a column.
    """
    path = Path(edges)
    if unpacked_suffix(path) == NODE_LINK:
        tables = read_node_link(path, reading)
    else:
        files = {"edges": path, "nodes": nodes, "graphs": graphs}
        given: dict[str, Any] = {
            what: read_table(Path(file), what, reading)
            for what, file in files.items()
            if file is not None
        }
        tables = Tables(**given, reading=reading)
    fields, label, place = packed(tables)
    found = Graphs.from_edges(**fields, name=name or stem_of(path))
    return choose_columns(found, reading, label, place, need_targets)


def read_table(path: Path, what: str, reading: Reading = AS_USUAL) -> Table:
    """Read a table of ``edges``, ``nodes`` or ``graphs``: all rows at once, column by column.

    Columns of ids stay as they are written: 007 is not 7.
    """
    if suffix_of(path) not in TABLE_SUFFIXES:
        raise LookHopsError(f"{path}: tables are read from {', '.join(TABLE_SUFFIXES)} files.")
    rows = open_table(path)
    if isinstance(rows, ParquetTable):
        with explained_parquet(path):
            # Without what pandas noted for itself, which may be damaged.
            frame = rows.file.read().replace_schema_metadata().to_pandas()
        return Table(str(path), frame)
    options = ID_NAMES[what].items()
    found = (reading.find(path, rows.head, *names, strict=False) for names in options)
    ids = [name for name in found if name]
    frame = _frame(rows, ids)
    if rows.commas:
        frame = _with_points(frame, path, {*ids, *names_in(reading.categories)})
    return Table(str(path), frame, rows.where_row)


def _frame(table: TextTable, ids: list[str]) -> pd.DataFrame:
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
        raise LookHopsError(f"{table.origin}: not a table ({error}).") from error
    frame = frame[named]
    if f" {table.separator}".encode() in table.content:
        texts = [name for name in named if pd.api.types.is_string_dtype(frame[name])]
        frame = frame.assign(**{name: frame[name].str.strip() for name in texts})
    return frame


def _with_points(frame: pd.DataFrame, path: Path, kept: Set[str]) -> pd.DataFrame:
    numbers = {}
    for name in frame.columns:
        if name not in kept and pd.api.types.is_string_dtype(frame[name]):
            different = frame[name].dropna().unique().tolist()
            if (pointed := with_points(different)) is not None:
                values = dict(zip(different, map(as_number, pointed), strict=True))
                numbers[name] = frame[name].map(values).astype(np.float64)
    say_points(path, list(numbers))
    return frame.assign(**numbers)


# -------------------------------------------------------------------- node-link form


def read_node_link(path: Path, reading: Reading) -> Tables:
    """The graphs of a file as three tables."""
    graphs, nodes, edges = [], [], []
    directions: dict[bool, int] = {}
    for number, line in _lines(path):
        under = line.get("graph")
        beside = {key: value for key, value in line.items() if key not in _PARTS}
        graphs.append({LINE: number, **(under if isinstance(under, dict) else {}), **beside})
        nodes += _entries(line["nodes"], number)
        edges += _entries(line.get("edges", line.get("links", [])), number)
        directions.setdefault(bool(line.get("directed", False)), number)
    if len(directions) > 1:
        one, other = sorted(directions.values())
        raise LookHopsError(
            f"{path}, line {other}: of lines {one} and {other} one graph is directed and the other "
            "is not; write each edge of the undirected ones in both directions, and call all "
            "directed."
        )
    reading = replace(
        reading,
        graph_column=LINE,
        node_column="id",
        source_column="source",
        target_column="target",
        directed=reading.directed or True in directions,
    )
    names = _graph_names(graphs)
    return Tables(
        edges=_table(path, "edge", edges, names),
        nodes=_table(path, "node", nodes, names),
        graphs=_table(path, "", graphs, names),
        reading=reading,
    )


def _graph_names(graphs: list[dict[str, Any]]) -> dict[int, str]:
    """What to call the graph of each line: its ``id`` or ``name`` if all have one, or the line."""
    for key in ("id", "name"):
        names = {graph[LINE]: str(graph.get(key, "")) for graph in graphs}
        if all(names.values()) and len(set(names.values())) == len(graphs):
            return names
    return {graph[LINE]: str(graph[LINE]) for graph in graphs}


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The graph of each line that is not blank, and the line's number."""
    with TextFile(path).bytes() as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            where = f"{path}, line {number}"
            try:
                content = json.loads(line.decode("utf-8-sig"))
                if b"\\u" in line:  # half of a surrogate pair is JSON, but no character
                    json.dumps(content, ensure_ascii=False).encode()
            except (ValueError, RecursionError) as error:
                raise LookHopsError(f"{where}: not JSON ({error}).") from error
            try:
                yield number, read(GRAPH, content)
            except LookHopsError as error:
                raise LookHopsError(f"{where}: not a graph ({error}); {FORM}.") from error


def _entries(entries: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    return [{LINE: number, **{k: v for k, v in entry.items() if k != "key"}} for entry in entries]


def _table(path: Path, part: str, rows: list[dict[str, Any]], names: dict[int, str]) -> Table:
    frame = pd.DataFrame(rows) if rows else pd.DataFrame(columns=[LINE, "source", "target"])
    line = frame[LINE].to_numpy()
    place = pd.Series(line).groupby(line).cumcount()

    def where(row: int) -> str:
        return f"line {line[row]}" + (f", {part} {place[row] + 1}" if part else "")

    return Table(str(path), frame.assign(**{LINE: frame[LINE].map(names)}), where)

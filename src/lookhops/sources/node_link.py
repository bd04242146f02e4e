"""``.jsonl`` files: one graph a line, in the node-link form that NetworkX and D3 write.

A line is ``{"nodes": [{"id": "a", "age": 3}, ...], "edges": [{"source": "a", "target": "b"}]}``
(``links`` for ``edges`` too), with ``"directed": true`` where edges have a direction. What is known
of the graph, as its ``id`` and its ``class``, stands beside these or under ``"graph"``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Reading
from lookhops.core.schema import AtLeast, read
from lookhops.graphs.tables.table import Table, Tables
from lookhops.sources.text_files import TextFile

#: The column that joins the three tables: no feature has its name.
LINE = "(line)"
#: What a line must hold at least.
_NODES: Any = Sequence[AtLeast({"id": Any})]  # type: ignore[misc]
_EDGES: Any = Sequence[AtLeast({"source": Any, "target": Any})]  # type: ignore[misc]
GRAPH = AtLeast({"nodes": _NODES, "edges?": _EDGES, "links?": _EDGES})
FORM = 'one is {"nodes": [{"id": 1}, ...], "edges": [{"source": 1, "target": 2}, ...]}'
_PARTS = ("nodes", "edges", "links", "graph", "directed", "multigraph")


def read_node_link(path: Path, reading: Reading, remembered: Reading) -> Tables:
    """The graphs of a file as three tables."""
    graphs, nodes, edges = [], [], []
    directions: dict[bool, int] = {}
    for number, line in _lines(path):
        graphs.append({LINE: number, **_about(line)})
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
    names = _names(graphs)
    return Tables(
        edges=_table(path, "edge", edges, names),
        nodes=_table(path, "node", nodes, names),
        graphs=_table(path, "", graphs, names),
        reading=reading,
        remembered=remembered,
    )


def _names(graphs: list[dict[str, Any]]) -> dict[int, str]:
    """What to call the graph of each line: its ``id`` or ``name`` if all have one, or the line."""
    for key in ("id", "name"):
        names = {graph[LINE]: str(graph.get(key, "")) for graph in graphs}
        if all(names.values()) and len(set(names.values())) == len(graphs):
            return names
    return {graph[LINE]: str(graph[LINE]) for graph in graphs}


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The graph of each line that is not blank, and the line's number."""
    file = TextFile(path)
    with file.bytes() as lines:
        filled = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
        for number, line in file.not_empty(filled):
            where = f"{path}, line {number}"
            try:
                content = json.loads(line.decode("utf-8-sig"))
                if b"\\u" in line:  # half of a surrogate pair is JSON, but no character
                    json.dumps(content, ensure_ascii=False).encode()
            except (UnicodeError, json.JSONDecodeError, RecursionError) as error:
                raise LookHopsError(f"{where}: not JSON ({error}).") from error
            try:
                yield number, read(GRAPH, content)
            except LookHopsError as error:
                raise LookHopsError(f"{where}: not a graph ({error}); {FORM}.") from error


def _about(line: dict[str, Any]) -> dict[str, Any]:
    """What is known of a graph: what stands under ``graph``, then what stands beside it."""
    under = line.get("graph")
    beside = {key: value for key, value in line.items() if key not in _PARTS}
    return (under if isinstance(under, dict) else {}) | beside


def _entries(entries: list[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """The nodes or edges of a graph, each with its line."""
    return [{LINE: number, **{k: v for k, v in entry.items() if k != "key"}} for entry in entries]


def _table(path: Path, part: str, rows: list[dict[str, Any]], names: dict[int, str]) -> Table:
    frame = pd.DataFrame(rows) if rows else pd.DataFrame(columns=[LINE, "source", "target"])
    line = frame[LINE].to_numpy()
    place = pd.Series(line).groupby(line).cumcount()

    def where(row: int) -> str:
        return f"line {line[row]}" + (f", {part} {place[row] + 1}" if part else "")

    return Table(str(path), frame.assign(**{LINE: frame[LINE].map(names)}), where)

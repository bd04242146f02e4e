"""Graphs from files of tables: edges, and where there are any, nodes and graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lookhops.core.options import AS_USUAL, Reading
from lookhops.graphs import Graphs
from lookhops.graphs.tables import packed
from lookhops.graphs.tables.columns import Tables
from lookhops.sources.node_link import read_node_link
from lookhops.sources.table_files import read_table
from lookhops.sources.table_kinds import table_in
from lookhops.sources.targets import Offer, choose_targets
from lookhops.sources.text_tables import NODE_LINK, suffix_of, unpacked_suffix


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
        read = {
            what: read_table(Path(file), what, reading, remembered)
            for what, file in files.items()
            if file is not None
        }
        tables = Tables(**read, reading=reading, remembered=remembered)
    stem = path.name.removesuffix(suffix_of(path))
    found = packed(tables)
    read_graphs = Graphs.from_edges(**found.fields, name=name or stem)
    offer = Offer(found.label, found.place, need_targets)
    return choose_targets(read_graphs, reading, remembered, offer)


def read_folder(folder: Path, **options: Any) -> Graphs:
    """Graphs of a folder with ``edges.csv`` (or another kind), ``nodes.*`` and ``graphs.*``.

    Options are those of :func:`read_tables`.
    """
    files = {what: table_in(folder, what) for what in ("edges", "nodes", "graphs")}
    assert files["edges"] is not None
    return read_tables(**files, name=folder.resolve().name, **options)  # type: ignore[arg-type]

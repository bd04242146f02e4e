"""Graphs from files of tables: edges, and where there are any, nodes and graphs."""

from __future__ import annotations

from pathlib import Path

from lookhops.datasets.molecule_files import SMILES_NAMES
from lookhops.datasets.node_link import read_node_link
from lookhops.datasets.table_files import header_of, read_table
from lookhops.datasets.text_tables import NODE_LINK, TABLE_SUFFIXES, suffix_of
from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.graphs.column_finder import ColumnFinder, listed
from lookhops.graphs.tables import edges_of
from lookhops.graphs.tables.columns import SOURCE_NAMES, TARGET_NAMES, Tables
from lookhops.options import AS_USUAL, MOLECULES, TABLES, Reading


def read_tables(
    edges: Path | str,
    nodes: Path | str | None = None,
    graphs: Path | str | None = None,
    reading: Reading = AS_USUAL,
    *,
    remembered: Reading = AS_USUAL,
    name: str | None = None,
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
    """
    path = Path(edges)
    if suffix_of(path) == NODE_LINK:
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
    return Graphs.from_edges(**edges_of(tables), name=name or stem)


def read_folder(folder: Path, reading: Reading, remembered: Reading) -> Graphs:
    """Graphs of a folder with ``edges.csv`` (or another kind), ``nodes.*`` and ``graphs.*``."""
    files = {what: table_in(folder, what) for what in ("edges", "nodes", "graphs")}
    assert files["edges"] is not None
    name = folder.resolve().name
    return read_tables(**files, reading=reading, remembered=remembered, name=name)  # type: ignore[arg-type]


def table_in(folder: Path, what: str) -> Path | None:
    """The file of a folder that is the table of edges, nodes or graphs."""
    found = [folder / f"{what}{suffix}" for suffix in TABLE_SUFFIXES]
    found = [path for path in found if path.is_file()]
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        raise LookHopsError(f"{folder}: which table of {what}? There are {names}; keep one.")
    return found[0] if found else None


def kind_of_table(path: Path, reading: Reading, remembered: Reading) -> str:
    """Whether a table holds molecules or the edges of graphs, told by its columns."""
    header = header_of(path)
    finder = ColumnFinder(path, reading, remembered)
    ends = {"source_column": SOURCE_NAMES, "target_column": TARGET_NAMES}
    has_ends = all(finder.find(header, *names, strict=False) for names in ends.items())
    chosen = any(getattr(reading, name) for name in (*ends, "graph_column"))
    if reading.smiles_column or finder.find(header, "smiles_column", SMILES_NAMES):
        return TABLES if chosen else MOLECULES
    if has_ends or chosen:
        return TABLES
    raise LookHopsError(
        f"{path}: neither molecules nor edges of graphs; the columns are {listed(header)}. Name "
        "the column of SMILES with smiles_column (--smiles-column), or those of both ends of an "
        "edge with source_column and target_column (--source-column, --target-column)."
    )

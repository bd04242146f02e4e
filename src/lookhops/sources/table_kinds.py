"""What tables hold, told by their columns: without pandas, which takes a while to import."""

from __future__ import annotations

from pathlib import Path

from lookhops.core.errors import LookHopsError
from lookhops.core.options import MOLECULES, TABLES, Reading
from lookhops.graphs.column_finder import SOURCE_NAMES, TARGET_NAMES, ColumnFinder, listed
from lookhops.sources.molecule_files import SMILES_NAMES
from lookhops.sources.parquet_files import open_parquet
from lookhops.sources.text_tables import PARQUET, TABLE_SUFFIXES, TextTable, suffix_of


def header_of(path: Path) -> list[str]:
    """The names of a file's columns, without reading the rest of it."""
    if suffix_of(path) == PARQUET:
        return [str(name) for name in open_parquet(path).schema_arrow.names]
    return TextTable(path).header


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

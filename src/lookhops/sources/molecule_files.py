"""``.smi``, ``.sdf`` and table files as a :class:`MoleculeTable`: text, before chemistry."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from lookhops.core.errors import LookHopsError
from lookhops.core.tables import cell_text
from lookhops.graphs.column_finder import ColumnFinder, listed
from lookhops.sources.molecule_table import MoleculeTable
from lookhops.sources.parquet_files import open_parquet, parquet_rows
from lookhops.sources.text_tables import (
    PARQUET,
    SEPARATOR_LINE,
    TextTable,
    read_whole,
    say_points,
    suffix_of,
    with_points,
)

# Names that are looked for, in this order, whatever their case, when no option names the column.
SMILES_NAMES = ("smiles", "canonical_smiles", "isomeric_smiles", "smi", "structure", "mol")
LABEL_NAMES = ("class", "label", "y", "target")
ID_NAMES = ("id", "name", "title", "identifier", "compound", "molecule_id", "compound_id")


def read_text(path: Path) -> str:
    """A whole UTF-8 file, perhaps packed by gzip, with every line end made ``\\n``."""
    data = read_whole(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LookHopsError(
            f"{path}, line {line}: not UTF-8 text; save the file with that encoding."
        ) from error
    if not text.strip():
        raise LookHopsError(f"{path}: the file is empty.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


# -------------------------------------------------------------------- .smi


def read_smi(path: Path) -> MoleculeTable:
    """One molecule a line: SMILES, then its name; a header, blank lines and # lines are passed."""
    where: list[str] = []
    structures: list[str] = []
    ids: list[str] = []
    for number, smiles, name in smi_rows(read_text(path).split("\n"), path):
        where.append(f"line {number}")
        structures.append(smiles)
        ids.append(name or str(number))
    return MoleculeTable(str(path), where, structures, ids)


def smi_rows(lines: Iterable[str], origin: object) -> Iterator[tuple[int, str, str]]:
    """The number from 1, the SMILES and the name, empty where there is none, of each line with one.

    Args:
        lines: The lines of a ``.smi`` file, or of standard input.
        origin: The source, for messages.
    """
    first = True
    for number, line in enumerate(lines, 1):
        parts = line.split(maxsplit=1)
        if not parts or line.startswith("#"):
            continue
        if first:
            first = False
            if parts[0].strip('"').lower() in SMILES_NAMES:
                continue
            fields = [field.strip('" \n').lower() for field in re.split("[,;\t]", line)]
            of_table = len(fields) > 1 and not set(fields).isdisjoint(SMILES_NAMES)
            if of_table or SEPARATOR_LINE.fullmatch(line.strip().encode()):
                raise LookHopsError(
                    f"{origin}, line {number}: the header of a table, where each line is a SMILES "
                    "and, after a space, a name; write the table to a .csv file."
                )
        yield number, parts[0], parts[1].split("\t")[0].strip() if len(parts) > 1 else ""


# -------------------------------------------------------------------- tables


def read_csv(path: Path, finder: ColumnFinder) -> MoleculeTable:
    """A table with a header: text, as ``.csv``, ``.tsv`` and the like, or ``.parquet``."""
    header, rows, lines = table_cells(path)
    smiles = finder.find(header, "smiles_column", SMILES_NAMES)
    if smiles is None:
        raise LookHopsError(
            f"{path}: no column of SMILES; the columns are {listed(header)}. Name one with "
            "smiles_column (--smiles-column)."
        )
    cells = {column: [row[j].strip() for row in rows] for j, column in enumerate(header) if column}
    where = [f"line {line}" for line in lines]
    table = _table(path, where, cells, smiles, lines, finder)
    blank = frozenset(i for i, row in enumerate(rows) if not any(map(str.strip, row)))
    table = replace(table, blank=blank)
    if suffix_of(path) == PARQUET or TextTable(path).separator == ",":
        return table
    pointed = {name: with_points(own) for name, own in table.columns.items()}
    numbers = {name: own for name, own in pointed.items() if own is not None}
    say_points(path, list(numbers))
    return replace(table, columns=table.columns | numbers)


def table_cells(path: Path) -> tuple[list[str], list[Sequence[str]], list[int]]:
    """The header, the rows as texts, and the line (without lines: the number) of each row."""
    if suffix_of(path) == PARQUET:
        file = open_parquet(path)
        rows: list[Sequence[str]] = [[*map(cell_text, row)] for row in parquet_rows(path, file)]
        names = [str(name) for name in file.schema_arrow.names]
        return names, rows, list(range(1, len(rows) + 1))
    table = TextTable(path)
    table.check_lengths()
    _, *found = table.rows()
    return table.header, [row for _, row in found], [line for line, _ in found]


# -------------------------------------------------------------------- .sdf


def read_sdf(path: Path, finder: ColumnFinder) -> MoleculeTable:
    """Mol blocks with their data fields, records apart by ``$$$$``."""
    blocks, fields, where = _sdf_records(path)
    titles = [block.split("\n", 1)[0].strip() for block in blocks]
    numbers = range(1, len(blocks) + 1)
    return _table(path, where, {**fields, "": blocks}, "", numbers, finder, titles)


def sdf_fields(path: Path) -> dict[str, list[str]]:
    """The data fields of all records by their names; empty where a record lacks one."""
    return _sdf_records(path)[1]


def _sdf_records(path: Path) -> tuple[list[str], dict[str, list[str]], list[str]]:
    """The mol block, the data fields and the place of each record."""
    blocks, fields, where, first = [], [], [], 1
    for number, record in enumerate(f"\n{read_text(path)}".split("\n$$$$"), start=1):
        # What follows a $$$$ on its line belongs to no record; the text before the first is "".
        lines = record.split("\n")[1:]
        if any(line.strip() for line in lines):
            data = (j for j, line in enumerate(lines) if j >= 4 and line.startswith(">"))
            begin = next(data, len(lines))
            blocks.append("\n".join(lines[:begin]))
            fields.append(_data_fields(lines[begin:]))
            where.append(f"record {number} (line {first})")
        first += len(lines) + 1
    names = dict.fromkeys(name for data in fields for name in data)
    return blocks, {name: [data.get(name, "") for data in fields] for name in names}, where


def _data_fields(lines: list[str]) -> dict[str, str]:
    """``> <name>`` lines and the lines under each, up to a blank one."""
    fields: dict[str, list[str]] = {}
    name = None
    for line in lines:
        if line.startswith(">") and "<" in line:
            name = line[line.index("<") + 1 :].split(">", 1)[0].strip()
            fields[name] = []
        elif not line.strip():
            name = None
        elif name is not None:
            fields[name].append(line.strip())
    return {key: "\n".join(value) for key, value in fields.items() if key}


# -------------------------------------------------------------------- columns


def _table(
    path: Path,
    where: list[str],
    cells: dict[str, list[str]],
    structure: str,
    numbers: Sequence[int],
    finder: ColumnFinder,
    titles: Sequence[str] = (),
) -> MoleculeTable:
    """Sort out columns; without an ``id_column``, titles are ids, then columns, then numbers."""
    label = finder.find(cells, "label_column", LABEL_NAMES)
    usual = () if any(titles) else ID_NAMES
    name = finder.find(cells, "id_column", usual)
    ids = cells[name] if name else titles or [""] * len(where)
    return MoleculeTable(
        origin=str(path),
        where=where,
        structures=cells[structure],
        ids=[given or str(number) for given, number in zip(ids, numbers, strict=True)],
        label_column=label,
        columns={key: cells[key] for key in cells if key == label or key not in (structure, name)},
    )

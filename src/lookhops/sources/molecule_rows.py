"""Rows that have structures: SMILES that are given or in lines of text, and SDF files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, repeat
from pathlib import Path
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.reading import (
    MOLECULES,
    SOURCE_NAMES,
    TABLES,
    TARGET_NAMES,
    Reading,
    listed,
)
from lookhops.sources.rows import (
    SEPARATOR_LINE,
    TABLE_SUFFIXES,
    Row,
    Rows,
    TextFile,
    open_table,
    suffix_of,
    unpacked_suffix,
)

SUFFIXES = (".smi", ".sdf", *TABLE_SUFFIXES, ".smi.gz", ".sdf.gz")
#: Usual names of the column of SMILES, in the order in which they are looked for.
SMILES_NAMES = ("smiles", "canonical_smiles", "isomeric_smiles", "smi", "structure", "mol")


def open_rows(path: Path) -> Rows:
    """The rows of a file, by its suffix."""
    formats = {".smi": SmilesFile, ".sdf": SdfFile}
    return formats.get(unpacked_suffix(path), open_table)(path)


def come_in_parts(path: Path, reading: Reading) -> bool:
    """Whether molecules of a file can be read in parts.

    The columns of an SDF file are known at its end; duplicates are merged when all rows are there.
    """
    return unpacked_suffix(path) != ".sdf" and reading.duplicates != "merge"


def kind_of_rows(path: Path, reading: Reading) -> str | None:
    """What a file holds whose rows are read one by one; none where it is no such file."""
    if suffix_of(path) in TABLE_SUFFIXES:
        return kind_of_table(path, reading)
    return MOLECULES if suffix_of(path) in SUFFIXES else None


def kind_of_table(path: Path, reading: Reading) -> str:
    """Whether a table holds molecules or the edges of graphs, by the names of its columns."""
    head = open_table(path).head
    ends = {"source_column": SOURCE_NAMES, "target_column": TARGET_NAMES}
    has_ends = all(reading.find(path, head, *names, strict=False) for names in ends.items())
    chosen = any(getattr(reading, name) for name in (*ends, "graph_column"))
    if reading.smiles_column or reading.find(path, head, "smiles_column", SMILES_NAMES):
        return TABLES if chosen else MOLECULES
    if has_ends or chosen:
        return TABLES
    raise LookHopsError(
        f"{path}: neither molecules nor edges of graphs; the columns are {listed(head)}. Name "
        "the column of SMILES with smiles_column (--smiles-column), or those of both ends of an "
        "edge with source_column and target_column (--source-column, --target-column)."
    )


class SmilesList(Rows):
    """SMILES in a list, with their names, by default counted from 1, and with columns."""

    named = True

    def __init__(
        self,
        smiles: Sequence[str],
        names: Sequence[str] | None = None,
        columns: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        self.columns = columns or {}
        super().__init__("", self.columns)
        self.smiles, self.names = smiles, names

    def rows(self) -> Iterator[Row]:
        names = repeat("") if self.names is None else self.names
        cells = zip(*self.columns.values(), strict=True) if self.columns else repeat(())
        return map(Row, count(1), cells, self.smiles, names)

    def where(self, number: int) -> str:
        return f"molecule {number}"


class SmilesLines(Rows):
    """Lines with a SMILES and, after a space, a name; a header, blanks and # are passed over."""

    named = True
    #: Whether a molecule without a name is called by its SMILES.
    named_by_smiles = True

    def __init__(self, lines: Iterable[str], origin: object) -> None:
        super().__init__(origin)
        self.lines = lines

    def rows(self) -> Iterator[Row]:
        first = True
        for number, line in enumerate(self.lines, 1):
            parts = line.split(maxsplit=1)
            if not parts or line.startswith("#"):
                continue
            if first:
                first = False
                if parts[0].strip('"').lower() in SMILES_NAMES:
                    continue
                self._check_first(number, line)
            name = parts[1].split("\t")[0].strip() if len(parts) > 1 else ""
            yield Row(number, (), parts[0], name or (parts[0] if self.named_by_smiles else ""))

    def _check_first(self, number: int, line: str) -> None:
        fields = [field.strip('" \n').lower() for field in re.split("[,;\t]", line)]
        of_table = len(fields) > 1 and not set(fields).isdisjoint(SMILES_NAMES)
        if of_table or SEPARATOR_LINE.fullmatch(line.strip()):
            raise LookHopsError(
                f"{self.origin}, line {number}: the header of a table, where each line is a SMILES "
                "and, after a space, a name; write the table to a .csv file."
            )


class SmilesFile(SmilesLines):
    """A ``.smi`` file: the same, where a molecule without a name is called by its line."""

    named_by_smiles = False

    def __init__(self, path: Path) -> None:
        self.file = TextFile(path)
        super().__init__((), path)

    def rows(self) -> Iterator[Row]:
        with self.file.text() as self.lines:
            yield from super().rows()


class SdfFile(Rows):
    """An SDF file: mol blocks with data fields, each called by its title; read as one piece."""

    mol_blocks = True

    def __init__(self, path: Path) -> None:
        with TextFile(path).text() as text:
            content = text.read()
        #: Of each record: its first line, the mol block and the data fields.
        self.records: list[tuple[int, str, dict[str, str]]] = []
        first = 1
        for record in f"\n{content}".split("\n$$$$"):
            # What follows a $$$$ on its line belongs to no record; the text before the first is "".
            lines = record.split("\n")[1:]
            if any(line.strip() for line in lines):
                data = (j for j, line in enumerate(lines) if j >= 4 and line.startswith(">"))
                begin = next(data, len(lines))
                fields = _data_fields(lines[begin:])
                self.records.append((first, "\n".join(lines[:begin]), fields))
            first += len(lines) + 1
        super().__init__(path, dict.fromkeys(name for *_, data in self.records for name in data))
        self.named = any(block.split("\n", 1)[0].strip() for _, block, _ in self.records)

    def rows(self) -> Iterator[Row]:
        for number, (_, block, fields) in enumerate(self.records, 1):
            cells = [fields.get(name, "") for name in self.head]
            yield Row(number, cells, block, block.split("\n", 1)[0].strip())

    def where(self, number: int) -> str:
        return f"record {number} (line {self.records[number - 1][0]})"


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

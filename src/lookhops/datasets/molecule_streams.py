"""Molecules of a text file, read as it goes: rows first, chemistry in worker processes behind."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from lookhops.datasets.molecule_features import pack
from lookhops.datasets.molecule_files import ID_NAMES, LABEL_NAMES, smi_row
from lookhops.datasets.molecule_table import MoleculeTable
from lookhops.datasets.molecules import SHOWN, skipped_rows, skipped_sentence
from lookhops.datasets.parquet_files import column_types, open_parquet, parquet_rows
from lookhops.datasets.parts import Part, Stream
from lookhops.datasets.text_tables import PARQUET, TextFile, TextTable, suffix_of
from lookhops.errors import LookHopsError
from lookhops.graphs.column_finder import ColumnFinder, listed
from lookhops.molecules.guess import SMILES_NAMES
from lookhops.molecules.parsing import Parsed
from lookhops.molecules.workers import CHUNK, ParsingPool
from lookhops.options import Reading
from lookhops.tables import cell_text


class MoleculeRow(NamedTuple):
    """A row of a source, before chemistry.

    Args:
        where: Its place.
        smiles: Its SMILES.
        id: What it is called.
        cells: All that it says, as it was given.
        label: What is known of the target, or nothing.
    """

    where: str
    smiles: str
    id: str
    cells: Sequence[Any]
    label: str = ""


class MoleculeStream(Stream):
    """The molecules of a source, some at a time.

    Args:
        origin: The source, for messages.
        name: What to call the graphs.
        head: Names of the columns of its rows.
        rows: The rows.
        reading: What to do with molecules.
        pool: Parses them.
        share: Says how much of the source has been read, from 0 to 1; none where nobody knows.
        given: Whether rows are written as they were given; else with the SMILES that was read.
        types: As for :class:`~lookhops.datasets.parts.Stream`.
    """

    def __init__(
        self,
        origin: str,
        name: str,
        head: list[str],
        rows: Iterator[MoleculeRow],
        reading: Reading,
        pool: ParsingPool,
        share: Callable[[], float] | None,
        given: bool,
        types: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(name, head, types)
        self.origin, self.rows, self.reading, self.pool = origin, rows, reading, pool
        self.share, self.given = share, given
        self.total, self.lost, self.places = 0, 0, list[str]()

    def skip(self, count: int) -> Iterator[Sequence[Any]]:
        """Pass over rows without parsing them; what each says."""
        for row in islice(self.rows, count):
            yield row.cells

    def parts(self, size: int) -> Iterator[Part]:
        """The molecules, so many rows at a time."""
        ahead: deque[list[MoleculeRow]] = deque()

        def chunks() -> Iterator[list[str]]:
            while rows := list(islice(self.rows, CHUNK)):
                ahead.append(rows)
                yield [row.smiles for row in rows]

        rows: list[MoleculeRow] = []
        parsed: list[Parsed] = []
        for found in self.pool.map(chunks()):
            rows += ahead.popleft()
            parsed.append(found)
            if len(rows) >= size:
                yield self._part(rows, Parsed.join(parsed))
                rows, parsed = [], []
        if rows:
            yield self._part(rows, Parsed.join(parsed))

    def _part(self, rows: list[MoleculeRow], parsed: Parsed) -> Part:
        where, ids = [row.where for row in rows], [row.id for row in rows]
        smiles = [row.smiles for row in rows]
        table = MoleculeTable(self.origin, where, smiles, ids)
        skipped = skipped_rows(table, parsed, self.reading)
        self.total += len(rows)
        self.lost += len(skipped)
        for one in skipped[: SHOWN - len(self.places)]:
            self.places.append(f"{where[one.row]} ({one.reason})")
        columns = {
            "id": np.array(ids, dtype=object)[parsed.rows],
            "smiles": np.array(parsed.smiles, dtype=object),
        }
        graphs = pack(parsed, name=self.name, columns=columns, skipped=skipped)
        cells = [row.cells for row in rows]
        if not self.given:
            for row, read in zip(parsed.rows.tolist(), parsed.smiles, strict=True):
                cells[row] = (ids[row], read)
        share = None if self.share is None else self.share()
        return Part(graphs, cells, [row.label for row in rows], share)

    def remarks(self) -> list[str]:
        """What is to be said in the end: which molecules were left out."""
        if not self.total:
            raise LookHopsError(f"{self.origin}: there are no molecules.")
        if not self.lost:
            return []
        return [skipped_sentence(self.origin, self.places, self.lost, self.total)]


def can_stream(path: Path) -> bool:
    """Whether molecules of a file can be read as it goes: all but SDF files, as they are."""
    return suffix_of(path) != ".sdf"


def stream_lines(
    lines: Iterable[str], origin: str, reading: Reading, pool: ParsingPool
) -> MoleculeStream:
    """Molecules from lines of text, such as those of standard input: SMILES, then a name."""

    def rows() -> Iterator[MoleculeRow]:
        for number, line in enumerate(lines, 1):
            words = line.split(maxsplit=1)
            if words and not line.startswith("#"):
                smiles, name = words[0], words[-1].strip()
                yield MoleculeRow(f"line {number}", smiles, name, (name, smiles))

    return MoleculeStream(origin, origin, ["id", "smiles"], rows(), reading, pool, None, False)


def stream_file(
    path: Path, reading: Reading, remembered: Reading, pool: ParsingPool
) -> MoleculeStream:
    """The molecules of a ``.smi`` file or of a table.

    Args:
        path: The file.
        reading: The columns, and what to do with molecules.
        remembered: Where ``reading`` names no column, these are looked for before the usual ones.
        pool: Parses molecules.
    """
    kind = suffix_of(path)
    name = path.name.removesuffix(kind)
    if kind == ".smi":
        if reading.smiles_column or reading.label_column or reading.id_column:
            raise LookHopsError(
                f"{path}: a .smi file has no named columns; use a .csv file to name them."
            )
        file = TextFile(path)
        rows = _smi_rows(file)
        share: Callable[[], float] = lambda: file.share  # noqa: E731
        return MoleculeStream(str(path), name, ["id", "smiles"], rows, reading, pool, share, False)
    head, types, cells, share = _parquet(path) if kind == PARQUET else _text(path)
    rows = _table_rows(path, head, cells, ColumnFinder(path, reading, remembered))
    return MoleculeStream(str(path), name, head, rows, reading, pool, share, True, types)


def _smi_rows(file: TextFile) -> Iterator[MoleculeRow]:
    with file.text(newline=None) as text:
        found = False
        for number, line in enumerate(text, 1):
            row = smi_row(line, number, first=not found)
            if row is not None:
                found = True
                smiles, name = row
                yield MoleculeRow(f"line {number}", smiles, name, (name, smiles))
    if not found:
        raise LookHopsError(f"{file.path}: the file is empty.")


#: The line or number of a row, and its cells.
_Cells = Iterator[tuple[int, Sequence[Any]]]


def _text(path: Path) -> tuple[list[str], list[Any], _Cells, Callable[[], float]]:
    table = TextTable(path)

    def cells() -> _Cells:
        rows = table.rows()
        next(rows)
        for line, row in rows:
            if any(map(str.strip, row)):
                table.check_length(line, row)
                yield line, row

    return table.header, [None] * len(table.header), cells(), lambda: table.share


def _parquet(path: Path) -> tuple[list[str], list[Any], _Cells, Callable[[], float]]:
    file = open_parquet(path)
    head, done = [str(name) for name in file.schema_arrow.names], 0

    def cells() -> _Cells:
        nonlocal done
        for row in parquet_rows(path, file):
            done += 1
            yield done, row

    return head, column_types(file), cells(), lambda: done / max(file.metadata.num_rows, 1)


def _table_rows(
    path: Path, head: Sequence[str], cells: _Cells, finder: ColumnFinder
) -> Iterator[MoleculeRow]:
    """The rows of a table, with the columns that matter found by their names."""
    smiles = finder.find(head, "smiles_column", SMILES_NAMES)
    if smiles is None:
        raise LookHopsError(
            f"{path}: no column of SMILES; the columns are {listed(head)}. Name one with "
            "smiles_column (--smiles-column)."
        )
    name = finder.find(head, "id_column", ID_NAMES)
    label = _label(head, finder)
    places = [None if own is None else head.index(own) for own in (smiles, name, label)]
    for line, row in cells:
        found = ("" if j is None else cell_text(row[j]).strip() for j in places)
        drawn, called, known = found
        yield MoleculeRow(f"line {line}", drawn, called or str(line), row, known)


def _label(head: Sequence[str], finder: ColumnFinder) -> str | None:
    """The column of the one target, where there is one."""
    wanted = finder.reading.target
    if wanted is None and finder.remembered.target in head:
        wanted = finder.remembered.target
    if wanted is None:
        return finder.find(head, "label_column", LABEL_NAMES)
    if "," in wanted and wanted not in head:  # several, which are not compared
        return None
    if wanted not in head:
        raise LookHopsError(
            f"{finder.origin}: no column is called {wanted!r}; the columns are {listed(head)}. "
            "Choose some of them (--target)."
        )
    return wanted


def utf8_lines(file: TextIO) -> Iterator[str]:
    """The lines of standard input, or a sentence where they are no text."""
    try:
        yield from file
    except UnicodeDecodeError as error:
        raise LookHopsError("standard input: not UTF-8 text.") from error

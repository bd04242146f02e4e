"""Molecules of a text file, read as it goes: rows first, chemistry in worker processes behind."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Reading
from lookhops.core.tables import cell_text
from lookhops.graphs.column_finder import ColumnFinder, called, listed
from lookhops.sources.molecule_features import pack
from lookhops.sources.molecule_files import ID_NAMES, LABEL_NAMES, SMILES_NAMES, smi_rows
from lookhops.sources.molecule_table import MoleculeTable
from lookhops.sources.molecules import SHOWN, skipped_rows, skipped_sentence
from lookhops.sources.parquet_files import column_types, open_parquet, parquet_rows
from lookhops.sources.parts import Part, Stream
from lookhops.sources.rdkit.parsing import Parsed
from lookhops.sources.rdkit.workers import CHUNK, ParsingPool
from lookhops.sources.text_tables import (
    PARQUET,
    TextFile,
    TextTable,
    suffix_of,
    unpacked_suffix,
    with_points,
)


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
        types: As for :class:`~lookhops.sources.parts.Stream`.
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
        said_nothing = (i for i, _ in parsed.failures if not any(map(str.strip, rows[i].cells)))
        table = MoleculeTable(self.origin, where, smiles, ids, blank=frozenset(said_nothing))
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
    return unpacked_suffix(path) != ".sdf"


def stream_lines(
    lines: Iterable[str], origin: str, reading: Reading, pool: ParsingPool
) -> MoleculeStream:
    """Molecules from lines of text, such as those of standard input: SMILES, then a name."""

    rows = line_rows(lines, origin)
    return MoleculeStream(origin, origin, ["id", "smiles"], rows, reading, pool, None, False)


def line_rows(lines: Iterable[str], origin: str) -> Iterator[MoleculeRow]:
    """Rows of lines of text; a molecule without a name is called by its SMILES."""
    for number, smiles, name in smi_rows(lines, origin):
        called_so = name or smiles
        yield MoleculeRow(f"line {number}", smiles, called_so, (called_so, smiles))


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
    name = path.name.removesuffix(suffix_of(path))
    if unpacked_suffix(path) == ".smi":
        if reading.smiles_column or reading.label_column or reading.id_column:
            raise LookHopsError(
                f"{path}: a .smi file has no named columns; use a .csv file to name them."
            )
        file = TextFile(path)
        rows = _smi_rows(file)
        share: Callable[[], float] = lambda: file.share  # noqa: E731
        return MoleculeStream(str(path), name, ["id", "smiles"], rows, reading, pool, share, False)
    table = _parquet(path) if suffix_of(path) == PARQUET else _text(path)
    rows = _table_rows(path, table, ColumnFinder(path, reading, remembered))
    head, types, _, share, _ = table
    return MoleculeStream(str(path), name, head, rows, reading, pool, share, True, types)


def _smi_rows(file: TextFile) -> Iterator[MoleculeRow]:
    with file.text(newline=None) as text:
        found = False
        for number, smiles, given in smi_rows(text, file.path):
            found, name = True, given or str(number)
            yield MoleculeRow(f"line {number}", smiles, name, (name, smiles))
    if not found:
        raise LookHopsError(f"{file.path}: the file is empty.")


#: The line or number of a row, and its cells.
_Cells = Iterator[tuple[int, Sequence[Any]]]


class _Table(NamedTuple):
    """A table that is being read.

    Args:
        head: Names of its columns.
        types: What each column holds; none is text.
        cells: The rows.
        share: Says how much of it has been read, from 0 to 1.
        commas: Whether numbers may have decimal commas: commas separate no fields.
    """

    head: list[str]
    types: list[Any]
    cells: _Cells
    share: Callable[[], float]
    commas: bool


def _text(path: Path) -> _Table:
    table = TextTable(path)

    def cells() -> _Cells:
        rows = table.rows()
        next(rows)
        for line, row in rows:
            table.check_length(line, row)
            yield line, row

    types, commas = [None] * len(table.header), table.separator != ","
    return _Table(table.header, types, cells(), lambda: table.share, commas)


def _parquet(path: Path) -> _Table:
    file = open_parquet(path)
    head, done = [str(name) for name in file.schema_arrow.names], 0

    def cells() -> _Cells:
        nonlocal done
        for row in parquet_rows(path, file):
            done += 1
            yield done, row

    total = max(file.metadata.num_rows, 1)
    return _Table(head, column_types(file), cells(), lambda: done / total, False)


def _table_rows(path: Path, table: _Table, finder: ColumnFinder) -> Iterator[MoleculeRow]:
    """The rows of a table, with the columns that matter found by their names."""
    head = table.head
    smiles = finder.find(head, "smiles_column", SMILES_NAMES)
    if smiles is None:
        raise LookHopsError(
            f"{path}: no column of SMILES; the columns are {listed(head)}. Name one with "
            "smiles_column (--smiles-column)."
        )
    columns = smiles, finder.find(head, "id_column", ID_NAMES), _label(head, finder)
    places = [None if own is None else head.index(own) for own in columns]
    for line, row in table.cells:
        drawn, name, known = ("" if j is None else cell_text(row[j]).strip() for j in places)
        if table.commas and "," in known:
            known = (with_points([known]) or [known])[0]
        yield MoleculeRow(f"line {line}", drawn, name or str(line), row, known)


def _label(head: Sequence[str], finder: ColumnFinder) -> str | None:
    """The column of the one target, where there is one."""
    wanted = finder.reading.target or finder.remembered.target
    found = None if wanted is None else called(wanted, head)
    if found is not None:
        return found
    if finder.reading.target is None:
        return finder.find(head, "label_column", LABEL_NAMES)
    if "," in finder.reading.target:  # several, which are not compared
        return None
    raise LookHopsError(
        f"{finder.origin}: no column is called {wanted!r}; the columns are {listed(head)}. "
        "Choose some of them (--target)."
    )

"""Rows of molecules and what RDKit says of them, before they are graphs.

Nothing here imports PyTorch: workers can begin to parse a file while that is loaded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from queue import Full, Queue
from threading import Event, Thread
from typing import Any

from lookhops.core.column_finder import SOURCE_NAMES, TARGET_NAMES, ColumnFinder, listed
from lookhops.core.errors import LookHopsError
from lookhops.core.options import AS_USUAL, MOLECULES, TABLES, Reading
from lookhops.core.tables import cell_text
from lookhops.sources.molecule_rows import SMILES_NAMES, open_rows
from lookhops.sources.rdkit.parsing import Parsed, Parsing
from lookhops.sources.rdkit.workers import CHUNK, ParsingPool
from lookhops.sources.rows import Row, Rows, open_table
from lookhops.sources.text_files import TABLE_SUFFIXES, suffix_of, unpacked_suffix

SUFFIXES = (".smi", ".sdf", *TABLE_SUFFIXES, ".smi.gz", ".sdf.gz")
#: Names that are looked for, in this order, whatever their case, when no option names the column.
ID_NAMES = ("id", "name", "title", "identifier", "compound", "molecule_id", "compound_id")
#: Chunks that are parsed before they are asked for, where parsing begins early.
AHEAD = 64


class MoleculeRows:
    """The rows of a source of molecules, the columns that matter, and what RDKit says of each row.

    Args:
        source: The rows.
        pool: Parses molecules.
        reading: The columns, and what to do with molecules.
        remembered: Where ``reading`` names no column, these are looked for before the usual ones.
    """

    def __init__(
        self,
        source: Rows,
        pool: ParsingPool,
        reading: Reading = AS_USUAL,
        remembered: Reading = AS_USUAL,
    ) -> None:
        self.source, self.pool, self.reading, self.remembered = source, pool, reading, remembered
        self.finder = ColumnFinder(source.origin, reading, remembered)
        structure = None if source.structures else _smiles_column(source, self.finder)
        name = self.finder.find(source.head, "id_column", () if source.named else ID_NAMES)
        self._structure, self._id = (
            None if column is None else source.head.index(column) for column in (structure, name)
        )
        #: Columns that the file lacks: they come first, and rows are written with them.
        self.made = [n for n in ("id", "smiles") if source.structures and n not in source.head]
        self.head = [*self.made, *source.head]
        self.types = [*[None] * len(self.made), *source.types]
        #: The rows that were not taken yet.
        self.left = source.rows()
        self._ahead: ReadAhead | None = None

    @property
    def used(self) -> set[int | None]:
        """The columns that say what a molecule is and what it is called."""
        return {self._structure, self._id}

    # ---------------------------------------------------------------- parsing

    def begin(self) -> None:
        """Have rows read and parsed from now on, some ahead, by workers and another thread."""
        if self.pool.processes:
            self._ahead = ReadAhead(self._parsed())

    def close(self) -> None:
        """End that thread."""
        if self._ahead is not None:
            self._ahead.close()

    def parsed(self) -> Iterator[tuple[list[Row], Parsed]]:
        """The rows that are left in chunks, with what RDKit says of them."""
        return self._parsed() if self._ahead is None else iter(self._ahead)

    def _parsed(self) -> Iterator[tuple[list[Row], Parsed]]:
        self.pool.how = Parsing.of(self.reading, self.source.mol_blocks, canonical=False)
        taken: deque[list[Row]] = deque()

        def chunks() -> Iterator[list[str]]:
            while rows := list(islice(self.left, CHUNK)):
                taken.append(rows)
                yield list(map(self.structure, rows))

        for found in self.pool.map(chunks()):
            yield taken.popleft(), found

    def parse_all(self) -> tuple[list[Row], Parsed]:
        """All rows that are left, with what RDKit says of them and their canonical SMILES."""
        rows = list(self.left)
        self.pool.how = Parsing.of(self.reading, self.source.mol_blocks)
        return rows, self.pool.parse(list(map(self.structure, rows)))

    # ---------------------------------------------------------------- one row, or several

    def structure(self, row: Row) -> str:
        """SMILES or mol block of a row."""
        if self._structure is None:
            return row.structure or ""
        return cell_text(row.cells[self._structure]).strip()

    def id(self, row: Row) -> str:
        """What a row is called; without a name, its number."""
        name = row.name if self._id is None else cell_text(row.cells[self._id]).strip()
        return name or str(row.number)

    def place(self, row: Row) -> str:
        """Where a row stands: ``"set.csv, line 12"``."""
        where = self.source.where(row.number)
        return f"{self.source.origin}, {where}" if self.source.origin else where

    def cells(self, rows: Sequence[Row], parsed: Parsed | None = None) -> list[Sequence[Any]]:
        """What rows say as they are written: as they are, or with what the file lacks before it.

        Args:
            rows: The rows.
            parsed: What was read of them: SMILES are written as they were read.
        """
        if not self.made:
            return [row.cells for row in rows]
        smiles = ["" if self.source.mol_blocks else self.structure(row) for row in rows]
        if parsed is not None:
            for number, read in zip(parsed.rows.tolist(), parsed.smiles, strict=True):
                smiles[number] = read
        made = {"id": map(self.id, rows), "smiles": smiles}
        first = zip(*(made[name] for name in self.made), strict=True)
        return [(*begin, *row.cells) for begin, row in zip(first, rows, strict=True)]

    def says_nothing(self, row: Row) -> bool:
        """Whether a row of a table is empty, as spreadsheets write them below the last."""
        return not self.source.structures and not any(cell_text(c).strip() for c in row.cells)


def _smiles_column(source: Rows, finder: ColumnFinder) -> str:
    """The column of SMILES of a table."""
    found = finder.find(source.head, "smiles_column", SMILES_NAMES)
    if found is None:
        raise LookHopsError(
            f"{source.origin}: no column of SMILES; the columns are {listed(source.head)}. Name "
            "one with smiles_column (--smiles-column)."
        )
    return found


def open_molecule_rows(
    path: Path, reading: Reading, remembered: Reading, pool: ParsingPool
) -> MoleculeRows:
    """The rows of a file of molecules; arguments as for :class:`MoleculeRows`."""
    kind = unpacked_suffix(path)
    if suffix_of(path) not in SUFFIXES:
        raise LookHopsError(f"{path}: molecules are read from {', '.join(SUFFIXES)} files.")
    if kind == ".sdf" and reading.smiles_column:
        raise LookHopsError(
            f"{path}: an SDF file has structures, not a column of SMILES; leave out smiles_column."
        )
    if kind == ".smi" and (reading.smiles_column or reading.label_column or reading.id_column):
        raise LookHopsError(
            f"{path}: a .smi file has no named columns; use a .csv file to name them."
        )
    return MoleculeRows(open_rows(path), pool, reading, remembered)


def streams(path: Path, reading: Reading) -> bool:
    """Whether molecules of a file are read in parts.

    What is known of an SDF file's columns is known at its end, and duplicates are merged when all
    rows are there.
    """
    return unpacked_suffix(path) != ".sdf" and reading.duplicates != "merge"


def kind_of_rows(path: Path, reading: Reading, remembered: Reading) -> str | None:
    """What a file holds whose rows are read one by one; none where it is no such file."""
    if suffix_of(path) in TABLE_SUFFIXES:
        return kind_of_table(path, reading, remembered)
    return MOLECULES if suffix_of(path) in SUFFIXES else None


def kind_of_table(path: Path, reading: Reading, remembered: Reading) -> str:
    """Whether a table holds molecules or the edges of graphs, by the names of its columns."""
    head = open_table(path).head
    finder = ColumnFinder(path, reading, remembered)
    ends = {"source_column": SOURCE_NAMES, "target_column": TARGET_NAMES}
    has_ends = all(finder.find(head, *names, strict=False) for names in ends.items())
    chosen = any(getattr(reading, name) for name in (*ends, "graph_column"))
    if reading.smiles_column or finder.find(head, "smiles_column", SMILES_NAMES):
        return TABLES if chosen else MOLECULES
    if has_ends or chosen:
        return TABLES
    raise LookHopsError(
        f"{path}: neither molecules nor edges of graphs; the columns are {listed(head)}. Name "
        "the column of SMILES with smiles_column (--smiles-column), or those of both ends of an "
        "edge with source_column and target_column (--source-column, --target-column)."
    )


class ReadAhead:
    """What an iterator gives, taken by another thread before it is asked for.

    Args:
        items: The iterator.
        most: So many items wait to be asked for.
    """

    def __init__(self, items: Iterator[Any], most: int = AHEAD) -> None:
        self._items = items
        self._found: Queue[Any] = Queue(most)
        self._closed = Event()
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[Any]:
        while (found := self._found.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._thread.join()

    def _read(self) -> None:
        end: BaseException | None = None
        try:
            for item in self._items:
                self._put(item)
                if self._closed.is_set():
                    return
        except BaseException as error:  # raised where it is asked for
            end = error
        self._put(end)

    def _put(self, found: Any) -> None:
        while not self._closed.is_set():
            with suppress(Full):
                self._found.put(found, timeout=0.1)
                return

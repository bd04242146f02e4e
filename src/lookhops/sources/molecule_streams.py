"""Molecules of a source: rows first, chemistry in worker processes behind, and graphs in the end.

PyTorch is imported where graphs are made: workers parse the first rows while it is loaded.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lookhops.core.errors import LookHopsError
from lookhops.core.reading import AS_USUAL, LABEL_NAMES, Reading, called, listed
from lookhops.core.tables import cell_text
from lookhops.core.words import agreeing, counted
from lookhops.sources.molecule_rows import SMILES_NAMES, open_rows
from lookhops.sources.rdkit.parsing import Parsed, Parsing
from lookhops.sources.rdkit.workers import CHUNK, ParsingPool
from lookhops.sources.rows import Row, Rows, say_points, stem_of, unpacked_suffix, with_points
from lookhops.sources.streams import Part, ReadAhead, Stream

if TYPE_CHECKING:
    from lookhops.graphs import Graphs, Skipped
    from lookhops.sources.graph_streams import GraphStream

#: Names that are looked for, in this order, whatever their case, when no option names the column.
ID_NAMES = ("id", "name", "title", "identifier", "compound", "molecule_id", "compound_id")
SHOWN = 10  # places named in a warning


class SkippedMolecules(UserWarning):
    """Molecules that did not parse were left out, as the caller chose."""


def as_texts(cells: Sequence[str]) -> np.ndarray:
    """Texts as a column of :class:`~lookhops.graphs.Graphs`."""
    return np.array(cells, dtype=object)


class MoleculeStream(Stream):
    """The molecules of a source, some rows at a time or all together.

    A row that gives no molecule is among the ``skipped`` rows of its part, and its cells are kept.
    """

    def __init__(
        self, source: Rows, pool: ParsingPool, name: str, reading: Reading = AS_USUAL
    ) -> None:
        self.source, self.pool, self.reading, head = source, pool, reading, source.head
        self._smiles = None if source.structures else self._find("smiles_column", SMILES_NAMES)
        self._id = self._find("id_column", () if source.named else ID_NAMES)
        #: Columns that the file lacks: they come first, and rows are written with them.
        self.made = [one for one in ("id", "smiles") if source.structures and one not in head]
        super().__init__(name, [*self.made, *head], [*[None] * len(self.made), *source.types])
        #: The rows that were not taken yet.
        self.left = source.rows()
        self._ahead: ReadAhead | None = None
        self.total, self.lost, self.places = 0, 0, list[str]()

    def _find(self, option: str, usual: Sequence[str]) -> str | None:
        return self.reading.find(self.source.origin, self.source.head, option, usual)

    def column(self, rows: Iterable[Row], name: str) -> list[str]:
        """The cells of a column as texts."""
        at = self.source.head.index(name)
        return [cell_text(row.cells[at]).strip() for row in rows]

    def structures(self, rows: Sequence[Row]) -> list[str]:
        """The SMILES or mol block of each row."""
        if self._smiles is None:
            return [row.structure or "" for row in rows]
        return self.column(rows, self._smiles)

    def ids(self, rows: Sequence[Row]) -> list[str]:
        """What rows are called; without a name, by their numbers."""
        names = [row.name for row in rows] if self._id is None else self.column(rows, self._id)
        return [name or str(row.number) for name, row in zip(names, rows, strict=True)]

    def place(self, row: Row) -> str:
        where = self.source.where(row.number)
        return f"{self.source.origin}, {where}" if self.source.origin else where

    def cells(self, rows: Sequence[Row], parsed: Parsed | None = None) -> list[Sequence[Any]]:
        """What rows say, after what the file lacks: their names, and SMILES as they were parsed."""
        if not self.made:
            return [row.cells for row in rows]
        smiles = [""] * len(rows) if self.source.mol_blocks else self.structures(rows)
        if parsed is not None:
            for number, text in zip(parsed.rows.tolist(), parsed.smiles, strict=True):
                smiles[number] = text
        made = {"id": self.ids(rows), "smiles": smiles}
        first = zip(*(made[name] for name in self.made), strict=True)
        return [(*begin, *row.cells) for begin, row in zip(first, rows, strict=True)]

    def skip(self, count: int) -> Iterator[Sequence[Any]]:
        for row in islice(self.left, count):
            yield self.cells([row])[0]

    # ---------------------------------------------------------------- some at a time

    def begin(self) -> None:
        """Have rows read and parsed from now on, some ahead, by workers and another thread."""
        if self.pool.processes:
            self._ahead = ReadAhead(self._chunks())

    def close(self) -> None:
        if self._ahead is not None:
            self._ahead.close()

    def parsed(self) -> Iterator[tuple[list[Row], Parsed]]:
        """The rows that are left in chunks, with what RDKit says of them."""
        return self._chunks() if self._ahead is None else iter(self._ahead)

    def _chunks(self, canonical: bool = False) -> Iterator[tuple[list[Row], Parsed]]:
        how = Parsing(self.reading, self.source.mol_blocks, canonical)
        taken: deque[list[Row]] = deque()

        def structures() -> Iterator[list[str]]:
            while rows := list(islice(self.left, CHUNK)):
                taken.append(rows)
                yield self.structures(rows)

        for found in self.pool.map(structures(), how):
            yield taken.popleft(), found

    def parts(self, size: int) -> Iterator[Part]:
        label = self._label_column()
        rows: list[Row] = []
        parsed: list[Parsed] = []
        for chunk, found in self.parsed():
            rows += chunk
            parsed.append(found)
            if len(rows) >= size:
                yield self._part(rows, Parsed.join(parsed), label)
                rows, parsed = [], []
        if rows:
            yield self._part(rows, Parsed.join(parsed), label)

    def _part(self, rows: list[Row], parsed: Parsed, label: str | None) -> Part:
        wanted = filter(None, (called(name, self.source.head) for name in self.features))
        graphs = self._pack(rows, parsed, wanted, as_texts)
        labels = [""] * len(rows) if label is None else self.column(rows, label)
        if self.source.commas:  # whether others are numbers does not matter to one
            labels = [
                (with_points([cell]) or [cell])[0] if "," in cell else cell for cell in labels
            ]
        return Part(graphs, self.cells(rows, parsed), labels, self.source.share)

    def _label_column(self) -> str | None:
        head = self.source.head
        if not head:  # SMILES alone
            return None
        wanted = self.reading.target or self.reading.defaults.target
        found = None if wanted is None else called(wanted, head)
        if found is None and self.reading.target is None:
            return self._find("label_column", LABEL_NAMES)
        if found is None and "," not in str(wanted):  # several are not compared
            raise LookHopsError(
                f"{self.source.origin}: no column is called {wanted!r}; the columns are "
                f"{listed(head)}. Choose some of them (--target)."
            )
        return found

    def remarks(self) -> list[str]:
        if not self.total:
            raise LookHopsError(f"{self.source.origin or self.name}: there are no molecules.")
        return [self._said()] if self.lost else []

    # ---------------------------------------------------------------- all together

    def read_all(self, need_targets: bool = True) -> GraphStream:
        """All molecules, with what is known of them and their targets."""
        from lookhops.sources.counts import merge
        from lookhops.sources.graph_streams import GraphStream
        from lookhops.sources.molecules import as_column
        from lookhops.sources.targets import choose_columns

        chunks = list(self._chunks(canonical=True))
        if not chunks:
            raise LookHopsError(f"{self.source.origin or 'from_smiles'}: there are no molecules.")
        rows = [row for taken, _ in chunks for row in taken]
        parsed = Parsed.join([found for _, found in chunks])
        head, kept = self.source.head, parsed.rows.tolist()
        label = self._find("label_column", LABEL_NAMES)
        used = {self._smiles, self._id} - {label}
        names = (name for name in head if name and name not in used)
        graphs = self._pack(rows, parsed, names, as_column, tell=True)
        graphs = choose_columns(
            graphs, self.reading, label, lambda n: self.place(rows[kept[n]]), need_targets
        )
        if self.reading.duplicates == "merge":
            graphs = merge(graphs)
        return GraphStream(graphs, self, self.cells(rows, parsed))

    def _pack(
        self,
        rows: Sequence[Row],
        parsed: Parsed,
        names: Iterable[str],
        column: Callable[[Sequence[str]], np.ndarray],
        tell: bool = False,
    ) -> Graphs:
        """The graphs of rows, with columns that ``column`` makes; ``tell`` warns of what is odd."""
        from lookhops.graphs.columns import SAME
        from lookhops.sources.counts import first_of_each
        from lookhops.sources.molecules import pack

        skipped, kept = self._skipped(rows, parsed), parsed.rows.tolist()
        if tell and skipped:
            warnings.warn(self._said(), SkippedMolecules, stacklevel=4)
        ids = self.ids([rows[row] for row in kept])
        columns = {"id": as_texts(ids), "smiles": as_texts(parsed.smiles)}
        if len(set(parsed.canonical)) < len(parsed.canonical):
            columns[SAME] = first_of_each(parsed.canonical)
        for name, cells in self._texts(rows, names, tell).items():
            columns.setdefault(name, column([cells[row] for row in kept]))
        return pack(parsed, name=self.name, columns=columns, skipped=skipped)

    def _texts(
        self, rows: Sequence[Row], names: Iterable[str], tell: bool = False
    ) -> dict[str, list[str]]:
        texts = {name: self.column(rows, name) for name in names}
        if not self.source.commas:
            return texts
        pointed = {name: with_points(cells) for name, cells in texts.items()}
        numbers = {name: cells for name, cells in pointed.items() if cells is not None}
        if tell:
            say_points(self.source.origin, list(numbers))
        return texts | numbers

    def _skipped(self, rows: Sequence[Row], parsed: Parsed) -> tuple[Skipped, ...]:
        """The rows that give no molecule; where they are not to be left out, an error.

        Rows of a table that say nothing at all are left out in any case: spreadsheets write them
        below the last.
        """
        from lookhops.graphs import Skipped

        for number, reason in parsed.failures if self.reading.invalid != "skip" else ():
            row = rows[number]
            if not self.source.structures and not any(cell_text(c).strip() for c in row.cells):
                continue
            shown = (self.ids if self.source.mol_blocks else self.structures)([row])[0]
            shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
            raise LookHopsError(
                f"{self.place(row)}: {shown!r} does not parse ({reason}); mend it, or leave such "
                "molecules out with invalid='skip' (--invalid skip)."
            )
        ids = self.ids([rows[number] for number, _ in parsed.failures])
        failures = zip(ids, parsed.failures, strict=True)
        skipped = tuple(Skipped(number, name, reason) for name, (number, reason) in failures)
        self.total += len(rows)
        self.lost += len(skipped)
        for one in skipped[: SHOWN - len(self.places)]:
            self.places.append(f"{self.source.where(rows[one.row].number)} ({one.reason})")
        return skipped

    def _said(self) -> str:
        """That molecules were left out, where the first of them stand, and why; not all may be."""
        shown = ", ".join(self.places)
        shown += f" and {self.lost - SHOWN} more" if self.lost > SHOWN else ""
        origin = f"{self.source.origin}: " if self.source.origin else ""
        total = counted(self.total, "molecule")
        if self.lost == self.total:
            raise LookHopsError(f"{origin}none of {total} parses: {shown}.")
        verbs = agreeing(self.lost, "does not parse and is", "do not parse and are")
        return f"{origin}{self.lost:,} of {total} {verbs} left out: {shown}."


def open_molecules(path: Path, reading: Reading, pool: ParsingPool) -> MoleculeStream:
    """The molecules of a file, to be read in parts or at once; arguments as for the stream."""
    kind = unpacked_suffix(path)
    if kind == ".sdf" and reading.smiles_column:
        raise LookHopsError(
            f"{path}: an SDF file has structures, not a column of SMILES; leave out smiles_column."
        )
    if kind == ".smi" and (reading.smiles_column or reading.label_column or reading.id_column):
        raise LookHopsError(
            f"{path}: a .smi file has no named columns; use a .csv file to name them."
        )
    return MoleculeStream(open_rows(path), pool, stem_of(path), reading)

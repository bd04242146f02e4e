"""Molecules as graphs, some rows at a time or all together: an atom is a node, a bond an edge."""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import torch

from lookhops.core.errors import LookHopsError
from lookhops.core.options import AS_USUAL, Reading
from lookhops.core.tables import cell_text
from lookhops.core.words import agreeing, counted
from lookhops.graphs import Graphs, Skipped
from lookhops.graphs.column_finder import ColumnFinder, called, listed
from lookhops.graphs.features import Features
from lookhops.graphs.indexing import spread, to_offsets
from lookhops.graphs.targets import as_number, is_blank
from lookhops.sources.duplicates import first_of_each
from lookhops.sources.molecule_rows import SMILES_NAMES
from lookhops.sources.parts import GivenRows, GraphStream, Part, Stream
from lookhops.sources.rdkit.features import ATOM_FEATURES, BOND_FEATURES
from lookhops.sources.rdkit.parsing import Parsed, Parsing
from lookhops.sources.rdkit.workers import CHUNK, ParsingPool
from lookhops.sources.rows import Row, Rows, say_points, with_points
from lookhops.sources.splits.groups import SAME
from lookhops.sources.targets import Offer, choose_targets

#: What makes the features, by name and version.
FEATURISER = "molecules-2"
SHOWN = 10  # places named in a warning
# Names that are looked for, in this order, whatever their case, when no option names the column.
LABEL_NAMES = ("class", "label", "y", "target")
ID_NAMES = ("id", "name", "title", "identifier", "compound", "molecule_id", "compound_id")


class SkippedMolecules(UserWarning):
    """Molecules that did not parse were left out, as the caller chose."""


class MoleculeStream(Stream):
    """The molecules of a source: rows first, chemistry in worker processes behind.

    A row that gives no molecule travels along: it is among the ``skipped`` rows of its part, and
    its cells stand where they stood. Columns that become features of whole graphs, and what workers
    compute beside atoms and bonds, belong where :meth:`_part` and :meth:`read_all` make graphs.

    Args:
        source: The rows.
        name: What to call the graphs.
        pool: Parses molecules.
        reading: The columns, and what to do with molecules.
        remembered: Where ``reading`` names no column, these are looked for before the usual ones.
    """

    def __init__(
        self,
        source: Rows,
        name: str,
        pool: ParsingPool,
        reading: Reading = AS_USUAL,
        remembered: Reading = AS_USUAL,
    ) -> None:
        self.source, self.pool, self.reading, self.remembered = source, pool, reading, remembered
        finder = ColumnFinder(source.origin, reading, remembered)
        structure = None if source.structures else _smiles_column(source, finder)
        name_column = finder.find(source.head, "id_column", () if source.named else ID_NAMES)
        self._structure_at, self._id_at = (
            None if column is None else source.head.index(column)
            for column in (structure, name_column)
        )
        #: Columns that the file lacks: they come first, and rows are written with them.
        self.made = [n for n in ("id", "smiles") if source.structures and n not in source.head]
        super().__init__(
            name, [*self.made, *source.head], [*[None] * len(self.made), *source.types]
        )
        self._finder = finder
        self._rows = source.rows()
        self.total, self.lost, self.places = 0, 0, list[str]()

    # ---------------------------------------------------------------- some at a time

    def skip(self, count: int) -> Iterator[Sequence[Any]]:
        """Pass over rows without parsing them; what each says."""
        for row in islice(self._rows, count):
            yield self._cells([row])[0]

    def parts(self, size: int) -> Iterator[Part]:
        """The molecules, so many rows at a time."""
        self.pool.how = Parsing.of(self.reading, self.source.mol_blocks, canonical=False)
        label = _label_column(self.source.head, self._finder)
        ahead: deque[list[Row]] = deque()

        def chunks() -> Iterator[list[str]]:
            while rows := list(islice(self._rows, CHUNK)):
                ahead.append(rows)
                yield list(map(self._structure, rows))

        rows: list[Row] = []
        parsed: list[Parsed] = []
        for found in self.pool.map(chunks()):
            rows += ahead.popleft()
            parsed.append(found)
            if len(rows) >= size:
                yield self._part(rows, Parsed.join(parsed), label)
                rows, parsed = [], []
        if rows:
            yield self._part(rows, Parsed.join(parsed), label)

    def _part(self, rows: list[Row], parsed: Parsed, label: int | None) -> Part:
        skipped = self._skipped(rows, parsed)
        graphs = pack(parsed, name=self.name, columns=self._known(rows, parsed), skipped=skipped)
        labels = [""] * len(rows) if label is None else [self._label(row, label) for row in rows]
        return Part(graphs, self._cells(rows, parsed), labels, self.source.share)

    def _label(self, row: Row, column: int) -> str:
        cell = cell_text(row.cells[column]).strip()
        if self.source.commas and "," in cell:
            return (with_points([cell]) or [cell])[0]
        return cell

    def remarks(self) -> list[str]:
        """What is to be said in the end: which molecules were left out."""
        if not self.total:
            raise LookHopsError(f"{self.source.origin or self.name}: there are no molecules.")
        return [self._said()] if self.lost else []

    # ---------------------------------------------------------------- all together

    def read_all(self, need_targets: bool = True) -> GraphStream:
        """All molecules, with what is known of them and their targets.

        Args:
            need_targets: Whether a target that cannot be read is an error; else it stays a column.
        """
        rows = list(self._rows)
        if not rows:
            raise LookHopsError(f"{self.source.origin or 'from_smiles'}: there are no molecules.")
        self.pool.how = Parsing.of(self.reading, self.source.mol_blocks)
        parsed = self.pool.parse(list(map(self._structure, rows)))
        skipped = self._skipped(rows, parsed)
        if skipped:
            warnings.warn(self._said(), SkippedMolecules, stacklevel=3)
        columns = self._known(rows, parsed)
        same = first_of_each(parsed.canonical)
        if (same < np.arange(len(same))).any():
            columns[SAME] = same
        label = self._finder.find(self.source.head, "label_column", LABEL_NAMES)
        kept = parsed.rows.tolist()
        for name, cells in self._texts(rows, label).items():
            columns.setdefault(name, as_column([cells[row] for row in kept]))
        graphs = pack(parsed, name=self.name, columns=columns, skipped=skipped)
        offer = Offer(label, lambda number: self._place(rows[kept[number]]), need_targets)
        graphs = choose_targets(graphs, self.reading, self.remembered, offer)
        return GraphStream(graphs, GivenRows(self.head, self.types, self._cells(rows, parsed)))

    def _texts(self, rows: Sequence[Row], label: str | None) -> dict[str, list[str]]:
        """The columns that say more of molecules than what they are and what they are called."""
        used = {self._structure_at, self._id_at}
        texts = {
            name: [cell_text(row.cells[at]).strip() for row in rows]
            for at, name in enumerate(self.source.head)
            if name and (at not in used or name == label)
        }
        if not self.source.commas:
            return texts
        pointed = {name: with_points(cells) for name, cells in texts.items()}
        numbers = {name: cells for name, cells in pointed.items() if cells is not None}
        say_points(self.source.origin, list(numbers))
        return texts | numbers

    # ---------------------------------------------------------------- rows

    def _structure(self, row: Row) -> str:
        """SMILES or mol block of a row."""
        if self._structure_at is None:
            return row.structure or ""
        return cell_text(row.cells[self._structure_at]).strip()

    def _id(self, row: Row) -> str:
        """What a row is called; without a name, its number."""
        name = row.name if self._id_at is None else cell_text(row.cells[self._id_at]).strip()
        return name or str(row.number)

    def _place(self, row: Row) -> str:
        """Where a row stands: ``"set.csv, line 12"``."""
        where = self.source.where(row.number)
        return f"{self.source.origin}, {where}" if self.source.origin else where

    def _known(self, rows: Sequence[Row], parsed: Parsed) -> dict[str, np.ndarray]:
        """The columns of all molecules: what each is called, and the SMILES in atom order."""
        return {
            "id": np.array(list(map(self._id, rows)), dtype=object)[parsed.rows],
            "smiles": np.array(parsed.smiles, dtype=object),
        }

    def _cells(self, rows: Sequence[Row], parsed: Parsed | None = None) -> list[Sequence[Any]]:
        """What rows say as they are written: as they are, or with what the file lacks before it.

        Args:
            rows: The rows.
            parsed: What was read of them: SMILES are written as they were read.
        """
        if not self.made:
            return [row.cells for row in rows]
        smiles = ["" if self.source.mol_blocks else self._structure(row) for row in rows]
        if parsed is not None:
            for number, read in zip(parsed.rows.tolist(), parsed.smiles, strict=True):
                smiles[number] = read
        made = {"id": map(self._id, rows), "smiles": smiles}
        first = zip(*(made[name] for name in self.made), strict=True)
        return [(*begin, *row.cells) for begin, row in zip(first, rows, strict=True)]

    def _skipped(self, rows: Sequence[Row], parsed: Parsed) -> tuple[Skipped, ...]:
        """The rows that give no molecule; where they are not to be left out, an error.

        Rows of a table that say nothing at all, as spreadsheets write below the last, are left out
        in any case.
        """
        for number, reason in parsed.failures if self.reading.invalid != "skip" else ():
            row = rows[number]
            if not self.source.structures and not any(cell_text(c).strip() for c in row.cells):
                continue
            shown = self._id(row) if self.source.mol_blocks else self._structure(row)
            shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
            raise LookHopsError(
                f"{self._place(row)}: {shown!r} does not parse ({reason}); mend it, or leave "
                "such molecules out with invalid='skip' (--invalid skip)."
            )
        skipped = tuple(Skipped(n, self._id(rows[n]), reason) for n, reason in parsed.failures)
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


def _smiles_column(source: Rows, finder: ColumnFinder) -> str:
    """The column of SMILES of a table."""
    found = finder.find(source.head, "smiles_column", SMILES_NAMES)
    if found is None:
        raise LookHopsError(
            f"{source.origin}: no column of SMILES; the columns are {listed(source.head)}. Name "
            "one with smiles_column (--smiles-column)."
        )
    return found


def _label_column(head: list[str], finder: ColumnFinder) -> int | None:
    """The number of the column of the one target, where there is one."""
    if not head:  # SMILES alone
        return None
    wanted = finder.reading.target or finder.remembered.target
    found = None if wanted is None else called(wanted, head)
    if found is None and finder.reading.target is None:
        found = finder.find(head, "label_column", LABEL_NAMES)
    elif found is None and "," not in str(wanted):  # several are not compared
        raise LookHopsError(
            f"{finder.origin}: no column is called {wanted!r}; the columns are {listed(head)}. "
            "Choose some of them (--target)."
        )
    return None if found is None else head.index(found)


def as_column(cells: Sequence[str]) -> np.ndarray:
    """Whole numbers or numbers where all cells are (an empty one is NaN), else the text."""
    text = np.array(list(cells), dtype=object)
    missing = [is_blank(cell) for cell in cells]
    values = [math.nan if none else as_number(c) for c, none in zip(cells, missing, strict=True)]
    if all(missing) or None in values:
        return text
    # Beyond 17 digits a whole number may not fit: it stays a float.
    if all(cell.lstrip("+-").isdecimal() and len(cell) < 18 for cell in cells):
        return text.astype(np.int64)
    return np.array(values, dtype=np.float64)


# -------------------------------------------------------------------- features


def pack(parsed: Parsed, **fields: Any) -> Graphs:
    """Pack all molecules at once.

    Args:
        parsed: What RDKit says of the molecules.
        fields: Other fields of :class:`Graphs`.
    """
    node_ptr = to_offsets(torch.from_numpy(parsed.atom_counts))
    row_ptr = to_offsets(torch.from_numpy(parsed.degrees))
    edge_ptr = row_ptr[node_ptr]
    source = torch.from_numpy(parsed.neighbours)
    graphs = Graphs(
        node_ptr=node_ptr,
        row_ptr=row_ptr,
        source=source + spread(node_ptr[:-1], edge_ptr, len(source)),
        nodes=Features(
            labels=torch.from_numpy(parsed.labels),
            label_names=tuple(ATOM_FEATURES),
            label_values=tuple(ATOM_FEATURES.values()),
        ),
        edges=Features(
            labels=torch.from_numpy(parsed.edge_labels),
            label_names=tuple(BOND_FEATURES),
            label_values=tuple(BOND_FEATURES.values()),
        ),
        featuriser=FEATURISER,
        **fields,
    )
    graphs.__dict__["is_undirected"] = graphs.__dict__["is_symmetric"] = True  # as just made
    return graphs

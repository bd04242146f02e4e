"""Molecules as graphs, some rows at a time or all together: an atom is a node, a bond an edge."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import torch

from lookhops.core.column_finder import ColumnFinder, called, listed
from lookhops.core.errors import LookHopsError
from lookhops.core.tables import cell_text
from lookhops.core.words import agreeing, counted
from lookhops.graphs import Graphs, Skipped
from lookhops.graphs.columns import SAME
from lookhops.graphs.features import Features
from lookhops.graphs.indexing import spread, to_offsets
from lookhops.graphs.targets import as_number, is_blank
from lookhops.sources.duplicates import first_of_each
from lookhops.sources.parsed_rows import MoleculeRows
from lookhops.sources.parts import GivenRows, GraphStream, Part, Stream
from lookhops.sources.rdkit.features import ATOM_FEATURES, BOND_FEATURES
from lookhops.sources.rdkit.parsing import Parsed
from lookhops.sources.rows import Row, say_points, with_points
from lookhops.sources.targets import Offer, choose_columns

#: What makes the features, by name and version.
FEATURISER = "molecules-2"
SHOWN = 10  # places named in a warning
#: Names that are looked for, in this order, whatever their case, when no option names the column.
LABEL_NAMES = ("class", "label", "y", "target")


class SkippedMolecules(UserWarning):
    """Molecules that did not parse were left out, as the caller chose."""


class MoleculeStream(Stream):
    """The molecules of a source: rows first, chemistry in worker processes behind.

    A row that gives no molecule travels along: it is among the ``skipped`` rows of its part, and
    its cells stand where they stood. What workers compute beside atoms and bonds belongs where
    :meth:`_part` and :meth:`read_all` make graphs.

    Args:
        rows: The rows.
        name: What to call the graphs.
    """

    def __init__(self, rows: MoleculeRows, name: str) -> None:
        super().__init__(name, rows.head, rows.types)
        self.rows = rows
        self.total, self.lost, self.places = 0, 0, list[str]()

    # ---------------------------------------------------------------- some at a time

    def skip(self, count: int) -> Iterator[Sequence[Any]]:
        """Pass over rows without parsing them; what each says."""
        for row in islice(self.rows.left, count):
            yield self.rows.cells([row])[0]

    def parts(self, size: int) -> Iterator[Part]:
        """The molecules, so many rows at a time."""
        label = _label_column(self.rows.source.head, self.rows.finder)
        rows: list[Row] = []
        parsed: list[Parsed] = []
        for chunk, found in self.rows.parsed():
            rows += chunk
            parsed.append(found)
            if len(rows) >= size:
                yield self._part(rows, Parsed.join(parsed), label)
                rows, parsed = [], []
        if rows:
            yield self._part(rows, Parsed.join(parsed), label)

    def _part(self, rows: list[Row], parsed: Parsed, label: int | None) -> Part:
        skipped = self._skipped(rows, parsed)
        columns, kept = self._known(rows, parsed), parsed.rows.tolist()
        for name, cells in self._features(rows).items():
            columns.setdefault(name, np.array([cells[row] for row in kept], dtype=object))
        graphs = pack(parsed, name=self.name, columns=columns, skipped=skipped)
        labels = [""] * len(rows) if label is None else [self._label(row, label) for row in rows]
        return Part(graphs, self.rows.cells(rows, parsed), labels, self.rows.source.share)

    def _features(self, rows: Sequence[Row]) -> dict[str, list[str]]:
        """The cells of the columns that a model reads."""
        head = self.rows.source.head
        found = {}
        for name in filter(None, (called(feature, head) for feature in self.features)):
            cells = [cell_text(row.cells[head.index(name)]).strip() for row in rows]
            found[name] = (self.rows.source.commas and with_points(cells)) or cells
        return found

    def _label(self, row: Row, column: int) -> str:
        cell = cell_text(row.cells[column]).strip()
        if self.rows.source.commas and "," in cell:
            return (with_points([cell]) or [cell])[0]
        return cell

    def remarks(self) -> list[str]:
        """What is to be said in the end: which molecules were left out."""
        if not self.total:
            raise LookHopsError(f"{self.rows.source.origin or self.name}: there are no molecules.")
        return [self._said()] if self.lost else []

    # ---------------------------------------------------------------- all together

    def read_all(self, need_targets: bool = True) -> GraphStream:
        """All molecules, with what is known of them and their targets.

        Args:
            need_targets: Whether a target that cannot be read is an error; else it stays a column.
        """
        rows, parsed = self.rows.parse_all()
        if not rows:
            raise LookHopsError(
                f"{self.rows.source.origin or 'from_smiles'}: there are no molecules."
            )
        skipped = self._skipped(rows, parsed)
        if skipped:
            warnings.warn(self._said(), SkippedMolecules, stacklevel=3)
        columns = self._known(rows, parsed)
        same = first_of_each(parsed.canonical)
        if (same < np.arange(len(same))).any():
            columns[SAME] = same
        label = self.rows.finder.find(self.rows.source.head, "label_column", LABEL_NAMES)
        kept = parsed.rows.tolist()
        for name, cells in self._texts(rows, label).items():
            columns.setdefault(name, as_column([cells[row] for row in kept]))
        graphs = pack(parsed, name=self.name, columns=columns, skipped=skipped)
        offer = Offer(label, lambda number: self.rows.place(rows[kept[number]]), need_targets)
        graphs = choose_columns(graphs, self.rows.reading, self.rows.remembered, offer)
        return GraphStream(graphs, GivenRows(self.head, self.types, self.rows.cells(rows, parsed)))

    def _texts(self, rows: Sequence[Row], label: str | None) -> dict[str, list[str]]:
        """The columns that say more of molecules than what they are and what they are called."""
        used = self.rows.used
        texts = {
            name: [cell_text(row.cells[at]).strip() for row in rows]
            for at, name in enumerate(self.rows.source.head)
            if name and (at not in used or name == label)
        }
        if not self.rows.source.commas:
            return texts
        pointed = {name: with_points(cells) for name, cells in texts.items()}
        numbers = {name: cells for name, cells in pointed.items() if cells is not None}
        say_points(self.rows.source.origin, list(numbers))
        return texts | numbers

    # ---------------------------------------------------------------- both

    def _known(self, rows: Sequence[Row], parsed: Parsed) -> dict[str, np.ndarray]:
        """The columns of all molecules: what each is called, and the SMILES in atom order."""
        return {
            "id": np.array(list(map(self.rows.id, rows)), dtype=object)[parsed.rows],
            "smiles": np.array(parsed.smiles, dtype=object),
        }

    def _skipped(self, rows: Sequence[Row], parsed: Parsed) -> tuple[Skipped, ...]:
        """The rows that give no molecule; where they are not to be left out, an error.

        Rows of a table that say nothing at all are left out in any case.
        """
        for number, reason in parsed.failures if self.rows.reading.invalid != "skip" else ():
            row = rows[number]
            if self.rows.says_nothing(row):
                continue
            shown = self.rows.id(row) if self.rows.source.mol_blocks else self.rows.structure(row)
            shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
            raise LookHopsError(
                f"{self.rows.place(row)}: {shown!r} does not parse ({reason}); mend it, or leave "
                "such molecules out with invalid='skip' (--invalid skip)."
            )
        skipped = tuple(Skipped(n, self.rows.id(rows[n]), reason) for n, reason in parsed.failures)
        self.total += len(rows)
        self.lost += len(skipped)
        for one in skipped[: SHOWN - len(self.places)]:
            self.places.append(f"{self.rows.source.where(rows[one.row].number)} ({one.reason})")
        return skipped

    def _said(self) -> str:
        """That molecules were left out, where the first of them stand, and why; not all may be."""
        shown = ", ".join(self.places)
        shown += f" and {self.lost - SHOWN} more" if self.lost > SHOWN else ""
        origin = f"{self.rows.source.origin}: " if self.rows.source.origin else ""
        total = counted(self.total, "molecule")
        if self.lost == self.total:
            raise LookHopsError(f"{origin}none of {total} parses: {shown}.")
        verbs = agreeing(self.lost, "does not parse and is", "do not parse and are")
        return f"{origin}{self.lost:,} of {total} {verbs} left out: {shown}."


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
        whole=Features(torch.from_numpy(parsed.descriptors), parsed.descriptor_names),
        featuriser=FEATURISER,
        **fields,
    )
    graphs.__dict__["is_undirected"] = graphs.__dict__["is_symmetric"] = True  # as just made
    return graphs

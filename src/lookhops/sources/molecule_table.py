"""What a source says about its molecules, as text, and what numbers that text means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lookhops.graphs.targets import as_number, is_blank


@dataclass(frozen=True)
class MoleculeTable:
    """The molecules of one source, as text.

    Args:
        origin: The file, for messages; empty for a list given in Python.
        where: The place of each molecule (``"line 12"``).
        structures: SMILES, or mol blocks.
        ids: A name for each molecule.
        label_column: The column that is learnt where nobody names another, or none.
        columns: The other columns, one text a molecule.
        blank: Rows that say nothing at all, as a spreadsheet writes below its last: they are left
            out even where a molecule that does not parse is an error.
    """

    origin: str
    where: list[str]
    structures: list[str]
    ids: list[str]
    label_column: str | None = None
    columns: dict[str, list[str]] = field(default_factory=dict)
    blank: frozenset[int] = frozenset()

    def place(self, index: int) -> str:
        """Where a molecule stands: ``"set.csv, line 12"``."""
        return f"{self.origin}, {self.where[index]}" if self.origin else self.where[index]


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

"""What a source says about its molecules, as text, and what classes and numbers that text means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lookhops.errors import LookHopsError

MISSING = ("", "nan", "na", "n/a", "null")
MANY_CLASSES = 20


@dataclass(frozen=True)
class MoleculeTable:
    """The molecules of one source, as text.

    Args:
        origin: The file, for messages; empty for a list given in Python.
        where: The place of each molecule (``"line 12"``).
        structures: SMILES, or mol blocks.
        ids: A name for each molecule.
        labels: The class of each molecule as given, or none.
        label_column: Where the classes were found, for messages.
        columns: The other columns, one text a molecule.
    """

    origin: str
    where: list[str]
    structures: list[str]
    ids: list[str]
    labels: list[str] | None = None
    label_column: str = ""
    columns: dict[str, list[str]] = field(default_factory=dict)

    def place(self, index: int) -> str:
        """Where a molecule stands: ``"set.csv, line 12"``."""
        return f"{self.origin}, {self.where[index]}" if self.origin else self.where[index]


def as_column(cells: Sequence[str]) -> np.ndarray:
    """Whole numbers or numbers where all cells are (an empty one is NaN), else the text."""
    text = np.array(list(cells), dtype=object)
    missing = [cell.lower() in MISSING for cell in cells]
    values = [math.nan if none else _number(c) for c, none in zip(cells, missing, strict=True)]
    if all(missing) or None in values:
        return text
    # Beyond 17 digits a whole number may not fit: it stays a float.
    if all(cell.lstrip("+-").isdecimal() and len(cell) < 18 for cell in cells):
        return text.astype(np.int64)
    return np.array(values, dtype=np.float64)


def classes_of(
    table: MoleculeTable, kept: Sequence[int], class_names: Sequence[str] | None = None
) -> tuple[np.ndarray | None, Sequence[str] | None]:
    """The class number of each molecule at ``kept`` and the classes' names, if there are any.

    The classes are ``class_names`` where given, else those found: numbers in order, or text sorted.
    """
    if table.labels is None:
        return None, None
    labels = [table.labels[index].strip() for index in kept]
    column = f"the label column {table.label_column!r}" if table.label_column else "y"
    for index, label in zip(kept, labels, strict=True):
        if label.lower() in (*MISSING, "inf", "-inf") or (class_names and label not in class_names):
            known = f"; the classes are {', '.join(class_names)}" if class_names else ""
            raise LookHopsError(
                f"{table.place(index)}: {label!r} in {column} is not a class{known}. Give every "
                "molecule its class, or take it out."
            )
    if class_names is not None:
        return np.array([class_names.index(label) for label in labels]), class_names
    numbers = [_number(label) for label in labels]
    numeric = None not in numbers
    names, y = np.unique(np.array(numbers if numeric else labels), return_inverse=True)
    whole = numeric and bool(np.all(names == np.round(names)))
    # Classes are few. Measured values are fractions, and repeat only now and then.
    half = max(2, len(labels) // 2)
    fractions = numeric and not whole
    if len(names) > (min(MANY_CLASSES, half) if fractions else max(MANY_CLASSES, half)):
        raise LookHopsError(
            f"{table.origin or 'from_smiles'}: {column} has {len(names)} different values for "
            f"{len(labels)} molecules, so it is not a class; choose another column with "
            "label_column (--label-column), or sort the values into a few classes first."
        )
    return y, [str(int(name)) if whole else str(name) for name in names]


def _number(text: str) -> float | None:
    try:
        return None if "_" in text else float(text)  # Python alone reads 1_000 as a number
    except ValueError:
        return None

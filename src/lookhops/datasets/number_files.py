"""Tables of numbers in text files: read fast where all is well, with the line to blame if not."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from lookhops.errors import LookHopsError

# Everything a row of numbers may hold besides its commas and its end.
_NUMBER_BYTES = b"0123456789+-.eE \t\r"


def parse_table(text: bytes, where: object, kind: type[np.generic]) -> np.ndarray:
    """Rows of finite numbers, shape (rows, columns).

    The whole text is parsed in one call; only where that fails, or rows differ in length, a second
    and slower pass finds the line to blame.

    Args:
        text: The file's content; blank lines at its end are left out.
        where: What to call the file in an error.
        kind: ``np.int64`` or ``np.float64``.
    """
    text = text.rstrip()
    if not text:
        raise LookHopsError(f"{where}: the file is empty.")
    separators = text.translate(None, _NUMBER_BYTES) + b"\n"
    columns = text.partition(b"\n")[0].count(b",") + 1
    rows = len(separators) // columns
    if separators == (b"," * (columns - 1) + b"\n") * rows:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # older NumPy warns of what newer ones refuse
                values = np.fromstring(text.replace(b"\n", b","), dtype=kind, sep=",")
        except (ValueError, DeprecationWarning):
            values = np.empty(0)
        if values.size == rows * columns and np.isfinite(values).all():
            return values.reshape(rows, columns)
    return _parse_slowly(text, where, kind, columns)


def _parse_slowly(text: bytes, where: object, kind: type[np.generic], columns: int) -> np.ndarray:
    convert: Any = int if issubclass(kind, np.integer) else float
    wanted = "a whole number" if convert is int else "a finite number"
    rows = []
    for number, line in enumerate(text.decode("utf-8-sig", "replace").split("\n"), 1):
        fields = line.split(",")
        if len(fields) != columns:
            raise LookHopsError(
                f"{where}, line {number}: {len(fields)} values, where line 1 has {columns}."
            )
        try:
            row = np.array([convert(field) for field in fields], dtype=kind)
            fine = bool(np.isfinite(row).all())
        except (ValueError, OverflowError):
            fine = False
        if not fine:
            raise LookHopsError(f"{where}, line {number}: {line.strip()!r} is not {wanted}.")
        rows.append(row)
    return np.stack(rows)

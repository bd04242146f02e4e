"""Tables of numbers in text files: read fast where all is well, with the line to blame if not."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from lookhops.errors import LookHopsError

# Everything a row of numbers may hold besides its commas and its end.
_NUMBER_BYTES = b"0123456789+-.eE \t\r"
MOST_COLUMNS = 100_000
#: Bytes that are parsed at once where not all is well.
PIECE = 1 << 18


def parse_table(text: bytes, where: object, kind: type[np.generic]) -> np.ndarray:
    """Rows of finite numbers, shape (rows, columns).

    The whole text is parsed in one call; only where that fails, or rows differ in length, a second
    pass finds the piece, and a slow one the line to blame.

    Args:
        text: The file's content; blank lines at its end are left out.
        where: What to call the file in an error.
        kind: ``np.int64`` or ``np.float64``.
    """
    text = text.rstrip()
    if not text:
        raise LookHopsError(f"{where}: the file is empty.")
    columns = text.partition(b"\n")[0].count(b",") + 1
    if columns > MOST_COLUMNS:
        raise LookHopsError(f"{where}, line 1: {columns:,} values are too many for a row.")
    values = _parse_fast(text, kind, columns)
    if values is not None:
        return values
    parts, line = [], 1
    for piece in _pieces(text):
        values = _parse_fast(piece, kind, columns)
        if values is None:
            values = _parse_slowly(piece, where, kind, columns, line)
        parts.append(values)
        line += piece.count(b"\n") + 1
    return np.concatenate(parts)


def _pieces(text: bytes) -> Iterator[bytes]:
    """The text in pieces of whole lines."""
    start = 0
    while start <= len(text):
        end = text.find(b"\n", start + PIECE)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1


def _parse_fast(text: bytes, kind: type[np.generic], columns: int) -> np.ndarray | None:
    """The numbers in one call; none where a row is not as it should be."""
    separators = text.translate(None, _NUMBER_BYTES) + b"\n"
    rows = len(separators) // columns
    if separators != (b"," * (columns - 1) + b"\n") * rows:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # older NumPy warns of what newer ones refuse
            values = np.fromstring(text.replace(b"\n", b","), dtype=kind, sep=",")
    except (ValueError, DeprecationWarning):
        return None
    if values.size != rows * columns or not np.isfinite(values).all():
        return None
    return values.reshape(rows, columns)


def _parse_slowly(
    text: bytes, where: object, kind: type[np.generic], columns: int, first_line: int
) -> np.ndarray:
    convert: Any = int if issubclass(kind, np.integer) else float
    wanted = "a whole number" if convert is int else "a finite number"
    rows = []
    for number, line in enumerate(text.decode("utf-8-sig", "replace").split("\n"), first_line):
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
            shown = line.strip()
            shown = shown if len(shown) <= 60 else f"{shown[:59]}…"
            raise LookHopsError(f"{where}, line {number}: {shown!r} is not {wanted}.")
        rows.append(row)
    return np.stack(rows)

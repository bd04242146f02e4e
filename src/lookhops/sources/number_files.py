"""Tables of numbers in text files: read fast where all is well, with the line to blame if not."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from lookhops.core.errors import LookHopsError

# Everything a row of numbers may hold besides its commas and its end.
_NUMBER_BYTES = b"0123456789+-.eE \t\r"
#: NumPy takes a sign without a number for 0.
_LONE_SIGN = re.compile(rb"[+-](?!\.?[0-9])")
MOST_COLUMNS = 100_000
#: Bytes that are read and parsed at once; a line may have some more, blank lines so many together.
PIECE, LONGEST_LINE = 1 << 20, 1 << 22


def read_table(
    file: IO[bytes], where: object, kind: type[np.generic], most: int | None = None
) -> np.ndarray:
    """Rows of finite numbers, shape (rows, columns).

    The file is read as a stream, of which no more than a piece is held as text. A piece is parsed
    in one call; only where that fails, or rows differ in length, a slow pass finds the line to
    blame.

    Args:
        file: The file; blank lines at its end are left out.
        where: What to call it in an error.
        kind: ``np.int64``, ``np.float64``, or ``np.float32`` for numbers that are kept as such.
        most: How many rows are wanted: where there are more, one more at least is returned, and the
            rest is not read.
    """
    parts: list[np.ndarray] = []
    rows = columns = 0
    parsed = np.int64 if issubclass(kind, np.integer) else np.float64
    for piece in _pieces(file, where):
        columns = columns or piece.partition(b"\n")[0].count(b",") + 1
        if columns > MOST_COLUMNS:
            raise LookHopsError(f"{where}, line 1: {columns:,} values are too many for a row.")
        values = _parse_fast(piece, parsed, columns)
        if values is None:
            values = _parse_slowly(piece, where, parsed, columns, rows + 1)
        with np.errstate(over="ignore"):
            parts.append(values.astype(kind, copy=False))
        rows += len(values)
        if most is not None and rows > most:
            break
    if not parts:
        raise LookHopsError(f"{where}: the file is empty.")
    return np.concatenate(parts)


def _pieces(file: IO[bytes], where: object) -> Iterator[bytes]:
    """The content in pieces of whole lines, without the last line end and blank lines behind it."""
    left, line = b"", 1
    while more := file.read(PIECE):
        lines, end, left = (left + more).rpartition(b"\n")
        piece = lines.rstrip()
        if piece:
            left = lines[len(piece) + 1 :] + end + left if len(piece) < len(lines) else left
            yield piece
            line += piece.count(b"\n") + 1
        else:
            left = lines + end + left
        if len(left) > LONGEST_LINE:
            raise LookHopsError(f"{where}, line {line}: {len(left):,} bytes are no row of numbers.")
    if left := left.rstrip():
        yield left


def _parse_fast(text: bytes, kind: type[np.generic], columns: int) -> np.ndarray | None:
    """The numbers in one call; none where a row is not as it should be."""
    separators = text.translate(None, _NUMBER_BYTES) + b"\n"
    rows = len(separators) // columns
    if separators != (b"," * (columns - 1) + b"\n") * rows:
        return None
    # Most files have no sign at all, which is seen much faster than a search ends.
    if (b"-" in text or b"+" in text) and _LONE_SIGN.search(text):
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

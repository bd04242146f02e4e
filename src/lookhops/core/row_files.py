"""Tables that grow on disk part by part: CSV, Parquet and NumPy files.

While it grows, a table lies beside its place under another name (``x.part-1a2b3c4d.csv``),
readable whenever writing stops between two parts; a later run goes on with it. When all is written
it is moved to its place in one step.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np

from lookhops.core.errors import LookHopsError
from lookhops.core.files import explained, make_folder, put_in_place
from lookhops.core.tables import cell_text, without_formula

#: What is quoted in CSV, and what a line begins with or holds that may not be written as it is.
_QUOTED = re.compile(r'[",\r\n]')
_UNSAFE = re.compile(r"""^(?:[=+@\t']|-(?!\d+(?:\.\d+)?$))|[",\r]""", re.MULTILINE)


class RowFile(ABC):
    """A table that grows.

    Args:
        path: Where it is to be in the end.
        made_by: What the content follows from, as JSON: a table that others began is not resumed.
        given: The types of the input's columns, which are its first; none of a column of texts.
    """

    def __init__(self, path: Path, made_by: Any, given: Sequence[Any]) -> None:
        self.path, self.given = path, given
        known = json.dumps([made_by, [*map(str, given)]], sort_keys=True)
        token = hashlib.sha256(known.encode()).hexdigest()[:8]
        self.part = path.with_name(f"{path.stem}.part-{token}{path.suffix}")
        #: Rows that are written.
        self.rows = 0
        make_folder(path.parent)
        with explained(path):
            if path.is_dir():
                raise IsADirectoryError(0, "it is a folder")

    def __enter__(self) -> RowFile:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        with explained(self.path):
            try:
                self.close()
            finally:
                if error is not None and not self.rows:
                    self.part.unlink(missing_ok=True)
            if error is None:
                put_in_place(self.part, self.path)

    @abstractmethod
    def resume(self, given: Iterator[Sequence[Any]]) -> None:
        """Go on with a table that was begun, taking as many of the input's rows as it has."""

    @abstractmethod
    def write(self, head: Sequence[str], columns: Sequence[Sequence[Any]]) -> None:
        """Add rows, given column by column."""

    @abstractmethod
    def close(self) -> None:
        """Have a file that can be read."""

    def _check(self, given: Iterator[Sequence[Any]], cells: Sequence[Any]) -> None:
        """Refuse a row that is not the next of the input."""
        row = next(given, None)
        self.rows += 1
        pairs = zip(row or (), cells, strict=False)
        if row is None or any(cell_text(a) != cell_text(b) for a, b in pairs):
            raise LookHopsError(
                f"{self.part}: its row {self.rows} is not that of the input; without --resume all "
                "rows are answered."
            )


class CsvFile(RowFile):
    """A CSV file."""

    file: TextIO | None = None

    def resume(self, given: Iterator[Sequence[Any]]) -> None:
        if not self.part.is_file():
            return
        end = width = 0
        with explained(self.part, "read"), self.part.open("rb") as file:
            for row, after in _whole_rows(file):
                if not end:
                    width = len(row)
                elif len(row) == width:
                    self._check(([without_formula(c) for c in cells] for cells in given), row)
                else:
                    break
                end = after
        with explained(self.part), self.part.open("rb+") as old:
            old.truncate(end)
        if end:
            self.file = self.part.open("a", encoding="utf-8", errors="replace", newline="")

    def write(self, head: Sequence[str], columns: Sequence[Sequence[Any]]) -> None:
        if self.file is None:
            with explained(self.path):
                self.file = self.part.open("w", encoding="utf-8", errors="replace", newline="")
            write_csv(self.file, [[name] for name in head])
        write_csv(self.file, columns)
        self.rows += len(columns[0])
        self.file.flush()

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


def write_csv(file: TextIO, columns: Sequence[Sequence[Any]]) -> None:
    """Write rows, given column by column, as CSV that spreadsheets do not take for formulas.

    A column of plain texts is looked at as one text: twice as fast as Python's writer.
    """
    rows = zip(*map(_written, columns), strict=True)
    lines = [",".join(row) or '""' for row in rows]  # a blank line would be no row
    file.write("\n".join([*lines, ""]))


def _written(column: Sequence[Any]) -> Sequence[str]:
    """The cells of a column as they stand in a CSV file."""
    if all(isinstance(cell, str) for cell in column):
        text = "\n".join(column)
        if text.count("\n") < max(len(column), 1) and not _UNSAFE.search(text):
            return column
    return [_written_cell(cell) for cell in column]


def _written_cell(cell: Any) -> str:
    text = cell_text(without_formula(cell))
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def _whole_rows(file: BinaryIO) -> Iterator[tuple[list[str], int]]:
    """The rows that end with a line's end, and where each of them ends."""
    read, whole = 0, True

    def lines() -> Iterator[str]:
        nonlocal read, whole
        for line in file:
            read, whole = read + len(line), line.endswith(b"\n")
            yield line.decode(errors="replace")

    for row in csv.reader(lines()):
        if whole:
            yield row, read


class ParquetFile(RowFile):
    """A Parquet file, a row group for each part."""

    writer: Any = None

    def __init__(self, path: Path, made_by: Any, given: Sequence[Any]) -> None:
        try:
            import pyarrow  # noqa: F401
            from pyarrow import parquet
        except ImportError as error:
            raise LookHopsError(
                f"{path}: Parquet files are written with pyarrow: pip install pyarrow."
            ) from error
        super().__init__(path, made_by, given)
        self.parquet = parquet

    def resume(self, given: Iterator[Sequence[Any]]) -> None:
        import pyarrow as pa

        # Copied; a file that was not closed has nothing that can be read.
        earlier = self.part.with_name(f"{self.part.name}.earlier")
        if self.part.is_file():
            self.part.replace(earlier)
        if not earlier.is_file():
            return
        try:
            old = self.parquet.ParquetFile(earlier)
        except (pa.ArrowException, OSError):
            earlier.unlink()
            return
        for number in range(old.num_row_groups):
            group = old.read_row_group(number)
            columns = [group.column(i).to_pylist() for i in range(len(self.given))]
            for row in zip(*columns, strict=True):
                self._check(given, row)
            self._add(group)
        earlier.unlink()

    def write(self, head: Sequence[str], columns: Sequence[Sequence[Any]]) -> None:
        import pyarrow as pa

        types = [*self.given, *[None] * (len(columns) - len(self.given))]
        arrays = [_arrow(column, kind) for column, kind in zip(columns, types, strict=True)]
        names = [name or f"column_{number}" for number, name in enumerate(head, 1)]
        self._add(pa.Table.from_arrays(arrays, names))
        self.rows += len(columns[0])

    def _add(self, table: Any) -> None:
        if self.writer is None:
            with explained(self.path):
                self.writer = self.parquet.ParquetWriter(self.part, table.schema)
        with explained(self.path):
            self.writer.write_table(table)

    def close(self) -> None:
        if self.writer is not None:
            try:
                self.writer.close()
            except OSError:  # without its end nothing of it can be read
                self.part.unlink(missing_ok=True)
                raise


def _arrow(column: Sequence[Any], kind: Any) -> Any:
    """A column as pyarrow holds it: of this type, rows of a matrix as lists, numbers, or texts."""
    import pyarrow as pa

    if kind is not None:
        arrow = pa.from_numpy_dtype(kind) if isinstance(kind, np.dtype) else kind
        return pa.array(column, arrow, from_pandas=True)
    if isinstance(column, np.ndarray) and column.ndim == 2:
        flat = pa.array(np.ascontiguousarray(column).ravel())
        return pa.FixedSizeListArray.from_arrays(flat, column.shape[1])
    if isinstance(column, np.ndarray):
        return pa.array(column, from_pandas=True)
    return pa.array([cell_text(cell) or None for cell in column], pa.string())


class NumpyFile(RowFile):
    """A matrix of float32 in a ``.npy`` file; its header is written again when it is closed."""

    file: BinaryIO | None = None
    width = 0

    def resume(self, given: Iterator[Sequence[Any]]) -> None:
        if not self.part.is_file():
            return
        try:
            shape = np.load(self.part, mmap_mode="r").shape
        except ValueError:  # it was never closed
            return
        self.rows, self.width = shape
        for _ in zip(range(self.rows), given, strict=False):
            pass
        self.file = self.part.open("rb+")
        self._write_header()
        self.file.seek(4 * self.rows * self.width, 1)
        self.file.truncate()

    def write(self, head: Sequence[str], columns: Sequence[Sequence[Any]]) -> None:
        """Add the rows of the matrices among the columns, side by side."""
        both = [one for one in columns if isinstance(one, np.ndarray) and one.ndim == 2]
        matrix = np.concatenate(both, axis=1).astype("<f4")
        if self.file is None:
            self.width = matrix.shape[1]
            with explained(self.path):
                self.file = self.part.open("wb+")
            self._write_header()
        self.file.write(matrix.tobytes())
        self.rows += len(matrix)

    def _write_header(self) -> None:  # as long for any number of rows
        assert self.file is not None
        shape = {"shape": (self.rows, self.width), "fortran_order": False, "descr": "<f4"}
        self.file.seek(0)
        np.lib.format.write_array_header_1_0(self.file, shape)

    def close(self) -> None:
        if self.file is not None and not self.file.closed:
            self._write_header()
            self.file.close()


#: The kinds of tables, by the ends of their names.
ROW_FILES: dict[str, type[RowFile]] = {
    "": CsvFile,
    ".csv": CsvFile,
    ".parquet": ParquetFile,
    ".npy": NumpyFile,
}

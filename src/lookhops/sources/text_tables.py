"""How names of tables end; and tables in text files: header, rows, and the line of each."""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from lookhops.core.errors import LookHopsError
from lookhops.core.files import check_regular, explained, read_bytes
from lookhops.core.words import agreeing
from lookhops.graphs.column_finder import listed
from lookhops.graphs.targets import as_number, is_blank

PARQUET, NODE_LINK = ".parquet", ".jsonl"
#: A packed file may hold so many bytes, or so many times its own size: columns that say the same in
#: every row take next to nothing.
MOST_BYTES, MOST_TIMES = 32 << 20, 100
#: The line in which Excel says what separates fields.
SEPARATOR_LINE = re.compile(rb'"?sep=([,;\t|])"?', re.IGNORECASE)
TABLE_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", PARQUET)


def suffix_of(path: Path) -> str:
    """The end of a file's name that says what it is; of a packed file both ends."""
    ends = [suffix.lower() for suffix in path.suffixes[-2:]]
    return "".join(ends) if ends[-1:] == [".gz"] else (ends or [""])[-1]


def unpacked_suffix(path: Path) -> str:
    """The same of what is in a packed file: ``.smi`` of ``.smi.gz``."""
    return suffix_of(path).removesuffix(".gz")


class TextFile:
    """A UTF-8 text file, perhaps packed by gzip, that is read as it goes.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with explained(path, "read"):
            check_regular(path)
            self.size = path.stat().st_size
        self._file: BinaryIO | None = None

    @property
    def share(self) -> float:
        """How much of the file has been read, from 0 to 1."""
        if self._file is None:
            return 0.0
        return 1.0 if self._file.closed else self._file.tell() / max(self.size, 1)

    @contextmanager
    def bytes(self) -> Iterator[BinaryIO]:
        """The content from its beginning, unpacked."""
        with explained(self.path, "read"):
            self._file = self.path.open("rb")
        with self._file as file:
            if not suffix_of(self.path).endswith(".gz"):
                yield file
                return
            most = max(MOST_BYTES, MOST_TIMES * self.size)
            try:
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield io.BufferedReader(_Bounded(unpacked, self.path, most), 1 << 16)
            except (OSError, EOFError, zlib.error) as error:
                raise LookHopsError(f"{self.path}: not a whole gzip file ({error}).") from error

    @contextmanager
    def text(self, newline: str | None = "") -> Iterator[TextIO]:
        """The content as text; ``newline`` as for :func:`open`."""
        try:
            with self.bytes() as file:
                yield io.TextIOWrapper(file, "utf-8-sig", newline=newline)
        except UnicodeDecodeError as error:
            raise self.not_utf8() from error

    def not_utf8(self) -> LookHopsError:
        """The error that names the first line that is not UTF-8."""
        with self.bytes() as file:
            for line, content in enumerate(file, 1):  # noqa: B007
                try:
                    content.decode()
                except UnicodeDecodeError:
                    break
        return LookHopsError(
            f"{self.path}, line {line}: not UTF-8 text; save the file with that encoding."
        )


def read_whole(path: Path) -> bytes:
    """A whole file, unpacked."""
    if not suffix_of(path).endswith(".gz"):
        return read_bytes(path)
    with TextFile(path).bytes() as file:
        return file.read()


def with_points(cells: Sequence[str]) -> list[str] | None:
    """Cells whose decimal commas are points, if all are numbers then; else, or without any, none.

    Tables that are not separated by commas may have such numbers: where people write them so, a
    spreadsheet separates by semicolons or tabs.
    """
    pointed = [cell.replace(",", ".") for cell in cells]
    if pointed == list(cells):
        return None
    known = (cell for cell in pointed if not is_blank(cell))
    return pointed if all(as_number(cell) is not None for cell in known) else None


def say_points(origin: object, columns: Sequence[str]) -> None:
    """Say in which columns decimal commas were read as points."""
    if columns:
        warnings.warn(
            f"{origin}: decimal commas are read as points, in the "
            f"{agreeing(len(columns), 'column', 'columns')} {listed(columns)}.",
            stacklevel=3,
        )


class _Bounded(io.RawIOBase):
    """What a packed file holds, up to a number of bytes: a small file may unpack to any size."""

    def __init__(self, file: gzip.GzipFile, path: Path, most: int) -> None:
        self.file, self.path, self.left, self.most = file, path, most, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self.file.read(len(buffer))
        self.left -= len(content)
        if self.left < 0:
            raise LookHopsError(
                f"{self.path}: would have over {self.most:,} bytes, {MOST_TIMES} times more than "
                "the file or over; unpack it if you trust it."
            )
        buffer[: len(content)] = content
        return len(content)


class TextTable(TextFile):
    """A text file with a header, fields apart by commas, semicolons or tabs, whichever it uses.

    A line before the header may say it, as Excel has it: ``sep=;``.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        with self.bytes() as file:
            lines = (line.removeprefix(BOM_UTF8).strip(b" \t\r\n,;") for line in file)
            if not any(lines):
                raise LookHopsError(f"{path}: the file is empty.")
        with self.bytes() as file:
            lines = (line.removeprefix(BOM_UTF8).lstrip() for line in file)
            head = next(line for line in lines if line)
        told = SEPARATOR_LINE.fullmatch(head.rstrip(b"\r\n"))
        self.told = told is not None
        self.separator = (
            told[1].decode() if told else max(",;\t", key=lambda sign: head.count(sign.encode()))
        )
        first = next(self.rows(), None)
        if first is None:  # spaces of other alphabets
            raise LookHopsError(f"{path}: the file is empty.")
        self.begin, cells = first
        self.header = [cell.strip() for cell in cells]
        for name in self.header:
            if name and self.header.count(name) > 1:
                raise LookHopsError(f"{path}, line {self.begin}: two columns are called {name!r}.")

    @cached_property
    def content(self) -> bytes:
        """The whole content, unpacked."""
        with self.bytes() as file:
            return file.read()

    def where(self, row: int) -> str:
        """The line on which a row begins."""
        for number, (line, _) in enumerate(self.rows()):
            if number == row + 1:
                return f"line {line}"
        return f"row {row + 1}"

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """The rows that are not blank, the header's first, and the line on which each begins."""
        begins, told = 1, self.told
        with self.text() as text:
            reader = csv.reader(text, delimiter=self.separator, strict=True)
            try:
                for row in reader:
                    if len(row) > 1 or "".join(row).strip():
                        if not told:
                            yield begins, row
                        told = False
                    begins = reader.line_num + 1
            except csv.Error as error:
                raise LookHopsError(
                    f"{self.path}, line {begins}: not a line of a CSV file ({error})."
                ) from error

    def check_lengths(self) -> None:
        """Refuse a row with more or fewer fields than the header, where no field is quoted."""
        content, wanted = self.content, len(self.header)
        if b'"' not in content:
            separator, spaces = (
                self.separator.encode(),
                b" \t".replace(self.separator.encode(), b""),
            )
            lines = [line for line in content.splitlines() if line.strip(spaces)]
            if {line.count(separator) for line in lines} == {wanted - 1}:
                return
        for line, row in self.rows():
            self.check_length(line, row)

    def check_length(self, line: int, row: Sequence[str]) -> None:
        """Refuse a row with more or fewer fields than the header."""
        if len(row) != len(self.header):
            raise LookHopsError(
                f"{self.path}, line {line}: {len(row)} fields, where the header has "
                f"{len(self.header)}; put quotes around a field that holds the separator."
            )

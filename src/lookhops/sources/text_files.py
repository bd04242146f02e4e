"""Text files, perhaps packed by gzip, read as they go; and how the names of files end."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, TextIO, TypeVar

from lookhops.core.errors import LookHopsError
from lookhops.core.files import check_regular, explained

Item = TypeVar("Item")
PARQUET, NODE_LINK = ".parquet", ".jsonl"
TABLE_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", PARQUET)
#: A packed file may hold so many bytes, or so many times its own size: columns that say the same in
#: every row take next to nothing.
MOST_BYTES, MOST_TIMES = 32 << 20, 100


def suffix_of(path: Path) -> str:
    """The end of a file's name that says what it is; of a packed file both ends."""
    ends = [suffix.lower() for suffix in path.suffixes[-2:]]
    return "".join(ends) if ends[-1:] == [".gz"] else (ends or [""])[-1]


def unpacked_suffix(path: Path) -> str:
    """The same of what is in a packed file: ``.smi`` of ``.smi.gz``."""
    return suffix_of(path).removesuffix(".gz")


def stem_of(path: Path) -> str:
    """The file's name without that end."""
    return path.name.removesuffix(suffix_of(path))


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
    def text(self, newline: str | None = None) -> Iterator[TextIO]:
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

    def empty(self) -> LookHopsError:
        """The error that the file holds nothing."""
        return LookHopsError(f"{self.path}: the file is empty.")

    def not_empty(self, rows: Iterator[Item]) -> Iterator[Item]:
        """The rows of the file; a sentence where there are none."""
        first = next(rows, None)
        if first is None:
            raise self.empty()
        yield from chain([first], rows)


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

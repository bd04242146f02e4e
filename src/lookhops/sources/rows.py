"""Rows of files, packed by gzip or not; CSV, TSV and Parquet.

Every format gives :class:`Rows`: the names of the columns, and one :class:`Row` after another.
Nothing here imports pandas or PyTorch, which take a while to load.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO

from lookhops.core.errors import LookHopsError
from lookhops.core.files import check_regular, explained
from lookhops.core.reading import listed
from lookhops.core.words import agreeing

PARQUET, NODE_LINK = ".parquet", ".jsonl"
TABLE_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", PARQUET)
#: The line in which Excel says what separates fields.
SEPARATOR_LINE = re.compile(r'"?sep=([,;\t|])"?', re.IGNORECASE)
#: What a line has that is not blank.
_CONTENT = re.compile(r"[^\s,;\ufeff]")
#: Rows of a Parquet file that are read at a time.
BATCH = 4096
#: A packed file may hold so many bytes, or so many times its own size: columns that say the same in
#: every row take next to nothing.
MOST_BYTES, MOST_TIMES = 32 << 20, 100


def suffix_of(path: Path) -> str:
    """The suffix of a file's name; of a packed file both: ``.smi.gz``."""
    ends = [suffix.lower() for suffix in path.suffixes[-2:]]
    return "".join(ends) if ends[-1:] == [".gz"] else (ends or [""])[-1]


def unpacked_suffix(path: Path) -> str:
    """The suffix of what is in a packed file: ``.smi`` of ``.smi.gz``."""
    return suffix_of(path).removesuffix(".gz")


def stem_of(path: Path) -> str:
    """The file's name without its suffix."""
    return path.name.removesuffix(suffix_of(path))


class Row(NamedTuple):
    """A row of a source: its line, or its number from 1 where there are no lines, and its cells.

    Some formats have a structure (SMILES or mol block) and a name beside the columns.
    """

    number: int
    cells: Sequence[Any] = ()
    structure: str | None = None
    name: str = ""


class Rows(ABC):
    """The rows of a source with this origin (for messages) and these columns.

    Types are Arrow's, and none where cells are texts.
    """

    #: Whether numbers may have decimal commas: commas separate no fields.
    commas = False
    #: Whether each row has a structure; else a column of SMILES is looked for.
    structures = True
    #: Whether structures are mol blocks.
    mol_blocks = False
    #: Whether rows have names, so that no column of them is looked for.
    named = False
    #: What is read as it goes, where the source is such a file.
    file: Any = None

    def __init__(
        self, origin: object, head: Iterable[str] = (), types: Iterable[Any] | None = None
    ) -> None:
        self.origin, self.head = origin, list(head)
        self.types = [None] * len(self.head) if types is None else list(types)

    def check_names(self, where: str) -> None:
        for name, times in Counter(self.head).items():
            if name and times > 1:
                raise LookHopsError(f"{where}: two columns are called {name!r}.")

    @abstractmethod
    def rows(self) -> Iterator[Row]: ...

    @property
    def share(self) -> float | None:
        """How much of the source has been read, from 0 to 1; none where that is not known."""
        return None if self.file is None else self.file.share

    def where(self, number: int) -> str:
        return f"line {number}"


# -------------------------------------------------------------------- text


class TextFile:
    """A UTF-8 text file, perhaps packed by gzip, that is read as it goes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with explained(path, "read"):
            check_regular(path)
            self.size = path.stat().st_size
        self._file: BinaryIO | None = None
        with self.bytes() as file:
            lines = (line.decode("utf-8-sig", "replace").lstrip() for line in file)
            #: The first line that is not blank.
            self.first = next(filter(None, lines), "")
            if not any(map(_CONTENT.search, chain([self.first], lines))):
                raise self.empty()

    @property
    def share(self) -> float:
        if self._file is None:
            return 0.0
        return 1.0 if self._file.closed else self._file.tell() / max(self.size, 1)

    @contextmanager
    def bytes(self) -> Iterator[BinaryIO]:
        with explained(self.path, "read"):
            self._file = self.path.open("rb")
        with self._file as file:
            if not suffix_of(self.path).endswith(".gz"):
                yield file
                return
            try:
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield io.BufferedReader(_Bounded(unpacked, self), 1 << 16)
            except (OSError, EOFError, zlib.error) as error:
                raise LookHopsError(f"{self.path}: not a whole gzip file ({error}).") from error

    @contextmanager
    def text(self, newline: str | None = None) -> Iterator[TextIO]:
        try:
            with self.bytes() as file:
                yield io.TextIOWrapper(file, "utf-8-sig", newline=newline)
        except UnicodeDecodeError as error:
            raise self.not_utf8() from error

    def not_utf8(self) -> LookHopsError:
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
        return LookHopsError(f"{self.path}: the file is empty.")


class _Bounded(io.RawIOBase):
    """What a packed file holds, up to a number of bytes: a small file may unpack to any size."""

    def __init__(self, unpacked: gzip.GzipFile, file: TextFile) -> None:
        self.unpacked, self.path = unpacked, file.path
        self.left = self.most = max(MOST_BYTES, MOST_TIMES * file.size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self.unpacked.read(len(buffer))
        self.left -= len(content)
        if self.left < 0:
            raise LookHopsError(
                f"{self.path}: would have over {self.most:,} bytes, {MOST_TIMES} times more than "
                "the file or over; unpack it if you trust it."
            )
        buffer[: len(content)] = content
        return len(content)


class TextTable(Rows):
    """A text file with a header, fields apart by commas, semicolons or tabs, whichever it uses.

    A line before the header may name the separator, as Excel has it: ``sep=;``.
    """

    structures = False

    def __init__(self, path: Path) -> None:
        self.origin, self.file = path, TextFile(path)
        named = SEPARATOR_LINE.fullmatch(self.file.first.rstrip("\r\n"))
        self.names_separator = named is not None
        self.separator = named[1] if named else max(",;\t", key=self.file.first.count)
        self.commas = self.separator != ","
        header = next(self._lines(), None)
        if header is None:
            raise self.file.empty()
        self.begin = header.number
        super().__init__(path, [cell.strip() for cell in header.cells])
        self.check_names(f"{path}, line {self.begin}")

    def rows(self) -> Iterator[Row]:
        lines, wanted = self._lines(), len(self.head)
        next(lines)
        for row in lines:
            if len(row.cells) != wanted:
                raise LookHopsError(
                    f"{self.origin}, line {row.number}: {len(row.cells)} fields, where the header "
                    f"has {wanted}; put quotes around a field that holds the separator."
                )
            yield row

    def _lines(self) -> Iterator[Row]:
        """The rows that are not blank, the header's first, and the line on which each begins."""
        begins, skip = 1, self.names_separator
        with self.file.text(newline="") as text:
            reader = csv.reader(text, delimiter=self.separator, strict=True)
            try:
                for cells in reader:
                    if len(cells) > 1 or "".join(cells).strip():
                        if not skip:
                            yield Row(begins, cells)
                        skip = False
                    begins = reader.line_num + 1
            except csv.Error as error:
                raise LookHopsError(
                    f"{self.origin}, line {begins}: not a line of a CSV file ({error})."
                ) from error

    @cached_property
    def content(self) -> bytes:
        with self.file.bytes() as file:
            return file.read()

    def check_lengths(self) -> None:
        """Refuse a row with more or fewer fields than the header, looking at all rows at once."""
        content, separator = self.content, self.separator.encode()
        if b'"' not in content:
            spaces = b" \t".replace(separator, b"")
            lines = [line for line in content.splitlines() if line.strip(spaces)]
            if {line.count(separator) for line in lines} == {len(self.head) - 1}:
                return
        for _ in self.rows():
            pass

    def where_row(self, row: int) -> str:
        """The line on which the row with a number from 0 begins."""
        return next(
            (self.where(one.number) for number, one in enumerate(self.rows()) if number == row),
            f"row {row + 1}",
        )


def with_points(cells: Sequence[str]) -> list[str] | None:
    """Cells with points for decimal commas, if all are numbers then; else, or without any, none.

    A spreadsheet that writes decimal commas separates fields by semicolons or tabs.
    """
    from lookhops.graphs.targets import as_number, is_blank  # loads PyTorch

    pointed = [cell.replace(",", ".") for cell in cells]
    if pointed == list(cells):
        return None
    filled = (cell for cell in pointed if not is_blank(cell))
    return pointed if all(as_number(cell) is not None for cell in filled) else None


def say_points(origin: object, columns: Sequence[str]) -> None:
    """Warn of columns whose decimal commas were read as points."""
    if columns:
        warnings.warn(
            f"{origin}: decimal commas are read as points, in the "
            f"{agreeing(len(columns), 'column', 'columns')} {listed(columns)}.",
            stacklevel=3,
        )


# -------------------------------------------------------------------- Parquet


class ParquetTable(Rows):
    """A Parquet file; cells are Python's values, and a blank is None."""

    structures = False

    def __init__(self, path: Path) -> None:
        with explained_parquet(path):
            from pyarrow import parquet

            with explained(path, "read"):
                check_regular(path)
            self.file = parquet.ParquetFile(path)
        self._done = 0
        schema = self.file.schema_arrow
        super().__init__(path, map(str, schema.names), map(_plain_type, schema.types))
        self.check_names(str(path))

    @property
    def share(self) -> float:
        return self._done / max(self.file.metadata.num_rows, 1)

    def rows(self) -> Iterator[Row]:
        with explained_parquet(self.origin):
            for batch in self.file.iter_batches(BATCH):
                columns = [batch.column(i).to_pylist() for i in range(len(self.types))]
                for column, kind in zip(columns, self.types, strict=True):
                    if kind is None:
                        column[:] = [None if cell is None else str(cell) for cell in column]
                for cells in zip(*columns, strict=True):
                    self._done += 1
                    yield Row(self._done, cells)


def _plain_type(kind: Any) -> Any:
    from pyarrow import types

    names = ("primitive", "string", "large_string", "decimal", "dictionary")
    return kind if any(getattr(types, f"is_{name}")(kind) for name in names) else None


@contextmanager
def explained_parquet(path: object) -> Iterator[None]:
    """Errors of pyarrow in the block, or that it is missing, as a sentence."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise LookHopsError(
            f"{path}: Parquet files are read with pyarrow: pip install pyarrow."
        ) from error
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise LookHopsError(f"{path}: not a Parquet file that can be read ({error}).") from error


def open_table(path: Path) -> TextTable | ParquetTable:
    """The rows of a ``.csv``, ``.tsv`` or ``.parquet`` file."""
    return ParquetTable(path) if suffix_of(path) == PARQUET else TextTable(path)

"""How names of tables end; and tables in text files: header, rows, and the line of each."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path

from lookhops.errors import LookHopsError
from lookhops.files import read_bytes

PARQUET, NODE_LINK = ".parquet", ".jsonl"
#: A packed file may hold so many bytes, or so many times its own size: columns that say the same in
#: every row take next to nothing.
MOST_BYTES, MOST_TIMES = 32 << 20, 100
TABLE_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", PARQUET)


def suffix_of(path: Path) -> str:
    """The end of a file's name that says what it is; of a packed file both ends."""
    ends = [suffix.lower() for suffix in path.suffixes[-2:]]
    return "".join(ends) if ends[-1:] == [".gz"] else (ends or [""])[-1]


class TextTable:
    """A text file with a header, fields apart by commas, semicolons or tabs, whichever it uses."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.content = _unpacked(path)
        if not self.content.strip(b" \t\r\n,;"):
            raise LookHopsError(f"{path}: the file is empty.")
        head = self.content.removeprefix(BOM_UTF8).lstrip().split(b"\n", 1)[0]
        self.separator = max(",;\t", key=lambda sign: head.count(sign.encode()))
        self.begin, cells = next(self.rows())
        self.header = [cell.strip() for cell in cells]
        for name in self.header:
            if name and self.header.count(name) > 1:
                raise LookHopsError(f"{path}, line {self.begin}: two columns are called {name!r}.")

    def where(self, row: int) -> str:
        """The line on which a row begins."""
        for number, (line, _) in enumerate(self.rows()):
            if number == row + 1:
                return f"line {line}"
        return f"row {row + 1}"

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """The rows that are not blank, the header's first, and the line on which each begins."""
        text = io.TextIOWrapper(io.BytesIO(self.content), "utf-8-sig", newline="")
        reader = csv.reader(text, delimiter=self.separator, strict=True)
        begins = 1
        try:
            for row in reader:
                if len(row) > 1 or "".join(row).strip():
                    yield begins, row
                begins = reader.line_num + 1
        except csv.Error as error:
            raise LookHopsError(
                f"{self.path}, line {begins}: not a line of a CSV file ({error})."
            ) from error
        except UnicodeDecodeError as error:
            raise self.not_utf8() from error

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
            if len(row) != wanted:
                raise LookHopsError(
                    f"{self.path}, line {line}: {len(row)} fields, where the header has {wanted}; "
                    "put quotes around a field that holds the separator."
                )

    def not_utf8(self) -> LookHopsError:
        """The error that names the first line that is not UTF-8."""
        try:
            self.content.decode()
        except UnicodeDecodeError as error:
            line = self.content.count(b"\n", 0, error.start) + 1
        return LookHopsError(
            f"{self.path}, line {line}: not UTF-8 text; save the file with that encoding."
        )


def _unpacked(path: Path) -> bytes:
    content = read_bytes(path)
    if not suffix_of(path).endswith(".gz"):
        return content
    most = max(MOST_BYTES, MOST_TIMES * len(content))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            text = file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise LookHopsError(f"{path}: not a whole gzip file ({error}).") from error
    if len(text) > most:
        raise LookHopsError(
            f"{path}: would have over {most:,} bytes, {MOST_TIMES} times more than the file or "
            "over; unpack it if you trust it."
        )
    return text

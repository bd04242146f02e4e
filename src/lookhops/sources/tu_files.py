"""The files of a TU set, from a zip archive or a folder that anybody may have sent."""

from __future__ import annotations

import lzma
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any

import numpy as np
import torch

from lookhops.core.errors import LookHopsError
from lookhops.core.files import check_regular
from lookhops.core.words import counted
from lookhops.graphs.features import Features
from lookhops.graphs.targets import Target, pack_targets

MOST_LABELS = 1_000_000  # that all columns of labels may span: each is a feature of its own
#: An archive may hold so many bytes, or so many times its own size: those of the collection hold
#: five or six times theirs, and a thousand times is an attack.
MOST_BYTES, MOST_TIMES = 32 << 20, 30
PARTS = (
    *("A", "graph_indicator", "graph_labels", "graph_attributes"),
    *("node_labels", "node_attributes", "edge_labels", "edge_attributes"),
)
# Everything a row of numbers may hold besides its commas and its end.
_NUMBER_BYTES = b"0123456789+-.eE \t\r"
#: NumPy takes a sign without a number for 0.
_LONE_SIGN = re.compile(rb"[+-](?!\.?[0-9])")
MOST_COLUMNS = 100_000
#: Bytes that are read and parsed at once; a line may have some more, blank lines so many together.
PIECE, LONGEST_LINE = 1 << 20, 1 << 22
#: Files that do not hold whole numbers.
_KINDS: dict[str, type[np.generic]] = {
    **dict.fromkeys(("node_attributes", "edge_attributes"), np.float32),
    "graph_attributes": np.float64,
}
#: All that Python's zipfile raises of archives that are damaged.
_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, struct.error)


@dataclass(frozen=True)
class TuFiles:
    """The files of one set, read as streams and never unpacked to disk."""

    name: str
    #: The archive or the folder, and where its files are, for messages.
    source: Path
    folder: Path
    #: What opens the file of each part that is there.
    parts: Mapping[str, Callable[[], IO[bytes]]]
    #: How many nodes, edges and graphs there are, once that is known. No more is read.
    rows: dict[str, int] = field(default_factory=dict)

    def where(self, part: str) -> Path:
        return self.folder / f"{self.name}_{part}.txt"

    def require(self, part: str) -> None:
        if part not in self.parts:
            raise LookHopsError(f"{self.where(part)}: this file of the set is missing.")

    def numbers(self, part: str, columns: int | None = None, most: int | None = None) -> np.ndarray:
        """The numbers of one file, checked; it has at most so many rows where none are known."""
        self.require(part)
        where, of = self.where(part), part.partition("_")[0]
        kind = _KINDS.get(part, np.int64)
        wanted = self.rows.get(of)
        with _explained(self.source), self.parts[part]() as file:
            values = read_numbers(file, where, kind, most if wanted is None else wanted)
        if columns not in (None, values.shape[1]):
            raise LookHopsError(f"{where}, line 1: {values.shape[1]} values, expected {columns}.")
        if most is not None and len(values) > most:
            raise LookHopsError(f"{where}, line {most + 1}: {most:,} lines are all there can be.")
        if wanted is not None and len(values) != wanted:
            line, found = min(len(values), wanted) + 1, counted(len(values), "line")
            found = found if line > len(values) else "a line more"
            raise LookHopsError(f"{where}, line {line}: {found}, but {counted(wanted, of)}.")
        return values

    def counts(self) -> list[int]:
        """Numbers of graphs, nodes and directed edges, counted by lines."""
        graphs = "graph_labels" if "graph_labels" in self.parts else "graph_attributes"
        counts = []
        for part in (graphs, "graph_indicator", "A"):
            self.require(part)
            with _explained(self.source), self.parts[part]() as file:
                counts.append(sum(bool(line.strip()) for line in file))
        return counts

    def features(self, owner: str) -> Features:
        """Attributes and labels of nodes or edges, labels counted from their smallest value."""
        numbers = labels = None
        spans: list[range] = []
        if f"{owner}_attributes" in self.parts:
            numbers = torch.from_numpy(self.numbers(f"{owner}_attributes"))
        if f"{owner}_labels" in self.parts:
            values = self.numbers(f"{owner}_labels")
            low, high = values.min(0), values.max(0)
            spans = [range(a, b + 1) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
            if (most := sum(span.stop - span.start for span in spans)) > MOST_LABELS:
                where = self.where(f"{owner}_labels")
                raise LookHopsError(f"{where}: labels {most} apart are too far apart.")
            labels = torch.from_numpy(values - low)
        stand_for = tuple(tuple(map(str, span)) for span in spans)
        return Features(numbers, labels=labels, label_values=stand_for)

    def targets(self) -> dict[str, Any]:
        """The classes of the graphs; of a set without, the numbers that it has of each graph."""
        if "graph_labels" not in self.parts:
            return pack_targets([(Target(name), v) for name, v in self.columns().items()])
        names, y = np.unique(self.numbers("graph_labels", columns=1)[:, 0], return_inverse=True)
        return {"y": torch.from_numpy(y), "class_names": [str(name) for name in names]}

    def columns(self) -> dict[str, np.ndarray]:
        if "graph_attributes" not in self.parts:
            return {}
        values = self.numbers("graph_attributes")
        if values.shape[1] == 1:
            return {"graph_attribute": values[:, 0]}
        return {f"graph_attribute_{j}": column for j, column in enumerate(values.T)}


# -------------------------------------------------------------------- finding and reading them


@contextmanager
def open_tu(path: Path, content: IO[bytes] | None = None) -> Iterator[TuFiles]:
    """The files of the set in an archive (or its content) or a folder, to be read in the block."""
    parts: dict[str, Callable[[], Any]]
    with ExitStack() as open_files:
        with _explained(path):
            if path.is_dir():
                # PyG keeps the files of a set one folder deeper.
                folder = path / "raw" if (path / "raw").is_dir() else path
                name, entries = _choose(path, (entry.name for entry in folder.iterdir()))
                for entry in entries.values():
                    check_regular(folder / entry)
                parts = {p: partial((folder / e).open, "rb") for p, e in entries.items()}
            else:
                if content is None:
                    check_regular(path)
                archive = open_files.enter_context(zipfile.ZipFile(content or path))
                name, entries = _entries(path, archive)
                folder = path / PurePosixPath(entries["A"]).parent
                parts = {p: partial(archive.open, e) for p, e in entries.items()}
        yield TuFiles(name, path, folder, parts)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except LookHopsError:
        raise
    except FileNotFoundError as error:
        raise LookHopsError(f"{path}: no such file or folder.") from error
    except (*_DAMAGED, ValueError) as error:
        raise LookHopsError(
            f"{path}: not a whole zip archive ({error}); delete it and fetch it again."
        ) from error
    except (OSError, RuntimeError, NotImplementedError, OverflowError) as error:
        raise LookHopsError(f"{path}: cannot be read ({error}).") from error


def _entries(path: Path, archive: zipfile.ZipFile) -> tuple[str, dict[str, str]]:
    """The set's name and the entry of each of its parts, none of them outside or too large."""
    for entry in archive.namelist():
        windows = PureWindowsPath(entry)  # knows both kinds of slash and drive letters
        if windows.drive or windows.root or ".." in windows.parts:
            raise LookHopsError(
                f"{path}: entry {entry!r} would land outside its folder; the archive is not used."
            )
    name, entries = _choose(path, archive.namelist())
    size = sum(archive.getinfo(entry).file_size for entry in entries.values())  # no more is read
    packed = sum(info.compress_size for info in archive.infolist())
    if size > max(MOST_BYTES, MOST_TIMES * packed):
        raise LookHopsError(
            f"{path}: its files would have {size:,} bytes, {MOST_TIMES} times more than the "
            "archive or over; unpack it to a folder if you trust it."
        )
    return name, entries


def _choose(path: Path, entries: Iterable[str]) -> tuple[str, dict[str, str]]:
    """The set's name and the entry of each of its parts, told by the file of edges."""
    given = set(entries)
    # macOS leaves a file `._NAME_A.txt` beside each file it archives.
    edges = [e for e in given if e.endswith("_A.txt") and not Path(e).name.startswith("._")]
    named = [e for e in edges if Path(e).name == f"{path.stem}_A.txt"]
    chosen = named or edges
    if len(chosen) != 1:
        what = "more than one file" if chosen else "no file"
        other = "" if chosen else " (and no edges.csv, .tsv or .parquet, the edges of tables)"
        raise LookHopsError(f"{path}: {what} NAME_A.txt, the edges of a TU set, in here{other}.")
    stem = chosen[0].removesuffix("_A.txt")
    found = {part: f"{stem}_{part}.txt" for part in PARTS}
    return Path(stem).name, {part: entry for part, entry in found.items() if entry in given}


# -------------------------------------------------------------------- numbers in text


def read_numbers(
    file: IO[bytes], where: object, kind: type[np.generic], most: int | None = None
) -> np.ndarray:
    """Rows of finite numbers, shape (rows, columns); blank lines at the end are left out.

    A piece of the file is parsed in one call; only where that fails, a slow pass finds the line to
    blame. Where there are more rows than ``most``, one more at least is returned, and the others
    are not read.
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
    """The content in pieces of whole lines, without the blank lines at its end."""
    blank, line = b"", 1
    while piece := file.read(PIECE):
        end = file.readline(LONGEST_LINE)
        lines = blank + piece + end
        content = lines.rstrip()
        blank = lines[len(content) :].partition(b"\n")[2] if content else lines
        if (size := max(len(end), len(blank))) >= LONGEST_LINE:
            raise LookHopsError(f"{where}, line {line}: {size:,} bytes are no row of numbers.")
        if content:
            yield content
            line += content.count(b"\n") + 1


def _parse_fast(text: bytes, kind: type[np.generic], columns: int) -> np.ndarray | None:
    """The numbers in one call; none where a row is not as it should be."""
    separators = text.translate(None, _NUMBER_BYTES) + b"\n"
    rows = len(separators) // columns
    if separators != (b"," * (columns - 1) + b"\n") * rows:
        return None
    bare = b"\n" + text.translate(None, b" \t\r") + b"\n"
    if any(blank in bare for blank in (b",,", b"\n,", b",\n", b"\n\n")):  # NumPy reads 0
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
            wanted = "a whole number" if convert is int else "a finite number"
            shown = line.strip()
            shown = shown if len(shown) <= 60 else f"{shown[:59]}…"
            raise LookHopsError(f"{where}, line {number}: {shown!r} is not {wanted}.")
        rows.append(row)
    return np.stack(rows)

"""The files of a TU set, from a zip archive or a folder that anybody may have sent."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.files import check_regular
from lookhops.core.words import counted
from lookhops.graphs.targets import Target, pack_targets
from lookhops.sources.number_files import read_table

MOST_LABELS = 1_000_000  # that all columns of labels may span: each is a feature of its own
#: An archive may hold so many bytes, or so many times its own size: those of the collection hold
#: five or six times theirs, and a thousand times is an attack.
MOST_BYTES, MOST_TIMES = 32 << 20, 30
PARTS = (
    *("A", "graph_indicator", "graph_labels", "graph_attributes"),
    *("node_labels", "node_attributes", "edge_labels", "edge_attributes"),
)
#: Files that do not hold whole numbers.
_KINDS: dict[str, type[np.generic]] = {
    **dict.fromkeys(("node_attributes", "edge_attributes"), np.float32),
    "graph_attributes": np.float64,
}
#: All that Python's zipfile raises of archives that are damaged.
_DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, struct.error)


@dataclass(frozen=True)
class TuFiles:
    """The files of one set, read as streams and never unpacked to disk.

    Args:
        name: Of the set.
        source: The archive or the folder, for messages.
        folder: Where its files are, for messages.
        parts: What opens the file of each part that is there.
        rows: How many nodes, edges and graphs there are, once that is known. No more is read.
    """

    name: str
    source: Path
    folder: Path
    parts: Mapping[str, Callable[[], IO[bytes]]]
    rows: dict[str, int] = field(default_factory=dict)

    def where(self, part: str) -> Path:
        """What to call the file of a part in a message."""
        return self.folder / f"{self.name}_{part}.txt"

    def require(self, part: str) -> None:
        """Refuse a set without this part."""
        if part not in self.parts:
            raise LookHopsError(f"{self.where(part)}: this file of the set is missing.")

    def numbers(self, part: str, columns: int | None = None, most: int | None = None) -> np.ndarray:
        """The numbers of one file, checked to have as many rows and columns as must be.

        Args:
            part: Which file.
            columns: How many values a row has, where that is known.
            most: How many rows there may be, where their number is not known.
        """
        self.require(part)
        where, of = self.where(part), part.partition("_")[0]
        kind = _KINDS.get(part, np.int64)
        wanted = self.rows.get(of)
        with _explained(self.source), self.parts[part]() as file:
            values = read_table(file, where, kind, most if wanted is None else wanted)
        if columns not in (None, values.shape[1]):
            raise LookHopsError(f"{where}, line 1: {values.shape[1]} values, expected {columns}.")
        if most is not None and len(values) > most:
            raise LookHopsError(f"{where}, line {most + 1}: {most:,} lines are all there can be.")
        if wanted is not None and len(values) != wanted:
            line, found = min(len(values), wanted) + 1, counted(len(values), "line")
            found = found if line > len(values) else "a line more"
            raise LookHopsError(f"{where}, line {line}: {found}, but {counted(wanted, of)}.")
        return values

    def attributes(self, part: str) -> Tensor | None:
        """Attributes, where there are any."""
        return torch.from_numpy(self.numbers(part)) if part in self.parts else None

    def labels(self, part: str) -> tuple[Tensor | None, tuple[tuple[str, ...], ...]]:
        """Labels, each column counted from its smallest value, and the values that it spans."""
        if part not in self.parts:
            return None, ()
        values = self.numbers(part)
        low = values.min(0)
        spans = [range(a, b + 1) for a, b in zip(low.tolist(), values.max(0).tolist(), strict=True)]
        if (most := sum(span.stop - span.start for span in spans)) > MOST_LABELS:
            raise LookHopsError(f"{self.where(part)}: labels {most} apart are too far apart.")
        return torch.from_numpy(values - low), tuple(tuple(map(str, span)) for span in spans)

    def targets(self) -> dict[str, Any]:
        """The classes of the graphs; of a set without, the numbers that it has of each graph."""
        if "graph_labels" not in self.parts:
            return pack_targets([(Target(name), v) for name, v in self.columns().items()])
        names, y = np.unique(self.numbers("graph_labels", columns=1)[:, 0], return_inverse=True)
        return {"y": torch.from_numpy(y), "class_names": [str(name) for name in names]}

    def columns(self) -> dict[str, np.ndarray]:
        """The attributes of the graphs, as columns."""
        if "graph_attributes" not in self.parts:
            return {}
        values = self.numbers("graph_attributes")
        if values.shape[1] == 1:
            return {"graph_attribute": values[:, 0]}
        return {f"graph_attribute_{j}": column for j, column in enumerate(values.T)}


# -------------------------------------------------------------------- finding and reading them


@contextmanager
def open_tu(path: Path) -> Iterator[TuFiles]:
    """The files of the set in an archive or a folder, to be read within the block."""
    parts: dict[str, Callable[[], IO[bytes]]]
    with ExitStack() as open_files:
        with _explained(path):
            if path.is_dir():
                # PyG keeps the files of a set one folder deeper.
                folder = path / "raw" if (path / "raw").is_dir() else path
                name, entries = _choose(path, (entry.name for entry in folder.iterdir()))
                for entry in entries.values():
                    check_regular(folder / entry)
                parts = {p: partial(_open, folder / e) for p, e in entries.items()}
            else:
                check_regular(path)
                archive = open_files.enter_context(zipfile.ZipFile(path))
                name, entries = _entries(path, archive)
                folder = path / PurePosixPath(entries["A"]).parent
                parts = {p: partial(archive.open, e) for p, e in entries.items()}
        yield TuFiles(name, path, folder, parts)


def _open(path: Path) -> IO[bytes]:
    return path.open("rb")


class Rows(NamedTuple):
    """How many there are of each in a set; an undirected edge counts twice."""

    graphs: int
    nodes: int
    edges: int


def count_rows(content: IO[bytes], path: Path) -> Rows:
    """What an archive holds, counted by lines without reading the numbers.

    Args:
        content: The archive.
        path: What to call it in a message.
    """
    with _explained(path), zipfile.ZipFile(content) as archive:
        _, entries = _entries(path, archive)
        graphs = "graph_labels" if "graph_labels" in entries else "graph_attributes"
        counts = []
        for part in (graphs, "graph_indicator", "A"):
            if part not in entries:
                raise LookHopsError(f"{path}: the file of {part} is missing.")
            with archive.open(entries[part]) as file:
                counts.append(sum(bool(line.strip()) for line in file))
    return Rows(*counts)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Whatever reading an archive raises, as one sentence."""
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
        _refuse_outside(path, entry)
    name, entries = _choose(path, archive.namelist())
    sizes = [
        archive.getinfo(entry).file_size for entry in entries.values()
    ]  # zipfile reads no more
    packed = sum(info.compress_size for info in archive.infolist())
    if sum(sizes) > max(MOST_BYTES, MOST_TIMES * packed):
        raise LookHopsError(
            f"{path}: its files would have {sum(sizes):,} bytes, {MOST_TIMES} times more than the "
            "archive or over; unpack it to a folder if you trust it."
        )
    return name, entries


def _refuse_outside(path: Path, entry: str) -> None:
    windows = PureWindowsPath(entry)  # knows both kinds of slash and drive letters
    if windows.drive or windows.root or ".." in windows.parts:
        raise LookHopsError(
            f"{path}: entry {entry!r} would land outside its folder; the archive is not used."
        )


def _choose(path: Path, entries: Iterable[str]) -> tuple[str, dict[str, str]]:
    """The set's name and the entry of each of its parts, told by the file of edges."""
    known = set(entries)
    # macOS leaves a file `._NAME_A.txt` beside each file it archives.
    edges = [e for e in known if e.endswith("_A.txt") and not Path(e).name.startswith("._")]
    named = [e for e in edges if Path(e).name == f"{path.stem}_A.txt"]
    chosen = named or edges
    if len(chosen) != 1:
        what = "more than one file" if chosen else "no file"
        other = "" if chosen else " (and no edges.csv, .tsv or .parquet, the edges of tables)"
        raise LookHopsError(f"{path}: {what} NAME_A.txt, the edges of a TU set, in here{other}.")
    stem = chosen[0].removesuffix("_A.txt")
    found = {part: f"{stem}_{part}.txt" for part in PARTS}
    return Path(stem).name, {part: entry for part, entry in found.items() if entry in known}

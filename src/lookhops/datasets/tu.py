"""Graphs in the text format of the TU collection, from a zip archive or a folder.

A set ``NAME`` is a few files of numbers, one row a line: ``NAME_A.txt`` (edges ``source, target``,
nodes numbered from 1 through all graphs), ``NAME_graph_indicator.txt`` (the graph of each node),
``NAME_graph_labels.txt`` (the class of each graph) and, where there are any, labels and attributes
of nodes and edges and attributes of graphs. The result is what PyG's ``TUDataset`` makes of them
with all attributes kept, tensor by tensor.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookhops.datasets.number_files import parse_table
from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.graphs.features import column_names
from lookhops.graphs.indexing import row_offsets, take
from lookhops.graphs.targets import Target, pack_targets

VERSION = 2  # of what `read_tu` makes of the files: packed copies of another version are not used
MOST_LABELS = 1_000_000  # that a column of labels may span: each is a feature of its own
PARTS = (
    *("A", "graph_indicator", "graph_labels", "graph_attributes"),
    *("node_labels", "node_attributes", "edge_labels", "edge_attributes"),
)


def read_tu(path: Path | str) -> Graphs:
    """Read a TU set from ``NAME.zip`` or a folder with its text files.

    Node features are the attributes, then the one-hot labels (kept as integers), each column of
    labels counted from its own smallest value; what they stand for are the numbers in the file.
    Self-loops are left out. Edges that are there more than once become one, with the sum of their
    features, which are then plain attributes. Classes are the graph labels in sorted order.
    Graph attributes are kept as columns ``graph_attribute`` (or ``graph_attribute_0``, ...); a set
    without classes has them as its targets.
    """
    files = _open(Path(path))
    indicator = files.numbers("graph_indicator", columns=1)[:, 0]
    _check_indicator(indicator, files.where("graph_indicator"))
    ends = np.ascontiguousarray(files.numbers("A", columns=2).T) - 1
    _check_edges(ends, indicator, files.where("A"))
    if "graph_attributes" not in files.texts:
        files.require("graph_labels")
    files.rows.update(node=len(indicator), edge=ends.shape[1], graph=int(indicator[-1]))
    labels, label_values = files.labels("node_labels")
    edge_labels, edge_label_values = files.labels("edge_labels")
    source, target = torch.from_numpy(ends)
    kept = (source != target).nonzero().flatten()
    packed = Graphs.from_edges(
        source[kept],
        target[kept],
        torch.from_numpy(np.bincount(indicator - 1)),
        attributes=files.attributes("node_attributes"),
        labels=labels,
        label_values=label_values,
        edge_attributes=take(files.attributes("edge_attributes"), kept),
        edge_labels=take(edge_labels, kept),
        edge_label_values=edge_label_values,
        **files.targets(),
        columns=files.columns(),
        name=files.name,
        featuriser="tu",
    )
    return _merge_repeated(packed)


# -------------------------------------------------------------------- the files of a set


@dataclass(frozen=True)
class _Files:
    """The texts of one set, read into memory whole and never unpacked to disk."""

    name: str
    folder: Path
    texts: dict[str, bytes]
    rows: dict[str, int] = field(default_factory=dict)  # nodes, edges and graphs, once known

    def where(self, part: str) -> Path:
        return self.folder / f"{self.name}_{part}.txt"

    def require(self, part: str) -> None:
        if part not in self.texts:
            raise LookHopsError(f"{self.where(part)}: this file of the set is missing.")

    def numbers(self, part: str, columns: int | None = None) -> np.ndarray:
        """The numbers of one file, checked to have as many rows and columns as must be."""
        self.require(part)
        kind = np.float64 if part.endswith("attributes") else np.int64
        values = parse_table(self.texts[part], self.where(part), kind)
        if columns not in (None, values.shape[1]):
            raise LookHopsError(
                f"{self.where(part)}, line 1: {values.shape[1]} values, expected {columns}."
            )
        of = part.partition("_")[0]
        rows = self.rows.get(of, len(values))
        if len(values) != rows:
            line = min(len(values), rows) + 1
            raise LookHopsError(
                f"{self.where(part)}, line {line}: {len(values)} lines, but {rows} {of}s."
            )
        return values

    def attributes(self, part: str) -> Tensor | None:
        if part not in self.texts:
            return None
        return torch.from_numpy(self.numbers(part).astype(np.float32))

    def labels(self, part: str) -> tuple[Tensor | None, list[list[str]] | None]:
        """Labels, each column counted from its smallest value, and the values that it spans."""
        if part not in self.texts:
            return None, None
        values = self.numbers(part)
        low = values.min(0)
        spans = [range(a, b + 1) for a, b in zip(low.tolist(), values.max(0).tolist(), strict=True)]
        if (most := max(span.stop - span.start for span in spans)) > MOST_LABELS:
            raise LookHopsError(f"{self.where(part)}: labels {most} apart are too far apart.")
        return torch.from_numpy(values - low), [[str(value) for value in span] for span in spans]

    def targets(self) -> dict[str, Any]:
        """The classes of the graphs; of a set without, the numbers that it has of each graph."""
        if "graph_labels" not in self.texts:
            return pack_targets([(Target(name), v) for name, v in self.columns().items()])
        names, y = np.unique(self.numbers("graph_labels", columns=1)[:, 0], return_inverse=True)
        return {"y": torch.from_numpy(y), "class_names": [str(name) for name in names]}

    def columns(self) -> dict[str, np.ndarray]:
        if "graph_attributes" not in self.texts:
            return {}
        values = self.numbers("graph_attributes")
        if values.shape[1] == 1:
            return {"graph_attribute": values[:, 0]}
        return {f"graph_attribute_{j}": column for j, column in enumerate(values.T)}


def _open(path: Path) -> _Files:
    try:
        if path.is_dir():
            # PyG keeps the files of a set one folder deeper.
            folder = path / "raw" if (path / "raw").is_dir() else path
            name, entries = _choose(path, (entry.name for entry in folder.iterdir()))
            return _Files(
                name, folder, {p: (folder / entry).read_bytes() for p, entry in entries.items()}
            )
        with zipfile.ZipFile(path) as archive:
            for entry in archive.namelist():
                _refuse_outside(path, entry)
            name, entries = _choose(path, archive.namelist())
            folder = path / PurePosixPath(entries["A"]).parent
            return _Files(name, folder, {p: archive.read(entry) for p, entry in entries.items()})
    except FileNotFoundError as error:
        raise LookHopsError(f"{path}: no such file or folder.") from error
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise LookHopsError(
            f"{path}: not a whole zip archive ({error}); delete it and fetch it again."
        ) from error
    except (OSError, RuntimeError, NotImplementedError) as error:
        raise LookHopsError(f"{path}: cannot be read ({error}).") from error


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
        raise LookHopsError(f"{path}: {what} NAME_A.txt, the edges of a TU set, in here.")
    stem = chosen[0].removesuffix("_A.txt")
    found = {part: f"{stem}_{part}.txt" for part in PARTS}
    return Path(stem).name, {part: entry for part, entry in found.items() if entry in known}


# -------------------------------------------------------------------- checks, and repeated edges


def _check_indicator(indicator: np.ndarray, where: Path) -> None:
    step = np.diff(indicator, prepend=0)
    wrong = (step < 0) | (step > 1)
    wrong[0] = indicator[0] != 1
    if wrong.any():
        line = int(wrong.argmax())
        before = f"follows graph {indicator[line - 1]}" if line else "comes first"
        raise LookHopsError(
            f"{where}, line {line + 1}: graph {indicator[line]} {before}; graphs are numbered "
            "from 1, in order and without gaps."
        )


def _check_edges(ends: np.ndarray, indicator: np.ndarray, where: Path) -> None:
    """Each edge must join two nodes of one graph; ``ends``, shape (2, e), count from 0."""
    nodes = len(indicator)
    if ends.min() < 0 or ends.max() >= nodes:
        bad = (ends < 0) | (ends >= nodes)
        line = int(bad.any(0).argmax())
        node = ends[bad[:, line].argmax(), line] + 1
        raise LookHopsError(
            f"{where}, line {line + 1}: an edge to node {node}; the nodes are 1 to {nodes}."
        )
    graph = indicator[ends]
    across = graph[0] != graph[1]
    if across.any():
        line = int(across.argmax())
        (a, b), (first, second) = ends[:, line] + 1, graph[:, line]
        raise LookHopsError(
            f"{where}, line {line + 1}: an edge between two graphs, node {a} of graph {first} and "
            f"node {b} of graph {second}."
        )


def _merge_repeated(graphs: Graphs) -> Graphs:
    """Make edges that are there more than once one, with the sum of their features."""
    new = torch.ones(graphs.num_edges + 1, dtype=torch.bool)
    new[1:-1] = graphs.source[1:] != graphs.source[:-1]
    new[graphs.row_ptr] = True  # the first edge into a node repeats none
    if bool(new.all()):
        return graphs
    new = new[:-1]
    edge_attr = graphs.edge_attr
    if edge_attr is not None:
        merged = edge_attr.new_zeros(int(new.sum()), edge_attr.shape[1])
        edge_attr = merged.index_add_(0, new.cumsum(0) - 1, edge_attr)
    return replace(
        graphs,
        source=graphs.source[new],
        row_ptr=row_offsets(graphs.target[new], graphs.num_nodes),
        edge_attributes=edge_attr,
        edge_attribute_names=() if edge_attr is None else column_names(graphs, "edge_"),
        edge_labels=None,
    )

"""Graphs in the text format of the TU collection, from a zip archive or a folder.

A set ``NAME`` is a few files of numbers, one row a line: ``NAME_A.txt`` (edges ``source, target``,
nodes numbered from 1 through all graphs), ``NAME_graph_indicator.txt`` (the graph of each node),
``NAME_graph_labels.txt`` (the class of each graph) and, where there are any, labels and attributes
of nodes and edges and attributes of graphs. The result is what PyG's ``TUDataset`` makes of them
with all attributes kept, tensor by tensor.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.graphs.features import Features
from lookhops.graphs.indexing import row_offsets
from lookhops.sources.tu_files import TuFiles, open_tu

MOST_NODES = 50_000_000
VERSION = 2  # of what `read_tu` makes of the files: packed copies of another version are not used


def read_tu(path: Path | str) -> Graphs:
    """Read a TU set from ``NAME.zip`` or a folder with its text files.

    Node features are the attributes, then the one-hot labels (kept as integers), each column of
    labels counted from its own smallest value; what they stand for are the numbers in the file.
    Self-loops are left out. Edges that are there more than once become one, with the sum of their
    features, which are then plain attributes. Classes are the graph labels in sorted order.
    Graph attributes are kept as columns ``graph_attribute`` (or ``graph_attribute_0``, ...); a set
    without classes has them as its targets.
    """
    with open_tu(Path(path)) as files:
        return _merge_repeated(_read(files))


def _read(files: TuFiles) -> Graphs:
    """The graphs of a set, counts first: they bound what is read of the other files."""
    indicator = files.numbers("graph_indicator", columns=1, most=MOST_NODES)[:, 0]
    _check_indicator(indicator, files.where("graph_indicator"))
    sizes = np.bincount(indicator - 1)
    # Every pair of a graph's nodes in both directions, and as many again that repeat others.
    most = int(2 * np.square(sizes, dtype=np.float64).sum())
    ends = np.ascontiguousarray(files.numbers("A", columns=2, most=most).T) - 1
    _check_edges(ends, indicator, files.where("A"))
    if "graph_attributes" not in files.parts:
        files.require("graph_labels")
    files.rows.update(node=len(indicator), edge=ends.shape[1], graph=len(sizes))
    source, target = torch.from_numpy(ends)
    kept = (source != target).nonzero().flatten()
    return Graphs.from_edges(
        source[kept],
        target[kept],
        torch.from_numpy(sizes),
        nodes=files.features("node"),
        edges=files.features("edge").take(kept),
        **files.targets(),
        columns=files.columns(),
        name=files.name,
        featuriser="tu",
    )


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
    nodes = len(indicator)
    outside = (ends < 0) | (ends >= nodes)
    if outside.any():
        line = int(outside.any(0).argmax())
        node = ends[outside[:, line].argmax(), line] + 1
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
    new, edges = new[:-1], Features()
    if graphs.edge_attr is not None:
        sums = graphs.edge_attr.new_zeros(int(new.sum()), graphs.num_edge_features)
        sums.index_add_(0, new.cumsum(0) - 1, graphs.edge_attr)
        edges = Features(sums, graphs.edges.names.columns)
    row_ptr = row_offsets(graphs.target[new], graphs.num_nodes)
    return replace(graphs, source=graphs.source[new], row_ptr=row_ptr, edges=edges)

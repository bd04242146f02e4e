"""Counts of a set of graphs, for tables and pages: sizes, classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lookhops.core.errors import LookHopsError
from lookhops.core.schema import AtLeast, Count, read
from lookhops.graphs import Graphs
from lookhops.sources.duplicates import molecule_counts

#: Bars of the distribution of sizes.
SIZE_BINS = 30
SIZE: Mapping[str, Any] = dict.fromkeys(("graphs", "nodes", "edges", "features"), Count)
#: What :func:`graph_counts` gives.
GRAPH_COUNTS = AtLeast(
    {
        **SIZE,
        "nodes_range": tuple[Count, Count],
        "class_names": Sequence[str],
        "class_counts": Sequence[Count],
        "molecules?": Mapping[str, Count],
        "sizes": AtLeast({"edges": Sequence[float], "counts": Sequence[Sequence[Count]]}),
    }
)


def graph_counts(graphs: Graphs) -> dict[str, Any]:
    """Counts of a set of graphs, as JSON can hold them.

    Returns:
        ``graphs``, ``nodes``, ``edges`` (each pair of nodes once), ``features``; ``nodes_range``
        (the smallest and the largest graph); ``class_names`` and ``class_counts``; of molecules,
        ``molecules`` (what ``molecule_counts`` of ``datasets`` gives); and ``sizes``:
        the ``edges`` of at most 30 bins of nodes per graph, with ``counts``, shape (classes, bins),
        one row where the graphs have no classes.
    """
    nodes = graphs.nodes_per_graph.cpu().numpy()
    edges = _size_bins(nodes)
    known = graphs.y is not None and graphs.num_classes > 0
    y = graphs.y.cpu().numpy() if graphs.y is not None and known else np.zeros(len(nodes), int)
    classes = max(graphs.num_classes, 1) if known else 1
    counts = [np.histogram(nodes[y == c], edges)[0].tolist() for c in range(classes)]
    molecules = molecule_counts(graphs)
    return {
        **({} if molecules is None else {"molecules": molecules}),
        "graphs": len(graphs),
        "nodes": graphs.num_nodes,
        "edges": graphs.num_undirected_edges,
        "features": graphs.num_features,
        "nodes_range": [int(nodes.min()), int(nodes.max())] if len(nodes) else [0, 0],
        "class_names": list(graphs.class_names) if known else [],
        "class_counts": np.bincount(y[y >= 0], minlength=classes).tolist() if known else [],
        "sizes": {"edges": edges.tolist(), "counts": counts},
    }


def check_graph_counts(value: Any, path: str) -> None:
    """That a value is what :func:`graph_counts` gave, or a sentence that says where it is not."""
    read(GRAPH_COUNTS, value, path)
    bins = len(value["sizes"]["edges"]) - 1
    if len(value["class_names"]) != len(value["class_counts"]):
        raise LookHopsError(f"{path}.class_counts has not one count for each class")
    if any(len(counts) != bins for counts in value["sizes"]["counts"]):
        raise LookHopsError(f"{path}.sizes.counts has not one count for each bin")


def _size_bins(nodes: np.ndarray) -> np.ndarray:
    """Edges of bins of whole width, so that each bin holds equally many possible sizes."""
    low, high = (int(nodes.min()), int(nodes.max())) if len(nodes) else (0, 0)
    width = -(-(high - low + 1) // SIZE_BINS)
    count = -(-(high - low + 1) // width)
    return low - 0.5 + width * np.arange(count + 1)

"""What a report says of a set of graphs, and of what a model answered: counts, plain text."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lookhops.graphs import Graphs
from lookhops.tasks import Calibration, Task
from lookhops.training.trainer import Run

#: Bars of the distribution of sizes.
SIZE_BINS = 30


def graph_facts(graphs: Graphs) -> dict[str, Any]:
    """Counts of a set of graphs, as JSON can hold them.

    Returns:
        ``graphs``, ``nodes``, ``edges`` (each pair of nodes once), ``features``; ``nodes_range``
        (the smallest and the largest graph); ``class_names`` and ``class_counts``; and ``sizes``:
        the ``edges`` of at most 30 bins of nodes per graph, with ``counts``, shape (classes, bins),
        one row where the graphs have no classes.
    """
    nodes = graphs.nodes_per_graph.cpu().numpy()
    edges = _size_bins(nodes)
    known = graphs.y is not None and graphs.num_classes > 0
    y = graphs.y.cpu().numpy() if graphs.y is not None and known else np.zeros(len(nodes), int)
    classes = max(graphs.num_classes, 1) if known else 1
    counts = [np.histogram(nodes[y == c], edges)[0].tolist() for c in range(classes)]
    return {
        "graphs": len(graphs),
        "nodes": graphs.num_nodes,
        "edges": graphs.num_undirected_edges,
        "features": graphs.num_features,
        "nodes_range": [int(nodes.min()), int(nodes.max())] if len(nodes) else [0, 0],
        "class_names": list(graphs.class_names) if known else [],
        "class_counts": np.bincount(y, minlength=classes).tolist() if known else [],
        "sizes": {"edges": edges.tolist(), "counts": counts},
    }


def run_facts(runs: Sequence[Run], graphs: Graphs) -> dict[str, Any]:
    """The same, and how many graphs each seed trained on, stopped by and tested on."""
    parts = {str(run.seed): run.split for run in runs}
    sizes = {seed: [len(p.train), len(p.val), len(p.test)] for seed, p in parts.items()}
    return {**graph_facts(graphs), "parts": sizes}


def _size_bins(nodes: np.ndarray) -> np.ndarray:
    """Edges of bins of whole width, so that each bin holds equally many possible sizes."""
    low, high = (int(nodes.min()), int(nodes.max())) if len(nodes) else (0, 0)
    width = -(-(high - low + 1) // SIZE_BINS)
    count = -(-(high - low + 1) // width)
    return low - 0.5 + width * np.arange(count + 1)


def ids_of(graphs: Graphs) -> list[str]:
    """What each graph is called: its ``id`` column, else its number from 0."""
    known = graphs.columns.get("id")
    return [str(value) for value in (range(len(graphs)) if known is None else known)]


def predictions_csv(
    runs: Sequence[Run], graphs: Graphs, task: Task, calibrations: Mapping[int, Calibration]
) -> str:
    """The answers to the test part of every seed, one line a graph.

    Columns: seed, graph (its number from 0), id, and the task's: of classes, ``class`` (the true
    one) and the calibrated probability of each, ``p(NAME)``.
    """
    target, ids = task.targets(graphs).tolist(), ids_of(graphs)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("seed", "graph", "id", *task.columns))
    for run in runs:
        if "test" not in run.predictions:  # its training was stopped before its time
            continue
        answers = task.answers(run.predictions["test"], calibrations[run.seed])
        for number, row in zip(run.split.test.tolist(), answers.tolist(), strict=True):
            known = (run.seed, number, ids[number], task.label(target[number]))
            writer.writerow((*known, *(f"{value:.6g}" for value in row)))
    return text.getvalue()

"""The tables of a model folder: ``history.csv`` and ``predictions.csv``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lookhops.graphs import Graphs
from lookhops.tables import csv_text
from lookhops.tasks import Calibration, Task
from lookhops.training.trainer import Run

COLUMNS = ("epoch", "train_loss", "val_loss", "val_accuracy", "seconds")


def history_csv(runs: Sequence[Run]) -> str:
    """Every epoch of every seed, one line each."""
    rows = ((run.seed, *(row[key] for key in COLUMNS)) for run in runs for row in run.history)
    return csv_text(("seed", *COLUMNS), rows)


def graph_ids(graphs: Graphs) -> list[str]:
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
    target, ids = task.targets(graphs).tolist(), graph_ids(graphs)
    rows = []
    for run in runs:
        if "test" not in run.predictions:  # its training was stopped before its time
            continue
        answers = task.answers(run.predictions["test"], calibrations[run.seed])
        for number, row in zip(run.split.test.tolist(), answers.tolist(), strict=True):
            known = (run.seed, number, ids[number], task.label(target[number]))
            rows.append((*known, *(f"{value:.6g}" for value in row)))
    return csv_text(("seed", "graph", "id", *task.columns), rows)

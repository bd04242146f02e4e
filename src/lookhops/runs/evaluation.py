"""What is said about finished runs: metrics of each seed and of all, and tables of a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lookhops.core.tables import csv_text
from lookhops.graphs import Graphs
from lookhops.runs.record import record_run
from lookhops.tasks import Calibration, Task
from lookhops.tasks.metrics import interval
from lookhops.training.runs import Run

#: Columns of a history in which not one epoch was finished.
LOSSES = ("epoch", "train_loss", "val_loss", "seconds")


def evaluate_runs(
    runs: Sequence[Run], graphs: Graphs, task: Task, device: torch.device
) -> dict[str, Any]:
    """All that is said about finished runs: per seed, over seeds, and all test graphs together.

    Returns:
        ``seeds`` (seed to the metrics of its :class:`~lookhops.runs.record.RunRecord`, with
        bootstrap intervals where the task resamples), ``summary`` (metric to mean, std and values,
        with the interval of the mean) and the task's overview: of classes, ``confusion`` (true
        class by predicted class, the test graphs of all seeds together). Runs without predictions
        are left out.
    """
    target = task.targets(graphs).cpu()
    tested = [run for run in runs if run.predictions]
    outputs = [run.predictions["test"] for run in tested]
    targets = [target[run.split.test] for run in tested]
    draws = [task.resampled(*pair) for pair in zip(outputs, targets, strict=True)]
    seeds: dict[str, dict[str, Any]] = {}
    for run, drawn in zip(tested, draws, strict=True):
        seconds = sum(row["seconds"] for one in run.networks for row in one.history)
        record = record_run(run, graphs, task, device, seconds, calibrated=True)
        intervals = {f"{name}_interval": interval(values) for name, values in drawn.items()}
        seeds[str(run.seed)] = {**record.metrics, **intervals}
    return {
        "seeds": seeds,
        "summary": summarise(seeds, draws, task),
        **task.overview(outputs, targets, [seeds[str(run.seed)] for run in tested]),
    }


def summarise(
    seeds: Mapping[str, Mapping[str, Any]],
    draws: Sequence[Mapping[str, NDArray[Any]]],
    task: Task,
) -> dict[str, Any]:
    """Mean and sample standard deviation over seeds of every metric that all seeds have."""
    found: dict[str, Any] = {}
    for name in (metric.name for metric in task.metrics):
        values = [v for metrics in seeds.values() if (v := metrics.get(name)) is not None]
        if values and len(values) == len(seeds):
            array = np.asarray(values, dtype=float)
            std = float(array.std(ddof=1)) if array.size > 1 else 0.0
            found[name] = {"mean": float(array.mean()), "std": std, "values": array.tolist()}
            if all(name in one for one in draws):
                found[name]["interval"] = interval(np.mean([one[name] for one in draws], axis=0))
    return found


def history_csv(runs: Sequence[Run]) -> str:
    """Every epoch of every seed, one line each; of several members, of each."""
    several = any(run.members for run in runs)
    columns = next((list(run.history[0]) for run in runs if run.history), list(LOSSES))
    rows = [
        (run.seed, *((one.member,) if several else ()), *(row[key] for key in columns))
        for run in runs
        for one in run.networks
        for row in one.history
    ]
    return csv_text(("seed", *(("member",) if several else ()), *columns), rows)


def graph_ids(graphs: Graphs) -> list[str]:
    """What each graph is called: its ``id`` column, else its number from 0."""
    known = graphs.columns.get("id")
    return [str(value) for value in (range(len(graphs)) if known is None else known)]


def predictions_csv(
    runs: Sequence[Run], graphs: Graphs, task: Task, calibrations: Mapping[int, Calibration]
) -> str:
    """The answers to the test part of every seed, one line a graph.

    Columns: seed, graph (its number from 0), id, nodes, and the task's: of classes, ``class`` (the
    true one) and the calibrated probability of each, ``p(NAME)``; of a number, the one that was
    measured and the one that is answered.
    """
    target, ids = task.targets(graphs).tolist(), graph_ids(graphs)
    nodes = graphs.nodes_per_graph.tolist()
    rows = []
    for run in runs:
        if "test" not in run.predictions:  # its training was stopped before its time
            continue
        answers = task.answers(run.predictions["test"], calibrations[run.seed])
        for number, row in zip(run.split.test.tolist(), answers.tolist(), strict=True):
            known = (run.seed, number, ids[number], nodes[number], *task.labels(target[number]))
            rows.append((*known, *(f"{value:.6g}" for value in row)))
    return csv_text(("seed", "graph", "id", "nodes", *task.columns), rows)

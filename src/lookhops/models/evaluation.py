"""What is said about finished runs: each seed, and all of them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lookhops.graphs import Graphs
from lookhops.models.records import record_run
from lookhops.tasks import Task
from lookhops.tasks.metrics import interval
from lookhops.training.trainer import Run


def evaluate_runs(
    runs: Sequence[Run], graphs: Graphs, task: Task, device: torch.device
) -> dict[str, Any]:
    """All that is said about finished runs: per seed, over seeds, and all test graphs together.

    Returns:
        ``seeds`` (seed to the metrics of its :class:`~lookhops.models.records.RunRecord`, with
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
        seconds = sum(row["seconds"] for row in run.history)
        record = record_run(run, graphs, task, device, seconds, calibrated=True)
        intervals = {f"{name}_interval": interval(values) for name, values in drawn.items()}
        seeds[str(run.seed)] = {**record.metrics, **intervals}
    return {
        "seeds": seeds,
        "summary": summarise(seeds, draws, task),
        **task.overview(outputs, targets),
    }


def summarise(
    seeds: Mapping[str, Mapping[str, Any]],
    draws: Sequence[Mapping[str, NDArray[Any]]],
    task: Task,
) -> dict[str, Any]:
    """Mean and sample standard deviation over seeds of every metric that all seeds have."""
    found: dict[str, Any] = {}
    for name in (metric.name for metric in task.metrics):
        values = [metrics[name] for metrics in seeds.values() if metrics[name] is not None]
        if values and len(values) == len(seeds):
            array = np.asarray(values, dtype=float)
            std = float(array.std(ddof=1)) if array.size > 1 else 0.0
            found[name] = {"mean": float(array.mean()), "std": std, "values": array.tolist()}
            if name in draws[0]:
                found[name]["interval"] = interval(np.mean([one[name] for one in draws], axis=0))
    return found

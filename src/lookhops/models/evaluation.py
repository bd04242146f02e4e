"""What is said about finished runs: each seed, all of them together, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookhops.graphs import Graphs
from lookhops.tasks.metrics import (
    METRICS,
    bootstrap_auroc,
    confusion_matrix,
    evaluate,
    fit_temperature,
    interval,
)
from lookhops.training.trainer import Run

Array = NDArray[Any]


def evaluate_runs(runs: Sequence[Run], graphs: Graphs) -> dict[str, Any]:
    """All that is said about finished runs: per seed, over seeds, and the confusion matrix.

    Returns:
        ``seeds`` (seed to its metrics), ``summary`` (metric to mean, std and values; AUROC with
        the bootstrap interval of its mean) and ``confusion`` (true class by predicted class,
        the test graphs of all seeds together). Runs without predictions are left out.
    """
    assert graphs.y is not None
    y = graphs.y.cpu().numpy()
    seeds: dict[str, dict[str, Any]] = {}
    resampled = []
    confusion = np.zeros((graphs.num_classes, graphs.num_classes), dtype=int)
    for run in runs:
        if not run.predictions:
            continue
        val, test = (run.predictions[part].double().numpy() for part in ("val", "test"))
        y_val, y_test = y[run.split.val.numpy()], y[run.split.test.numpy()]
        metrics = evaluate(test, y_test, fit_temperature(val, y_val))
        draws = bootstrap_auroc(np.exp(test), y_test)
        metrics["auroc_interval"] = interval(draws)
        resampled.append(draws)
        seeds[str(run.seed)] = metrics
        confusion += confusion_matrix(y_test, test.argmax(1), graphs.num_classes)
    return {
        "seeds": seeds,
        "summary": summarise(seeds, resampled),
        "confusion": confusion.tolist(),
    }


def summarise(seeds: Mapping[str, Mapping[str, Any]], resampled: Sequence[Array]) -> dict[str, Any]:
    """Mean and sample standard deviation over seeds of every metric that all seeds have."""
    found: dict[str, Any] = {}
    for name in METRICS:
        values = [metrics[name] for metrics in seeds.values() if metrics[name] is not None]
        if values and len(values) == len(seeds):
            found[name] = summary(values)
    if "auroc" in found:
        found["auroc"]["interval"] = interval(np.mean(resampled, axis=0))
    return found


def summary(values: Sequence[float]) -> dict[str, Any]:
    """Mean and sample standard deviation over seeds."""
    array = np.asarray(values, dtype=float)
    return {
        "mean": float(array.mean()),
        "std": float(array.std(ddof=1)) if array.size > 1 else 0.0,
        "values": array.tolist(),
    }

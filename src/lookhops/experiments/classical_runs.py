"""Runs of models without a network: the same splits, the same records."""

from __future__ import annotations

import time
from dataclasses import replace

import torch

from lookhops.classical import CHECKS, MODELS
from lookhops.datasets.splits import SplitPlan
from lookhops.experiments.keys import Model
from lookhops.graphs import Graphs
from lookhops.models.records import RunRecord, record_run
from lookhops.nn.registry import find
from lookhops.options import Classical
from lookhops.tasks import task_of
from lookhops.training import Protocol, Run
from lookhops.training.setting import draw_splits


def check_graphs(model: Model, graphs: Graphs) -> None:
    """Say before anything is run that a classical model cannot be fitted to these graphs."""
    if isinstance(model, Classical):
        find("model", CHECKS, model.classical)(graphs)


def fit_records(
    graphs: Graphs, model: Classical, protocol: Protocol, splits: SplitPlan | None = None
) -> list[RunRecord]:
    """Fit a classical model on the split of each seed, one after the other; a record of each.

    A record has no epochs and no number of parameters; ``chosen_...`` among its metrics is what the
    validation part chose.
    """
    fit, task = find("model", MODELS, model.classical), task_of(graphs)
    records = []
    for seed, part in draw_splits(graphs, task, protocol, splits).splits.items():
        start = time.perf_counter()
        outputs = fit(graphs, part, seed)
        run = Run(seed, part, predictions=outputs.predictions)
        seconds = time.perf_counter() - start
        record = record_run(run, graphs, task, torch.device("cpu"), seconds)
        chosen = {f"chosen_{name}": value for name, value in outputs.chosen.items()}
        records.append(replace(record, metrics={**record.metrics, **chosen}))
    return records

"""The training of one cell of a plan, wherever it is done."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from lookhops.experiments.classical_runs import fit_records
from lookhops.experiments.memory import peak_memory
from lookhops.experiments.plan import Cell
from lookhops.graphs import Graphs
from lookhops.models.records import RunRecord, record_run
from lookhops.nn.plugins import load_plugin
from lookhops.options import Classical
from lookhops.tasks import task_of
from lookhops.training import train
from lookhops.training.setting import choose_device


def train_records(
    graphs: Graphs, cell: Cell, seeds: Sequence[int], device: str = "auto"
) -> list[RunRecord]:
    """Train a cell's model with these seeds, all at once where the device can; a record of each.

    A classical model is fitted on the CPU.
    """
    protocol = replace(cell.protocol, seeds=tuple(seeds))
    if isinstance(cell.architecture, Classical):
        with peak_memory(torch.device("cpu")) as peak:
            records = fit_records(graphs, cell.architecture, protocol, cell.splits)
        return [_with_memory(record, peak.size) for record in records]
    chosen, task = choose_device(device), task_of(graphs)
    start = time.perf_counter()
    with peak_memory(chosen) as peak:
        runs = train(graphs, cell.architecture, protocol, splits=cell.splits, device=chosen)
    if chosen.type == "cuda":  # what this cell held is for the next one
        gc.collect()
        torch.cuda.empty_cache()
    share = (time.perf_counter() - start) / len(runs)
    records = []
    for run in runs:
        stacked = max(run.together // protocol.members, 1)
        record = record_run(run, graphs, task, chosen, share, stacked=stacked)
        records.append(_with_memory(record, peak.size and peak.size // stacked))
    return records


def _with_memory(record: RunRecord, size: int | None) -> RunRecord:
    """The record with the most bytes that were held for it; of a stack its share."""
    return replace(record, metrics={**record.metrics, "peak_memory": size})


def train_with_plugins(
    plugins: Mapping[str, str], graphs: Graphs, cell: Cell, seeds: Sequence[int], device: str
) -> list[RunRecord]:
    """The same in a process that has the user's layers from here alone.

    Args:
        plugins: The files that register them: name and text.
        graphs, cell, seeds, device: As for :func:`train_records`.
    """
    with TemporaryDirectory() as folder:
        for name, source in plugins.items():
            path = Path(folder) / name
            path.write_text(source, "utf-8")
            load_plugin(path)
        return train_records(graphs, cell, seeds, device)

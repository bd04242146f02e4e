"""What is kept of a finished run: its metrics, history, versions and machine."""

from __future__ import annotations

import gc
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from lookhops import __version__
from lookhops.graphs import Graphs
from lookhops.nn import Architecture
from lookhops.tasks import task_of
from lookhops.training import Protocol, Run, train
from lookhops.training.trainer import choose_device


@dataclass(frozen=True)
class Record:
    """A finished run, as the store keeps it.

    Args:
        seed: Its seed.
        metrics: Test accuracy and its kin, validation accuracy and loss, epochs, seconds.
        history: One row an epoch.
        versions: Of LookHops, PyTorch, NumPy, Python.
        machine: System, cores, device.
    """

    seed: int
    metrics: Mapping[str, Any]
    history: Sequence[Mapping[str, float]]
    versions: Mapping[str, str]
    machine: Mapping[str, Any]


def train_records(
    graphs: Graphs,
    architecture: Architecture,
    protocol: Protocol,
    seeds: Sequence[int],
    device: str = "auto",
) -> list[Record]:
    """Train a model with these seeds, all at once where the device can, and sum up each run.

    Where a stack of seeds does not fit the GPU's memory, its halves are trained one after the
    other.
    """
    chosen = choose_device(device)
    start = time.perf_counter()
    try:
        runs = train(graphs, architecture, replace(protocol, seeds=tuple(seeds)), device=chosen)
    except torch.cuda.OutOfMemoryError:
        if len(seeds) == 1:
            raise
        runs = []
    if chosen.type == "cuda":  # what this cell held is for the next one, or for the halves
        gc.collect()
        torch.cuda.empty_cache()
    if not runs:  # outside the handler, which would keep the failed attempt's memory alive
        half = len(seeds) // 2
        parts = (seeds[:half], seeds[half:])
        return [
            record
            for part in parts
            for record in train_records(graphs, architecture, protocol, part, device)
        ]
    share = (time.perf_counter() - start) / len(runs)
    return [summed_up(run, graphs, chosen, len(seeds), share) for run in runs]


def summed_up(run: Run, graphs: Graphs, device: torch.device, stacked: int, share: float) -> Record:
    """The record of a run.

    Args:
        run: The run.
        graphs: What it was trained on.
        device: Where.
        stacked: How many seeds were trained at once.
        share: Its share of the seconds that all of that took.
    """
    task = task_of(graphs)
    target = task.targets(graphs).cpu()
    validated = task.evaluate(run.predictions["val"], target[run.split.val])
    metrics = {
        **task.evaluate(run.predictions["test"], target[run.split.test]),
        **{f"val_{name}": validated[name] for name in (task.main.name, "loss")},
        "epochs": len(run.history),
        "best_epoch": run.best_epoch,
        "seconds": share,
        "seconds_per_epoch": seconds_per_epoch(run),
        "parameters": sum(value.numel() for value in run.weights.values()),
        "train_graphs": len(run.split.train),
        "val_graphs": len(run.split.val),
        "test_graphs": len(run.split.test),
        "seeds_at_once": stacked if device.type == "cuda" else 1,
    }
    return Record(run.seed, metrics, run.history, versions(), machine(device))


def seconds_per_epoch(run: Run) -> float:
    """The median epoch among the 2nd to the 30th, training and validation.

    The first one also prepares the device; until the 30th no seed of a stack can have stopped, so
    that each seed's share of an epoch is the same.
    """
    seconds = [row["seconds"] for row in run.history[1:30]] or [run.history[0]["seconds"]]
    return float(np.median(seconds))


def versions() -> dict[str, str]:
    """Versions of what computes."""
    return {
        "lookhops": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def machine(device: torch.device) -> dict[str, Any]:
    """What it was computed on."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "device": name,
    }

"""The record of a run: what is kept of one trained member, in a folder, a store or an export."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from numbers import Real
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookhops.core import __version__
from lookhops.core.schema import AtLeast, Count, NotNegative, Positive, Share, UnknownEntry, read
from lookhops.graphs import Graphs
from lookhops.runs.statistics import mean_std
from lookhops.tasks import TASKS, Calibration, Classification, Task
from lookhops.tasks.metrics import interval
from lookhops.training import Run


@cache
def _required(kind: str, has_epochs: bool) -> AtLeast:
    """What tables, pages and reports read of a run; without training, no parameters are counted."""
    task = TASKS[kind]
    main = Share if task.main.share else float | None
    metrics = {
        **dict.fromkeys((task.main.name, f"val_{task.main.name}"), main),
        **dict.fromkeys(task.shares, Share | None),
        "seconds": NotNegative,
        "seconds_per_epoch": NotNegative | None,  # none where others shared the machine
        **dict.fromkeys(("train_graphs", "test_graphs"), Positive),
        **dict.fromkeys(("epochs", "best_epoch", "val_graphs"), Count),
        "parameters": Positive if has_epochs else Positive | None,
    }
    versions = dict.fromkeys(("lookhops", "torch"), str)
    return AtLeast({"metrics": AtLeast(metrics), "versions": AtLeast(versions)})


#: One row an epoch; losses may be infinite.
HISTORY: Any = Sequence[Mapping[str, Real]]


@dataclass(frozen=True)
class Machine:
    """What a run was computed on: the system, the cores, and ``cpu`` or the name of the GPU."""

    system: str
    cores: int | None
    device: str

    @classmethod
    def here(cls, device: torch.device) -> Machine:
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
        return cls(f"{platform.system()} {platform.machine()}", os.cpu_count(), name)

    def __str__(self) -> str:
        return f"a CPU ({self.cores} cores)" if self.device == "cpu" else self.device


@dataclass(frozen=True)
class RunRecord:
    """One finished run."""

    seed: int
    #: The kind of ``task`` (where it is not said: classification), its metrics of the test part,
    #: those of the validation part (``val_``), and what the run took: epochs, seconds, parameters,
    #: graphs. A classical model has 0 epochs and none as its parameters. Of several members the
    #: metrics are of their average, the epochs and the history of the first, and ``members`` has
    #: what each gives alone.
    metrics: Mapping[str, Any]
    versions: Mapping[str, str]
    machine: Machine
    history: Sequence[Mapping[str, float]] = ()  #: one row an epoch; formats keep it apart

    @property
    def task(self) -> type[Task]:
        return TASKS[self.metrics.get("task", Classification.kind)]

    @property
    def score(self) -> float | None:
        """The main metric of the test part."""
        return self.metrics[self.task.main.name]

    @classmethod
    def from_dict(cls, values: Any, path: str = "") -> RunRecord:
        """The record that :meth:`to_dict` wrote, checked; ``path`` is said in errors."""
        found = read(cls, values, path)
        kind = found.metrics.get("task", Classification.kind)
        if not isinstance(kind, str) or kind not in TASKS:
            raise UnknownEntry(f"metrics.task {kind!r} is not known")
        read(_required(kind, found.metrics.get("epochs") != 0), values, path)
        return found

    def with_metrics(self, **more: Any) -> RunRecord:
        return replace(self, metrics={**self.metrics, **more})

    def to_dict(self) -> dict[str, Any]:
        values = asdict(replace(self, history=()))
        del values["history"]
        return values


def record_run(
    run: Run,
    graphs: Graphs,
    task: Task,
    device: torch.device,
    seconds: float,
    *,
    stacked: int = 1,
    calibrated: bool = False,
) -> RunRecord:
    """The record of a finished run, which took so many seconds, perhaps its share of a stack's.

    ``calibrated`` says whether to fit the calibration, and to measure it too.
    """
    target = task.targets(graphs).cpu()
    train, val, test = (target[part] for part in (run.split.train, run.split.val, run.split.test))
    metrics: dict[str, Any] = {
        **({"task": task.kind} if task.kind != Classification.kind else {}),
        **_measured(run, task, val, test, calibrated),
        **task.naive(train, test),
        "seconds": seconds,
        "seconds_per_epoch": seconds_per_epoch(run),
        "parameters": about_training(run)["parameters"] or None,
        "train_graphs": len(run.split.train),
        "val_graphs": len(run.split.val),
        "test_graphs": len(run.split.test),
        "seeds_at_once": stacked,
        **{f"chosen_{name}": value for name, value in run.chosen.items()},
    }
    if run.members:
        metrics["members"] = [_measured(one, task, val, test) for one in run.members]
    return RunRecord(run.seed, metrics, versions(), Machine.here(device), run.history)


def _measured(
    run: Run, task: Task, val: Tensor, test: Tensor, calibrated: bool = False
) -> dict[str, Any]:
    found = task.evaluate(run.predictions["val"], val)
    validated = {f"val_{name}": found[name] for name in (task.main.name, "loss") if name in found}
    by = calibration_of(run, task, val) if calibrated else None
    return {
        **task.evaluate(run.predictions["test"], test, by, run.deviation(task, "test")),
        **validated,
        "epochs": len(run.history),
        "best_epoch": run.best_epoch,
    }


def calibration_of(run: Run, task: Task, val: Tensor) -> Calibration:
    """What the targets of a run's validation part say of its answers."""
    deviation = run.deviation(task, "unseen")
    return task.calibrate(run.predictions["val"], val, run.unseen, deviation)


def conformal_scores(
    run: Run, task: Task, val: Tensor, calibration: Calibration
) -> list[NDArray[Any]]:
    """How far the truth of a run's validation graphs is from its answers, for each target."""
    return task.conformal_scores(run.unseen, val, calibration, run.deviation(task, "unseen"))


def about_training(run: Run) -> dict[str, int]:
    """What there is to say of a training, tested or not: its epochs, and parameters of them all."""
    has_epochs = run.history or not run.predictions  # else nothing was trained by gradients
    weights = [w for one in run.networks for w in one.weights.values()] if has_epochs else []
    counts = {"epochs": len(run.history), "best_epoch": run.best_epoch}
    return {**counts, "parameters": sum(weight.numel() for weight in weights)}


def seconds_per_epoch(run: Run) -> float:
    """The median epoch among the 2nd to the 30th, training and validation; 0 without epochs.

    The first one also prepares the device; until the 30th no member of a stack can have stopped,
    so that each member's share of an epoch is the same.
    """
    seconds = [row["seconds"] for row in run.history[1:30] or run.history]
    return float(np.median(seconds)) if seconds else 0.0


def versions() -> dict[str, str]:
    """Versions of what computes."""
    return {
        "lookhops": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def evaluate_runs(
    runs: Sequence[Run], graphs: Graphs, task: Task, device: torch.device
) -> dict[str, Any]:
    """All that is said about finished runs that were tested.

    That is ``seeds`` (seed to metrics, with bootstrap intervals where the task resamples),
    ``summary`` (metric to mean, std and values, with the interval of the mean), and the overview.
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
    seeds: Mapping[str, Mapping[str, Any]], draws: Sequence[Mapping[str, NDArray[Any]]], task: Task
) -> dict[str, Any]:
    """Mean and sample standard deviation over seeds of every metric that all seeds have."""
    found: dict[str, Any] = {}
    for name in (metric.name for metric in task.metrics):
        values = [v for metrics in seeds.values() if (v := metrics.get(name)) is not None]
        if values and len(values) == len(seeds):
            mean, std = mean_std(values)
            found[name] = {"mean": mean, "std": std, "values": [float(value) for value in values]}
            if all(name in one for one in draws):
                found[name]["interval"] = interval(np.mean([one[name] for one in draws], axis=0))
    return found

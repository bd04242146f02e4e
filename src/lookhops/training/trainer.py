"""The trainer: the paper's protocol, top to bottom."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lookhops.datasets.splits import Split, split
from lookhops.encoding import Encoding
from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.nn import Architecture
from lookhops.tasks import Task, task_of
from lookhops.training.eager import EagerEngine, Engine
from lookhops.training.protocol import Protocol, seeded_model
from lookhops.training.stacked import CapturedEngine, stackable


@dataclass
class Run:
    """One seed's training, finished or on its way.

    Args:
        seed: The seed.
        split: Its parts.
        history: One row an epoch: epoch, train_loss, val_loss, the main metric (``val_accuracy`` of
            classes), seconds.
        best_epoch: Epoch of the lowest validation loss.
        best_loss: That loss.
        weights: The weights of that epoch.
        predictions: The network's outputs for the ``val`` and ``test`` parts with these weights.
    """

    seed: int
    split: Split
    history: list[dict[str, float]] = field(default_factory=list)
    best_epoch: int = 0
    best_loss: float = float("inf")
    weights: dict[str, Tensor] = field(default_factory=dict)
    predictions: dict[str, Tensor] = field(default_factory=dict)

    def waited(self) -> int:
        """Epochs since the last improvement."""
        return len(self.history) - self.best_epoch

    def done(self, protocol: Protocol) -> bool:
        """Whether the protocol says stop."""
        return self.waited() >= protocol.patience or len(self.history) >= protocol.max_epochs


class NotFinite(LookHopsError):
    """The loss stopped being a number; ``runs`` hold the last good weights."""

    def __init__(self, message: str, runs: list[Run]) -> None:
        super().__init__(message)
        self.runs = runs


@dataclass(frozen=True)
class Progress:
    """What a trainer reports after each epoch."""

    runs: list[Run]
    engine: Engine


def train(
    graphs: Graphs,
    architecture: Architecture | None = None,
    protocol: Protocol | None = None,
    *,
    task: Task | None = None,
    splits: Sequence[Split] | None = None,
    device: str | torch.device = "auto",
    resume: Callable[[Sequence[int]], tuple[list[Run], dict[str, Tensor]] | None] | None = None,
    on_epoch: Callable[[Progress], None] = lambda progress: None,
) -> list[Run]:
    """Train one model for each seed of the protocol and test it once.

    Args:
        graphs: Graphs with targets.
        architecture: The network; by default the paper's LiCheb without pooling.
        protocol: How to train; by default the paper's.
        task: What is asked; by default what the graphs' targets ask.
        splits: One for each seed; by default each seed draws its own.
        device: ``cpu``, ``cuda``, or ``auto``: a GPU where there is one.
        resume: Gives, for a stack of seeds, what an earlier :class:`Progress` held of it.
        on_epoch: Called after each epoch.
    """
    architecture = architecture or Architecture()
    protocol = protocol or Protocol()
    task = task or task_of(graphs, protocol.class_weights)
    parts = draw_splits(graphs, task, protocol, splits)
    finished: list[Run] = []
    for engine in _engines(graphs, task, parts, architecture, protocol, choose_device(device)):
        runs = [Run(seed, parts[seed]) for seed in engine.seeds]
        earlier = resume(engine.seeds) if resume else None
        if earlier is not None:
            runs, state = earlier
            engine.restore(state)
        try:
            _fit(engine, task, runs, protocol, on_epoch)
        except NotFinite as error:
            error.runs = finished + error.runs
            raise
        for run, weights, val, test in zip(
            runs, engine.weights(), engine.predict("val"), engine.predict("test"), strict=True
        ):
            run.weights, run.predictions = weights, {"val": val, "test": test}
        finished += runs
    return finished


def _fit(
    engine: Engine,
    task: Task,
    runs: list[Run],
    protocol: Protocol,
    on_epoch: Callable[[Progress], None],
) -> None:
    """Epoch after epoch until every seed of the stack has stopped."""
    while not all(run.done(protocol) for run in runs):
        start = time.perf_counter()
        epoch = max(len(run.history) for run in runs) + 1
        train_loss = engine.epoch(epoch)
        val_loss, val_score = engine.validate()
        seconds = time.perf_counter() - start
        open_runs = [not run.done(protocol) for run in runs]
        _check_finite(engine, runs, open_runs, train_loss, val_loss, epoch)
        best = torch.tensor([run.best_loss for run in runs], dtype=torch.float64)
        better = (val_loss.double() < best) & torch.tensor(open_runs)
        engine.remember(better)
        for i, run in enumerate(runs):
            if not open_runs[i]:
                continue
            run.history.append(
                {
                    "epoch": epoch,
                    "train_loss": float(train_loss[i]),
                    "val_loss": float(val_loss[i]),
                    f"val_{task.main.name}": float(val_score[i]),
                    "seconds": seconds / len(runs),
                }
            )
            if better[i]:
                run.best_epoch, run.best_loss = epoch, float(val_loss[i])
        engine.retire(torch.tensor([run.done(protocol) for run in runs]))
        on_epoch(Progress(runs, engine))


def _check_finite(
    engine: Engine,
    runs: list[Run],
    open_runs: list[bool],
    train_loss: Tensor,
    val_loss: Tensor,
    epoch: int,
) -> None:
    fine = train_loss.isfinite() & val_loss.isfinite()
    for run, is_open, good in zip(runs, open_runs, fine.tolist(), strict=True):
        if is_open and not good:
            for each, weights in zip(runs, engine.weights(), strict=True):
                each.weights = weights
            kept = f"; the weights of epoch {run.best_epoch} are kept" if run.best_epoch else ""
            raise NotFinite(
                f"The loss of seed {run.seed} was not a finite number in epoch {epoch}{kept}. "
                "A lower learning rate may help.",
                runs,
            )


def _engines(
    graphs: Graphs,
    task: Task,
    parts: dict[int, Split],
    architecture: Architecture,
    protocol: Protocol,
    device: torch.device,
) -> Iterator[Engine]:
    """On a GPU one engine for all seeds, where the network's layers allow it; else one a seed."""
    if device.type == "cuda":
        probe = seeded_model(0, Encoding.fit(graphs).width, task.out_channels, architecture)
        if stackable(probe):
            seeds, splits = list(parts), list(parts.values())
            yield CapturedEngine(graphs, task, splits, seeds, architecture, protocol, device)
            return
    for seed, part in parts.items():
        yield EagerEngine(graphs, task, part, seed, architecture, protocol, device)


def choose_device(device: str | torch.device) -> torch.device:
    """The device that a name stands for."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError) as error:
        raise LookHopsError(f"There is no device {str(device)!r} here.") from error
    return chosen


def draw_splits(
    graphs: Graphs, task: Task, protocol: Protocol, splits: Sequence[Split] | None = None
) -> dict[int, Split]:
    """Each seed's split, checked against what training needs."""
    if not graphs.num_nodes:
        raise LookHopsError(f"{graphs.name}: no graph has a node; there is nothing to look at.")
    if splits is not None and len(splits) != len(protocol.seeds):
        raise LookHopsError(
            f"There are {len(splits)} splits for {len(protocol.seeds)} seeds; give one for each."
        )
    parts = {}
    for number, seed in enumerate(protocol.seeds):
        part = (
            splits[number]
            if splits is not None
            else split(graphs, seed, protocol.fractions, stratify=protocol.stratify)
        )
        _check_split(graphs, task, part, seed)
        parts[seed] = part
    return parts


def _check_split(graphs: Graphs, task: Task, part: Split, seed: int) -> None:
    for name in ("train", "val", "test"):
        if len(getattr(part, name)) == 0:
            raise LookHopsError(
                f"{graphs.name}: {len(graphs)} graphs are too few: the {name} part of seed {seed} "
                "would be empty."
            )
    if lacking := task.lacking(task.targets(graphs).cpu(), part.train):
        raise LookHopsError(
            f"{graphs.name}: {lacking} in the training part of seed {seed}; "
            "use more graphs, another seed, or stratified splits."
        )

"""The trainer: the paper's protocol, top to bottom."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

import torch
from torch import Tensor

from lookhops.datasets.splits import PARTS, Split, SplitPlan
from lookhops.encoding import Encoding
from lookhops.encoding.whole import WholeEncoding
from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.nn import Architecture
from lookhops.options import Protocol
from lookhops.tasks import Task, task_of
from lookhops.training.eager import EagerEngine
from lookhops.training.engine import Engine
from lookhops.training.randomness import seeded_model
from lookhops.training.stacked import StackedEngine, stackable


@dataclass
class Run:
    """The training of one seed: its initial weights on its split, finished or on its way.

    Args:
        seed: The seed.
        split: Its parts.
        history: One row an epoch: epoch, train_loss, val_loss, the watched metric (``val_accuracy``
            of classes, ``val_mae`` of a number), seconds.
        best_epoch: Epoch of the lowest validation loss.
        best_loss: That loss.
        weights: The weights of that epoch.
        predictions: The network's outputs for the ``val`` and ``test`` parts with these weights,
            in the units of the targets.
        learnt: What the network learnt to be told of whole graphs.
        fitted: What the task took from the training part.
    """

    seed: int
    split: Split
    history: list[dict[str, float]] = field(default_factory=list)
    best_epoch: int = 0
    best_loss: float = float("inf")
    weights: dict[str, Tensor] = field(default_factory=dict)
    predictions: dict[str, Tensor] = field(default_factory=dict)
    learnt: WholeEncoding = field(default_factory=WholeEncoding)
    fitted: Tensor | None = None

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
    splits: SplitPlan | Sequence[Split] | None = None,
    device: str | torch.device = "auto",
    stacked: bool | None = None,
    resume: Callable[[Sequence[int]], tuple[list[Run], dict[str, Tensor]] | None] | None = None,
    on_epoch: Callable[[Progress], None] = lambda progress: None,
) -> list[Run]:
    """Train one model for each seed of the protocol and test it once.

    Args:
        graphs: Graphs with targets.
        architecture: The network; by default the paper's LiCheb without pooling.
        protocol: How to train; by default the paper's.
        task: What is asked; by default what the graphs' targets ask.
        splits: One for each seed, or a plan that has them; by default the protocol's are drawn.
        device: ``cpu``, ``cuda``, or ``auto``: a GPU where there is one.
        stacked: Whether seeds are trained together, where the network's layers allow it; by default
            on a GPU, since on the CPU it is slower. The numbers are the same within rounding.
        resume: Gives, for a stack of seeds, what an earlier :class:`Progress` held of it.
        on_epoch: Called after each epoch.
    """
    architecture = architecture or Architecture()
    protocol = protocol or Protocol()
    task = task or task_of(graphs, protocol.class_weights, protocol.loss)
    parts = draw_splits(graphs, task, protocol, splits).splits
    finished: list[Run] = []
    chosen = choose_device(device)
    stacked = chosen.type == "cuda" if stacked is None else stacked
    for engine in _engines(graphs, task, parts, architecture, protocol, chosen, stacked):
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
        _take_weights(engine, runs)
        for run, val, test in zip(runs, engine.predict("val"), engine.predict("test"), strict=True):
            predicted = {"val": val, "test": test}
            run.predictions = {p: task.in_units(o, run.fitted) for p, o in predicted.items()}
        finished += runs
    return sorted(finished, key=lambda run: protocol.seeds.index(run.seed))


def _fit(
    engine: Engine,
    task: Task,
    runs: list[Run],
    protocol: Protocol,
    on_epoch: Callable[[Progress], None],
) -> None:
    """Epoch after epoch until every run of the stack has stopped."""
    while not all(run.done(protocol) for run in runs):
        start = time.perf_counter()
        epoch = max(len(run.history) for run in runs) + 1
        train_loss = engine.epoch(epoch).tolist()
        val_loss, val_score = (values.tolist() for values in engine.validate())
        seconds = (time.perf_counter() - start) / len(runs)
        going = [i for i, run in enumerate(runs) if not run.done(protocol)]
        for i in going:
            if not isfinite(train_loss[i]) or not isfinite(val_loss[i]):
                raise _not_finite(engine, runs, runs[i], epoch)
        better = [i in going and val_loss[i] < run.best_loss for i, run in enumerate(runs)]
        engine.remember(torch.tensor(better))
        for i in going:
            losses = {"epoch": epoch, "train_loss": train_loss[i], "val_loss": val_loss[i]}
            score = {f"val_{task.watched.name}": val_score[i], "seconds": seconds}
            runs[i].history.append({**losses, **score})
            if better[i]:
                runs[i].best_epoch, runs[i].best_loss = epoch, val_loss[i]
        engine.retire(torch.tensor([run.done(protocol) for run in runs]))
        on_epoch(Progress(runs, engine))


def _not_finite(engine: Engine, runs: list[Run], failed: Run, epoch: int) -> NotFinite:
    """The end of a training whose loss stopped being a number; every run gets what was kept."""
    _take_weights(engine, runs)
    kept = f"; the weights of epoch {failed.best_epoch} are kept" if failed.best_epoch else ""
    return NotFinite(
        f"The loss of seed {failed.seed} was not a finite number in epoch {epoch}{kept}. "
        "A lower learning rate may help.",
        runs,
    )


def _take_weights(engine: Engine, runs: list[Run]) -> None:
    """Give every run what was kept of its network."""
    for i, (run, weights) in enumerate(zip(runs, engine.weights(), strict=True)):
        run.weights, run.learnt, fitted = weights, engine.learnt[i], engine.fitted_each[i]
        run.fitted = None if fitted is None else fitted.cpu()


def _engines(
    graphs: Graphs,
    task: Task,
    parts: Mapping[int, Split],
    architecture: Architecture,
    protocol: Protocol,
    device: torch.device,
    stacked: bool,
) -> Iterator[Engine]:
    """One engine for all seeds that can be stacked; else one for each."""
    probe = seeded_model(0, Encoding.fit(graphs).width, task.out_channels, architecture)
    if not stacked or not stackable(probe):
        for seed, part in parts.items():
            yield EagerEngine(graphs, task, [part], [seed], architecture, protocol, device)
        return
    stacks: dict[int, list[int]] = {}
    for seed, part in parts.items():  # members of a stack take equally many steps
        stacks.setdefault(-(-len(part.train) // protocol.batch_size), []).append(seed)
    for seeds in stacks.values():
        splits = [parts[seed] for seed in seeds]
        yield StackedEngine(graphs, task, splits, seeds, architecture, protocol, device)


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
    graphs: Graphs,
    task: Task,
    protocol: Protocol,
    splits: SplitPlan | Sequence[Split] | None = None,
) -> SplitPlan:
    """Each seed's split, drawn or given, checked against what training needs."""
    if not graphs.num_nodes:
        raise LookHopsError(f"{graphs.name}: no graph has a node; there is nothing to look at.")
    if splits is None:
        plan = SplitPlan.of(graphs, protocol)
    elif isinstance(splits, SplitPlan):
        plan = splits.of_seeds(protocol.seeds)
    else:
        plan = SplitPlan.given(protocol, splits)
    known = task.known(task.targets(graphs)).cpu()
    if not bool(known.all()):  # parts that were given may hold graphs without any target
        parts = {
            seed: Split(*(own[known[own]] for own in (part.train, part.val, part.test)))
            for seed, part in plan.splits.items()
        }
        plan = replace(plan, splits=parts)
    for seed, part in plan.splits.items():
        _check_split(graphs, task, part, seed)
    return plan


def _check_split(graphs: Graphs, task: Task, part: Split, seed: int) -> None:
    for name in PARTS:
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

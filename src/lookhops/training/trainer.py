"""The trainer: the paper's protocol, top to bottom."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

import torch

from lookhops.datasets.splits import Split, SplitPlan
from lookhops.encoding import Encoding
from lookhops.graphs import Graphs
from lookhops.nn import Architecture
from lookhops.options import Protocol
from lookhops.tasks import Task, task_of
from lookhops.training.batches import number_of_batches
from lookhops.training.eager import EagerEngine
from lookhops.training.engine import Engine
from lookhops.training.memory import in_halves
from lookhops.training.randomness import FINAL, member_seed, seeded_model
from lookhops.training.runs import NotFinite, Progress, Resume, Run, by_split
from lookhops.training.setting import choose_device, draw_splits
from lookhops.training.stacked import StackedEngine, stackable
from lookhops.training.threads import limited_threads, threads_of
from lookhops.training.unseen import Unseen
from lookhops.training.workers import ALONE, Workers


def train(
    graphs: Graphs,
    architecture: Architecture | None = None,
    protocol: Protocol | None = None,
    *,
    task: Task | None = None,
    splits: SplitPlan | Sequence[Split] | None = None,
    device: str | torch.device = "auto",
    stacked: bool | None = None,
    resume: Resume | None = None,
    on_epoch: Callable[[Progress], None] = lambda progress: None,
    workers: Workers = ALONE,
) -> list[Run]:
    """Train one model for each seed of the protocol, of one network or several; test it once.

    Args:
        graphs: Graphs with targets.
        architecture: The network; by default the paper's LiCheb without pooling.
        protocol: How to train; by default the paper's.
        task: What is asked; by default what the graphs' targets ask.
        splits: One for each seed, or a plan that has them; by default the protocol's are drawn.
        device: ``cpu``, ``cuda``, or ``auto``: a GPU where there is one.
        stacked: Whether networks are trained together, where their layers allow it; by default on a
            GPU, since on the CPU it is slower. The numbers are the same within rounding.
        resume: Gives, for the runs of a stack, what an earlier :class:`Progress` held of it.
        on_epoch: Called after each epoch.
        workers: The processes that make this call together, each for its share of every batch.
    """
    architecture = architecture or Architecture()
    protocol = protocol or Protocol()
    task = task or task_of(graphs, protocol.class_weights, protocol.loss)
    parts = draw_splits(graphs, task, protocol, splits).splits
    chosen = choose_device(device)
    stacked = chosen.type == "cuda" if stacked is None else stacked
    begun = [
        Run(seed, part, member=member)
        for seed, part in parts.items()
        for member in range(protocol.members)
    ]
    stacks = _stacks(graphs, task, begun, architecture, protocol, chosen, stacked, workers)
    with limited_threads(threads_of(graphs, architecture, protocol)):
        runs = _train_all(*stacks, task, protocol, resume, on_epoch)
    return sorted(runs, key=lambda run: protocol.seeds.index(run.seed))


def train_on_all(
    graphs: Graphs,
    architecture: Architecture,
    protocol: Protocol,
    epochs: int,
    *,
    task: Task,
    device: str | torch.device = "auto",
    resume: Resume | None = None,
    on_epoch: Callable[[Progress], None] = lambda progress: None,
    workers: Workers = ALONE,
) -> Run:
    """Train on all graphs that have a target, for so many epochs: nothing is left to test on.

    Args:
        graphs, architecture, protocol, task, device, resume, on_epoch, workers: As for
            :func:`train`; of the protocol, neither seeds nor splits.
        epochs: How many.
    """
    none = torch.zeros(0, dtype=torch.long)
    everything = Split(task.known(task.targets(graphs).cpu()).nonzero().flatten(), none, none)
    chosen, fixed = choose_device(device), replace(protocol, max_epochs=epochs, patience=epochs)
    begun = [Run(FINAL, everything, member=member) for member in range(protocol.members)]
    together = chosen.type == "cuda"
    stacks = _stacks(graphs, task, begun, architecture, fixed, chosen, together, workers)
    with limited_threads(threads_of(graphs, architecture, protocol)):
        [run] = _train_all(*stacks, task, fixed, resume, on_epoch)
    return run


#: Makes the engine that trains these runs together.
MakeEngine = Callable[[Sequence[Run]], Engine]


def _train_all(
    make: MakeEngine,
    stacks: Iterable[list[Run]],
    task: Task,
    protocol: Protocol,
    resume: Resume | None,
    on_epoch: Callable[[Progress], None],
) -> list[Run]:
    """Train the runs of each stack and test them once; one run for each split.

    A stack that does not fit the GPU's memory is trained in halves, one after the other.
    """

    def attempt(begun: Sequence[Run]) -> list[Run]:
        fresh = [replace(run, history=[], predictions={}) for run in begun]
        return _train_stack(make(fresh), task, fresh, protocol, resume, on_epoch)

    finished: list[Run] = []
    try:
        for stack in stacks:
            for runs in in_halves(attempt, stack):
                finished += runs
    except NotFinite as error:
        error.runs = by_split(finished + error.runs, task)
        raise
    return by_split(finished, task)


def _train_stack(
    engine: Engine,
    task: Task,
    runs: list[Run],
    protocol: Protocol,
    resume: Resume | None,
    on_epoch: Callable[[Progress], None],
) -> list[Run]:
    """Train the runs of an engine and test them once."""
    unseen = None if runs[0].seed == FINAL else _unseen(engine, task)
    earlier = resume(runs) if resume else None
    if earlier is not None:
        runs, state = earlier
        engine.restore(state)
        if unseen is not None:
            unseen.restore(state)
    fit(engine, task, runs, protocol, on_epoch, unseen=unseen)
    _take_weights(engine, runs)
    for run in runs:
        run.together = len(runs)
    if unseen is not None:
        found = {part: engine.predict(part) for part in ("val", "test")}
        found["unseen"] = unseen.each() or found["val"]
        for part, outputs in found.items():
            for run, output in zip(runs, outputs, strict=True):
                run.predictions[part] = task.in_units(output, run.fitted)
    return runs


def _unseen(engine: Engine, task: Task) -> Unseen:
    """What is kept of the validation graphs of an engine's members while they are trained."""
    target = engine.target.cpu()
    return Unseen(task, [target[split.val] for split in engine.splits], engine.fitted_each)


def fit(
    engine: Engine,
    task: Task,
    runs: list[Run],
    protocol: Protocol,
    on_epoch: Callable[[Progress], None],
    *,
    unseen: Unseen | None = None,
    go_on: bool = False,
) -> None:
    """Epoch after epoch until every run of the stack has stopped.

    Networks that are trained on all graphs have nothing to stop by: their last weights are kept.

    Args:
        engine, task, runs, protocol, on_epoch: As for :func:`train`.
        unseen: Takes note of what validation graphs are answered in each epoch.
        go_on: Whether the others go on where the loss of a run is not a number: it has failed.
            Else that is an error.
    """
    final = runs[0].seed == FINAL
    while not all(run.done(protocol) for run in runs):
        start = time.perf_counter()
        epoch = max(len(run.history) for run in runs) + 1
        train_loss = engine.epoch(epoch).tolist()
        validated = None if final else engine.validate()
        seconds = time.perf_counter() - start
        going = [i for i, run in enumerate(runs) if not run.done(protocol)]
        rows = [{"epoch": epoch, "train_loss": loss} for loss in train_loss]
        if validated is not None:
            for row, loss, score in zip(rows, *(v.tolist() for v in validated), strict=True):
                row |= {"val_loss": loss, f"val_{task.watched.name}": score}
        watched = [row.get("val_loss", -epoch) for row in rows]  # without one, later is better
        for i in going:
            if not isfinite(train_loss[i]) or not isfinite(watched[i]):
                if not go_on:
                    raise _not_finite(engine, runs, runs[i], epoch)
                runs[i].failed = True
        going = [i for i in going if not runs[i].failed]
        better = [i in going and watched[i] < run.best_loss for i, run in enumerate(runs)]
        engine.remember(torch.tensor(better))
        if unseen is not None:
            unseen.see(engine.validated(), torch.tensor([i in going for i in range(len(runs))]))
        for i in going:
            runs[i].history.append({**rows[i], "seconds": seconds / len(going)})
            if better[i]:
                runs[i].best_epoch, runs[i].best_loss = epoch, watched[i]
        engine.retire(torch.tensor([run.done(protocol) for run in runs]))
        on_epoch(Progress(runs, engine, unseen))


def _not_finite(engine: Engine, runs: list[Run], failed: Run, epoch: int) -> NotFinite:
    """The end of a training whose loss stopped being a number; every run gets what was kept."""
    _take_weights(engine, runs)
    kept = f"; the weights of epoch {failed.best_epoch} are kept" if failed.best_epoch else ""
    of = "the training on all graphs" if failed.seed == FINAL else f"seed {failed.seed}"
    which = f"{of}, member {failed.member}," if failed.member else of
    return NotFinite(
        f"The loss of {which} was not a finite number in epoch {epoch}{kept}. "
        "A lower learning rate may help.",
        runs,
    )


def _take_weights(engine: Engine, runs: list[Run]) -> None:
    """Give every run what was kept of its network."""
    for i, (run, weights) in enumerate(zip(runs, engine.weights(), strict=True)):
        run.weights, run.learnt, fitted = weights, engine.learnt[i], engine.fitted_each[i]
        run.fitted = None if fitted is None else fitted.cpu()


def _stacks(
    graphs: Graphs,
    task: Task,
    runs: Sequence[Run],
    architecture: Architecture,
    protocol: Protocol,
    device: torch.device,
    stacked: bool,
    workers: Workers,
) -> tuple[MakeEngine, list[list[Run]]]:
    """The runs that are trained together, all that can be stacked; and what makes their engine."""
    encoding = Encoding.fit(graphs, architecture.reads_edges)
    probe = seeded_model(0, encoding.width, task.out_channels, architecture, **encoding.sizes)
    together = stacked and stackable(probe)
    stacks: dict[Any, list[Run]] = {}
    nodes = graphs.nodes_per_graph.cpu()
    for run in runs:  # networks of a stack take equally many steps
        steps = number_of_batches(run.split.train, nodes, protocol)
        stacks.setdefault(steps if together else run.key, []).append(run)

    def make(own: Sequence[Run]) -> Engine:
        engine = StackedEngine if together else EagerEngine
        splits = [run.split for run in own]
        seeds = [member_seed(run.seed, run.member) for run in own]
        options = architecture, protocol, device
        return engine(graphs, task, splits, seeds, *options, workers=workers)

    return make, list(stacks.values())

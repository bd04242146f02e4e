"""The training of one stack, epoch by epoch, by the paper's protocol."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from math import isfinite

import torch
from torch import Tensor

from lookhops.core.options import Protocol
from lookhops.tasks import Task
from lookhops.training.engine import Engine
from lookhops.training.randomness import FINAL
from lookhops.training.runs import NotFinite, Progress, Resume, Run
from lookhops.training.unseen import Unseen


def train_stack(
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
        on_epoch(Progress(runs, protocol, partial(_state, engine, unseen)))


def _state(engine: Engine, unseen: Unseen | None) -> dict[str, Tensor]:
    """All that a later training needs to go on from here, but the runs."""
    return {**engine.state(), **({} if unseen is None else unseen.state())}


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

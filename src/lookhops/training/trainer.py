"""The trainer: the paper's protocol, top to bottom."""

import gc
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite

import torch
from torch import Tensor

from lookhops.core.options import Protocol
from lookhops.graphs import Graphs
from lookhops.nn import Architecture
from lookhops.sources.splits import Split, SplitPlan
from lookhops.tasks import Task, task_of
from lookhops.training.batches import number_of_batches
from lookhops.training.device import choose_device, limited_threads, threads_of, unweighted
from lookhops.training.engine import EagerEngine, Engine
from lookhops.training.runs import (
    FINAL,
    Epoch,
    NotFinite,
    OnEpoch,
    Resume,
    Run,
    by_split,
    draw_splits,
    member_seed,
)
from lookhops.training.stacked import StackedEngine, stackable
from lookhops.training.unseen import Unseen
from lookhops.training.workers import ALONE, Workers

#: Trains stacks of runs, wherever: one run for each network, in the order of the stacks.
Execute = Callable[["Trainer", Sequence[list[Run]], Resume | None, OnEpoch], list[Run]]


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
    on_epoch: OnEpoch = lambda epoch: None,
    workers: Workers = ALONE,
    execute: Execute | None = None,
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
        resume: Gives, for the runs of a stack, what an earlier :class:`Epoch` held of it.
        on_epoch: Called after each epoch.
        workers: The processes that make this call together, each for its share of every batch.
        execute: Trains the stacks, in other processes too; by default one after the other in this
            process. The numbers are the same.
    """
    architecture = architecture or Architecture()
    protocol = protocol or Protocol()
    task = task or task_of(graphs, protocol.class_weights, protocol.loss)
    plan, chosen = draw_splits(graphs, task, protocol, splits), choose_device(device)
    stacked = chosen.type == "cuda" if stacked is None else stacked
    trainer = Trainer(graphs, task, architecture, protocol, chosen, stacked, workers)
    runs = trainer.run(plan.splits, resume, on_epoch, execute)
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
    on_epoch: OnEpoch = lambda epoch: None,
    workers: Workers = ALONE,
    execute: Execute | None = None,
) -> Run:
    """Train on all graphs that have a target, for so many epochs: nothing is left to test on.

    The other arguments are those of :func:`train`; of the protocol, neither seeds nor splits are
    read.
    """
    none = torch.zeros(0, dtype=torch.long)
    everything = Split(task.known(task.targets(graphs).cpu()).nonzero().flatten(), none, none)
    chosen, fixed = choose_device(device), replace(protocol, max_epochs=epochs, patience=epochs)
    trainer = Trainer(graphs, task, architecture, fixed, chosen, chosen.type == "cuda", workers)
    [run] = trainer.run({FINAL: everything}, resume, on_epoch, execute)
    return run


@dataclass(frozen=True, eq=False)
class Trainer:
    """Trains runs on the same graphs; each is the same network, whatever is trained beside it.

    Args:
        graphs, task, architecture, protocol, workers: As for :func:`train`.
        device: Where.
        stacked: Whether networks are trained together, where their layers allow it.
        skip_failed: Whether the others go on where the loss of a run is not finite; else that is
            :class:`NotFinite`.
    """

    graphs: Graphs
    task: Task
    architecture: Architecture
    protocol: Protocol
    device: torch.device
    stacked: bool = False
    workers: Workers = ALONE
    skip_failed: bool = False

    @cached_property
    def kind(self) -> type[Engine]:
        if not self.stacked:
            return EagerEngine
        network = unweighted(self.graphs, self.task, self.architecture)
        return StackedEngine if stackable(network) else EagerEngine

    @property
    def threads(self) -> int:
        return threads_of(self.graphs, self.architecture, self.protocol)

    def run(
        self,
        splits: Mapping[int, Split],
        resume: Resume | None = None,
        on_epoch: OnEpoch = lambda epoch: None,
        execute: Execute | None = None,
    ) -> list[Run]:
        """Train the members of each seed on its split, and test them once; one run for each."""
        members = range(self.protocol.members)
        runs = [Run(seed, part, member=m) for seed, part in splits.items() for m in members]
        try:
            with limited_threads(self.threads):
                trained = (execute or in_turn)(self, self.stacks(runs), resume, on_epoch)
        except NotFinite as error:
            error.runs = by_split(error.runs, self.task)
            raise
        return by_split(trained, self.task)

    def stacks(self, runs: Sequence[Run]) -> list[list[Run]]:
        """The runs that are trained together: of a stack, all that take equally many steps."""
        if self.kind is EagerEngine:
            return [[run] for run in runs]
        stacks: dict[int, list[Run]] = {}
        nodes = self.graphs.nodes_per_graph.cpu()
        for run in runs:
            steps = number_of_batches(run.split.train, nodes, self.protocol)
            stacks.setdefault(steps, []).append(run)
        return [*stacks.values()]

    def train(
        self,
        stack: Sequence[Run],
        resume: Resume | None = None,
        on_epoch: OnEpoch = lambda epoch: None,
    ) -> list[Run]:
        """Train a stack, in halves one after the other where it does not fit the GPU's memory."""
        try:
            return self._train(stack, resume, on_epoch)
        except torch.OutOfMemoryError:
            if len(stack) == 1 or not self.workers.alone:  # the others know nothing of it
                raise
        # Outside the handler, which would keep the failed attempt's memory alive.
        gc.collect()
        torch.cuda.empty_cache()
        half = len(stack) // 2
        halves = stack[:half], stack[half:]
        return in_order(self.train(part, resume, on_epoch) for part in halves)

    def _train(self, stack: Sequence[Run], resume: Resume | None, on_epoch: OnEpoch) -> list[Run]:
        """Train runs epoch by epoch, and answer their parts with the kept weights.

        Only what is tested is calibrated: for these, answers to validation graphs are kept too that
        had no say in which epoch is kept (:class:`Unseen`).
        """
        runs = [replace(run, history=[], predictions={}) for run in stack]
        engine = self.kind(
            self.graphs,
            self.task,
            [run.split for run in runs],
            [member_seed(run.seed, run.member) for run in runs],
            self.architecture,
            self.protocol,
            self.device,
            [run.rates for run in runs if run.rates is not None] or None,
            self.workers,
        )
        unseen = None
        if len(runs[0].split.test):
            target = engine.target.cpu()
            targets = [target[run.split.val] for run in runs]
            unseen = Unseen(self.task, targets, engine.fitted_each)

        def state() -> dict[str, Tensor]:
            return engine.state() if unseen is None else {**engine.state(), **unseen.state()}

        earlier = resume(runs) if resume else None
        if earlier is not None:
            runs, before = earlier
            engine.restore(before)
            if unseen is not None:
                unseen.restore(before)
        while not all(run.done(self.protocol) for run in runs):
            self._epoch(engine, runs, unseen)
            on_epoch(Epoch(runs, self.protocol, state))
        _take_weights(engine, runs)
        parts = [part for part in ("val", "test") if len(getattr(runs[0].split, part))]
        outputs = {part: engine.predict(part) for part in parts}
        if unseen is not None:
            outputs["unseen"] = unseen.each() or outputs["val"]
        for i, run in enumerate(runs):
            run.together = len(runs)
            run.predictions |= {
                part: self.task.in_units(each[i], run.fitted) for part, each in outputs.items()
            }
        return runs

    def _epoch(self, engine: Engine, runs: list[Run], unseen: Unseen | None) -> None:
        """One epoch of the runs that have not stopped.

        Networks that are trained on all graphs have nothing to stop by: their last weights are
        kept.
        """
        start = time.perf_counter()
        epoch = max(len(run.history) for run in runs) + 1
        train_loss = engine.epoch(epoch).tolist()
        validated = None if runs[0].seed == FINAL else engine.validate()
        seconds = time.perf_counter() - start
        going = [i for i, run in enumerate(runs) if not run.done(self.protocol)]
        rows = [{"epoch": epoch, "train_loss": loss} for loss in train_loss]
        if validated is not None:
            for row, loss, score in zip(rows, *(v.tolist() for v in validated), strict=True):
                row |= {"val_loss": loss, f"val_{self.task.watched.name}": score}
        watched = [row.get("val_loss", -epoch) for row in rows]  # without one, later is better
        for i in going:
            if not isfinite(train_loss[i]) or not isfinite(watched[i]):
                if not self.skip_failed:
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
        engine.retire(torch.tensor([run.done(self.protocol) for run in runs]))


def _not_finite(engine: Engine, runs: list[Run], failed: Run, epoch: int) -> NotFinite:
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
    for i, (run, weights) in enumerate(zip(runs, engine.weights(), strict=True)):
        fitted = engine.fitted_each[i]
        run.weights, run.preprocessing = weights, engine.preprocessing[i]
        run.fitted = None if fitted is None else fitted.cpu()


def in_turn(
    trainer: Trainer, stacks: Sequence[list[Run]], resume: Resume | None, on_epoch: OnEpoch
) -> list[Run]:
    """Train stacks one after the other, in this process."""
    return in_order(trainer.train(stack, resume, on_epoch) for stack in stacks)


def in_order(parts: Iterable[list[Run]]) -> list[Run]:
    """The runs of all parts; a :class:`NotFinite` that ends them has those before it too."""
    trained: list[Run] = []
    try:
        for runs in parts:
            trained += runs
    except NotFinite as error:
        error.runs = trained + error.runs
        raise
    return trained

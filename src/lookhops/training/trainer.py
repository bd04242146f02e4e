"""The trainer: the paper's protocol, top to bottom."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from lookhops.core.options import Protocol
from lookhops.graphs import Graphs
from lookhops.nn import Architecture
from lookhops.sources.splits import Split, SplitPlan
from lookhops.tasks import Task, task_of
from lookhops.training.batches import number_of_batches
from lookhops.training.device import choose_device, in_halves, limited_threads, threads_of
from lookhops.training.eager import EagerEngine
from lookhops.training.engine import Engine
from lookhops.training.fitting import train_stack
from lookhops.training.randomness import FINAL, member_seed, unweighted
from lookhops.training.runs import NotFinite, OnEpoch, Resume, Run, by_split, draw_splits
from lookhops.training.stacked import StackedEngine, stackable
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
    parts = draw_splits(graphs, task, protocol, splits).splits
    chosen = choose_device(device)
    stacked = chosen.type == "cuda" if stacked is None else stacked
    runs = [
        Run(seed, part, member=member)
        for seed, part in parts.items()
        for member in range(protocol.members)
    ]
    trainer = Trainer(graphs, task, architecture, protocol, chosen, stacked, workers)
    found = trainer.run(runs, resume, on_epoch, execute)
    return sorted(found, key=lambda run: protocol.seeds.index(run.seed))


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

    Args:
        graphs, architecture, protocol, task, device, resume, on_epoch, workers, execute: As for
            :func:`train`; of the protocol, neither seeds nor splits.
        epochs: How many.
    """
    none = torch.zeros(0, dtype=torch.long)
    everything = Split(task.known(task.targets(graphs).cpu()).nonzero().flatten(), none, none)
    chosen, fixed = choose_device(device), replace(protocol, max_epochs=epochs, patience=epochs)
    runs = [Run(FINAL, everything, member=member) for member in range(protocol.members)]
    trainer = Trainer(graphs, task, architecture, fixed, chosen, chosen.type == "cuda", workers)
    [run] = trainer.run(runs, resume, on_epoch, execute)
    return run


@dataclass(frozen=True, eq=False)
class Trainer:
    """Trains runs on the same graphs; each is the same network, whatever is trained beside it.

    Args:
        graphs, task, architecture, protocol, workers: As for :func:`train`.
        device: Where.
        stacked: Whether networks are trained together, where their layers allow it.
    """

    graphs: Graphs
    task: Task
    architecture: Architecture
    protocol: Protocol
    device: torch.device
    stacked: bool = False
    workers: Workers = ALONE

    @cached_property
    def kind(self) -> type[Engine]:
        """The kind of engine."""
        if not self.stacked:
            return EagerEngine
        network = unweighted(self.graphs, self.task, self.architecture)
        return StackedEngine if stackable(network) else EagerEngine

    @property
    def threads(self) -> int:
        """The threads of the CPU that a batch is worth."""
        return threads_of(self.graphs, self.architecture, self.protocol)

    def run(
        self,
        runs: Sequence[Run],
        resume: Resume | None = None,
        on_epoch: OnEpoch = lambda epoch: None,
        execute: Execute | None = None,
    ) -> list[Run]:
        """Train these runs, and test them once; one run for each split."""
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
        skip_failed: bool = False,
    ) -> list[Run]:
        """Train a stack, in halves one after the other where it does not fit the GPU's memory.

        Args:
            stack: The runs.
            resume, on_epoch: As for :func:`train`.
            skip_failed: Whether the others go on where the loss of a run is not a number.
        """

        def attempt(part: Sequence[Run]) -> list[Run]:
            fresh = [replace(run, history=[], predictions={}) for run in part]
            rates = [run.rates for run in fresh if run.rates is not None]
            engine = self.kind(
                self.graphs,
                self.task,
                [run.split for run in fresh],
                [member_seed(run.seed, run.member) for run in fresh],
                self.architecture,
                self.protocol,
                self.device,
                rates or None,
                self.workers,
            )
            return train_stack(
                engine, self.task, fresh, self.protocol, resume, on_epoch, skip_failed
            )

        return _all_of(in_halves(attempt, stack))


def in_turn(
    trainer: Trainer, stacks: Sequence[list[Run]], resume: Resume | None, on_epoch: OnEpoch
) -> list[Run]:
    """Train stacks one after the other, in this process."""
    return _all_of(trainer.train(stack, resume, on_epoch) for stack in stacks)


def _all_of(parts: Iterable[list[Run]]) -> list[Run]:
    """The runs of all parts; an error that ends them has those before it too."""
    trained: list[Run] = []
    try:
        for runs in parts:
            trained += runs
    except NotFinite as error:
        error.runs = trained + error.runs
        raise
    return trained

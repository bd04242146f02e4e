"""The trainer: the paper's protocol, top to bottom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lookhops.core.options import Protocol
from lookhops.encoding import Encoding
from lookhops.graphs import Graphs
from lookhops.nn import Architecture
from lookhops.nn.plugins import LOADED, load_plugin
from lookhops.sources.splits import Split, SplitPlan
from lookhops.tasks import Task, task_of
from lookhops.training.batches import number_of_batches
from lookhops.training.device import choose_device, in_halves, limited_threads, threads_of
from lookhops.training.eager import EagerEngine
from lookhops.training.engine import Engine
from lookhops.training.fitting import train_stack
from lookhops.training.processes import Ask, Processes, Tell
from lookhops.training.randomness import FINAL, member_seed, seeded_model
from lookhops.training.runs import NotFinite, Progress, Resume, Run, by_split
from lookhops.training.side_by_side import WORTH, Ended, SideBySide, heard, told
from lookhops.training.splits import draw_splits
from lookhops.training.stacked import StackedEngine, stackable
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
    helpers: Processes | None = None,
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
        helpers: Other processes that train some of the networks meanwhile, on the CPU: the numbers
            are the same.
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
    given = resume, on_epoch, workers, helpers
    own = _Training(graphs, task, architecture, protocol, chosen, stacked, *given)
    return sorted(own.of(begun), key=lambda run: protocol.seeds.index(run.seed))


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
    helpers: Processes | None = None,
) -> Run:
    """Train on all graphs that have a target, for so many epochs: nothing is left to test on.

    Args:
        graphs, architecture, protocol, task, device, resume, on_epoch, workers, helpers: As for
            :func:`train`; of the protocol, neither seeds nor splits.
        epochs: How many.
    """
    none = torch.zeros(0, dtype=torch.long)
    everything = Split(task.known(task.targets(graphs).cpu()).nonzero().flatten(), none, none)
    chosen, fixed = choose_device(device), replace(protocol, max_epochs=epochs, patience=epochs)
    begun = [Run(FINAL, everything, member=member) for member in range(protocol.members)]
    given = resume, on_epoch, workers, helpers
    stacked = chosen.type == "cuda"
    [run] = _Training(graphs, task, architecture, fixed, chosen, stacked, *given).of(begun)
    return run


@dataclass(frozen=True)
class _Training:
    """How some runs are trained; the fields are arguments of :func:`train`."""

    graphs: Graphs
    task: Task
    architecture: Architecture
    protocol: Protocol
    device: torch.device
    stacked: bool
    resume: Resume | None
    on_epoch: Callable[[Progress], None]
    workers: Workers
    helpers: Processes | None

    def of(self, begun: Sequence[Run]) -> list[Run]:
        """Train these runs, and test them once; one run for each split.

        A stack that does not fit the GPU's memory is trained in halves, one after the other.
        """
        threads = threads_of(self.graphs, self.architecture, self.protocol)
        kind, stacks = self._stacks(begun)
        # Where a training takes several cores, others would not be the same to the last bit.
        plain = threads == 1 and kind is EagerEngine and self.device.type == "cpu"
        helpers = self.helpers if plain and self.workers.alone else None
        started = helpers is not None and helpers.are_started
        side = SideBySide(stacks, self.on_epoch, worth=0.0 if started else WORTH)
        if helpers is not None:
            side.begin = partial(self._begin, helpers, side)

        def attempt(stack: Sequence[Run]) -> list[Run]:
            fresh = [replace(run, history=[], predictions={}) for run in stack]
            rest = fresh, self.protocol, self.resume, side.after_epoch
            return train_stack(self.engine(kind, fresh), self.task, *rest)

        try:
            with limited_threads(threads):
                return by_split(side.train(partial(_each_half, attempt)), self.task)
        except NotFinite as error:
            error.runs = by_split(side.finished + error.runs, self.task)
            raise

    def _begin(self, helpers: Processes, side: SideBySide, stack: list[Run]) -> Future[Ended]:
        """Begin to train a stack in another process."""

        def listen(said: Any, ask: Ask) -> None:
            side.hear(Progress(heard(stack, said), self.protocol, partial(ask, "state")))

        earlier = self.resume(stack) if self.resume else None
        own = self.task, self.architecture, self.protocol, stack, earlier
        return helpers.call(_train_here, self.graphs, [*LOADED], *own, listen=listen)

    def engine(self, kind: type[Engine], runs: Sequence[Run]) -> Engine:
        """The engine that trains these runs together."""
        splits = [run.split for run in runs]
        seeds = [member_seed(run.seed, run.member) for run in runs]
        how = self.architecture, self.protocol, self.device
        return kind(self.graphs, self.task, splits, seeds, *how, workers=self.workers)

    def _stacks(self, runs: Sequence[Run]) -> tuple[type[Engine], list[list[Run]]]:
        """The kind of engine, and the runs that are trained together: all that can be stacked."""
        graphs, protocol = self.graphs, self.protocol
        encoding = Encoding.fit(graphs, self.architecture.reads_edges)
        shape = encoding.width, self.task.out_channels
        probe = seeded_model(0, *shape, self.architecture, **encoding.sizes)
        together = self.stacked and stackable(probe)
        stacks: dict[Any, list[Run]] = {}
        nodes = graphs.nodes_per_graph.cpu()
        for run in runs:  # networks of a stack take equally many steps
            steps = number_of_batches(run.split.train, nodes, protocol)
            stacks.setdefault(steps if together else run.key, []).append(run)
        return StackedEngine if together else EagerEngine, [*stacks.values()]


def _each_half(attempt: Callable[[Sequence[Run]], list[Run]], stack: list[Run]) -> list[Run]:
    """Train a stack, in halves where it does not fit; what is trained of it is not lost."""
    trained: list[Run] = []
    try:
        for runs in in_halves(attempt, stack):
            trained += runs
    except NotFinite as error:
        error.runs = trained + error.runs
        raise
    return trained


def _train_here(
    graphs: Graphs,
    plugins: Sequence[Path],
    task: Task,
    architecture: Architecture,
    protocol: Protocol,
    runs: list[Run],
    earlier: tuple[list[Run], dict[str, Tensor]] | None,
    tell: Tell,
) -> Ended:
    """Train runs on the CPU of a process that another one asks for help.

    Args:
        graphs, task, architecture, protocol: As for :func:`train`.
        plugins: The files with the user's layers.
        runs: What is trained together.
        earlier: Where to go on from.
        tell: Is told of each epoch, and may ask for the state after it.
    """
    for path in plugins:
        load_plugin(path)

    def on_epoch(progress: Progress) -> None:
        tell(told(progress.runs), lambda question: progress.state())

    rest = torch.device("cpu"), False, None, on_epoch, ALONE, None
    engine = _Training(graphs, task, architecture, protocol, *rest).engine(EagerEngine, runs)
    try:
        trained = train_stack(engine, task, runs, protocol, lambda stack: earlier, on_epoch)
    except NotFinite as error:
        return error.runs, str(error)
    return trained, ""

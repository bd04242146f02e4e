"""Running a plan: what is missing from the store is trained, on this machine or by a cluster."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np
import torch

from lookhops.errors import LookHopsError
from lookhops.experiments.keys import RunKey
from lookhops.experiments.plan import Cell
from lookhops.experiments.store import Store
from lookhops.graphs import Graphs
from lookhops.models.records import RunRecord, record_run
from lookhops.nn import Architecture
from lookhops.tasks import task_of
from lookhops.training import Protocol, train
from lookhops.training.trainer import choose_device
from lookhops.words import counted

#: Gives the graphs of a data set by its name.
Source = Callable[[str], Graphs]
PAUSE = 0.5  # seconds between two looks at what other processes do


#: Called with something worth telling, and how many runs it brings the plan nearer to its end.
Tell = Callable[[str, int], None]


@dataclass
class PlanRun:
    """A plan on its way, and how it ended: what every runner does besides training.

    Args:
        cells: What is wanted.
        source: Gives the graphs of a data set.
        store: Where runs are kept.
        device: What to train on.
        tell: Called with each thing worth telling.
        found: Runs that the store had already.
        trained: Runs that were trained now.
        left: Runs that are still missing: the time was up, or they failed.
        failures: Why runs failed, in words.
    """

    cells: Sequence[Cell]
    source: Source
    store: Store
    device: str
    tell: Tell
    found: int = 0
    trained: int = 0
    left: int = 0
    failures: list[str] = field(default_factory=list)

    def key(self, cell: Cell) -> RunKey:
        """What a cell's runs are stored under."""
        return cell.key(self.source(cell.dataset))

    def finished(self, cell: Cell) -> set[int]:
        """The seeds of a cell that the store has."""
        return self.store.finished(self.key(cell)) & set(cell.protocol.seeds)

    def begin(self) -> None:
        """Count the runs that are there already."""
        self.found = sum(len(self.finished(cell)) for cell in self.cells)
        if self.found:
            were = "was" if self.found == 1 else "were"
            self.tell(f"{counted(self.found, 'run')} {were} in the store already", self.found)

    def end(self) -> PlanRun:
        """Count the runs that are still missing."""
        missing = (len(cell.protocol.seeds) - len(self.finished(cell)) for cell in self.cells)
        self.left = sum(missing)
        return self

    def keep(self, cell: Cell, key: RunKey, records: Sequence[RunRecord], seconds: float) -> None:
        """Store the records of a cell and tell of it."""
        added = self.store.add(cell.dataset, cell.model, key, records)
        self.trained += added
        accuracy = 100 * np.mean([record.metrics["accuracy"] for record in records])
        seeds = [record.seed for record in records]
        which = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
        said = f"{cell.dataset}, {cell.model}, {which}: test accuracy {accuracy:.1f} %"
        self.tell(f"{said}, {seconds:.1f} s", added)

    def fail(self, which: str, reason: str) -> None:
        """Note that a run failed, and tell of it."""
        self.failures.append(f"{which}: {reason}")
        self.tell(f"failed: {which}: {reason}", 0)


def run_local(
    cells: Sequence[Cell],
    source: Source,
    store: Store,
    *,
    device: str = "auto",
    time_limit: float = inf,
    tell: Tell = lambda text, finished: None,
) -> PlanRun:
    """Train what the store lacks of the cells, in their order.

    On a GPU the seeds of a cell are trained at once; elsewhere one after the other, and each is
    stored when it is finished. Other processes may work on the same store: cells that they have
    begun are left to them and waited for.

    Args:
        cells: What is wanted.
        source: Gives the graphs of a data set.
        store: Where runs are kept.
        device: ``cpu``, ``cuda`` or ``auto``.
        time_limit: Seconds after which nothing new is begun.
        tell: Called with each thing worth telling.
    """
    deadline = time.monotonic() + time_limit
    at_once = None if choose_device(device).type == "cuda" else 1
    plan = PlanRun(cells, source, store, device, tell)
    plan.begin()
    pending, told = list(cells), False
    with store.beating():
        while pending and time.monotonic() < deadline:
            before = plan.trained
            pending = _one_round(plan, pending, at_once, deadline)
            if pending and plan.trained == before and time.monotonic() < deadline:
                if not told:
                    tell("waiting for runs that another process has begun", 0)
                told = True
                time.sleep(PAUSE)
    return plan.end()


def _one_round(
    plan: PlanRun, cells: Sequence[Cell], at_once: int | None, deadline: float
) -> list[Cell]:
    """Train what is free of each cell; the cells that others work on."""
    elsewhere: list[Cell] = []
    for number, cell in enumerate(cells):
        key = plan.key(cell)
        wanted = list(cell.protocol.seeds)
        while time.monotonic() < deadline:
            seeds = plan.store.claim(key, wanted, at_once)
            if not seeds:
                break
            if not _train_claimed(plan, cell, key, seeds):
                wanted = [seed for seed in wanted if seed not in seeds]  # do not try again now
        else:
            return [*elsewhere, *cells[number:]]
        if set(wanted) - plan.store.finished(key):
            elsewhere.append(replace(cell, protocol=replace(cell.protocol, seeds=tuple(wanted))))
    return elsewhere


def _train_claimed(plan: PlanRun, cell: Cell, key: RunKey, seeds: list[int]) -> bool:
    """Train claimed seeds of a cell and store them; whether that went well."""
    start = time.perf_counter()
    graphs = plan.source(cell.dataset)
    try:
        records = train_records(graphs, cell.architecture, cell.protocol, seeds, plan.device)
    except (LookHopsError, torch.cuda.OutOfMemoryError) as error:
        plan.store.release(key, seeds)
        if len(seeds) > 1:  # one seed's misfortune is not the others'
            each = [plan.store.claim(key, [seed]) for seed in seeds]
            went = [_train_claimed(plan, cell, key, free) for free in each if free]
            return all(went)
        which = f"{cell.dataset}, {cell.model}, seed {seeds[0]}"
        plan.fail(which, str(error).splitlines()[0])
        return False
    except BaseException:
        plan.store.release(key, seeds)
        raise
    plan.keep(cell, key, records, time.perf_counter() - start)
    return True


def train_records(
    graphs: Graphs,
    architecture: Architecture,
    protocol: Protocol,
    seeds: Sequence[int],
    device: str = "auto",
) -> list[RunRecord]:
    """Train a model with these seeds, all at once where the device can; a record of each run.

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
        halves = [train_records(graphs, architecture, protocol, part, device) for part in parts]
        return [*halves[0], *halves[1]]
    share = (time.perf_counter() - start) / len(runs)
    stacked, task = len(seeds) if chosen.type == "cuda" else 1, task_of(graphs)
    return [record_run(run, graphs, task, chosen, share, stacked=stacked) for run in runs]

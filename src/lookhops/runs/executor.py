"""Plans and executors: what the store lacks of a plan's cells is trained, here or elsewhere."""

from __future__ import annotations

import gc
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from math import inf
from typing import NamedTuple

import numpy as np
import torch

from lookhops.core.errors import LookHopsError
from lookhops.core.machine import usable_cores
from lookhops.core.words import agreeing, counted
from lookhops.graphs import Graphs
from lookhops.learners import learner_of
from lookhops.runs.plan import Cell
from lookhops.runs.processes import Processes, shared_gpu
from lookhops.runs.record import RunRecord, record_run
from lookhops.runs.store import Store
from lookhops.tasks import task_of
from lookhops.training.device import choose_device, peak_memory
from lookhops.training.runs import Event, OnEpoch, OnEvent

#: Seconds of training ahead that are worth the start of other processes.
WORTH = 10.0
#: Seconds between two looks at what other processes do.
PAUSE = 0.5


class Executor(ABC):
    """Trains seeds of cells somewhere."""

    #: Whether seeds that failed together are tried again one by one.
    retries_alone = False

    @abstractmethod
    def started(self) -> AbstractContextManager[None]:
        """Start what trains; it ends with the block."""

    def most(self, cell: Cell) -> int | None:
        """How many seeds of a cell make a task; none is all of them."""
        return None

    @abstractmethod
    def slots(self, waiting: int) -> int:
        """How many tasks there may be at a time, given how many runs are not begun yet."""

    @abstractmethod
    def submit(self, cell: Cell, seeds: list[int], on_epoch: OnEpoch) -> Future[list[RunRecord]]:
        """Begin to train these seeds of a cell; ``on_epoch`` is called where that is done here."""


class Local(Executor):
    """Trains in this process until it is seen that others pay, and then in those.

    On a GPU the seeds of a network are trained at once, otherwise each by itself.

    Args:
        device: ``cpu``, ``cuda`` or ``auto``.
        processes: How many runs are trained at a time, on a GPU how many stacks of them; none
            means one for each core, and one on a GPU. By default one, in this process: others need
            a script whose code stands under ``if __name__ == "__main__"``.
    """

    retries_alone = True

    def __init__(self, device: str = "auto", processes: int | None = 1) -> None:
        self.device, self.gpu = device, choose_device(device).type == "cuda"
        self.count = processes or (1 if self.gpu else usable_cores())
        self.slowest, self.in_processes = 0.0, False

    @contextmanager
    def started(self) -> Iterator[None]:
        gpu = shared_gpu(self.gpu and self.count > 1)
        with gpu as environment, Processes(self.count, environment) as self.pool:
            yield

    def most(self, cell: Cell) -> int | None:
        """One on a CPU, and of what has no epochs."""
        return None if self.gpu and learner_of(cell.architecture).has_epochs else 1

    def slots(self, waiting: int) -> int:
        """One, until the runs ahead are worth the start of other processes."""
        pays = self.gpu or self.slowest * (waiting - 1) > WORTH
        self.in_processes = pays and self.count > 1
        return self.count if self.in_processes else 1

    def submit(self, cell: Cell, seeds: list[int], on_epoch: OnEpoch) -> Future[list[RunRecord]]:
        learner = learner_of(cell.architecture)
        # What takes several threads is trained here: its numbers follow from their number.
        if self.in_processes and (self.gpu or learner.threads(cell.graphs, cell.protocol) == 1):
            device = self.device if self.gpu else "cpu"
            return self.pool.call(train_sent, cell.graphs, cell.without_graphs(), seeds, device)
        done, start = Future[list[RunRecord]](), time.perf_counter()
        try:
            done.set_result(train_records(cell, seeds, self.device, on_epoch))
        except (LookHopsError, torch.cuda.OutOfMemoryError) as error:
            done.set_exception(error.with_traceback(None))  # which would keep its tensors alive
        self.slowest = max(self.slowest, time.perf_counter() - start)
        return done


def train_records(
    cell: Cell, seeds: Sequence[int], device: str = "auto", on_epoch: OnEpoch = lambda epoch: None
) -> list[RunRecord]:
    """Train a cell's model with these seeds, all at once where the device can; a record of each."""
    graphs, protocol = cell.graphs, replace(cell.protocol, seeds=tuple(seeds))
    learner, task = learner_of(cell.architecture), task_of(graphs)
    chosen = choose_device(device if learner.has_epochs else "cpu")
    start = time.perf_counter()
    with peak_memory(chosen) as peak:
        runs = learner.train(
            graphs, protocol, task=task, splits=cell.splits, device=chosen, on_epoch=on_epoch
        )
    if chosen.type == "cuda":  # what this cell held is for the next one
        gc.collect()
        torch.cuda.empty_cache()
    share = (time.perf_counter() - start) / len(runs)
    records = []
    for run in runs:
        stacked = max(run.together // protocol.members, 1)
        record = record_run(run, graphs, task, chosen, share, stacked=stacked)
        share_of_peak = peak.size and peak.size // stacked
        records.append(record.with_metrics(peak_memory=share_of_peak))
    return records


def train_sent(graphs: Graphs, cell: Cell, seeds: Sequence[int], device: str) -> list[RunRecord]:
    """:func:`train_records` where the graphs were sent apart from the cell."""
    return train_records(replace(cell, graphs=graphs), seeds, device)


def run_plan(
    cells: Sequence[Cell],
    store: Store,
    executor: Executor,
    *,
    time_limit: float = inf,
    on_event: OnEvent = lambda event: None,
) -> PlanRun:
    """Train what the store lacks of the cells, in their order, until all of it is stored or failed.

    What other processes have claimed is waited for; after ``time_limit`` seconds nothing is begun.
    """
    plan = PlanRun(cells, store, executor, on_event)
    with executor.started():
        plan.run(time.monotonic() + time_limit)
    return plan


def train_here(
    cells: Sequence[Cell], store: Store, device: str, on_event: OnEvent, advice: str = ""
) -> None:
    """:func:`run_plan` on this machine, where the first failure is an error."""
    done = run_plan(cells, store, Local(device), on_event=on_event)
    if done.failures:
        raise LookHopsError(done.failures[0] + advice)


class _Task(NamedTuple):
    cell: Cell
    seeds: list[int]
    start: float


class PlanRun:
    """A plan on its way, and how it ended."""

    def __init__(
        self, cells: Sequence[Cell], store: Store, executor: Executor, on_event: OnEvent
    ) -> None:
        self.cells, self.store, self.executor, self.on_event = cells, store, executor, on_event
        self.found, self.trained = 0, 0  # runs that the store had, and that were trained now
        self.left = 0  # that are still missing: the time was up, or they failed
        self.failures: list[str] = []  # why runs failed, in words
        self.total = sum(len(cell.protocol.seeds) for cell in cells)
        self._waiting = deque(cells)
        self._most = {cell: executor.most(cell) for cell in cells}
        self._begun = {cell: set[int]() for cell in cells}
        self._tasks: dict[Future[list[RunRecord]], _Task] = {}

    def run(self, deadline: float) -> None:
        """Until every cell is stored or has failed, also by other processes, or the time is up."""
        for cell in self.cells:
            learner_of(cell.architecture).check(cell.graphs, task_of(cell.graphs))
        if found := self._count_finished():
            text = f"{counted(found, 'run')} {agreeing(found, 'was', 'were')} in the store already"
            self.on_event(Event(text=text, finished=found))
        self.found, has_waited = found, False
        with self.store.renewing():
            while self._tasks or (self._waiting and time.monotonic() < deadline):
                self._begin_tasks(deadline)
                if self._tasks:
                    self._gather()
                elif self._waiting:
                    if not has_waited:
                        self.on_event(Event(text="waiting for runs that another process has begun"))
                    has_waited = True
                    time.sleep(PAUSE)
        self.left = self.total - self._count_finished()

    def _finished(self, cell: Cell) -> set[int]:
        return self.store.finished(cell.key) & set(cell.protocol.seeds)

    def _count_finished(self) -> int:
        return sum(len(self._finished(cell)) for cell in self.cells)

    def _begin_tasks(self, deadline: float) -> None:
        """Begin as many tasks as there are slots; none where all that waits is claimed."""
        claimed = 0  # cells in a row that others work on
        while claimed < len(self._waiting) and time.monotonic() < deadline:
            waiting = self.total - self.found - sum(map(len, self._begun.values()))
            if len(self._tasks) >= self.executor.slots(waiting):
                return
            claimed = 0 if self._begin() else claimed + 1

    def _begin(self) -> bool:
        """Begin what is free of the next cell; false where that is all claimed elsewhere."""
        cell, start = self._waiting.popleft(), time.perf_counter()
        wanted = [seed for seed in cell.protocol.seeds if seed not in self._begun[cell]]
        seeds = self.store.claim(cell.key, wanted, self._most[cell]) if wanted else []
        if seeds:
            self._begun[cell].update(seeds)
            try:
                task = self.executor.submit(cell, seeds, self.on_event)
            except BaseException:
                self.store.release(cell.key, seeds)
                raise
            self._tasks[task] = _Task(cell, seeds, start)
            self._waiting.appendleft(cell)
        elif set(wanted) - self._finished(cell):
            self._waiting.append(cell)
            return False
        return True

    def _gather(self) -> None:
        for future in wait(self._tasks, PAUSE, FIRST_COMPLETED).done:
            task = self._tasks.pop(future)
            if (error := future.exception()) is None:
                self.keep(task, future.result())
                continue
            self.store.release(task.cell.key, task.seeds)
            if self.executor.retries_alone and len(task.seeds) > 1:
                # One seed's misfortune is not the others'.
                self._most[task.cell] = 1
                self._begun[task.cell].difference_update(task.seeds)
                if task.cell not in self._waiting:
                    self._waiting.appendleft(task.cell)
            else:
                self._fail(task, error)

    def keep(self, task: _Task, records: Sequence[RunRecord]) -> None:
        cell, seconds = task.cell, time.perf_counter() - task.start
        added = self.store.add(cell.dataset, cell.model, cell.key, records)
        self.trained += added
        main = records[0].task.main
        scores = [record.score for record in records if record.score is not None]
        score = main.written(float(np.mean(scores)) if scores else None)
        which = f"seed {task.seeds[0]}" if len(records) == 1 else f"{len(records)} seeds"
        text = f"{cell.dataset}, {cell.model}, {which}: test {main.title} {score}, {seconds:.1f} s"
        self.on_event(Event(text=text, finished=added))

    def _fail(self, task: _Task, error: BaseException) -> None:
        seed = f", seed {task.seeds[0]}" if len(task.seeds) == 1 else ""
        reason = str(getattr(error, "cause", None) or error).strip().splitlines()
        which = f"{task.cell.dataset}, {task.cell.model}{seed}: "
        self.failures.append(which + [*reason, type(error).__name__][0])
        self.on_event(Event(text=f"failed: {self.failures[-1]}"))

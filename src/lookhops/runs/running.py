"""Running a plan: what is missing from the store is trained by an executor."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import numpy as np

from lookhops.core.words import counted
from lookhops.graphs import Graphs
from lookhops.learners import learner_of
from lookhops.runs.executor import Executor
from lookhops.runs.plan import Cell, RunKey
from lookhops.runs.record import RunRecord
from lookhops.runs.store import Store
from lookhops.tasks import task_of
from lookhops.training.runs import Event, OnEvent

#: Gives the graphs of a data set by its name.
Source = Callable[[str], Graphs]
PAUSE = 0.5  # seconds between two looks at what other processes do


def run_plan(
    cells: Sequence[Cell],
    source: Source,
    store: Store,
    executor: Executor,
    *,
    time_limit: float = inf,
    on_event: OnEvent = lambda event: None,
) -> PlanRun:
    """Train what the store lacks of the cells, in their order, until all of it is stored or failed.

    Cells that other processes have claimed in the store are left to them and waited for. After
    ``time_limit`` seconds nothing new is begun.
    """
    with executor:
        plan = PlanRun(cells, source, store, executor, on_event)
        plan.run(time.monotonic() + time_limit)
    return plan


class _Task(NamedTuple):
    """Seeds of a cell that are being trained since a moment."""

    cell: Cell
    key: RunKey
    seeds: list[int]
    start: float


@dataclass(eq=False)
class PlanRun:
    """A plan on its way, and how it ended.

    Args:
        cells, source, store, executor, on_event: As for :func:`run_plan`.
        found: Runs that the store had already.
        trained: Runs that were trained now.
        left: Runs that are still missing: the time was up, or they failed.
        failures: Why runs failed, in words.
    """

    cells: Sequence[Cell]
    source: Source
    store: Store
    executor: Executor
    on_event: OnEvent
    found: int = 0
    trained: int = 0
    left: int = 0
    failures: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._waiting = deque(self.cells)
        self._most = {cell: self.executor.most(cell) for cell in self.cells}
        self._begun = {cell: set[int]() for cell in self.cells}
        self._tasks: dict[Future[list[RunRecord]], _Task] = {}

    def run(self, deadline: float) -> None:
        """Until every cell is stored or has failed, or the time is up.

        Cells of which another process has claimed what is left are asked for again later.
        """
        for cell in self.cells:
            graphs = self.source(cell.dataset)
            learner_of(cell.architecture).check(graphs, task_of(graphs))
        self.found = sum(len(self.finished(cell)) for cell in self.cells)
        if self.found:
            text = f"{counted(self.found, 'run')} {'was' if self.found == 1 else 'were'}"
            self.on_event(Event(text=f"{text} in the store already", finished=self.found))
        with self.store.renewing():
            has_waited = False
            while self._tasks or (self._waiting and time.monotonic() < deadline):
                self._begin_tasks(deadline)
                if self._tasks:
                    self._gather()
                elif self._waiting:
                    if not has_waited:
                        text = "waiting for runs that another process has begun"
                        self.on_event(Event(text=text))
                    has_waited = True
                    time.sleep(PAUSE)
        self.left = self.total - sum(len(self.finished(cell)) for cell in self.cells)

    @property
    def total(self) -> int:
        """The runs that are wanted."""
        return sum(len(cell.protocol.seeds) for cell in self.cells)

    def finished(self, cell: Cell) -> set[int]:
        """The seeds of a cell that the store has."""
        key = cell.key(self.source(cell.dataset))
        return self.store.finished(key) & set(cell.protocol.seeds)

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
        cell = self._waiting.popleft()
        graphs = self.source(cell.dataset)
        key, start = cell.key(graphs), time.perf_counter()
        wanted = [seed for seed in cell.protocol.seeds if seed not in self._begun[cell]]
        seeds = self.store.claim(key, wanted, self._most[cell]) if wanted else []
        if seeds:
            self._begun[cell].update(seeds)
            try:
                task = self.executor.submit(graphs, cell, seeds, self.on_event)
            except BaseException:
                self.store.release(key, seeds)
                raise
            self._tasks[task] = _Task(cell, key, seeds, start)
            self._waiting.appendleft(cell)
        elif set(wanted) - self.finished(cell):
            self._waiting.append(cell)
            return False
        return True

    def _gather(self) -> None:
        """Store what has been trained in the meantime."""
        for future in wait(self._tasks, PAUSE, FIRST_COMPLETED).done:
            task = self._tasks.pop(future)
            if (error := future.exception()) is None:
                self.keep(task, future.result())
                continue
            self.store.release(task.key, task.seeds)
            if self.executor.retries_alone and len(task.seeds) > 1:
                # One seed's misfortune is not the others'.
                self._most[task.cell] = 1
                self._begun[task.cell].difference_update(task.seeds)
                if task.cell not in self._waiting:
                    self._waiting.appendleft(task.cell)
            else:
                self._fail(task, error)

    def keep(self, task: _Task, records: Sequence[RunRecord]) -> None:
        """Store the records of a task, and say so."""
        cell, seconds = task.cell, time.perf_counter() - task.start
        added = self.store.add(cell.dataset, cell.model, task.key, records)
        self.trained += added
        main = records[0].task.main
        known = [record.score for record in records if record.score is not None]
        score = main.written(float(np.mean(known)) if known else None)
        which = f"seed {task.seeds[0]}" if len(records) == 1 else f"{len(records)} seeds"
        text = f"{cell.dataset}, {cell.model}, {which}: test {main.title} {score}, {seconds:.1f} s"
        self.on_event(Event(text=text, finished=added))

    def _fail(self, task: _Task, error: BaseException) -> None:
        """Note that runs failed, and say so."""
        seed = f", seed {task.seeds[0]}" if len(task.seeds) == 1 else ""
        reason = str(getattr(error, "cause", None) or error).strip().splitlines()
        which = f"{task.cell.dataset}, {task.cell.model}{seed}: "
        self.failures.append(which + [*reason, type(error).__name__][0])
        self.on_event(Event(text=f"failed: {self.failures[-1]}"))

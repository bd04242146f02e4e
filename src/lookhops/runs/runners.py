"""Running a plan: what is missing from the store is trained, on this machine or by a cluster."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from math import inf

import numpy as np
import torch

from lookhops.core.errors import LookHopsError
from lookhops.core.machine import usable_cores
from lookhops.core.words import counted
from lookhops.graphs import Graphs
from lookhops.learners import learner_of
from lookhops.nn.plugins import sources
from lookhops.runs.gpu_sharing import shared_gpu
from lookhops.runs.keys import RunKey
from lookhops.runs.plan import Cell
from lookhops.runs.processes import Processes
from lookhops.runs.record import RunRecord
from lookhops.runs.store import Store
from lookhops.runs.train_cell import train_records, train_with_plugins
from lookhops.tasks import task_of
from lookhops.training.device import choose_device
from lookhops.training.runs import Event, OnEvent

#: Gives the graphs of a data set by its name.
Source = Callable[[str], Graphs]
#: Begins to train seeds of a cell on its graphs.
Submit = Callable[[Graphs, Cell, list[int]], "Future[list[RunRecord]]"]
#: How many seeds of a cell make a task; none is all of them.
Most = Callable[[Cell], int | None]
#: Seconds of training ahead that are worth the start of other processes.
WORTH = 10.0
PAUSE = 0.5  # seconds between two looks at what other processes do


@dataclass
class PlanRun:
    """A plan on its way, and how it ended: what every runner does besides training.

    Args:
        cells: What is wanted.
        source: Gives the graphs of a data set.
        store: Where runs are kept.
        on_event: Called with each event.
        found: Runs that the store had already.
        trained: Runs that were trained now.
        left: Runs that are still missing: the time was up, or they failed.
        failures: Why runs failed, in words.
    """

    cells: Sequence[Cell]
    source: Source
    store: Store
    on_event: OnEvent
    found: int = 0
    trained: int = 0
    left: int = 0
    failures: list[str] = field(default_factory=list)

    def run(
        self,
        submit: Submit,
        time_limit: float,
        *,
        slots: Callable[[], int] = lambda: 1,
        most: Most = lambda cell: None,
        alone: bool = False,
    ) -> PlanRun:
        """Until every cell is stored or has failed, or the time is up.

        Cells of which another process has begun what is left are asked for again later.

        Args:
            submit: Begins to train claimed seeds of a cell.
            time_limit: Seconds after which nothing new is begun.
            slots: How many tasks there may be at a time.
            most: How many seeds of a cell make a task; none is all of them.
            alone: Whether seeds that failed together are tried again one by one.
        """
        deadline, told = time.monotonic() + time_limit, False
        for cell in self.cells:
            graphs = self.source(cell.dataset)
            learner_of(cell.architecture).check(graphs, task_of(graphs))
        self._tell_found()
        queue = _Queue(self, submit, most, alone)
        with self.store.beating():
            while queue.tasks or (queue.waiting and time.monotonic() < deadline):
                asked = 0  # cells in a row that others work on
                while (
                    asked < len(queue.waiting)
                    and len(queue.tasks) < slots()
                    and time.monotonic() < deadline
                ):
                    asked = 0 if queue.begin() else asked + 1
                if queue.tasks:
                    queue.gather()
                elif queue.waiting:
                    if not told:
                        self.on_event(Event(text="waiting for runs that another process has begun"))
                    told = True
                    time.sleep(PAUSE)
        self.left = sum(len(c.protocol.seeds) - len(self.finished(c)) for c in self.cells)
        return self

    def finished(self, cell: Cell) -> set[int]:
        """The seeds of a cell that the store has."""
        key = cell.key(self.source(cell.dataset))
        return self.store.finished(key) & set(cell.protocol.seeds)

    def keep(self, cell: Cell, key: RunKey, records: Sequence[RunRecord], seconds: float) -> None:
        """Store the records of a cell and tell of it."""
        added = self.store.add(cell.dataset, cell.model, key, records)
        self.trained += added
        main = records[0].task.main
        known = [record.score for record in records if record.score is not None]
        score = main.written(float(np.mean(known)) if known else None)
        seeds = [record.seed for record in records]
        which = f"seed {seeds[0]}" if len(seeds) == 1 else f"{len(seeds)} seeds"
        said = f"{cell.dataset}, {cell.model}, {which}: test {main.title} {score}"
        self.on_event(Event(text=f"{said}, {seconds:.1f} s", finished=added))

    def fail(self, cell: Cell, seeds: Sequence[int], error: BaseException) -> None:
        """Note that runs failed, and tell of it."""
        seed = f", seed {seeds[0]}" if len(seeds) == 1 else ""
        reason = str(getattr(error, "cause", None) or error).strip().splitlines()
        which = f"{cell.dataset}, {cell.model}{seed}: {[*reason, type(error).__name__][0]}"
        self.failures.append(which)
        self.on_event(Event(text=f"failed: {which}"))

    def _tell_found(self) -> None:
        self.found = sum(len(self.finished(cell)) for cell in self.cells)
        if self.found:
            were = "was" if self.found == 1 else "were"
            text = f"{counted(self.found, 'run')} {were} in the store already"
            self.on_event(Event(text=text, finished=self.found))


class _Queue:
    """Cells that wait to be begun, and the tasks that were."""

    def __init__(self, plan: PlanRun, submit: Submit, most: Most, alone: bool) -> None:
        self.plan, self.submit, self.alone = plan, submit, alone
        self.waiting = deque(plan.cells)
        self.most = {cell: most(cell) for cell in plan.cells}
        self.begun = {cell: set[int]() for cell in plan.cells}
        self.tasks: dict[Future[list[RunRecord]], tuple[Cell, RunKey, list[int], float]] = {}

    def begin(self) -> bool:
        """Begin what is free of the next cell; false where that is all begun elsewhere."""
        cell = self.waiting.popleft()
        graphs = self.plan.source(cell.dataset)
        key, start = cell.key(graphs), time.perf_counter()
        wanted = [seed for seed in cell.protocol.seeds if seed not in self.begun[cell]]
        seeds = self.plan.store.claim(key, wanted, self.most[cell]) if wanted else []
        if seeds:
            self.begun[cell].update(seeds)
            try:
                task = self.submit(graphs, cell, seeds)
            except BaseException:
                self.plan.store.release(key, seeds)
                raise
            self.tasks[task] = (cell, key, seeds, start)
            self.waiting.appendleft(cell)
        elif set(wanted) - self.plan.finished(cell):
            self.waiting.append(cell)
            return False
        return True

    def gather(self) -> None:
        """Store what has been trained in the meantime."""
        for task in wait(self.tasks, PAUSE, FIRST_COMPLETED).done:
            cell, key, seeds, start = self.tasks.pop(task)
            if (error := task.exception()) is None:
                self.plan.keep(cell, key, task.result(), time.perf_counter() - start)
                continue
            self.plan.store.release(key, seeds)
            if self.alone and len(seeds) > 1:  # one seed's misfortune is not the others'
                self.most[cell] = 1
                self.begun[cell].difference_update(seeds)
                if cell not in self.waiting:
                    self.waiting.appendleft(cell)
            else:
                self.plan.fail(cell, seeds, error)


def run_local(
    cells: Sequence[Cell],
    source: Source,
    store: Store,
    *,
    device: str = "auto",
    processes: int | None = 1,
    time_limit: float = inf,
    on_event: OnEvent = lambda event: None,
) -> PlanRun:
    """Train what the store lacks of the cells, in their order.

    On a GPU the seeds of a network are trained at once, and several networks side by side where
    that is asked for. Otherwise each seed is trained by itself, side by side on several cores where
    that pays, and stored when it is finished. Other processes may work on the same store: cells
    that they have begun are left to them and waited for.

    Args:
        cells: What is wanted.
        source: Gives the graphs of a data set.
        store: Where runs are kept.
        device: ``cpu``, ``cuda`` or ``auto``.
        processes: How many runs are trained at a time, on a GPU how many stacks of them; none
            means one for each core, and one on a GPU. By default one, in this process: others need
            a script whose code stands under ``if __name__ == "__main__"``.
        time_limit: Seconds after which nothing new is begun.
        on_event: Called with each event.
    """
    gpu = choose_device(device).type == "cuda"
    plan = PlanRun(cells, source, store, on_event)

    def most(cell: Cell) -> int | None:
        return 1 if not gpu or not learner_of(cell.architecture).has_epochs else None

    count = processes or (1 if gpu else usable_cores())
    with (
        shared_gpu(gpu and count > 1) as environment,
        Processes(count, device if gpu else "cpu", environment) as pool,
    ):
        local = _Local(plan, device, pool, worth=0.0 if gpu else WORTH)
        return plan.run(local.submit, time_limit, slots=local.slots, most=most, alone=True)


class _Local:
    """Trains in this process until it is seen that others pay, and then in those.

    Args:
        plan: What is run.
        device: On what this process trains.
        pool: The others; of one it is of no use.
        worth: Seconds of training ahead that are worth their start; 0: they are asked for.
    """

    def __init__(self, plan: PlanRun, device: str, pool: Processes, worth: float = WORTH) -> None:
        self.plan, self.device, self.pool, self.worth = plan, device, pool, worth
        self.left = sum(len(cell.protocol.seeds) for cell in plan.cells)
        self.slowest = 0.0

    def slots(self) -> int:
        """How many tasks there may be at a time."""
        ahead = self.left - self.plan.found - 1
        return self.pool.count if not self.worth or self.slowest * ahead > self.worth else 1

    def submit(self, graphs: Graphs, cell: Cell, seeds: list[int]) -> Future[list[RunRecord]]:
        """Train seeds of a cell: elsewhere, or here and now."""
        elsewhere = self.slots() > 1 and (not self.worth or _takes_one_thread(graphs, cell))
        self.left -= len(seeds)
        if elsewhere:
            own = sources(), cell, seeds, self.pool.device
            return self.pool.call(train_with_plugins, graphs, *own)
        done, start = Future[list[RunRecord]](), time.perf_counter()
        try:
            done.set_result(train_records(graphs, cell, seeds, self.device))
        except (LookHopsError, torch.cuda.OutOfMemoryError) as error:
            done.set_exception(error.with_traceback(None))  # which would keep its tensors alive
        self.slowest = max(self.slowest, time.perf_counter() - start)
        return done


def _takes_one_thread(graphs: Graphs, cell: Cell) -> bool:
    """Whether a training would leave the other cores alone, so that its numbers are the same."""
    return learner_of(cell.architecture).threads(graphs, cell.protocol) == 1

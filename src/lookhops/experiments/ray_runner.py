"""The runner of a cluster: Ray trains the cells, one task each; the driver stores the results."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import inf
from types import ModuleType
from typing import Any

from lookhops.errors import LookHopsError
from lookhops.experiments.keys import RunKey
from lookhops.experiments.plan import Cell
from lookhops.experiments.runners import PAUSE, PlanRun, Source, Tell, train_records
from lookhops.experiments.store import Store

#: A task whose worker or machine dies is begun again so often.
RETRIES = 3
#: Tasks that wait beside those that run, so that no worker is idle while the driver stores.
AHEAD = 2


def run_ray(
    cells: Sequence[Cell],
    source: Source,
    store: Store,
    *,
    address: str | None = None,
    cpus_per_task: float = 1.0,
    gpus_per_task: float = 0.0,
    device: str = "auto",
    time_limit: float = inf,
    tell: Tell = lambda text, finished: None,
) -> PlanRun:
    """Train what the store lacks of the cells on a Ray cluster.

    A task is one cell with all its missing seeds. The store stays with the driver: workers need
    neither it nor the data, which travel with the task.

    Args:
        cells, source, store, time_limit, tell: As for
            :func:`~lookhops.experiments.runners.run_local`.
        address: The cluster; none starts one on this machine.
        cpus_per_task, gpus_per_task: What a task takes of the cluster.
        device: What a task trains on.
    """
    ray = _import_ray()
    plan = PlanRun(cells, source, store, device, tell)
    plan.begin()
    with _connected(ray, address), store.beating():
        _check_resources(ray, cpus_per_task, gpus_per_task)
        task = ray.remote(train_records).options(
            num_cpus=cpus_per_task, num_gpus=gpus_per_task, max_retries=RETRIES
        )
        slots = partial(_slots, ray, cpus_per_task, gpus_per_task)
        _Driver(ray, task, plan).run(time.monotonic() + time_limit, slots)
    return plan.end()


class _Driver:
    """Hands out cells and stores what comes back."""

    def __init__(self, ray: ModuleType, task: Any, plan: PlanRun) -> None:
        self.ray, self.task, self.plan = ray, task, plan
        self.shared: dict[str, Any] = {}  # each data set goes to the cluster once
        self.flying: dict[Any, tuple[Cell, RunKey, list[int], float]] = {}
        self.failed: set[Cell] = set()

    def run(self, deadline: float, slots: Callable[[], int]) -> None:
        """Until every cell is stored, has failed, or the time is up."""
        waiting = list(self.plan.cells)
        while waiting or self.flying:
            room = slots() + AHEAD - len(self.flying)
            elsewhere = []
            if time.monotonic() >= deadline:
                waiting = []
            while waiting and room > 0:
                cell = waiting.pop(0)
                if self.begin(cell):
                    room -= 1
                elif not self.finished(cell):
                    elsewhere.append(cell)
            waiting += elsewhere
            self.gather()
            if waiting and not self.flying:
                time.sleep(PAUSE)  # another process has begun all that is left

    def begin(self, cell: Cell) -> bool:
        """Hand out what is free of a cell; whether there was anything."""
        key = self.plan.key(cell)
        seeds = self.plan.store.claim(key, cell.protocol.seeds)
        if not seeds:
            return False
        if cell.dataset not in self.shared:
            self.shared[cell.dataset] = self.ray.put(self.plan.source(cell.dataset))
        what = (self.shared[cell.dataset], cell.architecture, cell.protocol, seeds)
        reference = self.task.remote(*what, self.plan.device)
        self.flying[reference] = (cell, key, seeds, time.perf_counter())
        return True

    def finished(self, cell: Cell) -> bool:
        """Whether nothing of a cell is left to do, here or elsewhere."""
        flying = {s for other, _, seeds, _ in self.flying.values() if other == cell for s in seeds}
        return cell in self.failed or set(cell.protocol.seeds) <= self.plan.finished(cell) | flying

    def gather(self) -> None:
        """Store what has come back in the meantime."""
        if not self.flying:
            return
        ready, _ = self.ray.wait(list(self.flying), num_returns=1, timeout=PAUSE)
        for reference in ready:
            cell, key, seeds, start = self.flying.pop(reference)
            try:
                records = self.ray.get(reference)
            except self.ray.exceptions.RayError as error:
                self.plan.store.release(key, seeds)
                self.failed.add(cell)
                self.plan.fail(f"{cell.dataset}, {cell.model}", _reason(error))
                continue
            self.plan.keep(cell, key, records, time.perf_counter() - start)


def _import_ray() -> ModuleType:
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise LookHopsError(
            'The runner ray needs Ray, which is not installed: pip install "lookhops[ray]".'
        ) from error
    return ray


@contextmanager
def _connected(ray: ModuleType, address: str | None) -> Iterator[None]:
    """A connection to the cluster; one that was there before stays."""
    if ray.is_initialized():
        yield
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        options["include_dashboard"] = False
    try:
        _knock(address)
        ray.init(address=address, **options)
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise LookHopsError(
            f"No Ray cluster answers at {address or 'this machine'} ({reason}); start one with "
            "`ray start --head`."
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _knock(address: str | None) -> None:
    """Fail at once where nobody listens: Ray itself would try for many minutes."""
    found = re.fullmatch(r"(?:ray://)?([^/]+):(\d+)", address or "")
    if found:
        socket.create_connection((found[1], int(found[2])), timeout=10).close()


def _check_resources(ray: ModuleType, cpus: float, gpus: float) -> None:
    """Say so where a task could never start, instead of waiting for ever."""
    there = ray.cluster_resources()
    for what, wanted, option in (
        ("CPU", cpus, "--cpus-per-task"),
        ("GPU", gpus, "--gpus-per-task"),
    ):
        if wanted > there.get(what, 0):
            raise LookHopsError(
                f"A task wants {wanted:g} {what} ({option}), and the cluster has "
                f"{there.get(what, 0):g} in all."
            )


def _slots(ray: ModuleType, cpus: float, gpus: float) -> int:
    """How many tasks fit the cluster as it is now."""
    there = ray.cluster_resources()
    room = [there.get(k, 0) / want for k, want in (("CPU", cpus), ("GPU", gpus)) if want > 0]
    return max(1, int(min(room))) if room else 1


def _reason(error: Exception) -> str:
    """What went wrong in a task, in a line."""
    cause = getattr(error, "cause", None)
    lines = str(cause or error).strip().splitlines()
    return lines[-1] if lines else type(error).__name__

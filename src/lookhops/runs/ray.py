"""A plan on a Ray cluster: the cells of a plan, one task each."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from math import inf
from types import ModuleType
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.nn.plugins import sources
from lookhops.runs.plan import Cell
from lookhops.runs.record import RunRecord
from lookhops.runs.runners import PlanRun, Source
from lookhops.runs.store import Store
from lookhops.runs.train_cell import train_with_plugins
from lookhops.training.runs import OnEvent

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
    on_event: OnEvent = lambda event: None,
) -> PlanRun:
    """Train what the store lacks of the cells on a Ray cluster.

    A task is one cell with all its missing seeds. The store stays with the driver: workers need
    neither it nor the data, which travel with the task.

    Args:
        cells, source, store, time_limit, on_event: As for
            :func:`~lookhops.runs.runners.run_local`.
        address: The cluster; none starts one on this machine.
        cpus_per_task, gpus_per_task: What a task takes of the cluster.
        device: What a task trains on.
    """
    ray = import_ray()
    shared: dict[str, Any] = {}  # each data set goes to the cluster once
    plugins = sources()

    def submit(graphs: Graphs, cell: Cell, seeds: list[int]) -> Future[list[RunRecord]]:
        if cell.dataset not in shared:
            shared[cell.dataset] = ray.put(graphs)
        return task.remote(shared[cell.dataset], plugins, cell, seeds, device).future()

    with connected(ray, address):
        _check_resources(ray, cpus_per_task, gpus_per_task)
        task = ray.remote(train_with_plugins).options(
            num_cpus=cpus_per_task, num_gpus=gpus_per_task, max_retries=RETRIES
        )
        slots = partial(_slots, ray, cpus_per_task, gpus_per_task)
        return PlanRun(cells, source, store, on_event).run(submit, time_limit, slots=slots)


def import_ray() -> ModuleType:
    """Ray, or a sentence that says how to get it."""
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise LookHopsError(
            'This needs Ray, which is not installed: pip install "lookhops[ray]".'
        ) from error
    return ray


@contextmanager
def connected(ray: ModuleType, address: str | None) -> Iterator[None]:
    """A connection to the cluster; one that was there before stays."""
    if ray.is_initialized():
        yield
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        options["include_dashboard"] = False
    try:
        # Fail at once where nobody listens: Ray itself would try for many minutes.
        if found := re.fullmatch(r"(?:ray://)?([^/]+):(\d+)", address or ""):
            socket.create_connection((found[1], int(found[2])), timeout=10).close()
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
    """How many tasks fit the cluster as it is now, and a few that wait for their turn."""
    there = ray.cluster_resources()
    room = [there.get(k, 0) / want for k, want in (("CPU", cpus), ("GPU", gpus)) if want > 0]
    return max(1, int(min(room, default=1))) + AHEAD

"""A plan on a Ray cluster: the cells of a plan, one task each."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.nn.registry import loaded_plugins, with_plugins
from lookhops.runs.executor import Executor, train_sent
from lookhops.runs.plan import Cell
from lookhops.runs.record import RunRecord
from lookhops.training.runs import OnEpoch

#: A task whose worker or machine dies is begun again so often.
RETRIES = 3
#: Tasks that wait beside those that run, so that no worker is idle while the driver stores.
AHEAD = 2


class Ray(Executor):
    """A Ray cluster; a task is one cell with all its missing seeds.

    The store stays with the driver: workers need neither it nor the data, which travel with the
    task. Without an address, a cluster is started on this machine.
    """

    def __init__(
        self,
        address: str | None = None,
        cpus_per_task: float = 1.0,
        gpus_per_task: float = 0.0,
        device: str = "auto",
    ) -> None:
        self.address, self.device = address, device
        self.wanted = {"CPU": cpus_per_task, "GPU": gpus_per_task}

    @contextmanager
    def started(self) -> Iterator[None]:
        self.ray = import_ray()
        self.sent: dict[int, Any] = {}  # each data set goes to the cluster once
        with connected(self.ray, self.address):
            self._check_resources()
            self.task = self.ray.remote(_train).options(
                num_cpus=self.wanted["CPU"], num_gpus=self.wanted["GPU"], max_retries=RETRIES
            )
            yield

    def slots(self, waiting: int) -> int:
        """How many tasks fit the cluster as it is now, and a few that wait for their turn."""
        there = self.ray.cluster_resources()
        fit = [there.get(what, 0) / count for what, count in self.wanted.items() if count > 0]
        return max(1, int(min(fit, default=1))) + AHEAD

    def submit(self, cell: Cell, seeds: list[int], on_epoch: OnEpoch) -> Future[list[RunRecord]]:
        """Train on a worker; its epochs are no events here."""
        if id(cell.graphs) not in self.sent:
            self.sent[id(cell.graphs)] = self.ray.put(cell.graphs)
        sent, bare = self.sent[id(cell.graphs)], cell.without_graphs()
        return self.task.remote(sent, loaded_plugins(), bare, seeds, self.device).future()

    def _check_resources(self) -> None:
        """Refuse a task that could never start, instead of waiting for ever."""
        there = self.ray.cluster_resources()
        for what, wanted in self.wanted.items():
            if wanted > there.get(what, 0):
                raise LookHopsError(
                    f"A task wants {wanted:g} {what} (--{what.lower()}s-per-task), and the cluster "
                    f"has {there.get(what, 0):g} in all."
                )


def _train(
    graphs: Graphs, plugins: Mapping[str, str], cell: Cell, seeds: Sequence[int], device: str
) -> list[RunRecord]:
    """Train on a worker, which has the user's layers from ``plugins`` alone: names and texts."""
    with with_plugins(plugins):
        return train_sent(graphs, cell, seeds, device)


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
        # Fail at once where nothing listens: Ray itself would try for many minutes.
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

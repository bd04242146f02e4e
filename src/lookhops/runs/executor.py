"""Executors: where the cells of a plan are trained; here the cores and GPUs of this machine."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import torch

from lookhops.core.errors import LookHopsError
from lookhops.core.machine import usable_cores
from lookhops.graphs import Graphs
from lookhops.learners import learner_of
from lookhops.nn.registry import loaded_plugins, with_plugins
from lookhops.runs.plan import Cell
from lookhops.runs.processes import Processes
from lookhops.runs.record import RunRecord, record_run
from lookhops.tasks import task_of
from lookhops.training.device import choose_device
from lookhops.training.runs import OnEpoch

#: Seconds of training ahead that are worth the start of other processes.
WORTH = 10.0


class Executor(ABC):
    """Trains seeds of cells somewhere; it is entered before and left after."""

    #: Whether seeds that failed together are tried again one by one.
    retries_alone = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:  # noqa: B027 -- not every one has to end something
        """End what was started."""

    def most(self, cell: Cell) -> int | None:
        """How many seeds of a cell make a task; none is all of them."""
        return None

    @abstractmethod
    def slots(self, waiting: int) -> int:
        """How many tasks there may be at a time, given how many runs are not begun yet."""

    @abstractmethod
    def submit(
        self, graphs: Graphs, cell: Cell, seeds: list[int], on_epoch: OnEpoch
    ) -> Future[list[RunRecord]]:
        """Begin to train these seeds of a cell; ``on_epoch`` is called where that is done here."""


class Local(Executor):
    """Trains in this process until it is seen that others pay, and then in those.

    On a GPU the seeds of a network are trained at once, and several networks side by side where
    that is asked for. Otherwise each seed is trained by itself, side by side on several cores where
    that pays, and stored when it is finished.

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
        self.slowest, self.is_beside = 0.0, False

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            environment = stack.enter_context(shared_gpu(self.gpu and self.count > 1))
            self.pool = stack.enter_context(Processes(self.count, environment))
            self.ending = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self.ending.close()

    def most(self, cell: Cell) -> int | None:
        """One on a CPU, and of what has no epochs."""
        return None if self.gpu and learner_of(cell.architecture).has_epochs else 1

    def slots(self, waiting: int) -> int:
        """One, until the runs ahead are worth the start of other processes."""
        pays = self.gpu or self.slowest * (waiting - 1) > WORTH
        self.is_beside = pays and self.count > 1
        return self.count if self.is_beside else 1

    def submit(
        self, graphs: Graphs, cell: Cell, seeds: list[int], on_epoch: OnEpoch
    ) -> Future[list[RunRecord]]:
        """Train elsewhere, or here and now."""
        # What takes several threads is trained here: its numbers follow from their number.
        if self.is_beside and (
            self.gpu or learner_of(cell.architecture).threads(graphs, cell.protocol) == 1
        ):
            device = self.device if self.gpu else "cpu"
            return self.pool.call(train_with_plugins, graphs, loaded_plugins(), cell, seeds, device)
        done, start = Future[list[RunRecord]](), time.perf_counter()
        try:
            done.set_result(train_records(graphs, cell, seeds, self.device, on_epoch))
        except (LookHopsError, torch.cuda.OutOfMemoryError) as error:
            done.set_exception(error.with_traceback(None))  # which would keep its tensors alive
        self.slowest = max(self.slowest, time.perf_counter() - start)
        return done


def train_records(
    graphs: Graphs,
    cell: Cell,
    seeds: Sequence[int],
    device: str = "auto",
    on_epoch: OnEpoch = lambda epoch: None,
) -> list[RunRecord]:
    """Train a cell's model with these seeds, all at once where the device can; a record of each.

    A learner without epochs is fitted on the CPU.
    """
    protocol = replace(cell.protocol, seeds=tuple(seeds))
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


def train_with_plugins(
    graphs: Graphs, plugins: Mapping[str, str], cell: Cell, seeds: Sequence[int], device: str
) -> list[RunRecord]:
    """The same in a process that has the user's layers from these files alone: name and text."""
    with with_plugins(plugins):
        return train_records(graphs, cell, seeds, device)


#: What Linux knows of this process; writing 5 to the second makes the peak begin again.
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass
class Peak:
    """Bytes at the peak, known when the block has ended; none where the system does not say."""

    size: int | None = None


@contextmanager
def peak_memory(device: torch.device) -> Iterator[Peak]:
    """Measure the peak of the block: on a GPU what PyTorch held there, else the whole process.

    The process counts with all that was in it before, Python and PyTorch among it. Where the system
    cannot begin again, the peak is that of the process so far.
    """
    peak = Peak()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        yield peak
        peak.size = torch.cuda.max_memory_allocated(device)
        return
    with suppress(OSError):
        RESET.write_text("5")
    yield peak
    peak.size = _process_peak()


def _process_peak() -> int | None:
    with suppress(OSError):
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    try:
        import resource
    except ImportError:  # Windows
        return None
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else 1024 * used


#: What starts NVIDIA's MPS, which lets kernels of several processes run side by side.
CONTROL = "nvidia-cuda-mps-control"


@contextmanager
def shared_gpu(wanted: bool = True) -> Iterator[Mapping[str, str]]:
    """What processes must find in their environment to share a GPU, while the block runs.

    MPS is started for the block where the machine has it and it is not running; without it, and
    where it is not ``wanted``, processes take turns, which is slower and gives the same numbers.
    """
    control = shutil.which(CONTROL) if wanted else None
    if control is None or "CUDA_MPS_PIPE_DIRECTORY" in os.environ:
        yield {}
        return
    with TemporaryDirectory(prefix="lookhops-mps-") as folder:
        folders = {
            f"CUDA_MPS_{what}_DIRECTORY": str(Path(folder) / what) for what in ("PIPE", "LOG")
        }
        for path in folders.values():
            Path(path).mkdir()
        every = {**os.environ, **folders}
        started = subprocess.run([control, "-d"], env=every, capture_output=True, check=False)
        try:
            yield folders if started.returncode == 0 else {}
        finally:
            if started.returncode == 0:
                quit_it = {"input": b"quit -t 5\n", "timeout": 30, "capture_output": True}
                subprocess.run([control], env=every, check=False, **quit_it)  # type: ignore[call-overload]

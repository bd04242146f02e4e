"""Trainings side by side on the cores of this machine, in processes of their own."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from threading import Lock, Thread
from typing import Any, TypeVar

import torch

from lookhops.errors import LookHopsError
from lookhops.experiments.plan import Cell
from lookhops.experiments.train_cell import train_with_plugins
from lookhops.graphs import Graphs
from lookhops.models.records import RunRecord
from lookhops.nn.plugins import sources

Found = TypeVar("Found")


class Processes:
    """Processes that train on the CPU, each with one thread; started when they are needed.

    Args:
        count: How many at most.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._threads = ThreadPoolExecutor(count)  # each waits for a process
        self._all: list[_Process] = []
        self._idle: list[_Process] = []
        self._lock, self._stopped = Lock(), False

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *error: object) -> None:
        """End the processes; what they are at is dropped."""
        with self._lock:
            self._stopped = True
            for process in self._all:
                process.kill()
        self._threads.shutdown(cancel_futures=True)

    def submit(self, graphs: Graphs, cell: Cell, seeds: Sequence[int]) -> Future[list[RunRecord]]:
        """Train seeds of a cell in the next process that has nothing to do."""
        return self.call(train_with_plugins, graphs, sources(), cell, list(seeds), "cpu")

    def call(self, work: Callable[..., Found], graphs: Graphs, *rest: Any) -> Future[Found]:
        """Call a function of a module in the next process that has nothing to do.

        Args:
            work: The function.
            graphs: Its first argument, which a process is sent once.
            rest: Its other arguments.
        """
        return self._threads.submit(self._call, work, graphs, rest)

    def _call(self, work: Callable[..., Found], graphs: Graphs, rest: tuple[Any, ...]) -> Found:
        with self._lock:
            if self._stopped:
                raise LookHopsError("It was stopped before it began.")
            if not self._idle:
                self._idle.append(_Process())
                self._all.append(self._idle[-1])
            process = self._idle.pop()
        found = process.call(work, graphs, rest)
        with self._lock:
            self._idle.append(process)
        return found


class _Process:
    """A process that trains, as the one that started it sees it."""

    def __init__(self) -> None:
        ways = multiprocessing.get_all_start_methods()  # never as a copy: it would lack our threads
        context = multiprocessing.get_context("forkserver" if "forkserver" in ways else "spawn")
        self.connection, theirs = context.Pipe()
        start = context.Process  # type: ignore[attr-defined]
        self.process = start(target=_work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.graphs: Graphs | None = None  # what it has

    def call(self, work: Callable[..., Found], graphs: Graphs, rest: tuple[Any, ...]) -> Found:
        """Call a function there."""
        new = None if graphs is self.graphs else graphs
        self.graphs = graphs
        try:
            # As bytes: PyTorch would pass tensors through files that both have open.
            self.connection.send_bytes(pickle.dumps((work, new, rest)))
            found: Found | LookHopsError = pickle.loads(self.connection.recv_bytes())
        except (EOFError, OSError) as error:
            raise LookHopsError(
                "The process that trained it ended: was it killed, or was there too little memory? "
                "Fewer at a time (--processes) need less."
            ) from error
        if isinstance(found, LookHopsError):
            raise found
        return found

    def kill(self) -> None:
        """End it, whatever it is at."""
        self.process.kill()
        self.process.join()


def _work(tasks: Connection) -> None:
    """What the process does: call what it is sent, until whoever sends it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command, which ends us
    Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    graphs: Graphs | None = None
    with suppress(EOFError, OSError):
        while True:
            work, new, rest = pickle.loads(tasks.recv_bytes())
            graphs = new or graphs
            try:
                found = work(graphs, *rest)
            except LookHopsError as error:
                found = LookHopsError(str(error))
            tasks.send_bytes(pickle.dumps(found))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

"""Processes of this machine that compute beside this one, on its cores or its GPU."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from traceback import format_exception
from types import MappingProxyType
from typing import Any, TypeVar

import torch

from lookhops.core.errors import LookHopsError
from lookhops.core.machine import keep_memory
from lookhops.graphs import Graphs
from lookhops.nn.registry import LOADED, load_plugin
from lookhops.training.runs import NotFinite

Result = TypeVar("Result")
#: Asks a process a question, while it waits for an answer to its message.
Ask = Callable[[Any], Any]
#: Receives a message of a process.
Listen = Callable[[Any, Ask], None]
#: Sends a message, given what answers questions: the other end of a :data:`Listen`.
Tell = Callable[[Any, Ask], None]

LOST = (
    "The process that trained it ended: was it killed, or was there too little memory? Fewer at a "
    "time (--processes) need less."
)
GUARD = (
    "A script that asks for processes lies in a file and keeps what it runs below "
    '`if __name__ == "__main__":`.'
)


class CannotStart(LookHopsError):
    """No process could be started: some containers have neither the memory nor the right."""


class ProcessLost(LookHopsError):
    """A process ended while it computed."""


class Processes(AbstractContextManager["Processes"]):
    """Processes that compute, each with one thread of the CPU; started when they are needed."""

    def __init__(self, count: int, environment: Mapping[str, str] = MappingProxyType({})) -> None:
        self.environment = dict(environment)
        self._threads = ThreadPoolExecutor(count)  # each waits for a process
        self.started: list[_Process] = []
        self._idle: list[_Process] = []
        self._lock, self._stopped = Lock(), False

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._stopped = True
            for process in self.started:
                process.kill()
        self._threads.shutdown(cancel_futures=True)

    def call(
        self,
        work: Callable[..., Result],
        graphs: Graphs,
        *arguments: Any,
        listen: Listen | None = None,
    ) -> Future[Result]:
        """Call a function of a module in the next idle process, which has the user's layers.

        A process is sent the graphs once. ``listen`` receives the function's messages, in a thread
        of this process: then its last argument is a :data:`Tell`. What is raised here ends it.
        """
        return self._threads.submit(self._call, work, graphs, arguments, listen)

    def _call(self, work: Any, graphs: Graphs, arguments: Sequence[Any], listen: Any) -> Any:
        with self._lock:
            if self._stopped:
                raise LookHopsError("It was stopped before it began.")
            process = self._idle.pop() if self._idle else self._start()
        try:
            result = process.call(work, graphs, arguments, listen)
        except BaseException:  # it is dead, or in an unknown state
            process.kill()
            raise
        with self._lock:
            self._idle.append(process)
        if isinstance(result, Exception):
            raise result
        return result

    def _start(self) -> _Process:
        try:
            self.started.append(_Process(self.environment))
        except (OSError, EOFError) as error:
            raise CannotStart(f"No other process could be started ({error}).") from error
        return self.started[-1]


class _Process:
    """A process that computes, as the one that started it sees it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        methods = multiprocessing.get_all_start_methods()  # never "fork": it would lack our threads
        context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        self.connection, theirs = context.Pipe()
        start = context.Process  # type: ignore[attr-defined]
        self.process = start(target=_work, args=(theirs, environment), daemon=True)
        self.process.start()
        theirs.close()
        self.graphs: Graphs | None = None  # those that it has
        self.has_answered = False

    def call(
        self, work: Any, graphs: Graphs, arguments: Sequence[Any], listen: Listen | None
    ) -> Any:
        """Call a function there; an error that it raises is returned, not raised."""
        new = None if graphs is self.graphs else graphs
        self.graphs = graphs
        task = work, [*LOADED], new, arguments, listen is not None
        is_result, said = self._ask(task)
        while not is_result:
            assert listen is not None
            listen(said, self._ask)
            is_result, said = self._ask(None)  # it continues
        return said

    def _ask(self, question: Any) -> Any:
        """What it says next, once it has been sent something."""
        content = pickle.dumps(question)  # else PyTorch would pass tensors through shared files
        try:
            self.connection.send_bytes(content)
            answer = self.connection.recv_bytes()
        except (EOFError, OSError) as error:
            raise ProcessLost(LOST if self.has_answered else f"{LOST} {GUARD}") from error
        self.has_answered = True
        return pickle.loads(answer)

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


def _work(tasks: Connection, environment: Mapping[str, str]) -> None:
    """What the process does: call what it is sent, until whoever sends it ends."""
    os.environ.update(environment)
    keep_memory()
    for number in (signal.SIGINT, signal.SIGTERM):  # these are for the command, which ends us
        signal.signal(number, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    graphs: Graphs | None = None

    def send(is_result: bool, said: Any) -> None:
        tasks.send_bytes(pickle.dumps((is_result, said)))

    def receive() -> Any:
        return pickle.loads(tasks.recv_bytes())

    def tell(said: Any, answer: Ask) -> None:
        send(False, said)
        while (question := receive()) is not None:
            tasks.send_bytes(pickle.dumps(answer(question)))

    with suppress(EOFError, OSError):  # the other end of the connection is gone
        while True:
            work, plugins, new, arguments, has_listener = receive()
            graphs = graphs if new is None else new
            try:
                for path in plugins:
                    load_plugin(path)
                result = work(graphs, *arguments, *([tell] if has_listener else []))
            except Exception as error:
                result = _sendable(error)
            send(True, result)


def _sendable(error: Exception) -> Exception:
    """An error as it can be sent: with where it was raised, and as text where it must be."""
    if isinstance(error, NotFinite):
        return NotFinite(str(error), error.runs)
    if isinstance(error, LookHopsError | torch.cuda.OutOfMemoryError):
        return LookHopsError(str(error))
    error.add_note("In another process:\n" + "".join(format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError("".join(format_exception(error)))
    return error.with_traceback(None)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


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

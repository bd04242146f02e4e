"""Work side by side on the cores or the GPU of this machine, in processes of its own."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from multiprocessing.connection import Connection
from threading import Lock, Thread
from traceback import format_exception
from types import MappingProxyType
from typing import Any, TypeVar

import torch

from lookhops.core.errors import LookHopsError
from lookhops.core.machine import keep_memory
from lookhops.graphs import Graphs

Found = TypeVar("Found")
#: Asks a process a question, while it waits for an answer to its message.
Ask = Callable[[Any], Any]
#: Receives the messages of a process.
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
        self._all: list[_Process] = []
        self._idle: list[_Process] = []
        self._lock, self._stopped = Lock(), False

    @property
    def are_started(self) -> bool:
        """Whether there is one already."""
        return bool(self._all)

    def __exit__(self, *error: object) -> None:
        """End the processes; what they are at is dropped."""
        with self._lock:
            self._stopped = True
            for process in self._all:
                process.kill()
        self._threads.shutdown(cancel_futures=True)

    def call(
        self,
        work: Callable[..., Found],
        graphs: Graphs,
        *arguments: Any,
        listen: Listen | None = None,
    ) -> Future[Found]:
        """Call a function of a module in the next process that has nothing to do.

        Args:
            work: The function.
            graphs: Its first argument, which a process is sent once.
            arguments: Its other arguments.
            listen: Receives its messages, in a thread of this process: the function then has a
                :data:`Tell` as its last argument. What is raised here ends it.
        """

        def in_thread() -> Found:
            with self._lock:
                if self._stopped:
                    raise LookHopsError("It was stopped before it began.")
                process = self._idle.pop() if self._idle else self._start()
            try:
                found = process.call(work, graphs, arguments, listen)
            except BaseException:  # it is dead, or in an unknown state
                process.kill()
                raise
            with self._lock:
                self._idle.append(process)
            if isinstance(found, Exception):
                raise found
            return found

        return self._threads.submit(in_thread)

    def _start(self) -> _Process:
        try:
            self._all.append(_Process(self.environment))
        except (OSError, EOFError) as error:
            raise CannotStart(f"No other process could be started ({error}).") from error
        return self._all[-1]


class _Process:
    """A process that computes, as the one that started it sees it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        ways = multiprocessing.get_all_start_methods()  # never as a copy: it would lack our threads
        context = multiprocessing.get_context("forkserver" if "forkserver" in ways else "spawn")
        self.connection, theirs = context.Pipe()
        start = context.Process  # type: ignore[attr-defined]
        self.process = start(target=_work, args=(theirs, environment), daemon=True)
        self.process.start()
        theirs.close()
        self.graphs: Graphs | None = None  # what it has
        self.has_answered = False

    def call(
        self,
        work: Callable[..., Any],
        graphs: Graphs,
        arguments: Sequence[Any],
        listen: Listen | None,
    ) -> Any:
        """Call a function there; an error that it raises is given, not raised."""
        new = None if graphs is self.graphs else graphs
        self.graphs = graphs
        is_over, said = self._ask((work, new, arguments, listen is not None))
        while not is_over:
            assert listen is not None
            listen(said, self._ask)
            is_over, said = self._ask(None)  # it continues
        return said

    def _ask(self, question: Any) -> Any:
        """What it says next, once it has been sent something."""
        try:
            _send(self.connection, question)
            answer = _receive(self.connection)
            self.has_answered = True
        except _Gone as error:
            raise ProcessLost(LOST if self.has_answered else f"{LOST} {GUARD}") from error
        return answer

    def kill(self) -> None:
        """End it, whatever it is at."""
        self.process.kill()
        self.process.join()


def _sendable(error: Exception) -> Exception:
    """An error as it can be sent: with where it was raised, and as text where it must be."""
    if isinstance(error, LookHopsError | torch.cuda.OutOfMemoryError):
        return LookHopsError(str(error))
    error.add_note("In another process:\n" + "".join(format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError("".join(format_exception(error)))
    return error.with_traceback(None)


class _Gone(Exception):
    """The process at the other end of a connection has ended."""


def _send(connection: Connection, said: Any) -> None:
    # As bytes: PyTorch would pass tensors through files that both have open.
    content = pickle.dumps(said)
    try:
        connection.send_bytes(content)
    except OSError as error:
        raise _Gone from error


def _receive(connection: Connection) -> Any:
    try:
        content = connection.recv_bytes()
    except (EOFError, OSError) as error:
        raise _Gone from error
    return pickle.loads(content)


def _work(tasks: Connection, environment: Mapping[str, str]) -> None:
    """What the process does: call what it is sent, until whoever sends it ends."""
    os.environ.update(environment)
    keep_memory()
    for number in (signal.SIGINT, signal.SIGTERM):  # these are for the command, which ends us
        signal.signal(number, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    with suppress(_Gone):
        _answer(tasks)


def _answer(tasks: Connection) -> None:
    """Call what is sent, until the connection ends."""
    graphs: Graphs | None = None

    def tell(said: Any, answer: Ask) -> None:
        _send(tasks, (False, said))
        while (question := _receive(tasks)) is not None:
            _send(tasks, answer(question))

    while True:
        work, new, arguments, has_listener = _receive(tasks)
        graphs = graphs if new is None else new
        try:
            found = work(graphs, *arguments, *([tell] if has_listener else []))
        except _Gone:
            raise
        except Exception as error:
            found = _sendable(error)
        _send(tasks, (True, found))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

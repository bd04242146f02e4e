"""One worker process that parses molecules, and what is known of it when it dies.

The worker says in shared memory which molecule it is at, so that whoever finds it dead knows which
one that was. Before each molecule it sets a timer of processor time, whose signal ends it: what
RDKit does cannot be interrupted in any other way.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.sharedctypes import RawArray
from queue import SimpleQueue
from threading import Thread
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.sources.rdkit.parsing import Parsed, Parsing, parse

#: Bytes that a worker may ask for: no molecule of a sensible size takes a tenth of that.
MOST_MEMORY = 4 << 30
CRASHED = "RDKit crashes on it"
HUNG = "RDKit hangs on it"


@dataclass(eq=False)
class Task:
    """Molecules to parse, and what came of it.

    Args:
        structures: The molecules.
        how: How they are parsed.
        seconds: Processor time that each may take.
        found: What RDKit says of them, or why nothing can be said.
        pieces: Where a worker died of one of them: that one, those before and those after it.
    """

    structures: Sequence[str]
    how: Parsing
    seconds: float
    found: Parsed | LookHopsError | None = None
    pieces: Sequence[Task] = ()

    @property
    def done(self) -> bool:
        """Whether there is a result."""
        return self.found is not None or (
            bool(self.pieces) and all(piece.done for piece in self.pieces)
        )

    def result(self) -> Parsed:
        """What RDKit says of the molecules."""
        if isinstance(self.found, LookHopsError):
            raise self.found
        return self.found or Parsed.join([piece.result() for piece in self.pieces])

    def died(self, number: int, reason: str) -> list[Task]:
        """A worker died of a molecule; what is to be parsed again.

        A molecule that is alone has failed, and so has one that took too long. Another has a second
        chance: workers are also ended by who wants their memory.
        """
        if len(self.structures) == 1:
            self.found = Parsed.failed(reason, self.how)
            return []
        slices = (slice(number), slice(number, number + 1), slice(number + 1, None))
        parts = [Task(self.structures[part], self.how, self.seconds) for part in slices]
        if reason == HUNG:
            parts[1].found = Parsed.failed(reason, self.how)
        self.pieces = [part for part in parts if len(part.structures)]
        return [piece for piece in self.pieces if not piece.done]


class Worker:
    """A worker process, as the process that started it sees it.

    Tasks are answered in the order in which they are given. It sends answers in another
    thread, and takes the next task whether or not the answer has been received, so giving it one
    never waits for long.

    Args:
        context: How processes are started.
    """

    def __init__(self, context: BaseContext) -> None:
        self.connection, theirs = context.Pipe()
        # The task that it began last, counted from 1, and the molecule in it.
        self.place = RawArray("q", 2)
        self.process = context.Process(  # type: ignore[attr-defined]
            target=_work, args=(theirs, self.place), daemon=True
        )
        try:
            self.process.start()
        except BaseException:
            self.connection.close()
            raise
        finally:
            theirs.close()
        self.given = 0
        self.tasks: deque[Task] = deque()

    def give(self, task: Task) -> None:
        """Send a task; where the worker is dead, :meth:`receive` will find out."""
        self.tasks.append(task)
        self.given += 1
        with suppress(OSError):
            self.connection.send((list(task.structures), task.how, task.seconds))

    def receive(self) -> bool:
        """Wait for the answer to the first of the tasks; whether the worker lives."""
        try:
            found = self.connection.recv()
        except (EOFError, OSError):
            return False
        self.tasks.popleft().found = found
        return True

    def post_mortem(self) -> list[Task]:
        """What a dead worker leaves to be parsed again, by others."""
        self.process.join()
        self.connection.close()
        begun, number = self.place
        if not begun:
            raise LookHopsError(
                "A worker process that parses molecules ended before it began. A script that asks "
                "for processes lies in a file and keeps what it runs below "
                '`if __name__ == "__main__":`; 0 processes (--processes 0) parse in this one.'
            )
        answered = self.given - len(self.tasks)
        again: list[Task] = []
        for place, task in enumerate(self.tasks, answered + 1):
            again += task.died(number, self._reason()) if place == begun else [task]
        return again

    def _reason(self) -> str:
        timer = getattr(signal, "SIGPROF", None)
        return HUNG if timer and self.process.exitcode == -timer else CRASHED

    def kill(self) -> None:
        """End the process, whatever it is at."""
        self.process.kill()
        self.process.join()
        self.connection.close()


def _work(tasks: Connection, place: Any) -> None:
    """What the process does: parse what it is sent, until whoever sends it ends."""
    _prepare()
    answers: SimpleQueue[Parsed | LookHopsError] = SimpleQueue()
    Thread(target=_send, args=(answers, tasks), daemon=True).start()
    parent = multiprocessing.parent_process()
    assert parent is not None
    taken = 0
    while True:
        wait([tasks, parent.sentinel])
        if not tasks.poll():
            return
        try:
            structures, how, seconds = tasks.recv()
        except (EOFError, OSError):
            return
        taken += 1

        def begin(number: int, task: int = taken, seconds: float = seconds) -> None:
            place[:] = task, number
            _set_timer(seconds)

        try:
            answers.put(parse(structures, how, begin))
        except LookHopsError as error:
            answers.put(error)
        except MemoryError:
            os._exit(1)
        _set_timer(0)


def _send(answers: SimpleQueue[Parsed | LookHopsError], receiver: Connection) -> None:
    with suppress(OSError):  # the receiver has ended
        while True:
            receiver.send(answers.get())


def _set_timer(seconds: float) -> None:
    """End this process once it has computed for so long; 0: never."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _prepare() -> None:
    """What a worker does first: Ctrl-C is for the command, which ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(1 << 17)  # thousands of atoms a second, and no circle of references
    if hasattr(signal, "SIGPROF"):
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

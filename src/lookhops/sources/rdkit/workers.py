"""Worker processes that parse molecules: as many as there are cores, and none takes us along.

RDKit is a library of C++, and a molecule that it does not expect may end the process that asks, or
keep it for hours. A worker writes in shared memory which molecule it is at, and sets a timer of
processor time before each, whose signal ends it: RDKit cannot be interrupted in any other way. So
a dead worker is noticed, its molecule is named, and the others are parsed again.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.sharedctypes import RawArray
from queue import SimpleQueue
from threading import Thread
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.machine import usable_cores
from lookhops.sources.rdkit.parsing import Parsed, Parsing, parse

#: Molecules that a worker is given at a time.
CHUNK = 512
#: Chunks that a worker has at a time: the one that it is at, and the next.
AT_ONCE = 2
#: Processor time that a molecule may take; more where molecules of over a thousand atoms may come.
SECONDS = 10.0
#: Bytes that a worker may ask for: no molecule of a sensible size takes a tenth of that.
MOST_MEMORY = 4 << 30
CRASHED = "RDKit crashes on it"
HUNG = "RDKit hangs on it"
_AS_SMILES = Parsing()


class ParsingPool:
    """Parses molecules in worker processes, which are started when they are needed.

    Args:
        processes: How many workers; by default one for each core. 0 parses in this process, as is
            done where no process can be started.
    """

    def __init__(self, processes: int | None = None) -> None:
        self.processes = usable_cores() if processes is None else processes
        self.workers: list[Worker] = []
        self.tasks: deque[Task] = deque()  # that no worker has

    def __enter__(self) -> ParsingPool:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def warm_up(self) -> None:
        """Have RDKit loaded while this process does something else."""
        if not self.processes or self.workers:
            return
        if _context().get_start_method() != "forkserver":
            self._start()
            return
        from multiprocessing import forkserver

        with suppress(OSError):
            forkserver.ensure_running()  # the first worker would wait for it

    def stop(self) -> None:
        self.tasks.clear()
        while self.workers:
            self.workers.pop().kill()

    def map(self, chunks: Iterable[Sequence[str]], how: Parsing = _AS_SMILES) -> Iterator[Parsed]:
        """Parse chunk after chunk; no more than a few are read ahead of the one that is given."""
        ahead: deque[Task] = deque()
        for chunk in chunks:
            ahead.append(Task(chunk, how))
            self.tasks.append(ahead[-1])
            self._exchange(0)
            if len(ahead) > AT_ONCE * self.processes:
                yield self._result(ahead.popleft())
        while ahead:
            yield self._result(ahead.popleft())

    def _result(self, task: Task) -> Parsed:
        while not task.done:
            self._exchange(None)
        self._exchange(0)  # workers have something to do while the caller has the result
        return task.result()

    def _exchange(self, seconds: float | None) -> None:
        """Give tasks to workers, and take the answers that come in so many seconds, or till one."""
        self._hand_out()
        busy = {worker.connection: worker for worker in self.workers if worker.tasks}
        for connection in wait(list(busy), seconds) if busy else ():
            worker = busy[connection]  # type: ignore[index]
            if not worker.receive():
                self.workers.remove(worker)
                self.tasks.extendleft(reversed(worker.post_mortem()))
        self._hand_out()

    def _hand_out(self) -> None:
        """Give tasks to the workers that have least to do; where all have something, start one."""
        while self.tasks:
            if len(self.workers) < self.processes and all(one.tasks for one in self.workers):
                self._start()
            if not self.processes:
                task = self.tasks.popleft()
                task.parsed = parse(task.structures, task.how)
                continue
            worker = min(self.workers, key=lambda worker: len(worker.tasks))
            if len(worker.tasks) >= AT_ONCE:
                return
            worker.give(self.tasks.popleft())

    def _start(self) -> None:
        try:
            self.workers.append(Worker(_context()))
        except OSError:  # some containers have neither the memory nor the right
            self.processes = len(self.workers)


def _context() -> BaseContext:
    """How workers are started: never as copies of this process, whose threads they would lack."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lookhops.sources.rdkit.workers", "rdkit.Chem.rdCIPLabeler"])
    return context


@dataclass(eq=False)
class Task:
    """Molecules to parse, and what RDKit says of them, or why nothing can be said.

    Where a worker died of one of them, there are pieces: those before, that one and those after it.
    """

    structures: Sequence[str]
    how: Parsing
    parsed: Parsed | LookHopsError | None = None
    pieces: Sequence[Task] = ()

    @property
    def done(self) -> bool:
        if self.pieces:
            return all(piece.done for piece in self.pieces)
        return self.parsed is not None

    def result(self) -> Parsed:
        if isinstance(self.parsed, LookHopsError):
            raise self.parsed
        return self.parsed or Parsed.join([piece.result() for piece in self.pieces])

    def died(self, number: int, reason: str) -> list[Task]:
        """A worker died of a molecule; what is to be parsed again.

        A molecule that is alone has failed, and so has one that took too long. Another has a second
        chance: workers are also ended by who wants their memory.
        """
        slices = (slice(number), slice(number, number + 1), slice(number + 1, None))
        before, one, after = (Task(self.structures[part], self.how) for part in slices)
        if reason == HUNG or len(self.structures) == 1:
            one.parsed = Parsed.failed(reason, self.how)
        self.pieces = [piece for piece in (before, one, after) if len(piece.structures)]
        return [piece for piece in self.pieces if not piece.done]


class Worker:
    """A worker process, as the process that started it sees it.

    Tasks are answered in the order in which they are given. The worker sends answers in another
    thread, and takes the next task whether or not the answer has been received, so giving it one
    never waits for long.
    """

    def __init__(self, context: BaseContext) -> None:
        self.connection, theirs = context.Pipe()
        # The task that it began last, counted from 1, and the molecule in it.
        self.position = RawArray("q", 2)
        self.process = context.Process(  # type: ignore[attr-defined]
            target=_work, args=(theirs, self.position), daemon=True
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
        self.tasks.append(task)
        self.given += 1
        seconds = SECONDS * max(1, task.how.reading.max_atoms / 1000)
        with suppress(OSError):
            self.connection.send((list(task.structures), task.how, seconds))

    def receive(self) -> bool:
        """Wait for the answer to the first of the tasks; whether the worker lives."""
        try:
            parsed = self.connection.recv()
        except (EOFError, OSError):
            return False
        self.tasks.popleft().parsed = parsed
        return True

    def post_mortem(self) -> list[Task]:
        """What a dead worker leaves to be parsed again, by others."""
        self.process.join()
        self.connection.close()
        begun, number = self.position
        if not begun:
            raise LookHopsError(
                "A worker process that parses molecules ended before it began. A script that asks "
                "for processes lies in a file and keeps what it runs below "
                '`if __name__ == "__main__":`; 0 processes (--processes 0) parse in this one.'
            )
        timer = getattr(signal, "SIGPROF", None)
        reason = HUNG if timer and self.process.exitcode == -timer else CRASHED
        again: list[Task] = []
        for count, task in enumerate(self.tasks, self.given - len(self.tasks) + 1):
            again += task.died(number, reason) if count == begun else [task]
        return again

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


# -------------------------------------------------------------------- in the worker


def _work(tasks: Connection, position: Any) -> None:
    """Parse what is sent, until the sender ends."""
    _limit_process()
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
            position[:] = task, number
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


def _limit_process() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command, which ends workers
    gc.set_threshold(1 << 17)  # thousands of atoms a second, and no circle of references
    if hasattr(signal, "SIGPROF"):
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

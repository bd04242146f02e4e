"""Worker processes that parse molecules: as many as there are cores, and none takes us along.

RDKit is a library of C++, and a molecule that it does not expect may end the process that asks, or
keep it for hours. A worker that dies, or that is at one molecule for too long and is ended, is
noticed; the others lose nothing, what it had is parsed again, and the molecule is named.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext

from lookhops.core.machine import usable_cores
from lookhops.sources.rdkit.parsing import Parsed, Parsing, parse
from lookhops.sources.rdkit.worker import Task, Worker

#: Molecules that a worker is given at a time.
CHUNK = 512
#: Chunks that a worker has at a time: the one that it is at, and the next.
AT_ONCE = 2
#: Processor time that a molecule may take; more where molecules of over a thousand atoms may come.
SECONDS = 10.0


class ParsingPool:
    """Parses molecules in worker processes.

    Workers are started when they are needed, from a process that has nothing of this one, no thread
    of PyTorch's among it, but RDKit loaded. The caller's thread does all the rest.

    Args:
        how: How molecules are parsed.
        processes: How many workers; by default one for each core. 0 parses in this process, as is
            done where no process can be started.
    """

    def __init__(self, how: Parsing, processes: int | None = None) -> None:
        self.how = how
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
        """End the workers; what they are at is dropped."""
        self.tasks.clear()
        while self.workers:
            self.workers.pop().kill()

    def parse(self, structures: Sequence[str]) -> Parsed:
        """Parse molecules, in chunks side by side."""
        chunks = (structures[i : i + CHUNK] for i in range(0, len(structures), CHUNK))
        return Parsed.join(list(self.map(chunks)) or [parse([], self.how)])

    def map(self, chunks: Iterable[Sequence[str]]) -> Iterator[Parsed]:
        """Parse chunk after chunk; no more than a few are read ahead of the one that is given."""
        ahead: deque[Task] = deque()
        for chunk in chunks:
            ahead.append(self._task(chunk))
            self._go_on(0)
            if len(ahead) > AT_ONCE * self.processes:
                yield self._first(ahead)
        while ahead:
            yield self._first(ahead)

    def _task(self, chunk: Sequence[str]) -> Task:
        """A task that is to be given to a worker."""
        self.tasks.append(Task(chunk, self.how, SECONDS * max(1, self.how.max_atoms / 1000)))
        return self.tasks[-1]

    def _first(self, ahead: deque[Task]) -> Parsed:
        """The result of the first of the tasks that were read ahead."""
        task = ahead.popleft()
        while not task.done:
            self._go_on(None)
        self._go_on(0)  # workers have something to do while the caller has the result
        return task.result()

    def _go_on(self, seconds: float | None) -> None:
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
            idle = any(not worker.tasks for worker in self.workers)
            if not idle and len(self.workers) < self.processes:
                self._start()
            if not self.processes:
                task = self.tasks.popleft()
                task.found = parse(task.structures, task.how)
                continue
            worker = min(self.workers, key=lambda worker: len(worker.tasks))
            if len(worker.tasks) >= AT_ONCE:
                return
            worker.give(self.tasks.popleft())

    def _start(self) -> None:
        if not self.processes:
            return
        try:
            self.workers.append(Worker(_context()))
        except OSError:  # some containers have neither the memory nor the right
            self.processes = len(self.workers)


@contextmanager
def parsing_pool(processes: ParsingPool | int | None) -> Iterator[ParsingPool]:
    """A pool of so many processes for the block; one that is given is used and left as it is."""
    if isinstance(processes, ParsingPool):
        yield processes
        return
    with ParsingPool(Parsing(), processes) as pool:
        yield pool


def _context() -> BaseContext:
    """How workers are started: never as copies of this process, whose threads they would lack."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lookhops.sources.rdkit.worker", "rdkit.Chem.rdCIPLabeler"])
    return context

"""Worker processes that parse molecules: as many as there are cores, and none takes us along.

RDKit is a library of C++, and a molecule that it does not expect may end the process that asks. A
worker that dies so is noticed; what it had is parsed again in halves until the molecule is found.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import cache
from types import TracebackType

from lookhops.molecules.parsing import Parsed, Parsing, parse

#: Molecules that a worker is given at a time.
CHUNK = 512
#: Bytes that a worker may ask for: no molecule of a sensible size takes a tenth of that.
MOST_MEMORY = 4 << 30
CRASHED = "RDKit crashes on it"


def usable_cores() -> int:
    """Cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class ParsingPool:
    """Parses molecules in worker processes.

    Workers are started when they are needed, from a process that has nothing of this one, no thread
    of PyTorch's among it, but RDKit loaded.

    Args:
        how: How molecules are parsed.
        processes: How many workers; by default one for each core. 0 parses in this process.
    """

    def __init__(self, how: Parsing, processes: int | None = None) -> None:
        self.how = how
        self.processes = usable_cores() if processes is None else processes
        if not _has_processes():
            self.processes = 0
        self.executor: ProcessPoolExecutor | None = None

    def __enter__(self) -> ParsingPool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def warm_up(self) -> None:
        """Start the first worker now: it loads RDKit while this process does something else."""
        if self.processes:
            self._submit([])

    def stop(self) -> None:
        """End the workers; what they are at is dropped."""
        if self.executor is not None:
            self.executor.shutdown(wait=True, cancel_futures=True)
            self.executor = None

    def parse(self, structures: Sequence[str]) -> Parsed:
        """Parse molecules, in chunks side by side."""
        chunks = (structures[i : i + CHUNK] for i in range(0, len(structures), CHUNK))
        return Parsed.join(list(self.map(chunks)) or [parse([], self.how)])

    def map(self, chunks: Iterable[Sequence[str]]) -> Iterator[Parsed]:
        """Parse chunk after chunk; no more than a few are read ahead of the one that is given."""
        if not self.processes:
            yield from (parse(chunk, self.how) for chunk in chunks)
            return
        ahead: deque[tuple[Sequence[str], Future[Parsed]]] = deque()
        for chunk in chunks:
            ahead.append((chunk, self._submit(chunk)))
            if len(ahead) > 2 * self.processes:
                yield self._first(ahead)
        while ahead:
            yield self._first(ahead)

    def _first(self, ahead: deque[tuple[Sequence[str], Future[Parsed]]]) -> Parsed:
        """The first of the chunks that were given out; where a worker died, it is found out why."""
        chunk, future = ahead.popleft()
        try:
            return future.result()
        except BrokenProcessPool:  # by this chunk, or by one of those that follow
            self.stop()
            found = self._alone(chunk)
            again = [chunk for chunk, _ in ahead]
            ahead.clear()
            ahead.extend((chunk, self._submit(chunk)) for chunk in again)
            return found

    def _alone(self, chunk: Sequence[str]) -> Parsed:
        """Parse a chunk with nothing beside it; what ends the worker is parsed in halves."""
        try:
            return self._submit(chunk).result()
        except BrokenProcessPool:
            self.stop()
        if len(chunk) == 1:
            return Parsed.failed(CRASHED)
        half = len(chunk) // 2
        return Parsed.join([self._alone(chunk[:half]), self._alone(chunk[half:])])

    def _submit(self, chunk: Sequence[str]) -> Future[Parsed]:
        if self.executor is None:
            self.executor = ProcessPoolExecutor(self.processes, _context(), _prepare)
        try:
            return self.executor.submit(parse, list(chunk), self.how)
        except BrokenProcessPool as error:  # a worker has died already
            broken: Future[Parsed] = Future()
            broken.set_exception(error)
            return broken


@cache
def _has_processes() -> bool:
    """Whether this machine lets processes share a queue; some containers do not."""
    try:
        multiprocessing.get_context("spawn").Lock()
    except (ImportError, OSError):
        return False
    return True


def _context() -> multiprocessing.context.BaseContext:
    """How workers are started: never as copies of this process, whose threads they would lack."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lookhops.molecules.parsing", "rdkit.Chem.rdCIPLabeler"])
    return context


def _prepare() -> None:
    """What a worker does first: Ctrl-C is for the command, which ends its workers, or leaves them.

    A worker whose command was killed ends itself.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

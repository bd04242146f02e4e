"""Threads that read graphs, each with a process of its own that asks RDKit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import local
from typing import Concatenate, ParamSpec

from lookhops.serve.inputs import Asked
from lookhops.sources.rdkit.parsing import Parsing
from lookhops.sources.rdkit.workers import ParsingPool

P = ParamSpec("P")


class Readers:
    """Reads graphs outside of the event loop.

    A molecule on which RDKit crashes or hangs ends the worker process of one thread. That starts
    another, and says of the molecule what happened; nobody else is held up.

    Args:
        threads: How many; each is started when it is needed, its worker with the first molecule.
        name: Of the threads.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._pools: list[ParsingPool] = []
        self._own = local()
        self._threads = ThreadPoolExecutor(threads, name, self._begin)

    async def read(
        self, work: Callable[Concatenate[ParsingPool, P], Asked], *given: P.args, **named: P.kwargs
    ) -> Asked:
        """What some reading gives: it is called with the workers that parse molecules."""

        def in_thread() -> Asked:
            try:
                return work(self._own.pool, *given, **named)
            except StopIteration as error:  # would never reach who waits for it
                raise RuntimeError("a reader ended early") from error

        return await asyncio.get_running_loop().run_in_executor(self._threads, in_thread)

    def warm_up(self) -> None:
        """Start the first thread and its worker now, so that the first request need not wait."""
        self._threads.submit(lambda: self._own.pool.warm_up())

    def close(self) -> None:
        """End the threads, when they have read what they are at, and the workers."""
        self._threads.shutdown(cancel_futures=True)
        for pool in self._pools:
            pool.stop()

    def _begin(self) -> None:
        self._own.pool = ParsingPool(Parsing(), 1)
        self._pools.append(self._own.pool)

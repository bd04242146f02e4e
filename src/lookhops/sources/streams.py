"""A source of graphs that comes in parts, so that no more than a part is held at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Full, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lookhops.graphs import Graphs

#: Rows of a part on the CPU, and on a GPU, where a step is recorded for each part.
PART, GPU_PART = 2048, 16_384
#: Items that are taken before they are asked for, where reading begins early.
AHEAD = 64


@dataclass(frozen=True, eq=False)
class Part:
    """Consecutive rows of a source.

    Args:
        graphs: Their graphs; rows that gave none are ``skipped``, numbered within the part.
        cells: Of each row, also of one that gave no graph: texts, or values of the stream's types.
        labels: The one target of each row as text; empty where it has none.
        share: How much of the source has been read, from 0 to 1; none where that is not known.
    """

    graphs: Graphs
    cells: Sequence[Sequence[Any]]
    labels: Sequence[str]
    share: float | None


class Stream(ABC):
    """A source in parts, with the columns of its rows and their types (none: texts)."""

    def __init__(self, name: str, head: list[str], types: Sequence[Any]) -> None:
        self.name, self.head, self.types = name, head, types
        #: Columns that graphs shall have, where the source has them.
        self.features: Sequence[str] = ()

    @abstractmethod
    def skip(self, count: int) -> Iterator[Sequence[Any]]:
        """Pass over rows, at most so many, as they are asked for; what each of them says."""

    @abstractmethod
    def parts(self, size: int) -> Iterator[Part]:
        """The rows that follow, about so many at a time."""

    def part_size(self, on_cpu: bool) -> int:
        """How many rows are worth working on at a time, on the CPU or on a GPU."""
        return PART if on_cpu else GPU_PART

    def remarks(self) -> list[str]:
        """What is to be said in the end; refuses a source that gave nothing."""
        return []


class ReadAhead:
    """What an iterator gives, taken by another thread before it is asked for; at most so many."""

    def __init__(self, items: Iterator[Any], most: int = AHEAD) -> None:
        self._items = items
        self._found: Queue[Any] = Queue(most)
        self._closed = Event()
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[Any]:
        while (found := self._found.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _read(self) -> None:
        end: BaseException | None = None
        try:
            for item in self._items:
                self._put(item)
                if self._closed.is_set():
                    return
        except BaseException as error:  # raised where it is asked for
            end = error
        self._put(end)

    def _put(self, found: Any) -> None:
        while not self._closed.is_set():
            with suppress(Full):
                self._found.put(found, timeout=0.1)
                return

"""One thread a model: the graphs of all requests that have arrived are answered together."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, pairwise
from queue import SimpleQueue
from threading import Thread
from typing import Any

from lookhops.graphs import Graphs, concatenate
from lookhops.models.answers import Predictions
from lookhops.models.predictor import Predictor

#: Nodes that are answered in one batch, save where one request has more.
BATCH_NODES = 20_000


#: Called with the size of each batch: requests, and graphs.
Watcher = Callable[[int, int], None]


@dataclass(eq=False)
class Question:
    """Graphs that wait for their answers, in the columns that the predictor was trained on."""

    predictor: Predictor
    graphs: Graphs
    coverage: float
    neighbours: int = 0
    answers: Future[Predictions] = field(default_factory=Future)


@dataclass(eq=False)
class Call:
    """Any other work of the model: an explanation, an embedding."""

    work: Callable[[], Any]
    result: Future[Any] = field(default_factory=Future)


class Batcher:
    """A thread that does all work of one model, one batch after the other.

    A batch is whatever has arrived while the one before was answered: no request waits for others.
    The watcher is called with the size of each.
    """

    def __init__(self, name: str, watcher: Watcher = lambda requests, graphs: None) -> None:
        self._queue: SimpleQueue[Question | Call | None] = SimpleQueue()
        self._watcher = watcher
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def predict(
        self, predictor: Predictor, graphs: Graphs, coverage: float, neighbours: int = 0
    ) -> Predictions:
        """The answers to some graphs, in the columns that the predictor was trained on."""
        question = Question(predictor, graphs, coverage, neighbours)
        self._queue.put(question)
        return await asyncio.wrap_future(question.answers)

    async def call(self, work: Callable[[], Any]) -> Any:
        """What some other work gives, done in its turn."""
        call = Call(work)
        self._queue.put(call)
        return await asyncio.wrap_future(call.result)

    def close(self) -> None:
        """End the thread when all that was asked is answered."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        waiting: deque[Question | Call | None] = deque()
        while True:
            waiting.extend(self._arrived(wait=not waiting))
            first = waiting.popleft()
            if first is None:
                return
            if isinstance(first, Call):
                if first.result.set_running_or_notify_cancel():
                    _settle(first.result, first.work)
                continue
            batch, nodes = [first], first.graphs.num_nodes
            while waiting and isinstance(one := waiting[0], Question):
                nodes += one.graphs.num_nodes
                if nodes > BATCH_NODES:
                    break
                batch.append(one)
                waiting.popleft()
            self._answer([one for one in batch if one.answers.set_running_or_notify_cancel()])

    def _arrived(self, wait: bool) -> Iterator[Question | Call | None]:
        """All that is in the queue; where nothing is and ``wait``, the next that comes."""
        if wait:
            yield self._queue.get()
        while not self._queue.empty():
            yield self._queue.get()

    def _answer(self, batch: list[Question]) -> None:
        """Answer some questions: together those that ask one model for the same."""
        groups: dict[tuple[int, float, int], list[Question]] = {}
        for one in batch:
            same = id(one.predictor), one.coverage, one.neighbours
            groups.setdefault(same, []).append(one)
        for questions in groups.values():
            self._watcher(len(questions), sum(len(one.graphs) for one in questions))
            try:
                answers = _together(questions)
            except Exception:  # each alone, so that only the one at fault fails
                for one in questions:
                    _settle(one.answers, partial(_alone, one))
            else:
                for one, found in zip(questions, answers, strict=True):
                    one.answers.set_result(found)


def _together(questions: Sequence[Question]) -> list[Predictions]:
    """The answers to each question, its graphs asked as one set with those of the others."""
    first = questions[0]
    graphs = [one.graphs for one in questions]
    asked = graphs[0] if len(graphs) == 1 else concatenate(graphs)
    answers = first.predictor.predict(asked, first.coverage, first.neighbours)
    ends = list(accumulate(map(len, graphs), initial=0))
    parts = (answers.part(slice(*ends)) for ends in pairwise(ends))
    # A set that was joined does not know what its graphs are called.
    return [replace(part, ids=one.ids) for part, one in zip(parts, graphs, strict=True)]


def _alone(question: Question) -> Predictions:
    return _together([question])[0]


def _settle(future: Future[Any], work: Callable[[], Any]) -> None:
    """Do some work, and let its result or its error be that of a future."""
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)

"""The models that are served: one thread answers with each, and a changed folder is reloaded."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.files import current
from lookhops.core.words import agreeing, counted
from lookhops.graphs import Graphs, concatenate
from lookhops.graphs.features import BLANK
from lookhops.models.answers import Predictions
from lookhops.models.config import CONFIG, REFERENCE, WEIGHTS
from lookhops.models.predictor import Predictor
from lookhops.serve.bodies import Refused

#: Seconds between two looks at the folders.
LOOK_EVERY = 1.0
#: Nodes that are answered in one batch, save where one request has more.
BATCH_NODES = 20_000

#: Called with the size of each batch: requests, and graphs.
Watcher = Callable[[int, int], None]

log = logging.getLogger("lookhops.serve")


# -------------------------------------------------------------------- batches


@dataclass(eq=False)
class Question:
    """Graphs that wait for their answers, in the columns that the predictor was trained on."""

    predictor: Predictor
    graphs: Graphs
    coverage: float
    neighbours: int
    answers: Future[Predictions] = field(default_factory=Future)


class Batcher:
    """A thread that does all work of one model, in the order in which it arrives.

    Questions that have arrived while other work was done are answered together, so that no request
    waits for others. The watcher is called with the size of each batch.
    """

    def __init__(self, name: str, watcher: Watcher = lambda requests, graphs: None) -> None:
        self._waiting: deque[Question] = deque()
        self._watcher = watcher
        self._thread = ThreadPoolExecutor(1, name)

    async def predict(
        self, predictor: Predictor, graphs: Graphs, coverage: float, neighbours: int = 0
    ) -> Predictions:
        """The answers to some graphs, in the columns that the predictor was trained on."""
        question = Question(predictor, graphs, coverage, neighbours)
        self._waiting.append(question)
        self._thread.submit(self._answer_waiting)
        return await asyncio.wrap_future(question.answers)

    async def call(self, work: Callable[[], Any]) -> Any:
        """What any other work of the model gives: an explanation, an embedding."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """End the thread when all that was asked is answered."""
        self._thread.shutdown()

    def _answer_waiting(self) -> None:
        """Answer the questions that have arrived; every one of them brings a turn for the rest."""
        groups: dict[tuple[int, float, int], list[Question]] = {}
        nodes = 0
        while self._waiting:
            nodes += self._waiting[0].graphs.num_nodes
            if groups and nodes > BATCH_NODES:
                break
            one = self._waiting.popleft()
            if one.answers.set_running_or_notify_cancel():
                alike = id(one.predictor), one.coverage, one.neighbours
                groups.setdefault(alike, []).append(one)
        for questions in groups.values():
            self._watcher(len(questions), sum(len(one.graphs) for one in questions))
            try:
                for one, answers in zip(questions, _together(questions), strict=True):
                    one.answers.set_result(answers)
            except Exception:  # each alone, so that only the one at fault fails
                for one in questions:
                    _answer_alone(one)


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


def _answer_alone(question: Question) -> None:
    try:
        question.answers.set_result(_together([question])[0])
    except BaseException as error:
        question.answers.set_exception(error)


# -------------------------------------------------------------------- models


class ServedModel:
    """A model folder, and the thread that answers with it; the watcher is told of batches."""

    def __init__(self, folder: Path, device: str, watcher: Watcher) -> None:
        self.folder, self.device = folder, device
        self.name = folder.resolve().name
        self._seen = self._look()
        #: What answers now; a request stays with the one that it began with.
        self.predictor = Predictor(folder, device)
        #: Why the folder as it is now could not be read, where it could not.
        self.trouble = ""
        self.batcher = Batcher(f"model {self.name}", watcher)

    @property
    def features(self) -> list[dict[str, Any]]:
        """The features of whole graphs that a question must bring: names, and values of labels.

        Descriptors are computed, not asked for; any feature may be left blank.
        """
        encoding = self.predictor.encoding
        columns, computed = encoding.whole, {*encoding.descriptors}
        if columns is None or columns.are_unknown:
            return []
        labels = zip(columns.labels, columns.values, strict=True)
        return [
            *({"name": name} for name in columns.numbers if name not in computed),
            *({"name": name, "values": [v for v in vs if v != BLANK]} for name, vs in labels),
        ]

    def reload(self) -> bool:
        """Read the folder if it has changed; whether another model answers from now on.

        A folder that cannot be read changes nothing.
        """
        seen = self._look()
        if seen == self._seen and not self.trouble:
            return False
        try:
            found = Predictor(self.folder, self.device)
        except LookHopsError as error:
            if self.trouble != str(error):
                log.warning("%s; the model read before still answers", str(error).rstrip("."))
            self.trouble, self._seen = str(error), seen
            return False
        is_another = found.version != self.predictor.version
        self.predictor, self.trouble, self._seen = found, "", seen
        if is_another:
            log.info("%s: reloaded", self.name)
        return is_another

    def _look(self) -> list[tuple[int, ...]]:
        """What changes when a file of the folder does; nothing of one that is not there."""
        found: list[tuple[int, ...]] = []
        for name in (CONFIG, WEIGHTS, REFERENCE):
            try:
                file = current(self.folder / name).stat()
                found.append((file.st_mtime_ns, file.st_size, file.st_ino))
            except OSError:
                found.append(())
        return found

    def about(self) -> dict[str, Any]:
        """What there is to know of the model, as JSON can hold it."""
        predictor = self.predictor
        config, task = predictor.config, predictor.task
        tested = {}
        for metric in task.metrics:
            if metric.shown and (found := config["metrics"]["summary"].get(metric.name)):
                ends = found.get("interval")
                interval = f" ({metric.written(*ends, joint=' to ')})" if ends else ""
                tested[metric.title] = f"{metric.written(found['mean'])}{interval}"
        return {
            "name": self.name,
            "version": self.predictor.version,
            "trained_on": config["data"]["name"],
            "graphs": config["data"]["graphs"],
            "molecules": self.predictor.encoding.reads_molecules,
            "features": self.features,
            "neighbours": self.predictor.knows_neighbours,
            "targets": [{"name": head.name, **head.task.choices} for head in task.heads],
            "networks": sum(len(predictor.fitted[seed]) for seed in predictor.answering),
            "tested": tested,
            "trouble": self.trouble or None,
        }


class Models:
    """All models that are served, by the names of their folders; the first is the default."""

    def __init__(self, folders: Sequence[Path], device: str, watcher: Watcher) -> None:
        names = [folder.resolve().name for folder in folders]
        for name in names:
            if names.count(name) > 1:
                raise LookHopsError(
                    f"Two models are called {name!r}: models are called as their folders; rename "
                    "one."
                )
        made = (ServedModel(folder, device, watcher) for folder in folders)
        self.by_name = {model.name: model for model in made}

    def named(self, name: str | None) -> ServedModel:
        """The model of a name; the first where none is given."""
        if name is None:
            return next(iter(self.by_name.values()))
        if name not in self.by_name:
            count = len(self.by_name)
            there = f"there {agreeing(count, 'is', 'are')} {counted(count, 'model')}"
            raise Refused(
                HTTPStatus.NOT_FOUND,
                f"No model is called {name!r}; {there}: {', '.join(self.by_name)}.",
            )
        return self.by_name[name]

    async def keep_fresh(self) -> None:
        """Reload models whose folders have changed, for as long as the service runs."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            for model in self.by_name.values():
                try:
                    await asyncio.to_thread(model.reload)
                except Exception:  # a failed reload does not stop the watcher
                    log.exception("%s: cannot be reloaded", model.name)

    def close(self) -> None:
        """End the threads when all that was asked is answered."""
        for model in self.by_name.values():
            model.batcher.close()

"""Large files: each is a job with progress, whose result is kept for an hour."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Limits
from lookhops.graphs import Graphs
from lookhops.models.answers import Predictions, answer_csv, answer_records
from lookhops.serve.bodies import Refused, fault, too_large
from lookhops.serve.inputs import Asked, Readers, read_file, without_folder
from lookhops.serve.models import ServedModel

#: Graphs of a job that are answered at a time: others get their turn between two such parts.
PART = 256
#: Seconds that a job is kept.
KEPT = 3600.0
#: Jobs that are answered at a time; the others wait.
AT_ONCE = 2

log = logging.getLogger("lookhops.serve")


@dataclass(eq=False)
class Job:
    """A file whose graphs are answered."""

    id: str  # cannot be guessed
    path: Path  # in a folder that has the answers too
    model: ServedModel
    coverage: float
    neighbours: int
    state: str = "reading"
    done: int = 0
    asked: Asked | None = None
    error: LookHopsError | None = None
    since: float = field(default_factory=time.monotonic)  # when it came, or ended
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def about(self) -> dict[str, Any]:
        """How far it is, as JSON can hold it."""
        return {
            "id": self.id,
            "model": self.model.name,
            "name": self.path.name,
            "state": self.state,
            "done": self.done,
            "total": None if self.asked is None else len(self.asked.graphs),
            "error": None if self.error is None else str(self.error),
            "notes": [] if self.asked is None else self.asked.notes,
        }

    @property
    def csv(self) -> Path:
        """The result as a table."""
        return self.path.parent / "answers.csv"

    def records(self, limit: int | None) -> list[Any]:
        """The result as records, or the first of them."""
        with self.csv.with_suffix(".jsonl").open(encoding="utf-8") as lines:
            return [json.loads(line) for line in islice(lines, limit)]

    def write(self, answers: Predictions) -> None:
        """Keep the result, as a table and as records."""
        assert self.asked is not None
        with without_folder(self.path.parent):
            table = answer_csv(self.asked.source, answers, self.coverage)
            self.csv.write_text(table, encoding="utf-8", newline="")
        records = answer_records(self.asked.source.graphs, answers)
        with self.csv.with_suffix(".jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(one) + "\n" for one in records)

    async def finished(self) -> Job:
        """The job when it is done; why it failed is raised."""
        await self.ended.wait()
        if self.error is not None:
            raise self.error
        return self


class Jobs:
    """All jobs of a service, within its limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._folder = Path(mkdtemp(prefix="lookhops-jobs-"))
        self._jobs: dict[str, Job] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._readers = Readers(AT_ONCE, "jobs")  # beside those of requests

    def new(self, name: str, model: ServedModel, coverage: float, neighbours: int) -> Job:
        """A job whose file is still to come: write it to its ``path``, then :meth:`start`."""
        self._make_room()
        key = secrets.token_urlsafe(12)
        path = self._folder / key / name
        path.parent.mkdir()
        job = self._jobs[key] = Job(key, path, model, coverage, neighbours)
        return job

    def start(self, job: Job) -> None:
        """Begin to answer."""
        job.task = asyncio.create_task(self._run(job))

    def named(self, key: str) -> Job:
        """The job of an id."""
        if key not in self._jobs:
            raise _unknown(key)
        return self._jobs[key]

    def drop(self, job: Job) -> None:
        """Forget a job, done or not."""
        del self._jobs[job.id]
        if not job.ended.is_set():  # those that wait for its result get this
            job.error = _unknown(job.id)
        if job.task is not None:
            job.task.cancel()
        shutil.rmtree(job.path.parent, ignore_errors=True)

    @property
    def under_way(self) -> int:
        """How many are not done."""
        return sum(not job.ended.is_set() for job in self._jobs.values())

    async def close(self) -> None:
        """Forget all of them."""
        for job in list(self._jobs.values()):
            self.drop(job)
        await asyncio.to_thread(self._readers.close)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _make_room(self) -> None:
        """Forget the jobs that are too old, and the oldest of those that are done."""
        now = time.monotonic()
        done = [job for job in self._jobs.values() if job.ended.is_set()]
        many = len(self._jobs) + 1 - self._limits.max_jobs
        for number, job in enumerate(done):
            if number < many or now - job.since > KEPT:
                self.drop(job)
        if len(self._jobs) >= self._limits.max_jobs:
            raise Refused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"{len(self._jobs)} jobs are under way, as many as there may be; try again later.",
            )

    async def _run(self, job: Job) -> None:
        try:
            async with self._turns:
                await self._answer(job)
        except LookHopsError as error:
            job.error, job.state = error, "failed"
        except Exception:
            log.exception("job %s", job.id)
            job.error, job.state = fault(), "failed"
        finally:
            job.since = time.monotonic()
            job.ended.set()

    async def _answer(self, job: Job) -> None:
        predictor = job.model.predictor
        asked = await self._readers.read(read_file, predictor, job.path)
        job.asked, job.state = asked, "answering"
        found = []
        for part in parts(asked.graphs, self._limits.max_nodes):
            answers = job.model.batcher.predict(predictor, part, job.coverage, job.neighbours)
            found.append(await answers)
            job.done += len(part)
        await asyncio.to_thread(job.write, Predictions.joined(found))
        job.state = "done"


def _unknown(key: str) -> Refused:
    said = f"There is no job {key!r}: results are kept for an hour, and the oldest go first."
    return Refused(HTTPStatus.NOT_FOUND, said)


def parts(graphs: Graphs, most_nodes: int) -> Iterator[Graphs]:
    """Graphs in parts of at most so many nodes, in order."""
    sizes = graphs.nodes_per_graph.cpu().numpy()
    if len(sizes) and sizes.max() > most_nodes:
        one, count = int(sizes.argmax()) + 1, int(sizes.max())
        sentence = f"{graphs.name}: graph {one} has {count:,} nodes, more than {most_nodes:,}."
        raise too_large(sentence)
    ends, start = sizes.cumsum(), 0
    while start < len(graphs):
        before = ends[start] - sizes[start]
        stop = int(np.searchsorted(ends, before + most_nodes, side="right"))
        stop = min(stop, start + PART)
        yield graphs.select(slice(start, stop))
        start = stop

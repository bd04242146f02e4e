"""What requests are answered with, and the way from a request to the graphs that it asks about."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse

from lookhops.core.options.limits import Limits
from lookhops.graphs import Graphs
from lookhops.serve.bodies import Refused, Source, read_body, too_large
from lookhops.serve.guard import Metrics
from lookhops.serve.inputs import (
    FILES,
    Asked,
    Readers,
    read_file,
    read_smiles,
    without_folder,
    write_node_link,
    write_tables,
)
from lookhops.serve.jobs import Jobs
from lookhops.serve.models import Models, ServedModel, version_of

JSON, CSV = "application/json", "text/csv"
#: Threads that read the graphs of requests.
READERS = 2
#: A body that is larger than allowed is received all the same up to so many times the limit.
DROPPED = 10

B = TypeVar("B", bound=Source)


@dataclass(frozen=True, eq=False)
class Received(Generic[B]):
    """A request that was read: the type of its content, what it says, and the graphs."""

    kind: str
    body: B
    model: ServedModel
    asked: Asked

    def answer(self, **content: Any) -> JSONResponse:
        """What is answered, between who answers and the notes on the graphs."""
        who = {"model": self.model.name, "version": version_of(self.asked.predictor)}
        return JSONResponse({**who, **content, "notes": self.asked.notes})


@dataclass(eq=False)
class Service:
    """All that requests are answered with."""

    models: Models
    limits: Limits
    metrics: Metrics
    jobs: Jobs
    readers: Readers = field(default_factory=lambda: Readers(READERS, "reader"))

    @asynccontextmanager
    async def receive(
        self, request: Request, body: type[B], **query: Any
    ) -> AsyncIterator[Received[B]]:
        """A request, while the file that it may be lies in a folder; given up after some time.

        Args:
            request: JSON, or a file of a type in ``FILES``.
            body: What the JSON holds.
            query: The parameters of the address; what the JSON says comes before them.
        """
        try:
            async with asyncio.timeout(self.limits.max_seconds):
                kind = content_type(request)
                content = [chunk async for chunk in chunks(request, self.limits.max_body)]
                with TemporaryDirectory(prefix="lookhops-") as folder:
                    read = await self._read(kind, b"".join(content), body, query, Path(folder))
                    with without_folder(read.model.folder.parent):
                        yield read
        except TimeoutError as error:
            raise Refused(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"It took over {self.limits.max_seconds:g} s; send fewer graphs, or a job.",
            ) from error

    async def _read(
        self, kind: str, content: bytes, body: type[B], query: Mapping[str, Any], folder: Path
    ) -> Received[B]:
        given = {name: value for name, value in query.items() if value is not None}
        said = read_body(body, _with_query(content, given) if kind == JSON else given)
        said.check(is_file=kind != JSON)
        model = self.models.named(said.model)
        predictor = model.predictor
        if kind != JSON:
            path = folder / FILES[kind]
            path.write_bytes(content)
            asked = await self.readers.read(read_file, predictor, path)
        elif said.smiles is not None:
            self._check_count(len(said.smiles))
            asked = await self.readers.read(
                read_smiles, predictor, said.smiles, said.ids, said.features
            )
        elif said.graphs is not None:
            self._check_count(len(said.graphs))
            path = write_node_link(folder, said.graphs)
            asked = await self.readers.read(read_file, predictor, path)
        elif said.tables is not None:
            tables = said.tables.model_dump(exclude_none=True)
            asked = await self.readers.read(read_file, predictor, write_tables(folder, tables))
        else:
            job = await self.jobs.named(said.job or "").finished()
            assert job.asked is not None
            return Received(kind, said, job.model, job.asked)
        self._check_count(len(asked.graphs))
        if asked.graphs.num_nodes > self.limits.max_nodes:
            raise too_large(
                f"{asked.graphs.num_nodes:,} nodes are more than the {self.limits.max_nodes:,} of "
                "one request; send fewer graphs at a time."
            )
        return Received(kind, said, model, asked)

    def _check_count(self, graphs: int) -> None:
        if graphs > self.limits.max_graphs:
            raise too_large(
                f"{graphs:,} graphs are more than the {self.limits.max_graphs:,} of one request; "
                "send them as a job."
            )

    def check_explained(self, graphs: Graphs, chosen: Sequence[int]) -> None:
        """Refuse more graphs or nodes than one request may have explained."""
        if len(chosen) > self.limits.max_explained:
            raise too_large(
                f"{len(chosen):,} graphs are more than the {self.limits.max_explained:,} that one "
                "request may have explained; choose some with rows."
            )
        nodes = int(graphs.nodes_per_graph[list(chosen)].sum())
        if nodes > self.limits.max_nodes:
            raise too_large(f"{nodes:,} nodes are more than the {self.limits.max_nodes:,} allowed.")

    async def close(self) -> None:
        """End all threads and workers, when what was asked is answered."""
        await self.jobs.close()
        await asyncio.to_thread(self.models.close)
        await asyncio.to_thread(self.readers.close)


async def chunks(request: Request, most: float) -> AsyncIterator[bytes]:
    """The body of a request piece by piece; refused beyond so many MB.

    Of a body that is too large the rest is received and dropped, within reason: many a program
    reads the answer only when it has sent all it has.
    """
    limit, size = int(most * 1e6), 0
    refusal = too_large(f"The body has more than {most:g} MB; send less, or a file as a job.")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > DROPPED * limit:
        raise refusal
    async for chunk in request.stream():
        size += len(chunk)
        if size <= limit:
            yield chunk
        elif size > DROPPED * limit:
            break
    if size > limit:
        raise refusal


def content_type(request: Request) -> str:
    """The type of a request's content, one that is read here."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON and kind not in FILES:
        sentence = f"Send the header `Content-Type`, one of {', '.join((JSON, *FILES))}."
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, sentence)
    return kind


def wants_csv(request: Request, otherwise: bool) -> bool:
    """Whether a table is asked for; ``otherwise`` where the request does not say."""
    accepted = request.headers.get("accept", "*/*").lower()
    if CSV in accepted:
        return True
    return otherwise and JSON not in accepted


def _with_query(content: bytes, given: Mapping[str, Any]) -> bytes | dict[str, Any]:
    """A body of JSON, completed by the parameters of the address."""
    if not given:
        return content
    try:
        found = json.loads(content)
    except ValueError:  # who reads it will say why
        return content
    return {**given, **found} if isinstance(found, dict) else content

"""The API for programs: every path under ``/v1``, and the way from a request to its graphs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Generic, TypeVar

from fastapi import APIRouter, Query, Request
from starlette.responses import FileResponse, JSONResponse, Response

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Limits
from lookhops.explain import Attribution, attribute
from lookhops.explain.attributions import common_limit
from lookhops.explain.drawing.shares import draw_shares
from lookhops.models.answers import answer_csv, answer_records
from lookhops.serve import bodies
from lookhops.serve.bodies import FILES, B, Refused, too_large
from lookhops.serve.inputs import (
    Asked,
    Readers,
    read_file,
    read_smiles,
    safe_name,
    without_folder,
)
from lookhops.serve.jobs import Jobs
from lookhops.serve.models import Models, ServedModel

JSON, CSV = "application/json", "text/csv"
T = TypeVar("T")
#: The parameters of an address.
In = Annotated[T, Query()]
#: Threads that read the graphs of requests.
READERS = 2
#: A body that is larger than allowed is received all the same up to so many times the limit.
DROPPED = 10
#: Graphs that are explained at a time.
AT_A_TIME = 4
#: How a request over one of the limits is refused.
GRAPHS = "{:,} graphs are more than the {:,} of one request; send them as a job."
NODES = "{:,} nodes are more than the {:,} of one request; send fewer graphs at a time."
EXPLAINED = (
    "{:,} graphs are more than the {:,} that one request may have explained; choose some with rows."
)


def routes(service: Service) -> APIRouter:
    """The paths under ``/v1``."""
    router = APIRouter(prefix="/v1", responses=bodies.REFUSALS)

    @router.get(
        "/models",
        summary="The models",
        response_model=list[dict[str, Any]],
        response_description="Each model.",
    )
    async def models() -> Response:
        return JSONResponse([model.about() for model in service.models.by_name.values()])

    _graph_routes(router, service)
    _job_routes(router, service)
    return router


def _graph_routes(router: APIRouter, service: Service) -> None:
    """Graphs that come with the request."""
    described = partial(bodies.described, list(service.models.by_name.values()))
    table: dict[int | str, Any] = {200: {"content": {CSV: {"schema": {"type": "string"}}}}}

    @router.post("/predict", **described(bodies.Predict, bodies.Answers), responses=table)
    async def predict(request: Request, query: In[bodies.PredictQuery]) -> Response:
        async with service.receive(request, bodies.Predict, query) as got:
            asked, coverage, count = got.asked, got.body.coverage, got.body.neighbours
            asked.predictor.check_question(coverage, count)
            answers = await got.model.batcher.predict(
                asked.predictor, asked.graphs, coverage, count
            )
            if wants_csv(request, otherwise=got.kind != JSON):
                text = await asyncio.to_thread(answer_csv, asked.source, answers, coverage)
                return Response(text, media_type=CSV)
        return got.answer(answers=answer_records(asked.source.graphs, answers))

    @router.post("/explain", **described(bodies.Explain, bodies.Explanations))
    async def explain(request: Request, query: In[bodies.ExplainQuery]) -> Response:
        async with service.receive(request, bodies.Explain, query) as got:
            chosen = got.asked.numbers(got.body.rows)
            service.check_explained(got.asked, chosen)
            found = await explanations(got.model, got.asked, chosen, got.body.target)
        return got.answer(explanations=found)

    @router.post("/embed", **described(bodies.Embed, bodies.Vectors))
    async def embed(request: Request, query: In[bodies.EmbedQuery]) -> Response:
        async with service.receive(request, bodies.Embed, query) as got:
            asked = got.asked
            work = partial(asked.predictor.embed, asked.graphs, bits=got.body.bits)
            found = await got.model.batcher.call(work)
        return got.answer(
            ids=found.ids,
            readout=found.readout.tolist(),
            fingerprint=found.fingerprint.tolist(),
            skipped=[row.record() for row in asked.source.graphs.skipped],
        )


def _job_routes(router: APIRouter, service: Service) -> None:
    """Large files."""
    jobs = service.jobs
    content = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}

    @router.post(
        "/jobs",
        summary="Answers to a file",
        status_code=HTTPStatus.ACCEPTED,
        response_model=bodies.JobState,
        response_description="The job, which has begun.",
        openapi_extra={"requestBody": {"required": True, "content": content}},
    )
    async def new_job(request: Request, query: In[bodies.JobQuery]) -> Response:
        model = service.models.named(query.model)
        model.predictor.check_question(query.coverage, query.neighbours)
        job = jobs.new(safe_name(query.name), model, query.coverage, query.neighbours)
        try:
            with job.path.open("wb") as file:
                async for chunk in chunks(request, service.limits.max_file):
                    file.write(chunk)
        except BaseException:
            jobs.drop(job)
            raise
        jobs.start(job)
        return JSONResponse(job.about(), HTTPStatus.ACCEPTED)

    @router.get(
        "/jobs/{key}",
        summary="How far a job is",
        response_model=bodies.JobState,
        response_description="Its state.",
    )
    async def job_state(key: str) -> Response:
        return JSONResponse(jobs.named(key).about())

    @router.get(
        "/jobs/{key}/result",
        summary="A job's answers, when it is done",
        response_model=bodies.Answers,
        response_description="A table, or the records of the first `limit` rows (`Accept: "
        "application/json`).",
    )
    async def job_result(request: Request, key: str, limit: int | None = None) -> Response:
        if limit is not None and limit < 0:
            raise LookHopsError(f"limit must be at least 0, not {limit}.")
        job = await jobs.named(key).finished()
        if wants_csv(request, otherwise=True):
            return FileResponse(job.csv, media_type=CSV, filename=f"{job.path.stem}-answers.csv")
        records = await asyncio.to_thread(job.records, limit)
        return JSONResponse({**job.about(), "answers": records})

    @router.delete("/jobs/{key}", summary="Forget a job", status_code=HTTPStatus.NO_CONTENT)
    async def drop_job(key: str) -> Response:
        jobs.drop(jobs.named(key))
        return Response(status_code=HTTPStatus.NO_CONTENT)


# -------------------------------------------------------------------- explanations


async def explanations(
    model: ServedModel, asked: Asked, chosen: Sequence[int], target: str | None
) -> list[dict[str, Any]]:
    """Each graph's shares as ``lookhops explain`` gives them, with a picture (SVG).

    Few graphs at a time: others get their turn between them.
    """
    found: list[Attribution] = []
    for start in range(0, len(chosen), AT_A_TIME):
        part = asked.graphs.select(chosen[start : start + AT_A_TIME])
        shares = await model.batcher.call(partial(attribute, asked.predictor, part, target))
        found += [shares[number] for number in range(len(shares))]

    def records() -> list[dict[str, Any]]:
        limit = common_limit(found)
        return [{**one.as_json(), "picture": draw_shares(one, limit, one.unit)} for one in found]

    return await asyncio.to_thread(records)


# -------------------------------------------------------------------- requests


@dataclass(frozen=True, eq=False)
class Received(Generic[B]):
    """A request that was read: the type of its content, what it says, and the graphs."""

    kind: str
    body: B
    model: ServedModel
    asked: Asked

    def answer(self, **content: Any) -> JSONResponse:
        """What is answered, between who answers and the notes on the graphs."""
        who = {"model": self.model.name, "version": self.asked.predictor.version}
        return JSONResponse({**who, **content, "notes": self.asked.notes})


@dataclass(eq=False)
class Service:
    """All that requests are answered with."""

    models: Models
    limits: Limits
    jobs: Jobs
    readers: Readers = field(default_factory=lambda: Readers(READERS, "reader"))

    @asynccontextmanager
    async def receive(
        self, request: Request, body: type[B], query: bodies.Query
    ) -> AsyncIterator[Received[B]]:
        """A request, while the file that it may be lies in a folder; given up after some time."""
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
        self, kind: str, content: bytes, body: type[B], query: bodies.Query, folder: Path
    ) -> Received[B]:
        said = bodies.read_body(body, content if kind == JSON else b"{}", query)
        said.check(is_file=kind != JSON)
        model = self.models.named(said.model)
        if said.job is not None:
            job = await self.jobs.named(said.job).finished()
            assert job.asked is not None
            return Received(kind, said, job.model, job.asked)
        check_limit(len(said.smiles or said.graphs or ()), self.limits.max_graphs, GRAPHS)
        if said.smiles is not None:
            asked = await self.readers.read(
                read_smiles, model.predictor, said.smiles, said.ids, said.features
            )
        else:
            path = said.write(folder)
            if path is None:
                path = folder / FILES[kind]
                path.write_bytes(content)
            asked = await self.readers.read(read_file, model.predictor, path)
        check_limit(len(asked.graphs), self.limits.max_graphs, GRAPHS)
        check_limit(asked.graphs.num_nodes, self.limits.max_nodes, NODES)
        return Received(kind, said, model, asked)

    def check_explained(self, asked: Asked, chosen: Sequence[int]) -> None:
        """Refuse more graphs or nodes than one request may have explained."""
        check_limit(len(chosen), self.limits.max_explained, EXPLAINED)
        nodes = int(asked.graphs.nodes_per_graph[list(chosen)].sum())
        check_limit(nodes, self.limits.max_nodes, "{:,} nodes are more than the {:,} allowed.")

    async def close(self) -> None:
        """End all threads and workers, when what was asked is answered."""
        await self.jobs.close()
        await asyncio.to_thread(self.models.close)
        await asyncio.to_thread(self.readers.close)


def check_limit(count: int, most: int, sentence: str) -> None:
    """Refuse a request over one of the limits."""
    if count > most:
        raise too_large(sentence.format(count, most))


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

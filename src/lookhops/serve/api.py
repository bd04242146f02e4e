"""The API for programs: every path under ``/v1``."""

from __future__ import annotations

import asyncio
from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import FileResponse, JSONResponse, Response

from lookhops.models.answer_table import answer_csv, answer_records
from lookhops.serve import bodies, examples, openapi
from lookhops.serve.explaining import explanations, graphs_of
from lookhops.serve.inputs import safe_name
from lookhops.serve.refusals import Refused
from lookhops.serve.service import CSV, JSON, Service, chunks, wants_csv
from lookhops.tasks.conformal import COVERAGE


def routes(service: Service) -> APIRouter:
    """What can be asked under ``/v1``."""
    router = APIRouter(prefix="/v1", responses=openapi.REFUSALS)

    @router.get("/models", summary="The models", **openapi.answers(list[dict[str, Any]]))
    async def models() -> Response:
        return JSONResponse([model.about() for model in service.models.by_name.values()])

    _graph_routes(router, service)
    _job_routes(router, service)
    return router


def _graph_routes(router: APIRouter, service: Service) -> None:
    """Graphs that come with the request."""
    served = list(service.models.by_name.values())
    described = partial(
        openapi.graphs_path, examples=examples.bodies(served), table=examples.table(served[0])
    )

    @router.post("/predict", summary="Answers to graphs", **described(bodies.Predict))
    async def predict(
        request: Request, model: str | None = None, coverage: float | None = None
    ) -> Response:
        async with service.receive(request, bodies.Predict, model=model, coverage=coverage) as got:
            asked, coverage = got.asked, got.body.coverage
            answers = await got.model.batcher.predict(asked.predictor, asked.graphs, coverage)
            if wants_csv(request, otherwise=got.kind != JSON):
                given = asked.source, asked.given, answers, coverage
                table = await asyncio.to_thread(answer_csv, *given)
                return Response(table, media_type=CSV)
        return got.answer(answers=answer_records(asked.given, answers))

    @router.post("/explain", summary="What spoke for the answers", **described(bodies.Explain))
    async def explain(
        request: Request, model: str | None = None, target: str | None = None
    ) -> Response:
        async with service.receive(request, bodies.Explain, model=model, target=target) as got:
            asked, said = got.asked, got.body
            chosen = graphs_of(asked, said.rows)
            service.check_explained(asked.graphs, chosen)
            found = await explanations(got.model, asked, chosen, said.target)
        return got.answer(explanations=found)

    @router.post("/embed", summary="Graphs as vectors", **described(bodies.Embed))
    async def embed(
        request: Request, model: str | None = None, bits: int | None = None
    ) -> Response:
        async with service.receive(request, bodies.Embed, model=model, bits=bits) as got:
            asked = got.asked
            work = partial(asked.predictor.embed, asked.graphs, bits=got.body.bits)
            found = await got.model.batcher.call(work)
        return got.answer(
            ids=found.ids,
            readout=found.readout.tolist(),
            fingerprint=found.fingerprint.tolist(),
            skipped=[row.record() for row in asked.given.skipped],
        )


def _job_routes(router: APIRouter, service: Service) -> None:
    """Large files."""
    jobs = service.jobs

    @router.post("/jobs", summary="Answers to a file", **openapi.JOB)
    async def new_job(
        request: Request, name: str, model: str | None = None, coverage: float = COVERAGE
    ) -> Response:
        bodies.check_coverage(coverage)
        job = jobs.new(safe_name(name), service.models.named(model), coverage)
        try:
            with job.path.open("wb") as file:
                async for chunk in chunks(request, service.limits.max_file):
                    file.write(chunk)
        except BaseException:
            jobs.drop(job.id)
            raise
        jobs.start(job)
        return JSONResponse(job.about(), HTTPStatus.ACCEPTED)

    @router.get("/jobs/{key}", summary="How far a job is", **openapi.answers(bodies.JobState))
    async def job_state(key: str) -> Response:
        return JSONResponse(jobs.named(key).about())

    @router.get("/jobs/{key}/result", summary="A job's answers, when it is done", **openapi.RESULT)
    async def job_result(request: Request, key: str, limit: int | None = None) -> Response:
        if limit is not None and limit < 0:
            raise Refused(HTTPStatus.BAD_REQUEST, f"limit must be at least 0, not {limit}.")
        job = await jobs.named(key).finished()
        if wants_csv(request, otherwise=True):
            return FileResponse(job.csv, media_type=CSV, filename=f"{job.path.stem}-answers.csv")
        records = await asyncio.to_thread(job.records, limit)
        return JSONResponse({**job.about(), "answers": records})

    @router.delete("/jobs/{key}", summary="Forget a job", status_code=HTTPStatus.NO_CONTENT)
    async def drop_job(key: str) -> Response:
        jobs.drop(jobs.named(key).id)
        return Response(status_code=HTTPStatus.NO_CONTENT)

"""The API for programs: every path under ``/v1``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import FileResponse, JSONResponse, Response

from lookhops.core.errors import LookHopsError
from lookhops.explain import Attribution, attribute
from lookhops.explain.attribution import common_limit
from lookhops.explain.drawing.shares import draw_shares
from lookhops.models.answers import answer_csv, answer_records
from lookhops.serve import bodies, openapi
from lookhops.serve.bodies import Refused
from lookhops.serve.inputs import Asked, safe_name
from lookhops.serve.models import ServedModel
from lookhops.serve.service import CSV, JSON, Service, chunks, wants_csv
from lookhops.tasks.conformal import COVERAGE

#: Graphs that are explained at a time.
AT_A_TIME = 4


def routes(service: Service) -> APIRouter:
    """The paths under ``/v1``."""
    router = APIRouter(prefix="/v1", responses=openapi.REFUSALS)

    @router.get(
        "/models", summary="The models", **openapi.answers(list[dict[str, Any]], "Each model.")
    )
    async def models() -> Response:
        return JSONResponse([model.about() for model in service.models.by_name.values()])

    _graph_routes(router, service)
    _job_routes(router, service)
    return router


def _graph_routes(router: APIRouter, service: Service) -> None:
    """Graphs that come with the request."""
    served = list(service.models.by_name.values())
    described = partial(openapi.graphs_path, models=served)

    @router.post("/predict", summary="Answers to graphs", **described(bodies.Predict))
    async def predict(
        request: Request,
        model: str | None = None,
        coverage: float | None = None,
        neighbours: int | None = None,
    ) -> Response:
        query = {"model": model, "coverage": coverage, "neighbours": neighbours}
        async with service.receive(request, bodies.Predict, **query) as got:
            asked, coverage, count = got.asked, got.body.coverage, got.body.neighbours
            asked.predictor.check_neighbours(count)
            batcher = got.model.batcher
            answers = await batcher.predict(asked.predictor, asked.graphs, coverage, count)
            if wants_csv(request, otherwise=got.kind != JSON):
                table = await asyncio.to_thread(answer_csv, asked.source, answers, coverage)
                return Response(table, media_type=CSV)
        return got.answer(answers=answer_records(asked.given, answers))

    @router.post("/explain", summary="What the answers rest on", **described(bodies.Explain))
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
        request: Request,
        name: str,
        model: str | None = None,
        coverage: float = COVERAGE,
        neighbours: int = 0,
    ) -> Response:
        bodies.check_coverage(coverage)
        asked = service.models.named(model)
        asked.predictor.check_neighbours(neighbours)
        job = jobs.new(safe_name(name), asked, coverage, neighbours)
        try:
            with job.path.open("wb") as file:
                async for chunk in chunks(request, service.limits.max_file):
                    file.write(chunk)
        except BaseException:
            jobs.drop(job.id)
            raise
        jobs.start(job)
        return JSONResponse(job.about(), HTTPStatus.ACCEPTED)

    state = openapi.answers(bodies.JobState, "Its state.")

    @router.get("/jobs/{key}", summary="How far a job is", **state)
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


# -------------------------------------------------------------------- explanations


def graphs_of(asked: Asked, rows: Sequence[int] | None) -> list[int]:
    """The numbers of the graphs that were read from some rows of the input; by default all."""
    skipped = {row.row: row.reason for row in asked.given.skipped}
    total = len(asked.graphs) + len(skipped)
    if rows is None:
        return list(range(len(asked.graphs)))
    found = []
    kept = [row for row in range(total) if row not in skipped]
    number = {row: i for i, row in enumerate(kept)}
    for row in rows:
        if not 0 <= row < total:
            raise LookHopsError(f"There is no row {row}: the input has {total}, from 0.")
        if row in skipped:
            raise LookHopsError(f"Row {row} gave no graph: {skipped[row]}.")
        found.append(number[row])
    return found


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
    return await asyncio.to_thread(_records, found)


def _records(found: Sequence[Attribution]) -> list[dict[str, Any]]:
    limit = common_limit(found)
    return [{**one.as_json(), "picture": draw_shares(one, limit, one.unit)} for one in found]

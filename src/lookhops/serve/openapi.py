"""How the API describes itself: schemas and examples beside what FastAPI finds out by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from lookhops.serve import bodies
from lookhops.serve.inputs import FILES

Described = dict[str, Any]

#: How a request is refused.
REFUSALS: dict[int | str, Described] = {
    status: {"model": bodies.Error, "description": text}
    for status, text in (
        (400, "What was sent is no graph, or none that the model can answer."),
        (401, "There is no token, or a wrong one."),
        (404, "No model or job has that name."),
        (413, "It is more than one request may ask."),
        (415, "The content is of a type that is not read here."),
        (503, "It took too long, or too much is under way."),
    )
}


class DescribedApp(FastAPI):
    """An app whose description has no status that it never answers.

    FastAPI lists 422 for whatever has parameters; what does not fit is refused with 400 here.
    """

    def openapi(self) -> Described:
        """The description."""
        found = super().openapi()
        for operations in found["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            found["components"]["schemas"].pop(name, None)
        return found


def answers(model: Any, description: str = "The answer.") -> Described:
    """What a path answers."""
    return {"responses": {200: {"model": model, "description": description}}}


def graphs_path(
    model: type[BaseModel], examples: Mapping[str, Described], table: str | None
) -> Described:
    """A path that takes graphs: a body of JSON, or a file, with examples, and what it answers.

    Args:
        model: The JSON.
        examples: Bodies by what they are called.
        table: A file, where there is one to show.
    """
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    shown = {name: {"value": value} for name, value in examples.items()}
    files: Described = {kind: {"schema": {"type": "string"}} for kind in FILES}
    if table is not None:
        files["text/csv"]["examples"] = {"molecules": {"value": table}}
    content = {"application/json": {"schema": schema, "examples": shown}, **files}
    body = {"requestBody": {"required": True, "content": content}}
    return {"openapi_extra": body, **ANSWERED[model]}


PREDICTED: Described = {
    "responses": {
        200: {
            "model": bodies.Answers,
            "description": "An answer for each row of the input; as a table where that is accepted "
            "(`Accept: text/csv`), or where a table was sent.",
            "content": {"text/csv": {"schema": {"type": "string"}}},
        }
    },
}
#: What is answered to each body.
ANSWERED: Mapping[type[BaseModel], Described] = {
    bodies.Predict: PREDICTED,
    bodies.Explain: answers(bodies.Explanations, "The explanations."),
    bodies.Embed: answers(bodies.Vectors, "The vectors."),
}
JOB: Described = {
    "status_code": 202,
    "responses": {202: {"model": bodies.JobState, "description": "The job, which has begun."}},
    "openapi_extra": {
        "requestBody": {
            "required": True,
            "content": {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
            },
        }
    },
}
RESULT: Described = {
    "responses": {
        200: {
            "model": bodies.Answers,
            "description": "A table, or the records of the first `limit` rows "
            "(`Accept: application/json`).",
            "content": {"text/csv": {"schema": {"type": "string"}}},
        }
    }
}

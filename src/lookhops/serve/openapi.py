"""How the API describes itself: schemas and examples beside what FastAPI finds out by itself."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from lookhops.serve import bodies
from lookhops.serve.inputs import FILES

Described = dict[str, Any]

SMILES_TABLE = "name,smiles\nethanol,CCO\nbenzene,c1ccccc1\n"
EDGE_TABLE = "graph,source,target\na,1,2\na,2,3\nb,1,2\n"
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


def answers(model: Any, description: str = "The answer.") -> Described:
    """What a path answers."""
    return {"responses": {200: {"model": model, "description": description}}}


def request_body(model: type[BaseModel], *examples: str) -> Described:
    """A body of JSON, or a file: its schema and its examples.

    Args:
        model: The JSON.
        examples: Names of examples.
    """
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    shown = {name: {"value": EXAMPLES[name]} for name in examples}
    files: Described = {kind: {"schema": {"type": "string"}} for kind in FILES}
    files["text/csv"]["examples"] = {
        "molecules": {"value": SMILES_TABLE},
        "edges": {"value": EDGE_TABLE},
    }
    content = {"application/json": {"schema": schema, "examples": shown}, **files}
    return {"openapi_extra": {"requestBody": {"required": True, "content": content}}}


EXAMPLES: dict[str, Described] = {
    "smiles": {"smiles": ["CCO", "c1ccccc1"], "ids": ["ethanol", "benzene"]},
    "node-link": {
        "graphs": [
            {
                "id": "path",
                "nodes": [{"id": 1}, {"id": 2}, {"id": 3}],
                "edges": [{"source": 1, "target": 2}, {"source": 2, "target": 3}],
            }
        ]
    },
    "tables": {"tables": {"edges": EDGE_TABLE}},
}
ALL = tuple(EXAMPLES)

PREDICT: Described = {
    **request_body(bodies.Predict, *ALL),
    "responses": {
        200: {
            "model": bodies.Answers,
            "description": "An answer for each row of the input; as a table where that is accepted "
            "(`Accept: text/csv`), or where a table was sent.",
            "content": {"text/csv": {"schema": {"type": "string"}}},
        }
    },
}
EMBED: Described = {**request_body(bodies.Embed, *ALL), **answers(bodies.Vectors, "The vectors.")}
EXPLAIN: Described = {
    **request_body(bodies.Explain, *ALL),
    **answers(bodies.Explanations, "The explanations."),
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

"""The description of the API: schemas and examples that FastAPI does not find by itself."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI

from lookhops.encoding.columns import Columns
from lookhops.serve import bodies
from lookhops.serve.inputs import FILES
from lookhops.serve.models import ServedModel

Described = dict[str, Any]

#: How a request is refused.
REFUSALS: dict[int | str, Described] = {
    status: {"model": bodies.Error, "description": text}
    for status, text in (
        (400, "What was sent is no graph, or none that the model can answer."),
        (401, "The token is missing or wrong."),
        (404, "No model or job has that name."),
        (413, "The request is over one of the limits."),
        (415, "The content is of a type that is not read here."),
        (
            422,
            "Graphs lack a feature of the whole graph, named in the sentence.",
        ),
        (503, "It took too long, or too much is under way."),
    )
}


class DescribedApp(FastAPI):
    """An app whose description has no status that it never answers.

    FastAPI lists 422 for whatever has parameters; what does not fit is refused with 400 here, and
    422 is for graphs that lack a feature.
    """

    def openapi(self) -> Described:
        """The description."""
        found = super().openapi()
        for operations in found["paths"].values():
            for operation in operations.values():
                if operation["responses"].get("422", {}).get("description") == "Validation Error":
                    del operation["responses"]["422"]
        for name in ("HTTPValidationError", "ValidationError"):
            found["components"]["schemas"].pop(name, None)
        return found


def answers(model: Any, description: str, status: int = 200, **more: Any) -> Described:
    """What a path answers."""
    return {"responses": {status: {"model": model, "description": description, **more}}}


TABLE: Described = {"content": {"text/csv": {"schema": {"type": "string"}}}}
#: What is answered to each body.
ANSWERED: Mapping[type[bodies.Source], Described] = {
    bodies.Predict: answers(
        bodies.Answers,
        "An answer for each row of the input; as a table where that is accepted "
        "(`Accept: text/csv`), or where a table was sent.",
        **TABLE,
    ),
    bodies.Explain: answers(bodies.Explanations, "The explanations."),
    bodies.Embed: answers(bodies.Vectors, "The vectors."),
}
FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
JOB: Described = {
    "status_code": 202,
    "openapi_extra": {"requestBody": {"required": True, "content": FILE}},
    **answers(bodies.JobState, "The job, which has begun.", 202),
}
RESULT = answers(
    bodies.Answers,
    "A table, or the records of the first `limit` rows (`Accept: application/json`).",
)


def graphs_path(body: type[bodies.Source], models: Sequence[ServedModel]) -> Described:
    """A path that takes graphs: a body of JSON, or a file, with examples, and what it answers."""
    schema = body.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    shown = {name: {"value": value} for name, value in example_bodies(models).items()}
    files: Described = {kind: {"schema": {"type": "string"}} for kind in FILES}
    if models[0].reads_molecules:
        table = "name,smiles\n" + "".join(f"{pair[0]},{pair[1]}\n" for pair in MOLECULES.items())
        files["text/csv"]["examples"] = {"molecules": {"value": table}}
    content = {"application/json": {"schema": schema, "examples": shown}, **files}
    return {
        "openapi_extra": {"requestBody": {"required": True, "content": content}},
        **ANSWERED[body],
    }


# -------------------------------------------------------------------- examples

MOLECULES = {"ethanol": "CCO", "benzene": "c1ccccc1"}
#: A path of three nodes.
NODES, EDGES = (1, 2, 3), ((1, 2), (2, 3))


def example_bodies(models: Iterable[ServedModel]) -> dict[str, Described]:
    """Bodies of requests in JSON, each for one of the models, by what they are called.

    A model of molecules is asked about SMILES. Any other is asked about a path, in the columns that
    it was trained on; where these have no names there is no example.
    """
    found: dict[str, Described] = {}
    for model in models:
        encoding = model.predictor.checkpoint.encoding
        asked: dict[str, Described] = {}
        if model.reads_molecules:
            asked["SMILES"] = {"smiles": list(MOLECULES.values()), "ids": list(MOLECULES)}
            if features := model.features:
                values = {one["name"]: [*one.get("values", [0.5]), None][0] for one in features}
                asked["SMILES"]["features"] = {n: [v] * len(MOLECULES) for n, v in values.items()}
        elif encoding.by_name and _named(encoding.nodes) and _named(encoding.edges):
            about = {} if encoding.whole is None else _features(encoding.whole)
            nodes = [{"id": node, **_features(encoding.nodes)} for node in NODES]
            ends = [{"source": source, "target": target} for source, target in EDGES]
            edges = [{**one, **_features(encoding.edges)} for one in ends]
            asked["node-link"] = {
                "graphs": [{"id": "path", **about, "nodes": nodes, "edges": edges}]
            }
            asked["tables"] = {"tables": {"edges": _csv(edges), "nodes": _csv(nodes)}}
            if about:
                asked["tables"]["tables"]["graphs"] = _csv([about])
        found |= {f"{model.name}, {form}": {"model": model.name, **asked[form]} for form in asked}
    return found


def _named(columns: Columns | None) -> bool:
    """Whether columns can be written by name; so can none at all."""
    return columns is None or not columns.width or not columns.are_unknown


def _features(columns: Columns | None) -> dict[str, Any]:
    """A value for each column of a node or an edge."""
    if columns is None:
        return {}
    labels = zip(columns.labels, columns.values, strict=True)
    first = {name: values[0] if values else "" for name, values in labels}
    return {**first, **dict.fromkeys(columns.numbers, 0.5)}


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of the one graph as the text of a table; a node's id is its ``node`` there."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["graph", *("node" if name == "id" else name for name in rows[0])])
    writer.writerows(["path", *row.values()] for row in rows)
    return text.getvalue()

"""The bodies of requests and answers, as OpenAPI describes them; and how a request is refused."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lookhops.core.errors import LookHopsError
from lookhops.core.tables import csv_text
from lookhops.encoding.columns import Columns
from lookhops.models.answers import BITS
from lookhops.models.reference import MOST_NEIGHBOURS
from lookhops.tasks.conformal import COVERAGE

if TYPE_CHECKING:
    from lookhops.serve.models import ServedModel

#: Files that a request can hold by the type of its content, and what they are called.
FILES = {
    "text/csv": "input.csv",
    "text/tab-separated-values": "input.tsv",
    "application/x-ndjson": "input.jsonl",
    "chemical/x-daylight-smiles": "input.smi",
    "chemical/x-mdl-sdfile": "input.sdf",
}
#: In which form graphs come.
FORMS = ("smiles", "graphs", "tables", "job")
#: The longest fingerprint.
MOST_BITS = 16_384

B = TypeVar("B", bound="Source")
#: A part of the description of the API.
Described = dict[str, Any]


# -------------------------------------------------------------------- refusals


class Refused(LookHopsError):
    """A request that is not answered: a sentence, and the HTTP status."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def too_large(sentence: str) -> Refused:
    """A request over one of the limits."""
    return Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, sentence)


def fault() -> Refused:
    """A request that failed through no fault of its own."""
    said = "A fault of LookHops, which its log describes."
    return Refused(HTTPStatus.INTERNAL_SERVER_ERROR, said)


def in_a_sentence(error: Mapping[str, Any]) -> str:
    """What Pydantic found wrong."""
    where = ".".join(map(str, error["loc"]))
    said = error["msg"][:1].lower() + error["msg"][1:]
    return f"The request does not fit: {f'{where}: ' if where else ''}{said}."


# -------------------------------------------------------------------- requests


class Query(BaseModel):
    """The parameters of an address; what a JSON says comes before them."""

    model: str | None = Field(None, description="Its name; by default the first that is served.")


class PredictQuery(Query):
    """How graphs are answered."""

    coverage: float = Field(
        COVERAGE, description="Probability with which a set or an interval holds the truth."
    )
    neighbours: int = Field(
        0,
        ge=0,
        le=MOST_NEIGHBOURS,
        description="How many of the most similar training graphs come with each answer: the `id` "
        "of each, the `smiles` of a molecule, its `target` (or `targets`) and its `similarity`.",
    )


class JobQuery(PredictQuery):
    """How the graphs of a file are answered."""

    name: str = Field(description="Of the file.")


class EmbedQuery(Query):
    """How graphs are embedded."""

    bits: int = Field(
        BITS, ge=0, le=MOST_BITS, description="Length of the fingerprint; 0 leaves it out."
    )


class ExplainQuery(Query):
    """What is explained."""

    target: str | None = Field(None, description="Of several targets, which one.")


class Body(BaseModel):
    """The JSON of a request; a key that is not known is refused."""

    model_config = ConfigDict(extra="forbid")


class Tables(Body):
    """Graphs as tables, each the text of a CSV file with a header."""

    edges: str = Field(description="One edge a row: graph, source, target, and what it carries.")
    nodes: str | None = Field(None, description="One node a row: graph, node, and its features.")
    graphs: str | None = Field(None, description="One graph a row: graph, and what is known of it.")


class Source(Body, Query):
    """Some graphs, in one of three forms, and the model that is asked."""

    summary: ClassVar[str]
    smiles: list[str] | None = Field(None, description="Molecules.")
    ids: list[str] | None = Field(None, description="With `smiles`: what each is called.")
    features: dict[str, list[float | str | bool | None]] | None = Field(
        None,
        description="With `smiles`: features of the whole molecule, as temperature, by name, one "
        "value each. Node-link objects and tables of graphs bring their own.",
    )
    graphs: list[dict[str, Any]] | None = Field(
        None, description="Node-link objects, as NetworkX and D3 write them."
    )
    tables: Tables | None = None
    job: str | None = Field(None, description="Instead of graphs: a job that is done.")

    def check(self, is_file: bool) -> None:
        """Refuse a body without graphs (these may be in a file instead), or with several forms."""
        given = [name for name in FORMS if getattr(self, name) is not None]
        if len(given) != 1 - is_file:
            sent = " and ".join(given) or "none of them"
            raise LookHopsError(f"Send one of {', '.join(FORMS)}; there is {sent}.")
        for name, others in (("features", "them with what is known of each"), ("ids", "an id")):
            if getattr(self, name) is not None and self.smiles is None:
                raise LookHopsError(f"{name} belong to smiles; other graphs have {others}.")

    def write(self, folder: Path) -> Path | None:
        """Write node-link objects or tables as a file or a folder that the command reads."""
        if self.graphs is not None:
            path = folder / "graphs.jsonl"
            path.write_text("".join(json.dumps(graph) + "\n" for graph in self.graphs), "utf-8")
            return path
        if self.tables is None:
            return None
        path = folder / "tables"
        path.mkdir()
        for name, text in self.tables.model_dump(exclude_none=True).items():
            (path / f"{name}.csv").write_text(text, "utf-8", newline="")
        return path


class Predict(Source, PredictQuery):
    """A question about some graphs."""

    summary: ClassVar[str] = "Answers to graphs"


class Embed(Source, EmbedQuery):
    """Graphs to be embedded."""

    summary: ClassVar[str] = "Graphs as vectors"


class Explain(Source, ExplainQuery):
    """Graphs whose answers are to be explained."""

    summary: ClassVar[str] = "What the answers rest on"
    rows: list[int] | None = Field(
        None, description="Which rows of the input, from 0; by default all."
    )


def read_body(kind: type[B], content: bytes, query: Query) -> B:
    """The JSON of a request, completed by the parameters of its address."""
    try:
        body = kind.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise LookHopsError(in_a_sentence(first)) from error
    unsaid = query.model_fields_set - body.model_fields_set
    return body.model_copy(update={name: getattr(query, name) for name in unsaid})


# -------------------------------------------------------------------- answers


class Reply(BaseModel):
    """Which model answers, and what there is to say of how the graphs were read."""

    model: str
    version: str = Field(description="Of the model's weights.")
    notes: list[str] = Field(description="What there is to say of how the graphs were read.")


class Answers(Reply):
    """An answer a row of the input; a table where one is accepted (`text/csv`), or was sent."""

    answers: list[dict[str, Any]] = Field(
        description="One for each row of the input, as `lookhops predict --json` gives them; of a "
        "row without a graph its `id`, and why it was `skipped`."
    )


class Vectors(Reply):
    """Graphs as vectors, one a graph; those of one model and version can be compared."""

    ids: list[str] = Field(description="What each graph is called.")
    readout: list[list[float]] = Field(description="What the model's first network read of each.")
    fingerprint: list[list[int]] = Field(
        description="Its exact neighbourhoods, folded; empty where the model reads none."
    )
    skipped: list[dict[str, str]] = Field(description="Rows that gave no graph, and why.")


class Explanations(Reply):
    """What the answers to some graphs rest on."""

    explanations: list[dict[str, Any]] = Field(
        description="As `lookhops explain` gives them: the `value` that is explained, that of an "
        "average graph (`baseline`), and the shares of `nodes`, of `edges` (`edge_shares`) and of "
        "the graph as a `whole`, which add up to it; of graphs with ids of nodes those too "
        "(`node_ids`, `edge_node_ids`); a `sentence`; and a `picture` (SVG)."
    )


class JobState(BaseModel):
    """How far a job is."""

    id: str
    model: str
    name: str = Field(description="Of the file.")
    state: str = Field(description="reading, answering, done, failed.")
    done: int = Field(description="Graphs that are answered.")
    total: int | None = Field(description="Graphs in all, once they are read.")
    error: str | None = None
    notes: list[str] = []


class Error(BaseModel):
    """Why a request was refused."""

    error: str = Field(description="One sentence: what was wrong, where, and what to do.")


#: How a request is refused.
REFUSALS: dict[int | str, Described] = {
    status: {"model": Error, "description": text}
    for status, text in (
        (400, "What was sent is no graph, or none that the model can answer."),
        (401, "The token is missing or wrong."),
        (404, "No model or job has that name."),
        (413, "The request is over one of the limits."),
        (415, "The content is of a type that is not read here."),
        (422, "Graphs lack a feature of the whole graph, named in the sentence."),
        (503, "It took too long, or too much is under way."),
    )
}

# -------------------------------------------------------------------- examples

MOLECULES = {"ethanol": "CCO", "benzene": "c1ccccc1"}
#: A path of three nodes.
NODES, EDGES = (1, 2, 3), ((1, 2), (2, 3))


def described(models: Sequence[ServedModel], body: type[Source], answer: type[Reply]) -> Described:
    """What a path takes that takes graphs, JSON with examples or a file, and what it answers."""
    schema = body.model_json_schema(ref_template="{model}")
    schema["properties"]["tables"] = {"anyOf": [schema.pop("$defs")["Tables"], {"type": "null"}]}
    shown = {name: {"value": value} for name, value in example_bodies(models).items()}
    files: Described = {kind: {"schema": {"type": "string"}} for kind in FILES}
    if models[0].predictor.encoding.reads_molecules:
        table = "name,smiles\n" + "".join(f"{pair[0]},{pair[1]}\n" for pair in MOLECULES.items())
        files["text/csv"]["examples"] = {"molecules": {"value": table}}
    content = {"application/json": {"schema": schema, "examples": shown}, **files}
    return {
        "summary": body.summary,
        "response_model": answer,
        "response_description": cleandoc(answer.__doc__ or ""),
        "openapi_extra": {"requestBody": {"required": True, "content": content}},
    }


def example_bodies(models: Iterable[ServedModel]) -> dict[str, Described]:
    """Bodies of requests in JSON, each for one of the models, by what they are called.

    They are SMILES or a path in the columns of the model; there is none where these have no names.
    """
    found: dict[str, Described] = {}
    for model in models:
        encoding = model.predictor.encoding
        asked: dict[str, Described] = {}
        if encoding.reads_molecules:
            asked["SMILES"] = {"smiles": list(MOLECULES.values()), "ids": list(MOLECULES)}
            if features := model.features:
                values = {one["name"]: [*one.get("values", [0.5]), None][0] for one in features}
                asked["SMILES"]["features"] = {n: [v] * len(MOLECULES) for n, v in values.items()}
        elif encoding.by_name and _are_named(encoding.nodes) and _are_named(encoding.edges):
            about = _example_features(encoding.whole)
            nodes = [{"id": node, **_example_features(encoding.nodes)} for node in NODES]
            ends = [{"source": source, "target": target} for source, target in EDGES]
            edges = [{**one, **_example_features(encoding.edges)} for one in ends]
            asked["node-link"] = {
                "graphs": [{"id": "path", **about, "nodes": nodes, "edges": edges}]
            }
            asked["tables"] = {"tables": {"edges": _csv(edges), "nodes": _csv(nodes)}}
            if about:
                asked["tables"]["tables"]["graphs"] = _csv([about])
        found |= {f"{model.name}, {form}": {"model": model.name, **asked[form]} for form in asked}
    return found


def _are_named(columns: Columns | None) -> bool:
    """Whether columns can be written by name; so can none at all."""
    return columns is None or not columns.width or not columns.are_unknown


def _example_features(columns: Columns | None) -> dict[str, Any]:
    """A value for each column of a node, an edge or a graph."""
    if columns is None:
        return {}
    labels = zip(columns.labels, columns.values, strict=True)
    first = {name: values[0] if values else "" for name, values in labels}
    return {**first, **dict.fromkeys(columns.numbers, 0.5)}


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of the one graph as the text of a table; a node's id is its ``node`` there."""
    head = ["graph", *("node" if name == "id" else name for name in rows[0])]
    return csv_text(head, [["path", *row.values()] for row in rows], for_spreadsheets=False)

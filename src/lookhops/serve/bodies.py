"""The bodies of requests and answers, as OpenAPI describes them; and how a request is refused."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lookhops.core.errors import LookHopsError
from lookhops.models.embedding import BITS
from lookhops.models.neighbours import MOST_NEIGHBOURS
from lookhops.tasks.conformal import COVERAGE

B = TypeVar("B", bound="Body")

#: The longest fingerprint.
MOST_BITS = 16_384
#: In which form graphs come.
FORMS = ("smiles", "graphs", "tables", "job")


class Body(BaseModel):
    """The JSON of a request; a key that is not known is refused."""

    model_config = ConfigDict(extra="forbid")


class Tables(Body):
    """Graphs as tables, each the text of a CSV file with a header."""

    edges: str = Field(description="One edge a row: graph, source, target, and what it carries.")
    nodes: str | None = Field(None, description="One node a row: graph, node, and its features.")
    graphs: str | None = Field(None, description="One graph a row: graph, and what is known of it.")


class Source(Body):
    """Some graphs, in one of three forms, and the model that is asked."""

    model: str | None = Field(None, description="Its name; by default the first that is served.")
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
            raise Refused(
                HTTPStatus.BAD_REQUEST, f"Send one of {', '.join(FORMS)}; there is {sent}."
            )
        if self.features is not None and self.smiles is None:
            raise Refused(
                HTTPStatus.BAD_REQUEST,
                "features belong to smiles; other graphs have them with what is known of each.",
            )
        if self.ids is not None and self.smiles is None:
            raise Refused(HTTPStatus.BAD_REQUEST, "ids belong to smiles; other graphs have an id.")


class Predict(Source):
    """A question about some graphs."""

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

    def check(self, is_file: bool) -> None:
        """Refuse what no model can answer."""
        super().check(is_file)
        check_coverage(self.coverage)


class Embed(Source):
    """Graphs to be embedded."""

    bits: int = Field(
        BITS, ge=0, le=MOST_BITS, description="Length of the fingerprint; 0 leaves it out."
    )


class Explain(Source):
    """Graphs whose answers are to be explained."""

    rows: list[int] | None = Field(
        None, description="Which rows of the input, from 0; by default all."
    )
    target: str | None = Field(None, description="Of several targets, which one.")


class Answers(BaseModel):
    """The answers to some graphs."""

    model: str
    version: str = Field(description="Of the model's weights.")
    answers: list[dict[str, Any]] = Field(
        description="One for each row of the input, as `lookhops predict --json` gives them; of a "
        "row without a graph its `id`, and why it was `skipped`."
    )
    notes: list[str] = Field(description="What there is to say of how the graphs were read.")


class Vectors(BaseModel):
    """Graphs as vectors, one a graph; those of one model and version can be compared."""

    model: str
    version: str
    ids: list[str] = Field(description="What each graph is called.")
    readout: list[list[float]] = Field(description="What the model's first network read of each.")
    fingerprint: list[list[int]] = Field(
        description="Its exact neighbourhoods, folded; empty where the model reads none."
    )
    skipped: list[dict[str, str]] = Field(description="Rows that gave no graph, and why.")
    notes: list[str]


class Explanations(BaseModel):
    """What the answers to some graphs rest on."""

    model: str
    version: str
    explanations: list[dict[str, Any]] = Field(
        description="As `lookhops explain` gives them: the `value` that is explained, that of an "
        "average graph (`baseline`), and the shares of `nodes`, of `edges` (`edge_shares`) and of "
        "the graph as a `whole`, which add up to it; of graphs with ids of nodes those too "
        "(`node_ids`, `edge_node_ids`); a `sentence`; and a `picture` (SVG)."
    )
    notes: list[str]


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


def check_coverage(coverage: float) -> None:
    """Refuse what is no probability."""
    if not 0 < coverage < 1:
        raise LookHopsError(f"A coverage is between 0 and 1, not {coverage}.")


class Error(BaseModel):
    """Why a request was refused."""

    error: str = Field(description="One sentence: what was wrong, where, and what to do.")


def read_body(kind: type[B], content: bytes | Mapping[str, Any]) -> B:
    """The JSON of a request, or its parameters; what is wrong with it is one sentence."""
    try:
        if isinstance(content, bytes):
            return kind.model_validate_json(content)
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        raise Refused(HTTPStatus.BAD_REQUEST, in_a_sentence(first)) from error


def in_a_sentence(error: Mapping[str, Any]) -> str:
    """What Pydantic found wrong."""
    where = ".".join(map(str, error["loc"]))
    said = error["msg"][:1].lower() + error["msg"][1:]
    return f"The request does not fit: {f'{where}: ' if where else ''}{said}."


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

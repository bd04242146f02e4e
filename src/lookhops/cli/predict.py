"""``lookhops predict``: classes and probabilities of new graphs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from lookhops.cli.shared.parameters import Json, with_options
from lookhops.cli.shared.printing import err, print_json, print_line, warn
from lookhops.cli.shared.reading import Input, Model, Reading, warnings_as_lines
from lookhops.files import write_text
from lookhops.tables import csv_text

if TYPE_CHECKING:
    from lookhops.graphs import Graphs
    from lookhops.models.predictor import Predictions


@with_options
def predict(
    model: Model,
    source: Input,
    device: str = "auto",
    output: Path | None = None,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Classify graphs: id, class, calibrated probabilities, and how much the seeds agree.

    The models of all seeds in the folder answer together. `agreement` is the share of them that
    give the same class when asked alone.

    Args:
        output: CSV file to write; by default standard output.
    """
    from lookhops.models.predictor import Predictor

    predictor = Predictor(model, device)
    if stopped := predictor.checkpoint.config.get("stopped"):
        warn(f"{model}: {stopped}")
    graphs = reading.load_input(source)
    with warnings_as_lines():
        answers = predictor.predict(graphs)
    if as_json:
        print_json(as_records(answers))
    if output is not None:
        write_text(output, as_csv(answers))
        print_line(f"{output}: {len(answers):,} graphs", err)
    elif not as_json:
        typer.echo(as_csv(answers), nl=False)
    _compare(graphs, answers)


def as_records(answers: Predictions) -> list[dict[str, Any]]:
    """One JSON object a graph."""
    columns = answers.ids, answers.classes, answers.probabilities, answers.agreement
    return [
        {
            "id": name,
            "class": predicted,
            "probabilities": dict(zip(answers.class_names, p.tolist(), strict=True)),
            "agreement": float(agreement),
        }
        for name, predicted, p, agreement in zip(*columns, strict=True)
    ]


def as_rows(answers: Predictions, p: str, agreement: str) -> Iterator[tuple[str, ...]]:
    """The id, the class, the probabilities and the agreement of each graph, in these formats."""
    for record in as_records(answers):
        shares = (format(share, p) for share in record["probabilities"].values())
        yield record["id"], record["class"], *shares, format(record["agreement"], agreement)


def as_csv(answers: Predictions) -> str:
    """``id,class,p_<class>,...,agreement``, one line a graph."""
    head = ("id", "class", *(f"p_{name}" for name in answers.class_names), "agreement")
    return csv_text(head, as_rows(answers, ".4f", ".2f"))


def _compare(graphs: Graphs, answers: Predictions) -> None:
    """Where the graphs have classes that the model knows, say how many it got right."""
    if (
        graphs.y is None
        or not len(graphs)
        or not set(graphs.class_names) <= set(answers.class_names)
    ):
        return
    true = [graphs.class_names[number] for number in graphs.y.tolist()]
    hits = sum(a == b for a, b in zip(true, answers.classes, strict=True))
    print_line(f"{hits:,} of {len(true):,} as labelled ({hits / len(true):.1%})", err)

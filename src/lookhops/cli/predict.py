"""``lookhops predict``: classes and probabilities of new graphs."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from lookhops.cli.shared.parameters import Device, Json, with_options
from lookhops.cli.shared.printing import err, print_json, print_line, warn
from lookhops.cli.shared.reading import Input, Model, Reading

if TYPE_CHECKING:
    from lookhops.graphs import Graphs
    from lookhops.models.predictor import Predictions


@with_options
def predict(
    model: Model,
    source: Input,
    output: Path | None = None,
    device: Device = "auto",
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
    from lookhops.files import write_text
    from lookhops.models.predictor import Predictor

    predictor = Predictor(model, device)
    if stopped := predictor.checkpoint.config.get("stopped"):
        warn(f"{model}: {stopped}")
    graphs = reading.load_input(source)
    answers = predictor.predict(graphs)
    if as_json:
        print_json(as_records(answers))
    if output is not None:
        write_text(output, as_csv(answers))
        print_line(f"{output}: {len(answers):,} graphs", err)
    elif not as_json:
        typer.echo(as_csv(answers), nl=False)
    _compare(graphs, answers)


def as_csv(answers: Predictions) -> str:
    """``id,class,p_<class>,...,agreement``, one line a graph."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("id", "class", *(f"p_{name}" for name in answers.class_names), "agreement"))
    for record in as_records(answers):
        p = (f"{p:.4f}" for p in record["probabilities"].values())
        writer.writerow((record["id"], record["class"], *p, f"{record['agreement']:.2f}"))
    return text.getvalue()


def as_records(answers: Predictions) -> list[dict[str, Any]]:
    """One JSON object a graph."""
    rows = zip(answers.ids, answers.classes, answers.probabilities, answers.agreement, strict=True)
    return [
        {
            "id": name,
            "class": predicted,
            "probabilities": dict(zip(answers.class_names, p.tolist(), strict=True)),
            "agreement": float(agreement),
        }
        for name, predicted, p, agreement in rows
    ]


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

"""``lookhops predict``: classes and probabilities of new graphs."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from lookhops.cli.common import (
    Json,
    err,
    print_json,
    warn,
)
from lookhops.cli.groups import with_groups
from lookhops.cli.reading import Reading, warnings_as_lines
from lookhops.errors import LookHopsError
from lookhops.files import replacing

if TYPE_CHECKING:
    from lookhops.graphs import Graphs
    from lookhops.models.predictor import Predictions

Model = Annotated[
    Path,
    typer.Argument(metavar="DIR", help="Folder that `train` wrote.", show_default=False),
]
Input = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="Any source that `train` takes, or `-`: SMILES from standard input, one a line, "
        "each with a name if you like.",
        show_default=False,
    ),
]
Device = Annotated[
    str, typer.Option("--device", help="cpu, cuda, or auto: a GPU where there is one.")
]


@with_groups
def predict(
    model: Model,
    source: Input,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="CSV file to write.", show_default="standard output"),
    ] = None,
    device: Device = "auto",
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Classify graphs: id, class, calibrated probabilities, and how much the seeds agree.

    The models of all seeds in the folder answer together. `agreement` is the share of them that
    give the same class when asked alone.
    """
    from lookhops.models.predictor import Predictor

    predictor = Predictor(model, device)
    if stopped := predictor.checkpoint.config.get("stopped"):
        warn(f"{model}: {stopped}")
    graphs = load_input(source, reading)
    answers = predictor.predict(graphs)
    if as_json:
        print_json(as_records(answers))
    if output is not None:
        with replacing(output) as part:
            part.write_text(as_csv(answers), encoding="utf-8")
        err.print(f"{escape(str(output))}: {len(answers):,} graphs", soft_wrap=True)
    elif not as_json:
        typer.echo(as_csv(answers), nl=False)
    _compare(graphs, answers)


def load_input(source: str, reading: Reading) -> Graphs:
    """The graphs of a source, or of SMILES on standard input."""
    if source != "-":
        return reading.load(source)
    from lookhops.datasets.molecule_table import MoleculeTable
    from lookhops.datasets.molecules import featurise

    try:
        lines = sys.stdin.buffer.read().decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise LookHopsError("standard input: not UTF-8 text.") from error
    where, smiles, ids = [], [], []
    for number, line in enumerate(lines, 1):
        words = line.split(maxsplit=1)
        if words and not line.startswith("#"):
            where.append(f"line {number}")
            smiles.append(words[0])
            ids.append(words[1].strip() if len(words) > 1 else words[0])
    with warnings_as_lines():
        table = MoleculeTable("standard input", where, smiles, ids)
        return featurise(table, invalid=reading.invalid, name="standard input")


def as_csv(answers: Predictions) -> str:
    """``id,class,p_<class>,...,agreement``, one line a graph."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("id", "class", *(f"p_{name}" for name in answers.class_names), "agreement"))
    for record in as_records(answers):
        writer.writerow(
            (
                record["id"],
                record["class"],
                *(f"{p:.4f}" for p in record["probabilities"].values()),
                f"{record['agreement']:.2f}",
            )
        )
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
    err.print(f"{hits:,} of {len(true):,} as labelled ({hits / len(true):.1%})", soft_wrap=True)

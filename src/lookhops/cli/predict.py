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
from lookhops.words import counted

if TYPE_CHECKING:
    from lookhops.graphs import Graphs
    from lookhops.models.predictor import Predictions


@with_options
def predict(
    model: Model,
    source: Input,
    device: str = "auto",
    coverage: float = 0.9,
    output: Path | None = None,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Classify graphs: class, calibrated probabilities, and how sure the answer is.

    The models of all seeds in the folder answer together. The set holds the true class with the
    probability that `--coverage` asks for. `agreement` is the share of the seeds that give the same
    class when asked alone, `spread` the standard deviation of its probability over them,
    `similarity` that to the most similar training graph, from 0 to 1; a `warning` says where that
    is lower than of nearly all validation graphs. What is not chosen about reading is as it was
    for training.

    Args:
        coverage: Probability with which a set holds the true class.
        output: CSV file to write; by default standard output.
    """
    from lookhops.models.predictor import Predictor

    predictor = Predictor(model, device)
    if stopped := predictor.checkpoint.config.get("stopped"):
        warn(f"{model}: {stopped}")
    graphs = reading.load_input(source, predictor.checkpoint.reading)
    with warnings_as_lines():
        answers = predictor.predict(graphs, coverage)
    if as_json:
        print_json(as_records(answers))
    if output is not None:
        write_text(output, as_csv(answers, coverage))
        print_line(f"{output}: {len(answers):,} graphs", err)
    elif not as_json:
        typer.echo(as_csv(answers, coverage), nl=False)
    if unlike := int(answers.unlike.sum()):
        many = "is" if unlike == 1 else "are"
        warn(f"{counted(unlike, 'graph')} {many} unlike all that the model was trained on")
    _compare(graphs, answers)


def as_records(answers: Predictions) -> list[dict[str, Any]]:
    """One JSON object a graph."""
    records = []
    for i, (name, predicted) in enumerate(zip(answers.ids, answers.classes, strict=True)):
        p = dict(zip(answers.class_names, answers.probabilities[i].tolist(), strict=True))
        record: dict[str, Any] = {"id": name, "class": predicted, "probabilities": p}
        if answers.sets is not None:
            record["set"] = answers.named_set(i)
        record |= {"agreement": float(answers.agreement[i]), "spread": float(answers.spread[i])}
        if answers.similarity is not None:
            record["similarity"] = float(answers.similarity[i])
            record["unlike"] = bool(answers.unlike[i])
        records.append(record)
    return records


def as_rows(answers: Predictions, p: str, agreement: str) -> Iterator[tuple[str, ...]]:
    """The id, the class, the probabilities and the agreement of each graph, in these formats."""
    for record in as_records(answers):
        shares = (format(share, p) for share in record["probabilities"].values())
        yield record["id"], record["class"], *shares, format(record["agreement"], agreement)


def as_csv(answers: Predictions, coverage: float) -> str:
    """One line a graph."""
    head = ["id", "class", *(f"p_{name}" for name in answers.class_names)]
    head += [] if answers.sets is None else [f"set_{100 * coverage:g}"]
    head += ["agreement", "spread"]
    head += [] if answers.similarity is None else ["similarity", "warning"]
    rows = []
    for record in as_records(answers):
        row = [record["id"], record["class"]]
        row += [f"{share:.4f}" for share in record["probabilities"].values()]
        row += [" | ".join(record["set"])] if "set" in record else []
        row += [f"{record['agreement']:.2f}", f"{record['spread']:.4f}"]
        if "similarity" in record:
            unlike = "unlike the training graphs" if record["unlike"] else ""
            row += [f"{record['similarity']:.3f}", unlike]
        rows.append(row)
    return csv_text(head, rows)


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

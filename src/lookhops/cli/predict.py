"""``lookhops predict``: answers to new graphs, and how sure they are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lookhops.cli.shared.parameters import Json, Plugins, with_options
from lookhops.cli.shared.printing import err, print_json, print_line, warn
from lookhops.cli.shared.reading import Input, Model, Reading, warnings_as_lines
from lookhops.files import write_text
from lookhops.words import counted, visible

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
    plugin: Plugins = None,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Answer for new graphs: classes or numbers, and how sure they are.

    One row for each row of the input, in its order and with its columns. The models of all seeds
    answer together: `predicted` is the class, with calibrated probabilities, or the number. The
    set, or the interval, holds the truth with the probability that `--coverage` asks for.
    `agreement` is the share of the seeds that give the same class when asked alone, `spread` their
    standard deviation, `similarity` that to the most similar training graph, from 0 to 1. A
    `warning` says where that is lower than of nearly all validation graphs, or why a row was
    skipped. What is not chosen about reading is as it was for training.

    Args:
        coverage: Probability with which a set or an interval holds the truth.
        output: CSV file to write; by default standard output.
    """
    from lookhops.models.answer_table import answer_csv, answer_records
    from lookhops.models.predictor import Predictor

    predictor = Predictor(model, device)
    if stopped := predictor.checkpoint.config.get("stopped"):
        warn(f"{model}: {stopped}")
    graphs = reading.load_input(source, predictor.checkpoint.reading)
    with warnings_as_lines():
        answers = predictor.predict(graphs, coverage)
    if as_json:
        print_json(answer_records(graphs, answers))
    if output is not None:
        write_text(output, answer_csv(source, graphs, answers, coverage))
        print_line(f"{output}: {counted(len(answers), 'graph')}", err)
    elif not as_json:
        text = answer_csv(source, graphs, answers, coverage)
        typer.echo(visible(text) if sys.stdout.isatty() else text, nl=False)
    if unlike := int(answers.unlike.sum()):
        many = "is" if unlike == 1 else "are"
        warn(f"{counted(unlike, 'graph')} {many} unlike all that the model was trained on")
    _compare(graphs, answers)


def _compare(graphs: Graphs, answers: Predictions) -> None:
    """Where the graphs have the one target that the model answers, say how well it did."""
    from lookhops.models.answers import ClassAnswers

    [target, *others] = answers.targets
    if graphs.y is None or others or len(graphs.targets) != 1 or not len(graphs):
        return
    names = graphs.targets[0].classes
    known = ~graphs.y.isnan() if graphs.y.is_floating_point() else graphs.y >= 0
    measured = graphs.y[known].tolist()
    numbers = known.nonzero().flatten().tolist()
    if not numbers or bool(names) != isinstance(target, ClassAnswers):
        return
    if not isinstance(target, ClassAnswers):
        errors = [abs(target.values[i] - y) for i, y in zip(numbers, measured, strict=True)]
        said = f"mean error {sum(errors) / len(errors):.3g} in {counted(len(errors), 'graph')}"
        print_line(f"{said} with a measured {graphs.targets[0].name}", err)
    elif set(names) <= set(target.class_names):
        true = [names[number] for number in measured]
        hits = sum(target.classes[i] == name for i, name in zip(numbers, true, strict=True))
        print_line(f"{hits:,} of {len(true):,} as labelled ({hits / len(true):.1%})", err)

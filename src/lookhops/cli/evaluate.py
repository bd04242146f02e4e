"""``lookhops evaluate``: how well a model answers graphs whose truth is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from lookhops.cli.shared.parameters import Json, Plugins, with_options
from lookhops.cli.shared.printing import grid, out, panel, print_json, warn
from lookhops.cli.shared.reading import Input, Model, Reading, load, warnings_as_lines
from lookhops.cli.shared.writing import check_page, command_line, write_page
from lookhops.core.words import agreeing, counted

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.panel import Panel

    from lookhops.models.labelled import Evaluation


@with_options
def evaluate(
    model: Model,
    source: Input,
    device: str = "auto",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Also write a page (.html) with tables and curves.",
            show_default="none",
            callback=check_page,
        ),
    ] = None,
    coverage: float = 0.9,
    plugin: Plugins = None,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Compare a model's answers with the truth: all metrics, with bootstrap intervals.

    Says how many of the graphs were in the training part, by what they are and not by their names;
    where there are others too, the metrics are given of those alone as well. What is not chosen
    about reading is as it was for training, targets included.
    """
    load(device, "lookhops.models.labelled", "lookhops.models.predictor")
    from lookhops.models.labelled import evaluate as evaluate_graphs
    from lookhops.models.predictor import Predictor

    predictor = Predictor(model, device)
    stored = predictor.reading
    if reading.target is None:
        reading = replace(reading, target=stored.target, task=stored.task)
    graphs = reading.load_input(source, stored, need_targets=True)
    with warnings_as_lines():
        found = evaluate_graphs(predictor, graphs, coverage)
    if as_json:
        print_json({"model": str(model), "data": graphs.name, **found.to_dict()})
    else:
        out.print(_panel(found, str(model)))
    if unlike := int(found.answers.unlike.sum()):
        warn(
            f"{unlike:,} of {counted(len(graphs), 'graph')} {agreeing(unlike, 'is', 'are')} unlike "
            "all that the model was trained on"
        )
    if output is not None:
        from lookhops.report.evaluation import evaluation_report

        made = evaluation_report(found, str(model), [("Make this page", command_line())])
        write_page(made, output, quiet=as_json)


def _panel(found: Evaluation, model: str) -> Panel:
    from lookhops.report.evaluation import metrics_table, seen_sentence, too_few_sentence

    parts: list[RenderableType] = []
    for target in found.targets:
        table = metrics_table(target)
        head = [escape(target.name) if len(found.targets) > 1 else "", *table.head[1:]]
        rows, before = [], " "
        for title, *cells in table.rows:
            name = str(title).replace(f"{before}, ", "  ")  # a variant stands below, indented
            before = str(title)
            ends = (str(cell).removesuffix(" %") for cell in cells[1::2])
            pairs = zip(map(str, cells[::2]), ends, strict=True)
            rows.append([escape(name), *(cell for pair in pairs for cell in pair)])
        parts.append(grid(rows, head, ("left wrap", "right bold", "right", "right bold", "right")))
        if said := too_few_sentence(target):
            parts.append(escape(said))
    return panel(f"{found.graphs.name}, answered by {model}", *parts, escape(seen_sentence(found)))

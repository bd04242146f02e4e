"""``lookhops export``: a model as one file that runs without LookHops."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer

from lookhops.cli.shared.parameters import Json, Plugins, with_options
from lookhops.cli.shared.printing import print_json, print_line
from lookhops.cli.shared.reading import Model, Reading, warnings_as_lines
from lookhops.core.errors import LookHopsError
from lookhops.core.words import counted, memory

#: Graphs that are recorded with, and that the file is checked on.
RECORDED, CHECKED = 5, 1000


@with_options
def export(
    model: Model,
    output: Path,
    check: str | None = None,
    plugin: Plugins = None,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Write a trained model as one file, `.onnx` or `.pt2`, that runs without LookHops.

    It takes arrays of labels, numbers and edges of any number of graphs and gives calibrated
    probabilities or numbers, as `predict` does, from all networks together. The file is then run
    beside the model on 1,000 graphs, and the largest difference is printed.

    Args:
        output: The file: .onnx for ONNX runtimes, .pt2 for PyTorch.
        check: Graphs to check it on, as for `train`, the first 1,000; by default made-up ones.
    """
    from lookhops.models import Predictor
    from lookhops.models.export import compare, export_model, load_exported
    from lookhops.models.exported import made_up

    predictor = Predictor(model, "cpu")
    graphs = made_up(predictor, CHECKED)
    example = predictor.encoding.read(graphs[:RECORDED])
    if check is not None:
        graphs = reading.load_input(check, predictor.reading)[:CHECKED]
        if not len(graphs):
            raise LookHopsError(f"{check}: there are no graphs to check the file on.")
    with warnings_as_lines():
        graphs = predictor.read(graphs)
        about = export_model(predictor, output, example)
        found = compare(predictor, load_exported(output), graphs)
    if as_json:
        print_json({"file": str(output), **about, "check": {"data": graphs.name, **asdict(found)}})
    else:
        print_line(
            f"{output}: {memory(output.stat().st_size)}, inputs {', '.join(about['inputs'])}"
        )
        on = f"{counted(found.graphs, 'graph')} ({graphs.name})"
        print_line(f"largest difference from our own answers in {on}: {found}")
    if not found.is_small:
        raise typer.Exit(1)

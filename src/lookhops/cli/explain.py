"""``lookhops explain``: what a model looked at, as JSON and as pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import track

from lookhops.cli.shared.parameters import Device, Json, with_options
from lookhops.cli.shared.pictures import with_pictures
from lookhops.cli.shared.printing import err, print_json, print_line
from lookhops.cli.shared.reading import Input, Model, Reading
from lookhops.errors import LookHopsError
from lookhops.words import counted


@with_options
def explain(
    model: Model,
    source: Input,
    output: Path | None = None,
    seed: int | None = None,
    pictures: Annotated[
        bool, typer.Option("--pictures/--no-pictures", help="Draw each graph (SVG).")
    ] = True,
    device: Device = "auto",
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Show which nodes each pooling layer kept, and with what score.

    Writes `explanations.json` and one picture a graph, with a panel for each pooling layer: nodes
    shaded by score, dropped ones faded. Nodes are numbered from 0; an atom's number is its place
    in the SMILES.

    Args:
        output: Folder for explanations.json and the pictures.
        seed: Which of the model's seeds to look into; by default its first.
    """
    from lookhops.files import write_text
    from lookhops.models.explain import explain as explain_graphs
    from lookhops.models.predictor import Predictor

    if output is None and not as_json:
        raise LookHopsError("Say where to write with -o FOLDER, or print with --json.")
    predictor = Predictor(model, device)
    graphs = reading.load_input(source)
    found = track(
        explain_graphs(predictor, graphs, seed),
        "explaining",
        total=len(graphs),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )
    records = list(with_pictures(found, output if pictures else None))
    chosen = predictor.checkpoint.seeds[0] if seed is None else seed
    content = {"model": str(model), "seed": chosen, "graphs": records}
    if output is not None:
        write_text(output / "explanations.json", json.dumps(content, ensure_ascii=False) + "\n")
    if as_json:
        print_json(content)
    else:
        drawn = f" and {counted(len(records), 'picture')}" if pictures and records else ""
        print_line(f"{output}: explanations.json{drawn}")

"""``lookhops explain``: what a model looked at, as JSON and as pictures."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import track

from lookhops.cli.common import (
    Json,
    err,
    out,
    print_json,
)
from lookhops.cli.groups import with_groups
from lookhops.cli.predict import Device, Input, Model, load_input
from lookhops.cli.reading import Reading
from lookhops.errors import LookHopsError
from lookhops.files import replacing


@with_groups
def explain(
    model: Model,
    source: Input,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder for explanations.json and the pictures."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Which of the model's seeds to look into.", show_default="its first"),
    ] = None,
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
    """
    from lookhops.models.explain import explain as explain_graphs
    from lookhops.models.predictor import Predictor

    if output is None and not as_json:
        raise LookHopsError("Say where to write with -o FOLDER, or print with --json.")
    predictor = Predictor(model, device)
    graphs = load_input(source, reading)
    found = track(
        explain_graphs(predictor, graphs, seed),
        "explaining",
        total=len(graphs),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )
    records, names = [], Names()
    for explanation in found:
        record = explanation.as_json()
        if output is not None and pictures:
            record["picture"] = names.take(explanation.id)
            write_picture(output / record["picture"], explanation)
        records.append(record)
    chosen = predictor.checkpoint.seeds[0] if seed is None else seed
    content = {"model": str(model), "seed": chosen, "graphs": records}
    if output is not None:
        with replacing(output / "explanations.json") as part:
            part.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")
    if as_json:
        print_json(content)
    else:
        _report(records, output)


def write_picture(path: Path, explanation: Any) -> None:
    """Draw one graph."""
    with replacing(path) as part:
        part.write_text(explanation.picture(), encoding="utf-8")


class Names:
    """File names from ids: safe on every system, and no two the same."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def take(self, graph_id: str) -> str:
        """A name for a picture that was not given before."""
        stem = re.sub(r"[^\w.+-]+", "-", graph_id).strip("-.")[:80] or "graph"
        name, number = f"{stem}.svg", 2
        while name.lower() in self.taken:
            name, number = f"{stem}-{number}.svg", number + 1
        self.taken.add(name.lower())
        return name


def _report(records: list[dict[str, Any]], output: Path | None) -> None:
    drawn = sum("picture" in record for record in records)
    pictures = f" and {drawn:,} picture{'s' if drawn != 1 else ''}" if drawn else ""
    out.print(f"{escape(str(output))}: explanations.json{pictures}", soft_wrap=True)

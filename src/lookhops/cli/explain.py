"""``lookhops explain``: what a model looked at, as JSON and as pictures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lookhops.cli.shared.parameters import Json, Plugins, with_options
from lookhops.cli.shared.printing import print_json, print_line
from lookhops.cli.shared.progress import progress_bar
from lookhops.cli.shared.reading import Input, Model, Reading, warnings_as_lines
from lookhops.errors import LookHopsError
from lookhops.files import changing, write_text
from lookhops.words import counted

if TYPE_CHECKING:
    from lookhops.models.explain import Explanation


@with_options
def explain(
    model: Model,
    source: Input,
    output: Path | None = None,
    of_seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            help="Which of the model's seeds to look into; by default its first, or the model of "
            "all graphs where there is one.",
        ),
    ] = None,
    pictures: Annotated[
        bool, typer.Option("--pictures/--no-pictures", help="Draw each graph (SVG).")
    ] = True,
    device: str = "auto",
    plugin: Plugins = None,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Show which nodes each pooling layer kept, and with what score.

    Writes `explanations.json` and one picture a graph, with a panel for each pooling layer: nodes
    shaded by score, dropped ones faded. Nodes are numbered from 0; an atom's number is its place
    in the SMILES. A row of the input that gives no graph is there with its reason.

    Args:
        output: Folder for explanations.json and the pictures.
    """
    from lookhops.graphs import in_input_order
    from lookhops.models.explain import explain as explain_graphs
    from lookhops.models.predictor import Predictor
    from lookhops.training.randomness import FINAL

    if output is None and not as_json:
        raise LookHopsError("Say where to write with -o FOLDER, or print with --json.")
    predictor = Predictor(model, device)
    graphs = reading.load_input(source, predictor.checkpoint.reading)
    first = predictor.checkpoint.answering[0]
    chosen = of_seed if of_seed is not None else "final" if first == FINAL else first
    folder = changing(output) if output else nullcontext()
    with warnings_as_lines(), progress_bar() as bar, folder as new:
        explained = explain_graphs(predictor, graphs, of_seed)
        found = bar.track(explained, len(graphs), description="explaining")
        records = list(with_pictures(found, new if pictures else None))
        skipped = [row.record() for row in graphs.skipped]
        rows = in_input_order(records, skipped, graphs.skipped)
        content = {"model": str(model), "seed": chosen, "graphs": rows}
        if new is not None:
            write_text(new / "explanations.json", json.dumps(content, ensure_ascii=False) + "\n")
    if as_json:
        print_json(content)
    else:
        drawn = f" and {counted(len(records), 'picture')}" if pictures and records else ""
        print_line(f"{output}: explanations.json{drawn}")


def with_pictures(found: Iterable[Explanation], folder: Path | None) -> Iterator[dict[str, Any]]:
    """Explanations as JSON can hold them; where there is a folder, with a ``picture`` in it."""
    taken: set[str] = set()
    for explanation in found:
        record = explanation.as_json()
        if folder is not None:
            record["picture"] = _new_name(explanation.id, taken)
            write_text(folder / record["picture"], explanation.picture())
        yield record


def _new_name(graph_id: str, taken: set[str]) -> str:
    """A file name from an id: safe on every system, and not among those that are taken."""
    stem = re.sub(r"[^\w.+-]+", "-", graph_id).strip("-.")[:80] or "graph"
    name, number = f"{stem}.svg", 2
    while name.lower() in taken:
        name, number = f"{stem}-{number}.svg", number + 1
    taken.add(name.lower())
    return name

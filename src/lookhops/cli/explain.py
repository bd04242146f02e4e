"""``lookhops explain``: what an answer rests on, as JSON and as pictures."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookhops.cli.shared.output import print_json, print_line
from lookhops.cli.shared.parameters import Json, Plugins, with_options
from lookhops.cli.shared.reading import Input, Model, Reading, load, warnings_as_lines
from lookhops.cli.shared.running import progress_bar
from lookhops.core.errors import LookHopsError
from lookhops.core.files import changing, write_text
from lookhops.core.words import counted

if TYPE_CHECKING:
    from lookhops.explain import Attribution
    from lookhops.explain.kept import Explanation
    from lookhops.graphs import Graphs
    from lookhops.models.predictor import Predictor

#: Graphs that are explained between two steps of the progress bar: a batch for each of two cores.
PIECE = 512


class View(StrEnum):
    """What to show."""

    shares = "shares"
    kept = "kept"
    neighbourhoods = "neighbourhoods"


@with_options
def explain(
    model: Model,
    source: Input,
    output: Path | None = None,
    view: View = View.shares,
    of: str | None = None,
    seed: int | None = None,
    pictures: bool = True,
    device: str = "auto",
    plugin: Plugins = None,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Show each node's and edge's share of the answer.

    Shares are in the units of the answer: log-odds of the class that is answered against the
    others, or the predicted number. With those of an average graph and of the graph as a whole they
    add up to it. Writes `explanations.json` and one picture a graph, all with the same colours.
    Nodes are numbered from 0, and called by their ids where the input has any (tables, .jsonl); an
    atom's number is its place in the SMILES. A row of the input that gives no graph is there with
    its reason.

    Args:
        output: Folder for explanations.json and the pictures.
        view: `shares`: each node's and edge's share of the answer; `kept`: which nodes each pooling
            layer kept, which says little about what matters; `neighbourhoods`: those that weigh
            most for each class, or for high and low values, as they stand in INPUT.
        of: Which target to explain, of a model that answers several.
        seed: Which of the model's seeds to look into; by default shares are those of all, and what
            was kept of the first.
        pictures: Draw each graph (SVG).
    """
    if output is None and not as_json:
        raise LookHopsError("Say where to write with -o FOLDER, or print with --json.")
    load(device, "lookhops.models.predictor")
    from lookhops.explain.kept import explain as explain_kept
    from lookhops.models.predictor import Predictor

    predictor = Predictor(model, device)
    graphs = reading.load_input(source, predictor.reading)
    if view is View.neighbourhoods:
        rows = _neighbourhoods(predictor, graphs, of, output, pictures)
        name, drawn = "neighbourhoods.csv", len(rows)
        content: dict[str, Any] = {"model": str(model), "neighbourhoods": rows}
    else:
        found: Iterator[Attribution | Explanation] = explain_kept(predictor, graphs, seed)
        if view is View.shares:
            is_drawn = output is not None and pictures
            found = _shares(predictor, graphs, of, seed, is_drawn)
        name, drawn = "explanations.json", len(graphs)
        content = {"model": str(model), "view": view.value, **_seed(predictor, view, seed)}
        _explain(found, graphs, content, output, pictures)
    if as_json:
        print_json(content)
    else:
        more = f" and {counted(drawn, 'picture')}" if drawn and pictures else ""
        print_line(f"{output}: {name}{more}")


def _explain(
    found: Iterable[Any], graphs: Graphs, content: dict[str, Any], output: Path | None, draw: bool
) -> None:
    """Add each graph's explanation to the content of explanations.json, and write it."""
    from lookhops.graphs import in_input_order

    changed = changing(output) if output else nullcontext()
    with warnings_as_lines(), progress_bar() as bar, changed as folder:
        found = bar.track(found, len(graphs), description="explaining")
        records, taken = [], set[str]()
        for explanation in found:
            records.append(explanation.as_json())
            if folder is not None and draw:
                name = _new_name(explanation.id, taken)
                write_text(folder / name, explanation.picture())
                records[-1]["picture"] = name
        skipped = [row.record() for row in graphs.skipped]
        content["graphs"] = in_input_order(records, skipped, graphs.skipped)
        if folder is not None:
            text = json.dumps(content, ensure_ascii=False) + "\n"
            write_text(folder / "explanations.json", text)


def _neighbourhoods(
    predictor: Predictor, graphs: Graphs, target: str | None, output: Path | None, draw: bool
) -> list[dict[str, Any]]:
    """The neighbourhoods with most weight, written as a table and a picture of each."""
    from lookhops.core.tables import to_csv
    from lookhops.explain.neighbourhoods import top_neighbourhoods

    with warnings_as_lines():
        by_side = top_neighbourhoods(predictor, graphs, target)
    rows: list[dict[str, Any]] = []
    taken: set[str] = set()
    with changing(output) if output else nullcontext() as folder:
        for side, found in by_side.items():
            for place, one in enumerate(found, 1):
                rows.append({"place": place, **one.record()})
                if folder is not None and draw:
                    rows[-1]["picture"] = _new_name(f"{side}-{place:02d}", taken)
                    write_text(folder / rows[-1]["picture"], one.picture())
        if folder is not None:
            cells = [{**row, "examples": " | ".join(row["examples"])} for row in rows]
            write_text(folder / "neighbourhoods.csv", to_csv(cells))
    return rows


def _shares(
    predictor: Predictor, graphs: Graphs, target: str | None, seed: int | None, drawn: bool
) -> Iterator[Attribution]:
    """The shares of each graph; where they are drawn, all with the same colours."""
    from lookhops.explain import attribute
    from lookhops.explain.attributions import common_limit

    starts = range(0, len(graphs), PIECE)
    pieces = (attribute(predictor, graphs[i : i + PIECE], target, seed) for i in starts)
    found = (piece[number] for piece in pieces for number in range(len(piece)))
    if drawn:
        every = list(found)
        limit = common_limit(every)
        found = (replace(one, limit=limit) for one in every)
    yield from found


def _seed(predictor: Predictor, view: View, seed: int | None) -> dict[str, Any]:
    """Whose networks were looked into, where it is not all of them."""
    from lookhops.training.runs import FINAL

    if view is View.shares:
        return {} if seed is None else {"seed": seed}
    first = predictor.answering[0]
    return {"seed": seed if seed is not None else "final" if first == FINAL else first}


def _new_name(graph_id: str, taken: set[str]) -> str:
    """A file name from an id: safe on every system, and not among those that are taken."""
    stem = re.sub(r"[^\w.+-]+", "-", graph_id).strip("-.")[:80] or "graph"
    name, number = f"{stem}.svg", 2
    while name.lower() in taken:
        name, number = f"{stem}-{number}.svg", number + 1
    taken.add(name.lower())
    return name

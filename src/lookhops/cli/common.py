"""What every command shares: where graphs come from, and how results are printed."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

if TYPE_CHECKING:
    from lookhops.graphs import Graphs

# Tables go to stdout; progress and remarks to stderr, so that stdout can be piped.
out = Console(highlight=False, soft_wrap=False)
err = Console(stderr=True, highlight=False)

Source = Annotated[
    str,
    typer.Argument(
        help="A TU name (NCI1), a TU zip or folder, molecules (.smi .csv .sdf), packed graphs "
        "(.graphs), `solubility`, or `hops-1` to `hops-6`.",
        show_default=False,
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        envvar="LOOKHOPS_DATA",
        help="Folder of TU archives. Default: the user's cache folder.",
        show_default=False,
    ),
]
SmilesColumn = Annotated[
    str | None,
    typer.Option(
        "--smiles-column", help="CSV: the column of SMILES.", show_default="found by name"
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        "--label-column",
        help="CSV or SDF: the class of each molecule.",
        show_default="found by name",
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id-column", help="CSV or SDF: what to call each molecule.", show_default="found by name"
    ),
]
Invalid = Annotated[
    str,
    typer.Option(
        "--invalid",
        metavar="[raise|skip]",
        help="Molecules that do not parse: an error, or left out with a warning.",
    ),
]
TaskSize = Annotated[
    int | None,
    typer.Option(
        "--task-size", min=1, help="hops-K: how many graphs to make.", show_default="1000"
    ),
]
TaskSeed = Annotated[
    int | None,
    typer.Option("--task-seed", min=0, help="hops-K: the seed to make them by.", show_default="0"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]


def load_source(
    source: str,
    data_dir: Path | None = None,
    smiles_column: str | None = None,
    label_column: str | None = None,
    id_column: str | None = None,
    invalid: str = "raise",
    task_size: int | None = None,
    task_seed: int | None = None,
) -> Graphs:
    """Load the graphs that a command was asked for, with warnings as plain lines on stderr."""
    from lookhops.datasets import load

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        graphs = load(
            source,
            data_dir=data_dir,
            smiles_column=smiles_column,
            label_column=label_column,
            id_column=id_column,
            invalid=invalid,
            size=task_size,
            seed=task_seed,
        )
    for warning in caught:
        if issubclass(warning.category, UserWarning):
            warn(str(warning.message))
    return graphs


def warn(text: str) -> None:
    """Print a remark on stderr."""
    err.print(f"[yellow]warning:[/] {escape(text)}", soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a value as JSON on stdout."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def bar(fraction: float, width: int) -> str:
    """A bar of at most ``width`` characters."""
    block = "█" if out.encoding.lower().startswith("utf") else "#"
    return block * round(fraction * width)

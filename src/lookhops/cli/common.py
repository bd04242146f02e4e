"""What every command shares: where graphs come from, and how results are printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

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
Invalid = Annotated[
    str,
    typer.Option(
        "--invalid", help="Molecules that do not parse: `raise` or `skip` (with a warning)."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]


def print_json(value: Any) -> None:
    """Print a value as JSON on stdout."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))

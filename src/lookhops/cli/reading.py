"""How a command reads graphs: a source, and the options that some sources need."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lookhops.cli.common import warn
from lookhops.errors import LookHopsError

if TYPE_CHECKING:
    from lookhops.graphs import Graphs

PANEL = "How graphs are read"

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


def _option(name: str, help: str, **rest: Any) -> Any:
    return typer.Option(name, help=help, rich_help_panel=PANEL, **rest)


@dataclass(frozen=True)
class Reading:
    """The options of reading graphs, a group for :func:`~lookhops.cli.groups.with_groups`."""

    data_dir: DataDir = None
    smiles_column: Annotated[
        str | None,
        _option("--smiles-column", "CSV: the column of SMILES.", show_default="found by name"),
    ] = None
    label_column: Annotated[
        str | None,
        _option(
            "--label-column",
            "CSV or SDF: the class of each molecule.",
            show_default="found by name",
        ),
    ] = None
    id_column: Annotated[
        str | None,
        _option(
            "--id-column", "CSV or SDF: what to call each molecule.", show_default="found by name"
        ),
    ] = None
    invalid: Annotated[
        str,
        _option(
            "--invalid",
            "Molecules that do not parse: an error, or left out with a warning.",
            metavar="[raise|skip]",
        ),
    ] = "raise"
    task_size: Annotated[
        int | None,
        _option("--task-size", "hops-K: how many graphs to make.", min=1, show_default="1000"),
    ] = None
    task_seed: Annotated[
        int | None,
        _option("--task-seed", "hops-K: the seed to make them by.", min=0, show_default="0"),
    ] = None

    def load(self, source: str) -> Graphs:
        """The graphs of a source, with warnings as plain lines on stderr."""
        from lookhops.datasets import load

        if not source.strip():
            raise LookHopsError("Name the graphs: a file, a folder or a data set.")
        options = asdict(self)
        options |= {"size": options.pop("task_size"), "seed": options.pop("task_seed")}
        with warnings_as_lines():
            return load(source, **options)


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Warnings of the block, as plain lines on stderr after it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in caught:
        if issubclass(warning.category, UserWarning):
            warn(str(warning.message))

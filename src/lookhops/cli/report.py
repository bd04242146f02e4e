"""``lookhops report``: one page that shows what was measured, trained and compared."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from lookhops.cli.common import (
    Json,
    check_folder,
    err,
    out,
    print_json,
)
from lookhops.cli.groups import with_groups
from lookhops.cli.reading import Reading
from lookhops.errors import LookHopsError

if TYPE_CHECKING:
    from lookhops.report.content import Report

#: The option that lets other commands end with a report.
ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--report", help="Also write a report, an HTML page, to this file.", show_default="none"
    ),
]


@with_groups
def report(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="DIR|STORE",
            help="A model's folder, a folder of such folders, a store of results (.sqlite) or "
            "exported results (.json).",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The page to write.")] = Path(
        "report.html"
    ),
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            help="The graphs that the model was trained on (as for `train`): adds the gallery of "
            "what it looked at.",
            show_default="none",
        ),
    ] = None,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Write one self-contained HTML page about a model, a comparison or an experiment.

    It needs no network, and holds what is there: the data, the hops, the training, the results,
    the comparison, what the model looked at, and how to do it again.
    """
    from lookhops.report.build import report_on

    check_page(output)
    graphs = None
    if data is not None:
        graphs = reading.load(data)
    made = report_on(source, graphs, [("Make this page", command_line())])
    write(made, output, quiet=as_json)
    if as_json:
        sections = {section.name: section.title for section in made.sections}
        size = output.stat().st_size
        print_json(
            {"report": str(output), "title": made.title, "bytes": size} | {"sections": sections}
        )


def check_page(path: Path) -> None:
    """Say early that a report is an HTML file, in a folder that can be had."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise LookHopsError(f"{path}: a report is an HTML page; give it a name that ends in .html.")
    if path.is_dir():
        raise LookHopsError(f"{path}: a folder; a report is written to a file.")
    check_folder(path.parent)


def write(made: Report, path: Path, quiet: bool = False) -> None:
    """Write a page and say where it is: on stderr where stdout is for JSON alone."""
    from lookhops.report.page import write_report

    write_report(made, path)
    (err if quiet else out).print(f"report: {escape(str(path))}", soft_wrap=True)


def command_line() -> str:
    """The command that is running, as a user would type it to have the same from the start."""
    words = [word for word in sys.argv[1:] if word not in ("--resume", "--overwrite")]
    return shlex.join(["lookhops", *words])

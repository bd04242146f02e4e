"""How a command writes: what can be written to, and reports."""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from lookhops.cli.shared.printing import err, out, print_line
from lookhops.core.errors import LookHopsError

if TYPE_CHECKING:
    from lookhops.report.page import Report


def check_output(path: Path, kinds: tuple[str, ...], source: str) -> None:
    """Refuse a file that is not written so, or that holds the input, before anything is read."""
    if path.suffix.lower() not in kinds:
        known = " or ".join(filter(None, kinds))
        raise LookHopsError(f"{path}: is written as {known}; end its name so.")
    is_input = False
    with suppress(OSError, RuntimeError, ValueError):  # one of the two is no file
        given = Path(source).expanduser()
        tables = [file for name in ("edges", "nodes", "graphs") for file in given.glob(f"{name}.*")]
        resolved = path.resolve()  # also through folders that are yet to be made
        is_input = any(resolved.samefile(file) for file in (given, *tables))
    if is_input:
        raise LookHopsError(f"{path}: is the input itself; write to another file.")


def check_folder(path: Path) -> None:
    """Say now, not after hours of training, that a folder cannot be written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path):
            pass
    except OSError as error:
        reason = "it is a file" if path.is_file() else error.strerror
        raise LookHopsError(f"{path}: cannot be written ({reason}).") from error


def check_picture(path: Path | None, kinds: tuple[str, ...]) -> None:
    """Say before any work that a picture is of one of these kinds of files."""
    if path is not None and path.suffix.lower() not in kinds:
        raise LookHopsError(f"{path}: a picture ends in {', '.join(kinds)}.")


def check_page(path: Path | None) -> Path | None:
    """Say before any work that a report is an HTML file, in a folder that can be had."""
    if path is None:
        return None
    if path.suffix.lower() not in (".html", ".htm"):
        raise LookHopsError(f"{path}: a report is an HTML page; give it a name that ends in .html.")
    if path.is_dir():
        raise LookHopsError(f"{path}: a folder; a report is written to a file.")
    check_folder(path.parent)
    return path


#: The option that lets other commands end with a report.
ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--report",
        help="Also write a report, an HTML page, to this file.",
        show_default="none",
        callback=check_page,
    ),
]


def write_page(made: Report, path: Path, quiet: bool = False) -> None:
    """Write a report and say where it is: on stderr where stdout is for JSON alone."""
    from lookhops.report.page import write_report

    write_report(made, path)
    print_line(f"report: {path}", err if quiet else out)


def print_saved(model: Path) -> None:
    """Say where a model is, and what to type next."""
    out.print(f"[dim]saved in[/] {escape(str(model))}", soft_wrap=True)
    shown = escape(shlex.quote(str(model)))
    out.print(f"[dim]next:[/] lookhops predict {shown} INPUT", soft_wrap=True)


def command_line() -> str:
    """The command that is running, as a user would type it to have the same from the start."""
    words = [word for word in sys.argv[1:] if word not in ("--resume", "--overwrite")]
    return shlex.join(["lookhops", *words])

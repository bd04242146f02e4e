"""What every command shares: how results are printed."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from lookhops.errors import LookHopsError

# Tables go to stdout; progress and remarks to stderr, so that stdout can be piped.
out = Console(highlight=False, soft_wrap=False)
err = Console(stderr=True, highlight=False)

Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]


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


def check_folder(path: Path) -> None:
    """Say now, not after hours of training, that a folder cannot be written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path):
            pass
    except OSError as error:
        reason = "it is a file" if path.is_file() else error.strerror
        raise LookHopsError(f"{path}: cannot be written ({reason}).") from error

"""The command ``lookhops``: each command in its own file, registered here."""

from __future__ import annotations

import os
import sys

import typer

from lookhops import __version__
from lookhops.cli import (
    compare,
    data,
    demo,
    explain,
    look,
    paper,
    params,
    predict,
    report,
    train,
)
from lookhops.errors import LookHopsError

# Before PyTorch is imported: its threads wait for each other in a loop, and where another program
# has one of the cores they wait for a whole time slice. A short loop, then sleep, costs little.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

app = typer.Typer(
    name="lookhops",
    help="Classify whole graphs with light models that look several hops at once.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.add_typer(data.app, name="data")
app.command()(look.look)
app.command()(train.train)
app.command()(predict.predict)
app.command()(explain.explain)
app.command()(compare.compare)
app.command()(paper.paper)
app.command()(report.report)
app.command()(demo.demo)
app.command()(params.params)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"lookhops {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    pass


def main() -> None:
    """Run the command: an error that the user can mend is one line on stderr and exit code 2."""
    try:
        app()
    except LookHopsError as error:
        print(f"lookhops: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except (MemoryError, RuntimeError) as error:
        if not _out_of_memory(error):
            raise
        advice = "fewer seeds at a time or a smaller --batch-size need less"
        print(f"lookhops: out of memory; {advice}.", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("lookhops: interrupted; what was already written is kept.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _out_of_memory(error: BaseException) -> bool:
    """Whether Python, or PyTorch on a CPU or a GPU, found no more memory."""
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or "can't allocate memory" in str(error)
    )

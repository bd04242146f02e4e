"""The command ``lookhops``: its commands by name, and how errors are reported.

The file of a command is imported when it is called, not for the others.
"""

from __future__ import annotations

import errno
import os
import sys
from functools import cache
from importlib import import_module
from typing import Any, NoReturn

import typer
import typer.main
from typer.core import TyperGroup

from lookhops import __version__
from lookhops.core.errors import LookHopsError
from lookhops.core.words import visible

try:  # what Typer raises for options that it cannot read
    from typer.exceptions import TyperException as OptionError
except ImportError:  # versions that are built on Click
    from click import ClickException as OptionError  # type: ignore[assignment]

# Before PyTorch is imported: its threads wait for each other in a loop, and where another program
# has one of the cores they wait for a whole time slice. A short loop, then sleep, costs little.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

#: The commands in the order of the help, and how their docstrings begin.
SUMMARIES = {
    "look": "See, before any training, how many hops are worth looking at.",
    "train": "Train a model for each seed, test it once, and keep all of them in a folder.",
    "predict": "Answer for new graphs: classes or numbers, and how sure they are.",
    "evaluate": "Compare a model's answers with the truth: all metrics, with bootstrap intervals.",
    "embed": "Write each graph as a vector: for similarity, clustering, or another model.",
    "explain": "Show each node's and edge's share of the answer.",
    "serve": "Serve models: a page for people, an API for programs.",
    "compare": "Train models on the same splits of your graphs and say which differ.",
    "tune": "Search for a configuration, say what that gains, and keep its model in a folder.",
    "paper": "Run what is missing of the paper's experiments, and write its tables and figures.",
    "report": "Write one self-contained HTML page about a model, a comparison or an experiment.",
    "export": "Write a trained model as one file, `.onnx` or `.pt2`, that runs without LookHops.",
    "demo": "Look, train, compare, predict, explain and report, on the bundled molecules.",
    "params": "Count the parameters of the network that these graphs would get.",
    "models": "List the convolutions and poolings that models are made of.",
    "data": "List, describe, convert and fetch sets of graphs.",
}
#: Files of commands, where these are not called so.
FILES = {
    **{"embed": "predict", "evaluate": "predict", "params": "models", "tune": "compare"},
    **dict.fromkeys(("export", "report", "serve"), "publish"),
}
#: How all help is written.
MARKUP: Any = "markdown"


@cache
def load(name: str) -> Any:
    """A command, or a group of them, with its options."""
    module = import_module(f"lookhops.cli.{FILES.get(name, name)}")
    alone = typer.Typer(rich_markup_mode=MARKUP)
    if hasattr(module, "app"):
        alone.add_typer(module.app, name=name)
    else:
        alone.command(name)(getattr(module, name))
    return typer.main.get_group(alone).commands[name]


class Commands(TyperGroup):
    """Commands that are known by what they do, and loaded when one of them is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the words begin with, and the words that are left."""
        name, command, others = super().resolve_command(ctx, args)
        return name, command and load(str(command.name)), others


def _not_yet_loaded() -> None:
    """Stands for a command until it is called."""


app = typer.Typer(
    cls=Commands,
    name="lookhops",
    help="Answer questions about whole graphs with light models that look several hops at once.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=MARKUP,
)
for _name, _summary in SUMMARIES.items():
    app.command(_name, help=_summary)(_not_yet_loaded)


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


#: What PyTorch says on a GPU and on a CPU.
NO_MEMORY = ("out of memory", "can't allocate memory")
DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: Packages that are imported when they are first used, and what to install where one is missing.
PACKAGES = {
    **{name: name for name in ("rdkit", "plotly", "matplotlib", "jinja2", "tensorboard")},
    **dict.fromkeys(("onnx", "onnxruntime", "onnxscript"), "lookhops[export]"),
    **dict.fromkeys(("fastapi", "prometheus_client", "uvicorn"), "lookhops[serve]"),
    **{"optuna": "lookhops[tune]", "pyarrow": "lookhops[parquet]", "ray": "lookhops[ray]"},
}


def main() -> None:
    """Run the command: an error that the user can mend is one line on stderr and exit code 2."""
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except LookHopsError as error:
        _say(str(error))
    except OptionError as error:
        _option_error(error)
    except (MemoryError, RuntimeError) as error:
        if not (isinstance(error, MemoryError) or any(said in str(error) for said in NO_MEMORY)):
            raise
        _say("out of memory; fewer seeds at a time, a smaller --batch-size or network need less.")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in PACKAGES:
            raise
        _say(f'this needs {package}, which is not installed: pip install "{PACKAGES[package]}".')
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:  # the reader (head, less) has seen enough
        _drop_output()
        sys.exit(0)
    except OSError as error:
        if error.errno not in DISK_IS_FULL:
            raise
        _drop_output()
        _say(f"{error.filename or 'the output'} cannot be written ({error.strerror}).")
    if code == 130:  # Typer's own for Ctrl-C
        _say("interrupted.", 130)
    sys.exit(code)


def _say(sentence: str, code: int = 2) -> NoReturn:
    print(f"lookhops: {visible(' '.join(sentence.split()))}", file=sys.stderr)
    sys.exit(code)


def _option_error(error: Any) -> NoReturn:
    """One sentence, and where to read more; a bare command shows its help."""
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        sys.exit(error.exit_code)
    more = f" {context.command_path} --help says more." if context else ""
    _say(f"{error.format_message().rstrip('.')}.{more}", error.exit_code)


def _drop_output() -> None:
    """Let what is still to be written vanish, so that nobody fails at it again on the way out."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""The command ``lookhops``: what it is, and how whatever goes wrong is said."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any, NoReturn

import typer

from lookhops import __version__
from lookhops.cli.commands import MARKUP, Commands, add_commands
from lookhops.core.errors import LookHopsError
from lookhops.core.words import visible

try:  # what Typer raises for options that it cannot read
    from typer.exceptions import TyperException as OptionError
except ImportError:  # versions that are built on Click
    from click import ClickException as OptionError  # type: ignore[assignment]

# Before PyTorch is imported: its threads wait for each other in a loop, and where another program
# has one of the cores they wait for a whole time slice. A short loop, then sleep, costs little.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

app = typer.Typer(
    cls=Commands,
    name="lookhops",
    help="Answer questions about whole graphs with light models that look several hops at once.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=MARKUP,
)
add_commands(app)


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
    **{name: name for name in ("rdkit", "plotly", "matplotlib", "jinja2")},
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

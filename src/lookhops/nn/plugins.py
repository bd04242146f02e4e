"""Layers of a user's own, in a Python file that the user names.

A model folder says what its layers are called, never where their code is: that file is run only
because the user asked for it by name.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory

from lookhops.core.errors import LookHopsError
from lookhops.nn.registry import CONVOLUTIONS, POOLINGS

#: The files that were run, with their text.
LOADED: dict[Path, str] = {}


def sources() -> dict[str, str]:
    """The files that were run, by name: what another process has to be given."""
    return {path.name: source for path, source in LOADED.items()}


@contextmanager
def running(plugins: Mapping[str, str]) -> Iterator[None]:
    """Run what :func:`sources` gave, in a process that has the user's layers from there alone.

    In the block the files are there: layers may look into their own source.
    """
    with TemporaryDirectory() as folder:
        for name, source in plugins.items():
            path = Path(folder) / name
            path.write_text(source, "utf-8")
            load_plugin(path)
        yield


def load_plugin(path: Path | str) -> None:
    """Run a Python file that registers layers.

    It calls :func:`~lookhops.nn.register_convolution` or :func:`~lookhops.nn.register_pooling`, and
    the names that it gives are known from then on wherever a layer is named. A file that was run
    already and has not changed is not run again.

    Args:
        path: The file, ``my_layers.py``.
    """
    path = Path(path).resolve()
    try:
        source = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise LookHopsError(f"{path}: the plugin cannot be read ({reason}).") from error
    if path.suffix != ".py":
        raise LookHopsError(f"{path}: a plugin is a Python file; its name ends in .py.")
    if LOADED.get(path) == source:
        return
    before = {**CONVOLUTIONS}, {**POOLINGS}
    name = f"lookhops_plugin_{path.stem}"
    spec = spec_from_file_location(name, path)
    assert spec is not None  # what ends in .py has a loader
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # where the source of its classes is looked for
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise LookHopsError(f"{_where(path, error)}: the plugin failed: {_why(error)}") from error
    if before == (CONVOLUTIONS, POOLINGS):
        raise LookHopsError(
            f"{path}: registers no layer; call lookhops.nn.register_convolution or "
            "register_pooling in it."
        )
    LOADED[path] = source


def _where(path: Path, error: Exception) -> str:
    """The file, and the last of its lines that led to the error."""
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == str(path) else None
    for frame in traceback.extract_tb(error.__traceback__):
        line = frame.lineno if frame.filename == str(path) else line
    return str(path) if line is None else f"{path}:{line}"


def _why(error: Exception) -> str:
    if isinstance(error, LookHopsError):
        return str(error)
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}{': ' if said else ''}{said}".rstrip(".") + "."

"""Names of layers: what the command line calls ``licheb`` is a class here.

A user's own layers are registered by a Python file that the user names. A model folder says what
its layers are called, never where their code is: that file is run only because it was asked for.
"""

import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch import nn

from lookhops.core.errors import LookHopsError
from lookhops.core.options import CLASSICAL
from lookhops.nn.conv import NAMED as OUR_CONVOLUTIONS
from lookhops.nn.conv import Convolution
from lookhops.nn.others import find_convolution, find_pooling, is_other
from lookhops.nn.pool import NAMED as OUR_POOLINGS

#: Makes a convolution from ``(in_channels, out_channels, k)``.
MakeConvolution = Callable[[int, int, int], nn.Module]
#: Makes a pooling from ``(channels, k, ratio)`` and the options that LookHops pooling takes.
MakePooling = Callable[..., nn.Module]
#: Ours, and those that a user registered.
CONVOLUTIONS: dict[str, MakeConvolution] = {**OUR_CONVOLUTIONS}
POOLINGS: dict[str, MakePooling | None] = {"none": None, **OUR_POOLINGS}
#: What comes with LookHops, and keeps its name.
BUILT_IN = frozenset(
    (*CONVOLUTIONS, *POOLINGS, *CLASSICAL, "recommended", "network", "fingerprint", "blend")
)
#: What is said where a name is not known.
OWN = " A layer of your own is read from the file that --plugin names."


def convolution(name: str) -> Any:
    """What makes the convolution of a name, ours or ``pyg:CLASS/option=value``; none for none."""
    if is_other(name):
        return find_convolution(name)
    return find("convolution", {"none": None, **CONVOLUTIONS}, name, OWN)


def pooling(name: str) -> Any:
    """What makes the pooling of a name, ours or ``pyg:CLASS`` or ``tgp:NAME`` with options."""
    return find_pooling(name) if is_other(name) else find("pooling", POOLINGS, name, OWN)


def is_known(conv: str, pool: str) -> bool:
    """Whether there are layers of these names; those of other libraries are tried when made."""
    return all(
        is_other(name) or name in table for name, table in ((conv, CONVOLUTIONS), (pool, POOLINGS))
    )


def register_convolution(name: str, make: MakeConvolution) -> None:
    """Let ``name`` stand for a convolution everywhere a name is taken.

    ``make(in_channels, out_channels, k)`` returns the module: one of ours, or any of PyG's that is
    called with ``(x, edge_index)``, such as ``lambda d, h, k: GraphConv(d, h)``. What it takes of
    edges it is given (:func:`edges_taken`); a layer that reads their features needs to know how
    many there are: ``lambda d, h, k, edge_channels: GATv2Conv(d, h, edge_dim=edge_channels)``,
    where none stands for graphs whose edges have none, or are not to be used.
    """
    CONVOLUTIONS[_new(name)] = make


def register_pooling(name: str, make: MakePooling) -> None:
    """Let ``name`` stand for a pooling everywhere a name is taken.

    ``make(channels, k, ratio, **options)`` returns a :class:`~lookhops.nn.Pooling`.
    """
    POOLINGS[_new(name)] = make


def make_convolution(
    make: MakeConvolution, in_channels: int, out_channels: int, k: int, edge_channels: int
) -> nn.Module:
    """A convolution, with the number of edges' features if it asks for ``edge_channels``."""
    anything: Callable[..., Any] = make
    if make in OUR_CONVOLUTIONS.values() and not make.reads_k:  # type: ignore[attr-defined]
        return anything(in_channels, out_channels)
    if "edge_channels" not in _parameters(make):
        return make(in_channels, out_channels, k)
    layer = anything(in_channels, out_channels, k, edge_channels=edge_channels or None)
    layer.takes_edge_features = bool(edge_channels) and getattr(make, "reads_edges", True)
    return layer


def make_pooling(make: MakePooling | None, channels: int, **options: Any) -> Any:
    """A pooling of so many channels, or none; ours take what they know of the options."""
    if make in OUR_POOLINGS.values():
        known = _parameters(make)  # type: ignore[arg-type]
        options = {name: value for name, value in options.items() if name in known}
    return None if make is None else make(channels, **options)


def edges_taken(conv: nn.Module) -> str | None:
    """What a convolution takes of edges: PyG's ``edge_attr``, ``edge_weight`` or nothing.

    Ours take weights, times the factors that a layer learns; others what their ``forward`` names.
    """
    if getattr(conv, "takes_edge_features", False):
        return "edge_attr"
    weighted = isinstance(conv, Convolution) or "edge_weight" in _parameters(conv.forward)
    return "edge_weight" if weighted else None


def _parameters(of: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return inspect.signature(of).parameters
    except (TypeError, ValueError):  # compiled code says nothing of itself
        return {}


def reads_k(conv: str, pool: str) -> bool:
    """Whether the number of hops changes a network of these layers; a user's own may read it."""
    if conv == "none":
        return False
    of_user = pool not in BUILT_IN and not is_other(pool)
    read_by_pool = getattr(POOLINGS.get(pool), "uses_anchors", of_user)
    return read_by_pool or (not is_other(conv) and getattr(CONVOLUTIONS.get(conv), "reads_k", True))


def network_name(architecture: Mapping[str, Any]) -> str:
    """What a network is called: ``licheb + lookhops, k = 2, fingerprint of 5 hops, totals``."""
    conv, pool, k = (architecture[key] for key in ("conv", "pool", "k"))
    parts = [] if conv == "none" else [conv + (f" + {pool}" if pool != "none" else "")]
    if reads_k(conv, pool):
        parts.append(f"k = {k}")
    if (hops := architecture.get("fingerprint")) is not None:
        parts.append(f"fingerprint of {hops} hop{'' if hops == 1 else 's'}")
    if architecture.get("totals"):
        parts.append("totals")
    if (edges := architecture.get("edges")) is not None:
        parts.append("edges" if edges == "use" else "edges ignored")
    return ", ".join(parts)


def _new(name: str) -> str:
    if name in BUILT_IN:
        raise LookHopsError(f"{name!r} is a name that LookHops has given; choose another.")
    if not re.fullmatch(r"[\w.-]+", name):
        raise LookHopsError(
            f"{name!r} cannot be the name of a layer: take letters, digits, dots, - and _."
        )
    return name


def find(kind: str, table: Mapping[str, Any], name: str, more: str = "") -> Any:
    """What is called ``name``, or a sentence that names the nearest, and says ``more``."""
    if name in table:
        return table[name]
    near = get_close_matches(name, table, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise LookHopsError(f"There is no {kind} {name!r}; there are {', '.join(table)}.{hint}{more}")


#: The files that were run, with their text.
LOADED: dict[Path, str] = {}


def loaded_plugins() -> dict[str, str]:
    """The files that were run, by name: what another process has to be given."""
    return {path.name: source for path, source in LOADED.items()}


@contextmanager
def with_plugins(plugins: Mapping[str, str]) -> Iterator[None]:
    """Run what :func:`loaded_plugins` gave; the files are there in the block, for their source."""
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

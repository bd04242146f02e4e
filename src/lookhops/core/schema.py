"""JSON read through types: one check of kinds, ranges and missing entries for all our formats.

``read(Format, value)`` makes a dataclass from what ``json.loads`` gave. What does not fit is one
sentence that names the entry: ``data.featuriser is missing``.
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from functools import cache
from math import inf
from numbers import Real
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from lookhops.core.errors import LookHopsError

T = TypeVar("T")


@dataclass(frozen=True)
class Range:
    """Bounds of a number, both included."""

    low: float
    high: float = inf


Share = Annotated[float, Range(0, 1)]
NotNegative = Annotated[float, Range(0)]
Count = Annotated[int, Range(0)]
Positive = Annotated[int, Range(1)]

#: What plain values are called, and the types that they have; Real may be infinite or NaN.
PLAIN: Mapping[Any, tuple[str, tuple[type, ...]]] = {
    str: ("text", (str,)),
    bool: ("true or false", (bool,)),
    int: ("a whole number", (int,)),
    float: ("a number", (int, float)),
    Real: ("a number", (int, float)),
}


class AtLeast:
    """An object that has these entries at least, those with ``?`` perhaps; it is read as it is."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self.entries = {name.removesuffix("?"): kind for name, kind in entries.items()}
        self.optional = {name[:-1] for name in entries if name.endswith("?")}


class UnknownEntry(LookHopsError):
    """An entry that a format does not have: it may be of a later version."""


def read(kind: type[T] | AtLeast, value: Any, path: str = "") -> T:
    """What ``json.loads`` gave as this type, or a sentence that says where it is not.

    The type is a dataclass (no other entries are allowed; those with defaults may be missing),
    :class:`AtLeast`, ``Mapping[str, T]``, ``Sequence[T]``, ``tuple[...]``, ``T | None``, a number
    with a :class:`Range`, a plain type or ``Any``; the path is such as ``runs[3].metrics``.
    """
    found: T = _read(kind, value, path)
    return found


def _read(kind: Any, value: Any, path: str) -> Any:
    if kind is Any:
        return value
    if kind in PLAIN:
        name, allowed = PLAIN[kind]
        fits = isinstance(value, allowed) and (kind is bool or not isinstance(value, bool))
        # Neither infinite nor NaN, nor a whole number that is too large for a float.
        if not fits or (kind is float and not abs(value) <= sys.float_info.max):
            raise _wrong(path, value, name)
        return value
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return None if value is None else _read(inner[0], value, path)
    if origin is Annotated:
        number, bounds = inner
        if not bounds.low <= _read(number, value, path) <= bounds.high:
            to = "" if bounds.high == inf else f" to {bounds.high:g}"
            raise _wrong(path, value, f"{PLAIN[number][0]} from {bounds.low:g}{to}")
        return value
    if origin is None or origin is Mapping:
        if not isinstance(value, dict):
            raise _wrong(path, value, "an object")
        if origin is None:
            return _read_object(kind, value, path)
        return {name: _read(inner[1], each, f"{path}.{name}") for name, each in value.items()}
    alike = len(inner) == 1 or inner[1] is Ellipsis
    if not isinstance(value, list | tuple):
        raise _wrong(path, value, "a list")
    if not alike and len(value) != len(inner):
        raise _wrong(path, value, f"a list of {len(inner)}")
    pairs = zip(inner[:1] * len(value) if alike else inner, value, strict=True)
    return tuple(_read(each, entry, f"{path}[{i}]") for i, (each, entry) in enumerate(pairs))


def _read_object(kind: Any, value: dict[str, Any], path: str) -> Any:
    """A dataclass from an object with its entries, or an object as it is."""
    kinds, optional = _entries(kind)
    closed, found = not isinstance(kind, AtLeast), {}
    for name in value if closed else ():
        if name not in kinds:
            text = " is not known to this version of LookHops"
            raise _refused(f"{path}.{name}", text, UnknownEntry)
    for name, each in kinds.items():
        if name in value:
            found[name] = _read(each, value[name], f"{path}.{name}")
        elif name not in optional:
            raise _refused(f"{path}.{name}", " is missing")
    try:
        return kind(**found) if closed else value
    except LookHopsError as error:
        raise type(error)(f"{path.lstrip('.')}: {error}".removeprefix(": ").rstrip(".")) from error


@cache
def _entries(kind: Any) -> tuple[Mapping[str, Any], set[str]]:
    """The type of each entry, and those that may be missing; found once, as stores have many."""
    if isinstance(kind, AtLeast):
        return kind.entries, kind.optional
    hints = get_type_hints(kind, include_extras=True)
    kinds = {f.name: hints[f.name] for f in fields(kind)}  # class variables are no entries
    return kinds, {f.name for f in fields(kind) if not f.default is f.default_factory is MISSING}


def refuse_missing(found: Any, written: Any, path: str) -> None:
    """Refuse an object that lacks entries, here or within, of what is written in its place."""
    if isinstance(written, Mapping):
        for name, value in written.items():
            if name not in found:
                raise _refused(f"{path}.{name}", " is missing")
            refuse_missing(found[name], value, f"{path}.{name}")
    elif isinstance(written, list | tuple):
        for number, pair in enumerate(zip(found, written, strict=True)):
            refuse_missing(*pair, f"{path}[{number}]")


def _wrong(path: str, value: Any, name: str) -> LookHopsError:
    text = json.dumps(value, default=str)
    return _refused(path, f" is {text if len(text) <= 40 else f'{text[:39]}…'}, not {name}")


def _refused(path: str, text: str, error: type[LookHopsError] = LookHopsError) -> LookHopsError:
    return error(f"{path.lstrip('.') or 'the content'}{text}")


def decode(text: Any, path: str) -> Any:
    """The value of JSON text."""
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise LookHopsError(f"{path} is not JSON") from error


@contextmanager
def located(where: str) -> Iterator[None]:
    """Errors of the block say first what they are about."""
    try:
        yield
    except LookHopsError as error:
        raise type(error)(f"{where}: {str(error).rstrip('.')}") from error

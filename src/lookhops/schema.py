"""JSON read through types: one check of kinds, ranges and missing entries for all our formats.

``read(Format, value)`` makes a dataclass from what ``json.loads`` gave. What does not fit is one
sentence that names the entry: ``data.featuriser is missing``.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, partial
from math import inf, isfinite
from numbers import Real
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from lookhops.errors import LookHopsError

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


class UnknownEntry(LookHopsError):
    """An entry that a format does not have: it may be of a later version."""


def read(kind: type[T], value: Any, path: str = "") -> T:
    """A value as this type, or a sentence that says where it is not.

    Args:
        kind: A dataclass (no other entries are allowed; those with defaults may be missing),
            ``Mapping[str, T]``, ``Sequence[T]``, ``tuple[...]``, ``T | None``, a number with a
            :class:`Range`, a plain type or ``Any``.
        value: What ``json.loads`` gave.
        path: Where it stands, for the sentence: ``runs[3].metrics``.
    """
    return _read(kind, value, path)


def check(entries: Mapping[str, Any], value: Any, path: str = "") -> None:
    """That an object has these entries at least, or a sentence that says which is wrong.

    Args:
        entries: The type of each as for :func:`read`, or such a mapping again; a name that ends in
            ``?`` may be missing.
        value: What ``json.loads`` gave.
        path: Where it stands, for the sentence.
    """
    found = _object(value, path)
    for name, kind in entries.items():
        if not name.endswith("?") or name[:-1] in found:
            _entry(found, name.removesuffix("?"), kind, path)


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
        text = str(error).rstrip(".")
        raise type(error)(f"{where}: {text}" if where else text) from error


def _read(kind: Any, value: Any, path: str) -> Any:
    if isinstance(kind, dict):
        return check(kind, value, path)
    if kind in PLAIN:
        return _read_plain(kind, value, path)
    if kind is Any:
        return value
    origin, inner = _parts(kind)
    if origin in (Union, types.UnionType):
        return None if value is None else _read(inner[0], value, path)
    if origin is Annotated:
        low, high = inner[1].low, inner[1].high
        if not low <= _read(inner[0], value, path) <= high:
            to = "" if high == inf else f" to {high:g}"
            raise _wrong(value, path, f"{PLAIN[inner[0]][0]} from {low:g}{to}")
        return value
    if is_dataclass(kind):
        return _read_dataclass(kind, value, path)
    if origin is Mapping and inner[1] is Any:
        return _object(value, path)
    if origin is Mapping:
        return {name: _entry(value, name, inner[1], path) for name in _object(value, path)}
    return _read_list(inner, value, path)


def _read_plain(kind: Any, value: Any, path: str) -> Any:
    name, allowed = PLAIN[kind]
    fits = isinstance(value, allowed) and (kind is bool or not isinstance(value, bool))
    if not fits or (kind is float and not isfinite(value)):
        raise _wrong(value, path, name)
    return value


def _read_dataclass(kind: Any, value: Any, path: str) -> Any:
    hints = _hints(kind)
    for name in _object(value, path):
        if name not in hints:
            where = f"{path}.{name}".lstrip(".")
            raise UnknownEntry(f"{where} is not known to this version of LookHops")
    given = {
        field.name: _entry(value, field.name, hints[field.name], path)
        for field in fields(kind)
        if field.name in value or (field.default is field.default_factory is MISSING)
    }
    with located(path):
        return kind(**given)


def _read_list(inner: tuple[Any, ...], value: Any, path: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _wrong(value, path, "a list")
    kinds = (inner[0],) * len(value) if len(inner) == 1 or inner[1] is Ellipsis else inner
    if len(kinds) != len(value):
        raise _wrong(value, path, f"a list of {len(kinds)}")
    pairs = zip(kinds, value, strict=True)
    return tuple(_read(of, each, f"{path}[{i}]") for i, (of, each) in enumerate(pairs))


def _entry(entries: Mapping[str, Any], name: str, kind: Any, path: str) -> Any:
    where = f"{path}.{name}".lstrip(".")
    if name not in entries:
        raise LookHopsError(f"{where} is missing")
    return _read(kind, entries[name], where)


def _object(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(value, path, "an object")
    return value


def _wrong(value: Any, path: str, name: str) -> LookHopsError:
    text = json.dumps(value, default=str)
    shown = text if len(text) <= 40 else f"{text[:39]}…"
    return LookHopsError(f"{path or 'the content'} is {shown}, not {name}")


@cache
def _parts(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    return get_origin(kind), get_args(kind)


_hints = cache(partial(get_type_hints, include_extras=True))

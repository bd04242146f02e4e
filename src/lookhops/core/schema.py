"""JSON read through types: one check of kinds, ranges and missing entries for all our formats.

``read(Format, value)`` makes a dataclass from what ``json.loads`` gave. What does not fit is one
sentence that names the entry: ``data.featuriser is missing``.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from functools import cache
from math import inf, isfinite
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
#: How many values a column of labels may have: each is a feature of its own.
LabelSize = Annotated[int, Range(0, 1_000_000)]

#: What plain values are called, and the types that they have; Real may be infinite or NaN.
PLAIN: Mapping[Any, tuple[str, tuple[type, ...]]] = {
    str: ("text", (str,)),
    bool: ("true or false", (bool,)),
    int: ("a whole number", (int,)),
    float: ("a number", (int, float)),
    Real: ("a number", (int, float)),
}


class AtLeast:
    """An object that has some entries at least; it is read as it is.

    Args:
        entries: The type of each; a name that ends in ``?`` may be missing.
    """

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self.entries = {name.removesuffix("?"): kind for name, kind in entries.items()}
        self.optional = {name[:-1] for name in entries if name.endswith("?")}


class UnknownEntry(LookHopsError):
    """An entry that a format does not have: it may be of a later version."""


class _Misfit(Exception):
    """What does not fit; who reads the entries around it says on the way out where it stands."""

    def __init__(self, text: str, error: type[LookHopsError] = LookHopsError) -> None:
        self.text, self.error, self.place = text, error, ""

    def at(self, place: str) -> _Misfit:
        """The same, one level further out."""
        self.place = place + self.place
        return self


def read(kind: type[T] | AtLeast, value: Any, path: str = "") -> T:
    """A value as this type, or a sentence that says where it is not.

    Args:
        kind: A dataclass (no other entries are allowed; those with defaults may be missing),
            :class:`AtLeast`, ``Mapping[str, T]``, ``Sequence[T]``, ``tuple[...]``, ``T | None``, a
            number with a :class:`Range`, a plain type or ``Any``.
        value: What ``json.loads`` gave.
        path: Where it stands, for the sentence: ``runs[3].metrics``.
    """
    try:
        return _reader(kind)(value)  # type: ignore[arg-type]
    except _Misfit as misfit:
        place = f"{path}{misfit.place}".lstrip(".") or "the content"
        raise misfit.error(f"{place}{misfit.text}".removeprefix("the content: ")) from None


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


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """What reads values of a type; made once, because stores have many."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return lambda value: value
    if kind in PLAIN:
        return _plain_reader(kind)
    if origin in (Union, types.UnionType):
        some = _reader(inner[0])
        return lambda value: None if value is None else some(value)
    if origin is Annotated:
        return _range_reader(inner[0], inner[1])
    if origin is None:
        return _entries_reader(kind)
    return _mapping_reader(inner[1]) if origin is Mapping else _list_reader(inner)


def _plain_reader(kind: Any) -> Callable[[Any], Any]:
    name, allowed = PLAIN[kind]
    refused = () if kind is bool else (bool,)
    finite = kind is float

    def plain(value: Any) -> Any:
        fits = isinstance(value, allowed) and not isinstance(value, refused)
        if not fits or (finite and not isfinite(value)):
            raise _wrong(value, name)
        return value

    return plain


def _range_reader(kind: Any, bounds: Range) -> Callable[[Any], Any]:
    number, low, high = _reader(kind), bounds.low, bounds.high

    def ranged(value: Any) -> Any:
        if not low <= number(value) <= high:
            to = "" if high == inf else f" to {high:g}"
            raise _wrong(value, f"{PLAIN[kind][0]} from {low:g}{to}")
        return value

    return ranged


def _entries_reader(kind: Any) -> Callable[[Any], Any]:
    """A dataclass from an object with its entries, or an object as it is."""
    if closed := not isinstance(kind, AtLeast):
        hints = get_type_hints(kind, include_extras=True)
        kinds = {f.name: hints[f.name] for f in fields(kind)}  # class variables are no entries
        optional = {f.name for f in fields(kind) if not f.default is f.default_factory is MISSING}
    else:
        kinds, optional = kind.entries, kind.optional
    readers = {name: _reader(each) for name, each in kinds.items()}

    def entries(value: Any) -> Any:
        value = _object(value)
        for name in value if closed else ():
            if name not in readers:
                text = " is not known to this version of LookHops"
                raise _Misfit(text, UnknownEntry).at(f".{name}")
        found = {}
        for name, reader in readers.items():
            if name in value:
                found[name] = _entry(reader, value[name], f".{name}")
            elif name not in optional:
                raise _Misfit(" is missing").at(f".{name}")
        try:
            return kind(**found) if closed else value
        except LookHopsError as error:
            raise _Misfit(f": {str(error).rstrip('.')}", type(error)) from error

    return entries


def _mapping_reader(kind: Any) -> Callable[[Any], Any]:
    reader = _reader(kind)
    return lambda value: {
        name: _entry(reader, each, f".{name}") for name, each in _object(value).items()
    }


def _list_reader(inner: tuple[Any, ...]) -> Callable[[Any], Any]:
    alike = len(inner) == 1 or inner[1] is Ellipsis
    readers = [_reader(kind) for kind in (inner[:1] if alike else inner)]

    def entries(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise _wrong(value, "a list")
        if not alike and len(value) != len(readers):
            raise _wrong(value, f"a list of {len(readers)}")
        pairs = zip(readers * len(value) if alike else readers, value, strict=True)
        return tuple(_entry(reader, each, f"[{i}]") for i, (reader, each) in enumerate(pairs))

    return entries


def _entry(reader: Callable[[Any], Any], value: Any, place: str) -> Any:
    try:
        return reader(value)
    except _Misfit as misfit:
        raise misfit.at(place) from None


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(value, "an object")
    return value


def _wrong(value: Any, name: str) -> _Misfit:
    text = json.dumps(value, default=str)
    return _Misfit(f" is {text if len(text) <= 40 else f'{text[:39]}…'}, not {name}")

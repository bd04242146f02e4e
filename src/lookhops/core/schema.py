"""Dataclasses as formats of JSON and as options: one check of kinds and ranges for all of them.

``read(Format, value)`` makes a dataclass from what ``json.loads`` gave. What does not fit is one
sentence that names the entry: ``data.featuriser is missing``. Fields that are options of users are
made by :func:`option` and listed by :func:`options_of`.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from math import inf
from numbers import Real
from typing import (
    Annotated,
    Any,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from lookhops.core.errors import LookHopsError
from lookhops.core.words import joined

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


# -------------------------------------------------------------------- fields as options


class Option(NamedTuple):
    """A field of a configuration, as users meet it."""

    name: str
    type: Any
    default: Any
    help: str  # its text in the ``Args:`` of the dataclass
    flag: str  # on the command line, such as ``--lr``
    least: float | None  # the lowest number that it may be


def option(
    default: Any,
    *,
    flag: str | None = None,
    least: float | None = None,
    most: float | None = None,
    words: tuple[str, ...] = (),
    of: tuple[str, ...] = (),
) -> Any:
    """A field of a dataclass that has more to it than its name, its type and its default.

    Args:
        default: Its value where the user gives none.
        flag: On the command line, where it is not the field's name.
        least, most: The numbers that it may be; :func:`check_fields` refuses others.
        words: The texts that it may be, likewise.
        of: The only kinds of sources that it is for (see :class:`~lookhops.core.reading.Reading`).
    """
    metadata = {"flag": flag, "least": least, "most": most, "words": words, "of": of}
    return field(default=default, metadata=metadata)


def check_fields(config: Any) -> None:
    """Refuse a value that its field does not allow; None always is."""
    for each in fields(config):
        value = getattr(config, each.name)
        least, most, words = (each.metadata.get(name) for name in ("least", "most", "words"))
        wrong = ""
        if value is None:
            continue
        if words and value not in words:
            wrong = f"is {joined(words, 'or')}, not {value!r}"
        elif least is not None and value < least:
            wrong = f"must be at least {least}, not {value}"
        elif most is not None and value > most:
            wrong = f"must be at most {most:,}, not {value}"
        if wrong:
            raise LookHopsError(f"{each.name} {wrong}.")


def options_of(config: Any) -> list[Option]:
    """The options of a configuration: its fields but the tuples, with its values as defaults."""
    types = get_type_hints(type(config), include_extras=True)
    texts: dict[str, str] = {}
    for kind in reversed(type(config).__mro__):
        texts |= argument_texts(kind)
    return [
        Option(
            each.name,
            types[each.name],
            getattr(config, each.name),
            texts.get(each.name, ""),
            each.metadata.get("flag") or f"--{each.name.replace('_', '-')}",
            each.metadata.get("least"),
        )
        for each in fields(config)
        if get_origin(types[each.name]) is not tuple
    ]


def argument_texts(of: Any) -> dict[str, str]:
    """The texts of the ``Args:`` in a docstring, by name, each on one line."""
    _, _, section = inspect.cleandoc(of.__doc__ or "").partition("\nArgs:\n")
    section = re.split(r"\n(?=\S)", section)[0]
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", section, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in found}

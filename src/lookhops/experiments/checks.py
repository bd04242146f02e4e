"""What finished runs must hold when they are read again, from a store or from a file.

Files are edited, cut and mixed up. Each check raises one :class:`LookHopsError` that says what is
wrong; who reads a file says in addition where.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from math import isfinite
from typing import Any

from lookhops.errors import LookHopsError
from lookhops.experiments.plan import KINDS
from lookhops.nn import Architecture
from lookhops.training import Protocol

Fits = tuple[str, Callable[[Any], bool]]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


TEXT: Fits = ("text", lambda value: isinstance(value, str))
LIST: Fits = ("a list", lambda value: isinstance(value, list))
OBJECT: Fits = ("an object", lambda value: isinstance(value, dict))
WHOLE: Fits = ("a whole number", _whole)
COUNT: Fits = ("a whole number from 0", lambda value: _whole(value) and value >= 0)
SOME: Fits = ("a whole number from 1", lambda value: _whole(value) and value >= 1)
NUMBER: Fits = ("a number", lambda value: _number(value) and isfinite(value))
SHARE: Fits = ("a number from 0 to 1", lambda value: _number(value) and 0 <= value <= 1)
SECONDS: Fits = ("a number from 0", lambda value: _number(value) and 0 <= value < float("inf"))

#: What tables, pages and reports read of a run.
METRICS: Mapping[str, Fits] = {
    **dict.fromkeys(("accuracy", "balanced_accuracy", "macro_f1", "val_accuracy"), SHARE),
    "auroc": ("null or a number from 0 to 1", lambda value: value is None or SHARE[1](value)),
    **dict.fromkeys(("seconds", "seconds_per_epoch"), SECONDS),
    **dict.fromkeys(("parameters", "train_graphs", "test_graphs"), SOME),
    **dict.fromkeys(("epochs", "best_epoch", "val_graphs"), COUNT),
}
MACHINE: Mapping[str, Fits] = {
    "system": TEXT,
    "cores": ("null or a whole number", lambda value: value is None or _whole(value)),
    "device": TEXT,
}
DATA: Mapping[str, Fits] = dict.fromkeys(("graphs", "nodes", "edges", "features"), COUNT)


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Errors of the block say what they are about."""
    try:
        yield
    except LookHopsError as error:
        raise LookHopsError(f"{what}: {error}") from error


def decoded(text: Any, what: str) -> Any:
    """The value of JSON text."""
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise LookHopsError(f"{what} is not JSON") from error


def check_entries(values: Any, known: Mapping[str, Fits], what: str) -> None:
    """That an object has these entries, each of its kind."""
    if not isinstance(values, dict):
        raise LookHopsError(f"{what} is {shown(values)}, not an object")
    for name, (kind, fits) in known.items():
        if name not in values:
            raise LookHopsError(f"{what} has no {name}")
        if not fits(values[name]):
            raise LookHopsError(f"{name} of {what} is {shown(values[name])}, not {kind}")


def check_run(metrics: Any, versions: Any, machine: Any) -> None:
    """That a run has its metrics, and says where it ran."""
    check_entries(metrics, METRICS, "metrics")
    check_entries(versions, dict.fromkeys(("lookhops", "torch"), TEXT), "versions")
    check_entries(versions, dict.fromkeys(versions, TEXT), "versions")
    check_entries(machine, MACHINE, "machine")


def check_options(kind: type[Architecture | Protocol], values: Any) -> None:
    """That the options of an architecture or a protocol are of their types.

    Options that are not known pass: they may be those of a later version.
    """
    what = kind.__name__.lower()
    check_entries(values, {}, what)
    for field in fields(kind):
        if field.name not in values or field.name == "seeds":
            continue
        value, types = values[field.name], str(field.type)
        if field.name == "fractions":
            right = isinstance(value, list) and len(value) == 3 and all(map(_number, value))
            words = "three numbers"
        else:
            words = KINDS[types.split()[0]][0]
            right = _is_of(value, types.split()[0]) or (value is None and "None" in types)
        if not right:
            raise LookHopsError(f"{field.name} of {what} is {shown(value)}, not {words}")


def _is_of(value: Any, kind: str) -> bool:
    if kind == "float":
        return _number(value) and isfinite(value)
    return _whole(value) if kind == "int" else isinstance(value, {"str": str, "bool": bool}[kind])


def check_fact(kind: str, value: Any) -> None:
    """That what is known of a data set under a kind is what a page says of it."""
    if kind == "data":
        check_entries(value, {**DATA, "classes": COUNT}, kind)
    elif kind == "graphs":
        check_entries(value, {**DATA, **_LISTS, "sizes": _SIZES}, kind)
        if len(value["class_names"]) != len(value["class_counts"]):
            raise LookHopsError("graphs has not one count for each class")
    elif kind == "gain":
        check_entries(value, {"k": _NUMBERS, "gain": _NUMBERS, "suggested_k": _SUGGESTED}, kind)
        check_entries(value.get("fit"), dict.fromkeys(("a", "b", "mse"), NUMBER), "fit")
        check_entries(value["fit"], {"r2": ("null or a number", _number_or_none)}, "fit")
        if len(value["k"]) != len(value["gain"]):
            raise LookHopsError("gain has not one number for each k")
    elif kind.startswith("command") and not isinstance(value, str):
        raise LookHopsError(f"a command is {shown(value)}, not text")


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(map(NUMBER[1], value))


def _number_or_none(value: Any) -> bool:
    return value is None or NUMBER[1](value)


def _sizes(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and _numbers(value.get("edges"))
        and isinstance(value.get("counts"), list)
        and all(_numbers(c) and len(c) == len(value["edges"]) - 1 for c in value["counts"])
    )


_NUMBERS: Fits = ("a list of numbers", _numbers)
_SUGGESTED: Fits = ("null or a whole number", lambda value: value is None or _whole(value))
_SIZES: Fits = ("bins with their counts", _sizes)
_LISTS: Mapping[str, Fits] = {
    "nodes_range": ("two numbers", lambda value: _numbers(value) and len(value) == 2),
    "class_names": ("a list of text", lambda v: isinstance(v, list) and all(map(TEXT[1], v))),
    "class_counts": ("a list of counts", lambda v: isinstance(v, list) and all(map(COUNT[1], v))),
}


def shown(value: Any) -> str:
    """A value as JSON writes it, cut where it is long."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else f"{text[:39]}…"

"""Tensors of a file, held against a table of what each must be: type, shape and range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from math import inf
from typing import TYPE_CHECKING, Any, Self, TypeVar

from lookhops.core.errors import LookHopsError

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
#: Numbers in files lie between minus this and this, so that their squares are finite.
LARGEST = 1e100
#: The lowest number that is called above zero.
ABOVE_ZERO = 1e-100


@dataclass(frozen=True)
class Expected:
    """What a tensor must be; both bounds of its numbers are included."""

    shape: tuple[int | str, ...] = ()  # a text names a size that is the same wherever it is named
    dtype: str = "float64"  # as PyTorch calls it; ``float`` means any type of floats
    low: float = -LARGEST
    high: float | str = LARGEST  # the name of a size means the last of so many
    blank: bool = False  # whether numbers may be NaN
    rising: bool = False  # whether each number is at least the one before
    into: str = ""  # of offsets: the tensor that they divide into as many parts as their size says


def numbers(*shape: int | str, low: float = -LARGEST, high: float = LARGEST) -> Expected:
    """Numbers of double precision."""
    return Expected(shape, low=low, high=high)


def positive(*shape: int | str) -> Expected:
    """Numbers of double precision above zero."""
    return numbers(*shape, low=ABOVE_ZERO)


def codes(*shape: int | str, rising: bool = False) -> Expected:
    """Hashes: any whole numbers of 64 bits."""
    return Expected(shape, "int64", -inf, inf, rising=rising)


def places(*shape: int | str, of: int | str, dtype: str = "int64") -> Expected:
    """Whole numbers from 0 to below a size."""
    return Expected(shape, dtype, 0, of if isinstance(of, str) else of - 1)


def offsets(parts: str, into: str) -> Expected:
    """Where each part of a tensor begins, and the end."""
    return Expected((parts,), "int64", 0, inf, rising=True, into=into)


def named_parts(parts: Mapping[str, Mapping[str, T]]) -> dict[str, T]:
    """The entries of all parts, each with the name of its part and a dot before its own."""
    return {f"{part}.{name}": value for part in parts for name, value in parts[part].items()}


def part_of(entries: Mapping[str, T], part: str) -> dict[str, T]:
    """The entries of a part, by their own names."""
    begin = f"{part}."
    return {name.removeprefix(begin): e for name, e in entries.items() if name.startswith(begin)}


def saved(expected: Expected) -> Any:
    """A field of :class:`Saved`, and what its tensor must be."""
    return field(metadata={"expected": expected})


class Saved:
    """Tensors that are saved by the names of the fields. Subclasses are dataclasses of these."""

    def tensors(self) -> dict[str, Tensor]:
        """Its tensors, by name."""
        return {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]

    @classmethod
    def table(cls, **sizes: int) -> dict[str, Expected]:
        """What its tensors must be; ``sizes`` are some of those that its fields name."""
        found = {}
        for one in fields(cls):  # type: ignore[arg-type]
            expected: Expected = one.metadata["expected"]
            shape = tuple(sizes.get(str(size), size) for size in expected.shape)
            high = expected.high
            if high in sizes:
                high = sizes[str(high)] - 1
            found[one.name] = replace(expected, shape=shape, high=high)
        return found

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], **sizes: int) -> Self:
        """What :meth:`tensors` gave, held against :meth:`table`."""
        check_tensors(tensors, cls.table(**sizes))
        return cls(**tensors)


def check_tensors(found: Mapping[str, Tensor], table: Mapping[str, Expected]) -> None:
    """Refuse tensors that are not those of a table, one for each name.

    Args:
        found: The tensors.
        table: What each must be; sizes are named before they bound what follows.
    """
    for what, names in (
        ("lacks", [name for name in table if name not in found]),
        ("also has", [name for name in found if name not in table]),
    ):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise LookHopsError(f"it {what} the parameter {names[0]!r}{more}")
    sizes: dict[str, int] = {}
    for name, expected in table.items():
        value = found[name]
        _check_shape(name, value, expected, sizes)
        if expected.into and value[[0, -1]].tolist() != [0, len(found[expected.into])]:
            raise LookHopsError(f"{name!r} does not divide {expected.into!r}")
        if expected.rising and bool((value[1:] < value[:-1]).any()):
            raise LookHopsError(f"{name!r} does not rise")
        if expected.dtype != "bool":
            _check_range(name, value, expected, sizes)


def _check_shape(name: str, value: Tensor, expected: Expected, sizes: dict[str, int]) -> None:
    """Refuse a tensor of another shape or type; keep the sizes that are named here first."""
    shape = [size - bool(expected.into) for size in value.shape]
    if len(shape) == len(expected.shape):
        for found, size in zip(shape, expected.shape, strict=True):
            if isinstance(size, str):
                sizes.setdefault(size, found)
    wanted = [sizes.get(str(size), size) for size in expected.shape]
    if shape != wanted or -1 in shape:
        text = "(" + ", ".join(map(str, wanted)) + ("," if len(wanted) == 1 else "") + ")"
        more = " and one more" if expected.into else ""
        raise LookHopsError(f"{name!r} has shape {tuple(value.shape)}, expected {text}{more}")
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype != expected.dtype and not (value.is_floating_point() and expected.dtype == "float"):
        raise LookHopsError(f"{name!r} is of {dtype}, expected {expected.dtype}")


def _check_range(name: str, value: Tensor, expected: Expected, sizes: Mapping[str, int]) -> None:
    high = sizes[expected.high] - 1 if isinstance(expected.high, str) else expected.high
    value = value.double() if value.is_floating_point() else value
    inside = (value >= expected.low) & (value <= high)
    if not bool((inside | value.isnan() if expected.blank else inside).all()):
        raise LookHopsError(f"{name!r} has numbers that are not from {expected.low:g} to {high:g}")

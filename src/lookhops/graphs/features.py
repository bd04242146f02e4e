"""Features of nodes, edges or whole graphs: numbers, and labels that stand for one-hot columns."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError

#: The value of a text label that is not known.
BLANK = "(blank)"
#: The fields of ``Graphs`` that are features: what has a row each there.
OWNERS = ("nodes", "edges", "whole")


class Column(NamedTuple):
    """One feature of all rows: numbers, or labels that stand for one of ``values`` each."""

    name: str
    data: Tensor
    values: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Names:
    """What columns of features are called, and for each label what number i stands for."""

    numbers: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    values: tuple[tuple[str, ...], ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """Numbers, then labels."""
        return *self.numbers, *self.labels

    @property
    def columns(self) -> tuple[str, ...]:
        """Numbers, then labels with each value: ``age``, ``role old``, ``role new``."""
        return *self.numbers, *(name for names in self.one_hot.values() for name in names)

    @property
    def values_of(self) -> dict[str, tuple[str, ...]]:
        """The values of each label by its name."""
        return dict(zip(self.labels, self.values, strict=True))

    @property
    def one_hot(self) -> dict[str, list[str]]:
        """The names of each label's one-hot columns."""
        pairs = self.values_of.items()
        return {name: [f"{name} {value}" for value in values] for name, values in pairs}

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each label can take."""
        return tuple(map(len, self.values))

    @property
    def width(self) -> int:
        """Columns of numbers and one-hot labels."""
        return len(self.numbers) + sum(self.sizes)

    @property
    def are_default(self) -> bool:
        """Whether the source knew no names of columns; it may know values of labels."""
        kinds = {"number": self.numbers, "label": self.labels}
        return all(names == default_names(kind, len(names)) for kind, names in kinds.items())

    @property
    def are_unknown(self) -> bool:
        """Whether the source knew neither names nor values."""
        return self.are_default and self.values == default_values(self.sizes)

    def holding(self, numbers: Tensor | None, labels: Tensor | None) -> Features:
        """Features with these names."""
        return Features(numbers, self.numbers, labels, self.labels, self.values)


@dataclass(frozen=True, eq=False)
class Features:
    r"""Features of :math:`m` nodes, edges or graphs: a row each.

    Args:
        numbers: Shape :math:`(m, a)`, floats; NaN is a blank.
        number_names: Their names; by default ``number 0``, ``number 1``, ...
        labels: Integers, shape :math:`(m, l)`: column :math:`j` holds values in
            ``[0, label_sizes[j])`` and stands for that many one-hot columns.
        label_names: The name of each column of ``labels``; by default ``label 0``, ...
        label_values: For each column of ``labels`` what its numbers stand for: number :math:`i`
            is ``label_values[j][i]``. By default ``0``, ``1``, ... up to the largest.
    """

    numbers: Tensor | None = None
    number_names: tuple[str, ...] = ()
    labels: Tensor | None = None
    label_names: tuple[str, ...] = ()
    label_values: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        # Every column has a name, and what has no columns is none.
        numbers, labels = (
            None if one is None or not one.shape[1] else one for one in (self.numbers, self.labels)
        )
        values: Sequence[Sequence[str]] = ()
        if labels is not None:
            values = self.label_values or default_values(smallest_sizes(labels))
            if len(values) != labels.shape[1]:
                raise LookHopsError(
                    f"Values were given for {len(values)} labels, but there are {labels.shape[1]}."
                )
        for name, value in {
            "numbers": numbers,
            "number_names": _names("number", self.number_names, numbers),
            "labels": labels,
            "label_names": _names("label", self.label_names, labels),
            "label_values": tuple(map(tuple, values)),
        }.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, columns: Iterable[Column]) -> Features:
        """Features from their columns, the numbers first."""
        columns = list(columns)
        numbers = [one for one in columns if one.values is None]
        labels = [one for one in columns if one.values is not None]
        return cls(
            torch.stack([one.data for one in numbers], 1) if numbers else None,
            tuple(one.name for one in numbers),
            torch.stack([one.data for one in labels], 1) if labels else None,
            tuple(one.name for one in labels),
            tuple(one.values or () for one in labels),
        )

    @classmethod
    def from_columns(cls, columns: Tensor | None) -> Features:
        """Features without names; rows that are all one-hot become one label."""
        if columns is None or not are_one_hot(columns):
            return cls(columns)
        labels = columns.int().argmax(1, keepdim=True)
        return cls(labels=labels, label_values=default_values([columns.shape[1]]))

    # ---------------------------------------------------------------- what there is

    @cached_property
    def names(self) -> Names:
        """What the columns are called."""
        return Names(self.number_names, self.label_names, self.label_values)

    @property
    def blanks(self) -> dict[str, int]:
        """The numbers that are blank (NaN) somewhere, and in how many rows."""
        if self.numbers is None:
            return {}
        counts = zip(self.number_names, self.numbers.isnan().sum(0).tolist(), strict=True)
        return {name: count for name, count in counts if count}

    @property
    def label_sizes(self) -> tuple[int, ...]:
        """How many values each label can take."""
        return self.names.sizes

    @property
    def tensors(self) -> dict[str, Tensor]:
        """``numbers`` and ``labels``, where there are any."""
        given = {"numbers": self.numbers, "labels": self.labels}
        return {name: tensor for name, tensor in given.items() if tensor is not None}

    @property
    def width(self) -> int:
        """Columns of numbers and one-hot labels."""
        return self.names.width

    def split(self) -> list[Column]:
        """The columns one by one, numbers first."""
        found: list[Column] = []
        if self.numbers is not None:
            found += map(Column, self.number_names, self.numbers.unbind(1))
        if self.labels is not None:
            found += map(Column, self.label_names, self.labels.unbind(1), self.label_values)
        return found

    def decoded(self) -> dict[str, np.ndarray]:
        """Each feature by its name: numbers, and the texts that labels stand for."""
        found = {}
        for name, data, values in self.split():
            cells = data.cpu().numpy()
            found[name] = cells if values is None else np.array(values, dtype=object)[cells]
        return found

    def columns(self, dtype: torch.dtype | None = None) -> Tensor | None:
        """Numbers as they are, then one-hot labels, shape (m, width); none without features."""
        if not self.width:
            return None
        return feature_columns(self.numbers, self.labels, self.label_sizes, dtype)

    # ---------------------------------------------------------------- other rows

    def map(self, change: Callable[[Tensor], Tensor]) -> Features:
        """The same columns with other rows: ``change`` is given the numbers and the labels."""
        return self.with_tensors({name: change(tensor) for name, tensor in self.tensors.items()})

    def with_tensors(self, tensors: Mapping[str, Tensor]) -> Features:
        """The same columns with other ``numbers`` or ``labels``."""
        changed: dict[str, Any] = {**tensors}
        return replace(self, **changed)

    def take(self, index: Tensor) -> Features:
        """The rows with these numbers."""
        return self.map(lambda tensor: tensor.index_select(0, index))

    def without(self, names: Collection[str]) -> Features:
        """The features but those of these names."""
        return Features.of(one for one in self.split() if one.name not in names)

    def beside(self, other: Features) -> Features:
        """These features, then others of the same rows."""
        return Features.of([*self.split(), *other.split()])

    def packed(self) -> Features:
        """As ``Graphs`` keep features: float32, unless given as wider floats; compact labels."""
        numbers, labels = self.numbers, self.labels
        if numbers is not None and not numbers.is_floating_point():
            numbers = numbers.float()
        if labels is not None:
            self.check_labels()
            labels = compact(labels)
        return replace(self, numbers=numbers, labels=labels)

    def check_labels(self) -> None:
        """Refuse labels that stand for no value."""
        if self.labels is not None and not all(
            map(operator.le, smallest_sizes(self.labels), self.label_sizes)
        ):
            raise LookHopsError("A label is not below its column's number of values.")

    def are_sound(self, rows: int) -> bool:
        """Whether the tensors are so many rows of finite floats and of labels that have values."""
        self.check_labels()
        return all(
            tensor.dim() == 2
            and len(tensor) == rows
            and tensor.is_floating_point() == (name == "numbers")
            and not bool(tensor.float().isinf().any())
            for name, tensor in self.tensors.items()
        )


def join_features(parts: Sequence[Features]) -> Features:
    """The rows of the first, then those of the second, ...; all have the same columns."""
    each = [part.tensors for part in parts]
    return parts[0].with_tensors({name: torch.cat([one[name] for one in each]) for name in each[0]})


def feature_columns(
    numbers: Tensor | None,
    labels: Tensor | None,
    sizes: Sequence[int],
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Numbers as they are, then one-hot labels: one tensor of floats, one row each.

    Nothing waits for the device: it can be recorded in a CUDA graph. Without a ``dtype`` the
    numbers' own is taken, else PyTorch's default.
    """
    given = numbers if numbers is not None else labels
    assert given is not None
    if dtype is None:
        dtype = given.dtype if given.is_floating_point() else torch.get_default_dtype()
    if torch.compiler.is_exporting():
        return _compared_columns(numbers, labels, sizes, dtype)
    start = 0 if numbers is None else numbers.shape[1]
    rows, columns = len(given), start + sum(sizes)
    out = torch.zeros(rows, columns, dtype=dtype, device=given.device)
    if numbers is not None:
        out[:, :start] = numbers
    if labels is not None:
        for size, label in zip(sizes, labels.unbind(1), strict=True):
            row = torch.arange(start, start + rows * columns, columns, device=given.device)
            out.view(-1).index_fill_(0, row.add_(label), 1.0)
            start += size
    return out


def _compared_columns(
    numbers: Tensor | None, labels: Tensor | None, sizes: Sequence[int], dtype: torch.dtype
) -> Tensor:
    """The same by comparisons, which other runtimes have; labels that are too large are zeros."""
    parts = [] if numbers is None else [numbers.to(dtype)]
    for size, label in zip(sizes, () if labels is None else labels.unbind(1), strict=True):
        parts.append((label[:, None] == torch.arange(size, device=label.device)).to(dtype))
    return torch.cat(parts, 1)


def default_values(sizes: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    """What labels stand for where a source does not say: 0, 1, ... in each column."""
    return tuple(tuple(map(str, range(size))) for size in sizes)


def default_names(kind: str, count: int) -> tuple[str, ...]:
    """Names of columns where a source knows none: ``number 0``, ``number 1``, ..."""
    return tuple(f"{kind} {number}" for number in range(count))


def _names(kind: str, names: Sequence[str], columns: Tensor | None) -> tuple[str, ...]:
    """The names of columns: those given, else the default ones."""
    count = 0 if columns is None else columns.shape[1]
    if not names or not count:
        return default_names(kind, count)
    if len(names) != count:
        raise LookHopsError(f"{len(names)} names were given for {count} columns of {kind}s.")
    if len(set(names)) < count:
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise LookHopsError(f"Two columns have the same name, {twice!r}.")
    return tuple(names)


def smallest_sizes(labels: Tensor) -> tuple[int, ...]:
    """For each column of labels one more than the largest."""
    if not labels.numel():
        return (0,) * labels.shape[1]
    if int(labels.min()) < 0:
        raise LookHopsError("A label is below 0.")
    return tuple(largest + 1 for largest in labels.amax(0).tolist())


def compact(labels: Tensor) -> Tensor:
    """Labels in the smallest integer type that holds them."""
    largest = int(labels.max()) if labels.numel() else 0
    return labels.to(
        torch.uint8 if largest < 2**8 else torch.int16 if largest < 2**15 else torch.int32
    )


def are_one_hot(rows: Tensor) -> bool:
    """Whether every row is; floats of another width than usual are meant as numbers."""
    if not rows.numel() or rows.dtype in (torch.float64, torch.half):
        return False
    ones = rows == 1
    return bool((ones | (rows == 0)).all()) and bool((ones.sum(1) == 1).all())


#: What has no features.
NO_FEATURES = Features()

"""The columns that a model reads, and features of other graphs put into them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.reading import called
from lookhops.core.words import counted
from lookhops.encoding.scale import Scale
from lookhops.graphs.features import Column, Features, Names, compact, feature_columns
from lookhops.graphs.indexing import take
from lookhops.ops.layout import one_hot

#: The value that stands for all that a label never was in training.
NOT_SEEN = "not seen"


@dataclass(frozen=True)
class Columns(Names):
    """The features of nodes or of edges: which there are, and what their labels can be."""

    blanks: tuple[str, ...] = ()  # numbers that are NaN somewhere: a column more says where
    weight: str | None = None  # the number that multiplies edges: it is no feature, and never blank

    def __post_init__(self) -> None:
        """Refuse columns that do not belong together, as a file may have them."""
        if len(self.labels) != len(self.values):
            raise LookHopsError(
                f"{len(self.labels)} labels have {len(self.values)} lists of values"
            )
        for name in (*self.blanks, *([] if self.weight is None else [self.weight])):
            if name not in self.numbers:
                raise LookHopsError(f"{name!r} is none of its numbers")

    @classmethod
    def of(cls, features: Features) -> Columns:
        """The columns of features by their names alone."""
        return cls(features.number_names, features.label_names, features.label_values)

    @classmethod
    def fit(cls, features: Features, weights: Collection[str] = ()) -> Columns:
        """The columns of a set, one of them perhaps called as a weight may be."""
        weight = next((name for name in features.number_names if name in weights), None)
        blanks = tuple(name for name in features.blanks if name != weight)
        return replace(cls.of(features), blanks=blanks, weight=weight)

    # ---------------------------------------------------------------- what there is

    @property
    def names(self) -> Columns:
        """The columns by their names alone."""
        return replace(self, blanks=(), weight=None)

    @property
    def encoded(self) -> list[int]:
        """Which of the numbers are encoded: all but the weight."""
        return [number for number, name in enumerate(self.numbers) if name != self.weight]

    @property
    def encoded_numbers(self) -> int:
        """Columns of :meth:`encode` that are numbers, or say where these are blank."""
        return len(self.encoded) + len(self.blanks)

    @property
    def owners(self) -> list[int]:
        """For each column of :meth:`encode` its feature: numbers are counted first, then labels."""
        blanks = [self.numbers.index(name) for name in self.blanks]
        labels = [len(self.numbers) + i for i, size in enumerate(self.sizes) for _ in range(size)]
        return [*self.encoded, *blanks, *labels]

    # ---------------------------------------------------------------- features in these columns

    def called_as(self, others: Columns) -> Columns:
        """The same with the names of others, where they differ in their case alone."""
        names_here, known = {*self.features}, others.features

        def rename(names: Sequence[str]) -> tuple[str, ...]:
            found = ((name, called(name, known)) for name in names)
            return tuple(
                name if not other or other in names_here else other for name, other in found
            )

        return replace(self, numbers=rename(self.numbers), labels=rename(self.labels))

    def with_not_seen(self, labels: Collection[str]) -> Columns:
        """The same with :data:`NOT_SEEN` as one more value of these labels."""
        pairs = self.values_of.items()
        values = ((*known, NOT_SEEN) if label in labels else known for label, known in pairs)
        return replace(self, values=tuple(values))

    @property
    def without_not_seen(self) -> Columns:
        """The same without :data:`NOT_SEEN` at the end of labels' values."""
        values = (known[:-1] if known[-1:] == (NOT_SEEN,) else known for known in self.values)
        return replace(self, values=tuple(values))

    # ---------------------------------------------------------------- encoding

    def encode(
        self,
        features: Features,
        index: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
        scale: Scale | None = None,
    ) -> Tensor:
        """Numbers but the weight, which of them are blank, then one-hot labels, shape (m, columns).

        Nothing waits for the device. A label that was not seen is zeros.

        Args:
            features: Features in these columns.
            index: Numbers of the rows, shape (m); none means all.
            dtype: Type of the result.
            scale: Of the numbers; of several members, their rows stand one after another.
        """
        numbers, labels, sizes = features.numbers, features.labels, features.label_sizes
        if index is not None:
            alone = numbers is None and sizes == self.sizes
            if labels is not None and alone:
                return one_hot(labels, index, sizes, dtype)
            numbers, labels = take(numbers, index), take(labels, index)
        if numbers is not None:
            numbers = self._encoded_numbers(numbers, dtype, scale)
        encoded = feature_columns(numbers, labels, sizes, dtype)
        if sizes == self.sizes:
            return encoded
        known = [True] * (encoded.shape[1] - sum(sizes))
        for size, trained in zip(sizes, self.sizes, strict=True):
            known += [number < trained for number in range(size)]
        return encoded[:, torch.tensor(known, device=encoded.device).nonzero().flatten()]

    def _encoded_numbers(self, numbers: Tensor, dtype: torch.dtype, scale: Scale | None) -> Tensor:
        encoded = numbers if scale is None else scale(numbers.to(dtype))
        if self.weight is not None:
            # Not by a list of numbers, which would have to be copied to a GPU.
            at = self.numbers.index(self.weight)
            encoded = torch.cat((encoded[:, :at], encoded[:, at + 1 :]), 1)
        places = map(self.numbers.index, self.blanks)
        blank = [numbers[:, place].isnan().to(dtype)[:, None] for place in places]
        return torch.cat((encoded, *blank), 1) if blank else encoded

    def weights(
        self,
        features: Features,
        index: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor | None:
        """The weights of edges, shape (m), or none; arguments as for :meth:`encode`."""
        if self.weight is None or features.numbers is None:
            return None
        weights = features.numbers[:, self.numbers.index(self.weight)]
        return (weights if index is None else weights[index]).to(dtype)


#: What to do where features are no label.
AS_NUMBERS = (
    "To have such columns read as numbers, train it on an x of type float64 (PyG), or give each a "
    "name of its own (NetworkX)."
)
#: The unknown values of a label that is given as one-hot columns.
NO_VALUE, SEVERAL = "no value", "several at once"


@dataclass
class Found:
    """Features in the columns of a model, and what differs from them."""

    features: Features = field(default_factory=Features)  # empty where columns are missing
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)  # columns that the model does not know
    #: For each label how many rows have which unknown value.
    not_seen: dict[str, dict[str, int]] = field(default_factory=dict)

    def missing_in_words(self, owner: str) -> list[str]:
        """What is missing, and what the graphs have in its place."""
        if not self.missing:
            return []
        parts = [f"its {owner} have no {listed(self.missing)}, which the model reads"]
        if self.extra:
            parts.append(f"they have {listed(self.extra)}, which it does not know")
        for label, unknown in self.not_seen.items():
            parts.append(f"it has not seen the {label!r} {listed(unknown)}")
        return parts

    def notes(self, owner: str, columns: Columns) -> list[str]:
        """What is read otherwise than it is given, in sentences."""
        notes = []
        if self.extra:
            notes.append(f"the model does not know {listed(self.extra)} of the {owner}.")
        for label, unknown in self.not_seen.items():
            if set(unknown) == {NOT_SEEN}:  # said when they were read first
                continue
            several = counted(sum(unknown.values()), owner[:-1])
            first = ", ".join(f"{value} ({count:,})" for value, count in list(unknown.items())[:6])
            more = f", {len(unknown) - 6} more" if len(unknown) > 6 else ""
            notes.append(
                f"{several} with a {label!r} that the model has not seen: {first}{more}. It is "
                "read as none of those that it knows."
                + (f" {AS_NUMBERS}" if SEVERAL in unknown else "")
            )
        for name, count in self.features.blanks.items():
            if name not in (*columns.blanks, columns.weight):
                notes.append(
                    f"{counted(count, owner[:-1])} with no {name!r}, of which the model knows no "
                    "blanks: it is read as the mean of the training graphs."
                )
        return notes


def by_name(columns: Columns, features: Features, where: str) -> Found:
    """Features by the names of their columns, in any order.

    A value that a label never was in training is read as one more value, :data:`NOT_SEEN`. Lists
    that are all one-hot are labels in one set and numbers in another: each is read as the other.
    """
    given = Columns.of(features).called_as(columns)
    if given == columns.names:
        return Found(columns.holding(features.numbers, features.labels))
    found, labels = Found(), []
    here = dict(zip(given.features, features.split(), strict=True))
    expanded = {
        label: names for label, names in given.one_hot.items() if set(names) & set(columns.numbers)
    }
    numbers = {
        name: (here[label].data == code).float()
        for label, names in expanded.items()
        for code, name in enumerate(names)
    }
    numbers |= {name: here[name].data for name in given.numbers}
    found.missing = [name for name in columns.numbers if name not in numbers]
    for name, names in columns.one_hot.items():
        if name in given.labels:
            codes, unknown = _renumbered(here[name], columns.values_of[name])
        elif features.numbers is not None and set(names) <= set(given.numbers):
            block = features.numbers[:, [given.numbers.index(one) for one in names]]
            codes, unknown = one_hot_codes(block, name, where)
        else:
            found.missing.append(name)
            continue
        labels.append(codes)
        if unknown:
            found.not_seen[name] = unknown
    used = {*columns.columns, *columns.labels, *expanded}
    found.extra = [name for name in given.features if name not in used]
    if not found.missing:
        rows = [numbers[name] for name in columns.numbers]
        encoded = columns.with_not_seen(found.not_seen)
        found.features = encoded.holding(
            torch.stack(rows, 1) if rows else None,
            compact(torch.stack(labels, 1)) if labels else None,
        )
    return found


def _renumbered(label: Column, known: Sequence[str]) -> tuple[Tensor, dict[str, int]]:
    """A label in the model's numbers, and how many have which value that it does not know."""
    codes, values = label.data.long(), label.values or ()
    number = {value: i for i, value in enumerate(known)}
    counts = zip(values, codes.bincount(minlength=len(values)).tolist(), strict=True)
    unknown = {value: count for value, count in counts if count and value not in number}
    table = [number.get(value, len(known)) for value in values]
    return torch.tensor(table, device=codes.device)[codes], unknown


def by_position(columns: Columns, features: Features, where: str, trained_on: str) -> Found:
    """Features without names, one column after another.

    There must be as many columns, or none that the model reads.
    """
    given = Columns.of(features)
    if given.without_not_seen == columns.names:  # read before
        return Found(features)
    if not columns.width:
        return Found(extra=[*given.features])
    if given.width != columns.width:
        raise LookHopsError(
            f"{where} have {given.width} features; the model was trained on {trained_on}, where "
            f"they have {columns.width}: {listed(columns.columns)}."
        )
    if len(given.numbers) == len(columns.numbers) and given.sizes == columns.sizes:
        return Found(columns.holding(features.numbers, features.labels))
    x = feature_columns(features.numbers, features.labels, given.sizes)
    return by_name(columns, Features(x, columns.columns), where)


def one_hot_codes(block: Tensor, label: str, where: str) -> tuple[Tensor, dict[str, int]]:
    """The values of a label from its one-hot columns, and how many rows have none that is known.

    A row without a one, or with several, is a value that was never seen: its code is one more than
    the last. Numbers other than 0 and 1 are refused.
    """
    ones = block == 1
    if not bool((ones | (block == 0)).all()):
        raise LookHopsError(
            f"{where} have other numbers than 0 and 1 in the {block.shape[1]} columns that the "
            f"model reads as {label!r}: they were one-hot when it was trained. {AS_NUMBERS}"
        )
    count = ones.sum(1)
    strange = {NO_VALUE: int((count == 0).sum()), SEVERAL: int((count > 1).sum())}
    codes = torch.where(count == 1, ones.int().argmax(1), block.shape[1])
    return codes, {what: rows for what, rows in strange.items() if rows}


def listed(names: Iterable[str]) -> str:
    """Names as a sentence has them, in quotes; of many the first six."""
    quoted = [repr(name) for name in names]
    more = f" and {len(quoted) - 6} more" if len(quoted) > 6 else ""
    return ", ".join(quoted[:6]) + more

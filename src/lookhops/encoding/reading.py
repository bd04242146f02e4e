"""Features of other graphs, put into the columns that a model reads: by name, or by position."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.words import counted
from lookhops.encoding.columns import NOT_SEEN, Columns
from lookhops.graphs.features import Features, compact, feature_columns

#: What to do where features are no label.
AS_NUMBERS = (
    "To have such columns read as numbers, train it on an x of type float64 (PyG), or give each a "
    "name of its own (NetworkX)."
)
#: The unknown values of a label that is given as one-hot columns.
NO_VALUE, SEVERAL = "no value", "several at once"


@dataclass
class Found:
    """Features in the columns of a model.

    Args:
        features: The features; empty where columns are missing.
        missing: Columns that the graphs lack.
        extra: Columns that the model does not know.
        not_seen: For each label how many rows have which unknown value.
    """

    features: Features = field(default_factory=Features)
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    not_seen: dict[str, dict[str, int]] = field(default_factory=dict)

    def fill(self, columns: Columns, numbers: Tensor | None, codes: Sequence[Tensor]) -> Found:
        """Set the features, with one value more for labels that have an unknown one."""
        labels = compact(torch.stack([*codes], 1)) if codes else None
        self.features = columns.with_not_seen(self.not_seen).holding(numbers, labels)
        return self

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

    Args:
        columns: Those of the model.
        features: The features.
        where: Whose they are, for messages.
    """
    given = Columns.of(features).called_as(columns)
    if given.are_those_of(columns):
        return Found(columns.holding(features.numbers, features.labels))
    found = Found()
    numbers: dict[str, Tensor] = {}
    expanded = _expanded(columns, given)
    if features.labels is not None:
        for label, names in expanded.items():
            codes = features.labels[:, given.labels.index(label)]
            numbers |= {name: (codes == code).float() for code, name in enumerate(names)}
    if features.numbers is not None:
        numbers |= zip(given.numbers, features.numbers.unbind(1), strict=True)
    found.missing = [name for name in columns.numbers if name not in numbers]
    labels = []
    for name, known in zip(columns.labels, columns.values, strict=True):
        names = [f"{name} {value}" for value in known]
        if name in given.labels:
            codes, unknown = _renumbered(known, given, name, features)
        elif features.numbers is not None and set(names) <= set(given.numbers):
            block = features.numbers[:, [given.numbers.index(own) for own in names]]
            codes, unknown = one_hot_codes(block, name, where)
        else:
            found.missing.append(name)
            continue
        labels.append(codes)
        if unknown:
            found.not_seen[name] = unknown
    used = {*columns.columns, *columns.labels, *expanded}
    found.extra = [name for name in given.features if name not in used]
    if found.missing:
        return found
    rows = [numbers[name] for name in columns.numbers]
    return found.fill(columns, torch.stack(rows, 1) if rows else None, labels)


def _expanded(columns: Columns, given: Columns) -> dict[str, list[str]]:
    """Labels here that are numbers to the model: lists of them that are all one-hot here."""
    names = {
        label: [f"{label} {value}" for value in values]
        for label, values in zip(given.labels, given.values, strict=True)
    }
    return {label: own for label, own in names.items() if set(own) & set(columns.numbers)}


def _renumbered(
    known: Sequence[str], given: Columns, name: str, features: Features
) -> tuple[Tensor, dict[str, int]]:
    """A label in the model's numbers, and how many have which value that it does not know."""
    assert features.labels is not None
    j = given.labels.index(name)
    codes, number = features.labels[:, j].long(), {value: i for i, value in enumerate(known)}
    counts = codes.bincount(minlength=len(given.values[j])).tolist()
    pairs = zip(given.values[j], counts, strict=True)
    unknown = {value: count for value, count in pairs if count and value not in number}
    table = [number.get(value, len(known)) for value in given.values[j]]
    return torch.tensor(table, device=codes.device)[codes], unknown


def by_position(columns: Columns, features: Features, where: str, trained_on: str) -> Found:
    """Features without names, one column after another.

    There must be as many columns, or none that the model reads. Where the model has labels and the
    graphs have numbers, these are read by :func:`one_hot_codes`.

    Args:
        columns: Those of the model.
        features: The features.
        where: Whose they are, for messages.
        trained_on: What the model was trained on, for messages.
    """
    given = Columns.of(features)
    if given.without_not_seen.are_those_of(columns):  # read before
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
    first, *blocks = x.split([len(columns.numbers), *columns.sizes], 1)
    found, labels = Found(), []
    for label, block in zip(columns.labels, blocks, strict=True):
        codes, unknown = one_hot_codes(block, label, where)
        labels.append(codes)
        if unknown:
            found.not_seen[label] = unknown
    return found.fill(columns, first, labels)


def one_hot_codes(block: Tensor, label: str, where: str) -> tuple[Tensor, dict[str, int]]:
    """The values of a label from its one-hot columns, and how many rows have none that is known.

    A row without a one, or with several, is a value that was never seen: its code is one more than
    the last. Numbers other than 0 and 1 are refused.

    Args:
        block: The columns, shape (m, values).
        label: The label's name.
        where: Whose columns, for messages.
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


def listed(names: Iterable[str] | Mapping[str, int], most: int = 6) -> str:
    """Names as a sentence has them, in quotes; of many the first few."""
    quoted = [repr(name) for name in names]
    more = f" and {len(quoted) - most} more" if len(quoted) > most else ""
    return ", ".join(quoted[:most]) + more

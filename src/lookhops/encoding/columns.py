"""Feature columns by name, and the features of graphs read by these names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.encoding.one_hot import one_hot_codes
from lookhops.encoding.scale import Scale
from lookhops.graphs import Graphs
from lookhops.graphs.column_finder import called
from lookhops.graphs.features import (
    compact,
    default_names,
    default_values,
    feature_columns,
)

#: The value that stands for all that a label never was in training.
NOT_SEEN = "not seen"
#: Whose features they are, by how ``Graphs`` begins the names of their fields.
OWNERS = {"": "nodes", "edge_": "edges"}


@dataclass(frozen=True)
class Columns:
    """The features of nodes or of edges: which there are, and what their labels can be.

    Args:
        attributes: Names of the numbers.
        labels: Names of the labels.
        values: For each label its values: number i stands for the i-th.
    """

    attributes: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    values: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, graphs: Graphs, side: str = "") -> Columns:
        """The columns of the nodes (``""``) or of the edges (``"edge_"``)."""
        kinds = ("attribute_names", "label_names", "label_values")
        return cls(*(getattr(graphs, f"{side}{kind}") for kind in kinds))

    @classmethod
    def unnamed(cls, attributes: int, sizes: tuple[int, ...]) -> Columns:
        """So many numbers, and labels of these sizes, known by their places."""
        names = default_names("attribute", attributes), default_names("label", len(sizes))
        return cls(*names, default_values(sizes))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each label has."""
        return tuple(map(len, self.values))

    @property
    def width(self) -> int:
        """Columns of numbers and one-hot labels."""
        return len(self.attributes) + sum(self.sizes)

    @property
    def are_unnamed(self) -> bool:
        """Whether nothing but places tells one column from another."""
        return self == Columns.unnamed(len(self.attributes), self.sizes)

    @property
    def known(self) -> Columns:
        """The same without :data:`NOT_SEEN` at the end of labels' values."""
        values = (own[:-1] if own[-1:] == (NOT_SEEN,) else own for own in self.values)
        return replace(self, values=tuple(values))

    def called_as(self, others: Columns) -> Columns:
        """The same with the names of others, where they differ in their case alone."""
        own, known = {*self.attributes, *self.labels}, (*others.attributes, *others.labels)

        def rename(names: Sequence[str]) -> tuple[str, ...]:
            found = ((name, called(name, known)) for name in names)
            return tuple(name if not other or other in own else other for name, other in found)

        return replace(self, attributes=rename(self.attributes), labels=rename(self.labels))

    def with_not_seen(self, labels: Collection[str]) -> Columns:
        """The same with :data:`NOT_SEEN` as one more value of these labels."""
        pairs = zip(self.labels, self.values, strict=True)
        values = ((*own, NOT_SEEN) if label in labels else own for label, own in pairs)
        return replace(self, values=tuple(values))

    def told(
        self,
        attributes: Tensor | None,
        labels: Tensor | None,
        sizes: Sequence[int],
        dtype: torch.dtype,
    ) -> Tensor:
        """Numbers, then one-hot labels, in one tensor; a label that was not seen is zeros.

        Args:
            attributes: The numbers, shape (m, a).
            labels: The labels, shape (m, l), in these columns' numbers.
            sizes: How many values each has: one more where some were not seen.
            dtype: Type of the columns.
        """
        told = feature_columns(attributes, labels, sizes, dtype)
        if tuple(sizes) == self.sizes:
            return told
        known = [True] * (told.shape[1] - sum(sizes))
        for size, own in zip(sizes, self.sizes, strict=True):
            known += [number < own for number in range(size)]
        return told[:, torch.tensor(known, device=told.device).nonzero().flatten()]

    def fields(self, side: str, attributes: Tensor | None, labels: Tensor | None) -> dict[str, Any]:
        """These columns with their content, as fields of ``Graphs``."""
        return {
            f"{side}attributes": attributes if self.attributes else None,
            f"{side}attribute_names": self.attributes,
            f"{side}labels": labels if self.labels else None,
            f"{side}label_names": self.labels,
            f"{side}label_values": self.values,
        }


class ByName:
    """Features of graphs, put into the columns of a model by name.

    A value that a label never was in training is read as one more value, :data:`NOT_SEEN`.

    Args:
        columns: Those of the model.
        graphs: The graphs.
        side: Whose features: ``""`` for nodes, ``"edge_"`` for edges.

    Attributes:
        fields: The features as fields of ``Graphs``; none where columns are missing.
        missing: Columns that the graphs lack.
        extra: Columns that the model does not know.
        not_seen: For each label how many nodes or edges have which unknown value.
    """

    def __init__(self, columns: Columns, graphs: Graphs, side: str) -> None:
        self.fields: dict[str, Any] = {}
        self.missing: list[str] = []
        self.extra: list[str] = []
        self.not_seen: dict[str, dict[str, int]] = {}
        given = Columns.of(graphs, side).called_as(columns)
        attributes, labels = getattr(graphs, f"{side}attributes"), getattr(graphs, f"{side}labels")
        if given == columns:
            self.fields = columns.fields(side, attributes, labels)
            return
        numbers = self._numbers(columns, given, attributes, labels)
        codes = self._codes(columns, given, graphs, side)
        used = {*_names(columns), *columns.labels, *self._expanded(columns, given)}
        self.extra = [name for name in (*given.attributes, *given.labels) if name not in used]
        if not self.missing:
            found = columns.with_not_seen(self.not_seen)
            rows = compact(torch.stack(codes, 1)) if codes else None
            self.fields = found.fields(side, torch.stack(numbers, 1) if numbers else None, rows)

    def _expanded(self, columns: Columns, given: Columns) -> dict[str, list[str]]:
        """Labels here that are numbers to the model: lists of them that are all one-hot here."""
        names = {
            label: [f"{label} {value}" for value in values]
            for label, values in zip(given.labels, given.values, strict=True)
        }
        return {label: own for label, own in names.items() if set(own) & set(columns.attributes)}

    def _numbers(
        self, columns: Columns, given: Columns, attributes: Tensor | None, labels: Tensor | None
    ) -> list[Tensor]:
        """The columns of numbers."""
        found: dict[str, Tensor] = {}
        if labels is not None:
            for label, names in self._expanded(columns, given).items():
                own = labels[:, given.labels.index(label)]
                found |= {name: (own == number).float() for number, name in enumerate(names)}
        if attributes is not None:
            found |= dict(zip(given.attributes, attributes.unbind(1), strict=True))
        self.missing += [name for name in columns.attributes if name not in found]
        return [found[name] for name in columns.attributes if name in found]

    def _codes(self, columns: Columns, given: Columns, graphs: Graphs, side: str) -> list[Tensor]:
        """The columns of labels in the model's numbers."""
        codes = []
        for name, known in zip(columns.labels, columns.values, strict=True):
            names = [f"{name} {value}" for value in known]
            if name in given.labels:
                own, unknown = self._renumbered(
                    known, given, name, getattr(graphs, f"{side}labels")
                )
            elif set(names) <= set(given.attributes):  # lists that were all one-hot in training
                places = [given.attributes.index(own) for own in names]
                block = getattr(graphs, f"{side}attributes")[:, places]
                own, unknown = one_hot_codes(block, name, f"{graphs.name}: its {OWNERS[side]}")
            else:
                self.missing.append(name)
                continue
            codes.append(own)
            if unknown:
                self.not_seen[name] = unknown
        return codes

    def _renumbered(
        self, known: Sequence[str], given: Columns, name: str, labels: Tensor
    ) -> tuple[Tensor, dict[str, int]]:
        """A label in the model's numbers, and how many have which value that it does not know."""
        j = given.labels.index(name)
        own, number = labels[:, j].long(), {value: i for i, value in enumerate(known)}
        counts = own.bincount(minlength=len(given.values[j])).tolist()
        pairs = zip(given.values[j], counts, strict=True)
        unknown = {value: count for value, count in pairs if count and value not in number}
        table = [number.get(value, len(known)) for value in given.values[j]]
        return torch.tensor(table, device=own.device)[own], unknown


def told_numbers(
    attributes: Tensor,
    names: Sequence[str],
    blanks: Sequence[str],
    dtype: torch.dtype,
    scale: Scale | None,
) -> Tensor:
    """Numbers on their scale, then for each of the ``blanks`` a column that is one where it is.

    Args:
        attributes: The numbers, shape (m, a).
        names: Their names.
        blanks: Those that have such a column.
        dtype: Type of the columns, where there is a scale.
        scale: Their scale; by default they are told as they are.
    """
    told = attributes if scale is None else scale(attributes.to(dtype))
    blank = [attributes[:, names.index(name)].isnan().to(dtype)[:, None] for name in blanks]
    return torch.cat((told, *blank), 1) if blank else told


class Placed(NamedTuple):
    """Features that were read by their places; arguments as the attributes of :class:`ByName`."""

    fields: dict[str, Any]
    extra: tuple[str, ...] = ()
    not_seen: Mapping[str, dict[str, int]] = {}


def by_place(columns: Columns, graphs: Graphs, side: str, name: str) -> Placed:
    """Features put into the columns of a model one after another.

    For features without names: there must be as many columns, or none that the model reads. Where
    the model has labels and the graphs have numbers, these are read by
    :func:`~lookhops.encoding.one_hot.one_hot_codes`.

    Args:
        columns: Those of the model.
        graphs: The graphs.
        side: Whose features: ``""`` for nodes, ``"edge_"`` for edges.
        name: What the model was trained on, for messages.
    """
    given, owner = Columns.of(graphs, side), OWNERS[side]
    attributes, labels = getattr(graphs, f"{side}attributes"), getattr(graphs, f"{side}labels")
    if given.known == columns:  # read before
        return Placed(given.fields(side, attributes, labels))
    if not columns.width:
        return Placed(columns.fields(side, None, None), (*given.attributes, *given.labels))
    if given.width != columns.width:
        raise LookHopsError(
            f"{graphs.name}: its {owner} have {given.width} features; the model was trained on "
            f"{name}, where they have {columns.width}: {listed(_names(columns))}."
        )
    if len(given.attributes) == len(columns.attributes) and given.sizes == columns.sizes:
        return Placed(columns.fields(side, attributes, labels))
    x = feature_columns(attributes, labels, given.sizes)
    first, *blocks = x.split([len(columns.attributes), *columns.sizes], 1)
    codes, not_seen = [], {}
    for label, block in zip(columns.labels, blocks, strict=True):
        own, strange = one_hot_codes(block, label, f"{graphs.name}: its {owner}")
        codes.append(own)
        if strange:
            not_seen[label] = strange
    found = columns.with_not_seen(not_seen)
    rows = compact(torch.stack(codes, 1)) if codes else None
    return Placed(found.fields(side, first, rows), (), not_seen)


def _names(columns: Columns) -> tuple[str, ...]:
    labels = zip(columns.labels, columns.values, strict=True)
    return *columns.attributes, *(f"{name} {v}" for name, known in labels for v in known)


def listed(names: Any, most: int = 6) -> str:
    """Names as a sentence has them, in quotes; of many the first few."""
    names = [repr(name) for name in names]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more

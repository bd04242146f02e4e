"""Answers to new graphs: classes or numbers, of one target or several, and how sure they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from math import isfinite
from typing import Any, Generic, TypeVar

import numpy as np

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.words import MINUS


@dataclass(frozen=True, eq=False)
class ClassAnswers:
    """Answers to which class each graph is of.

    Args:
        name: Of the target; nothing where it is the only one.
        class_names: Names of the classes.
        probabilities: Calibrated, the mean over seeds, shape (g, classes).
        numbers: Number of the class that is answered, shape (g).
        agreement: The share of networks that, asked alone, answer the same class, shape (g).
        spread: Standard deviation over the networks of that class's probability, shape (g).
        models: How many networks answered: the members of all seeds.
        sets: Which classes the conformal set holds, shape (g, classes); none where the folder, of
            an earlier version, lacks what it takes.
    """

    name: str
    class_names: tuple[str, ...]
    probabilities: Array
    numbers: Array
    agreement: Array
    spread: Array
    models: int
    sets: Array | None = None

    @property
    def classes(self) -> list[str]:
        """Name of the class that is answered, for each graph."""
        return [self.class_names[number] for number in self.numbers.tolist()]

    def named_set(self, graph: int) -> list[str]:
        """Names of the classes in a graph's conformal set."""
        held = () if self.sets is None else np.flatnonzero(self.sets[graph])
        return [self.class_names[number] for number in held]

    def record(self, graph: int) -> dict[str, Any]:
        """The answer to one graph, as JSON can hold it."""
        p = self.probabilities[graph].tolist()
        return {
            "class": self.class_names[self.numbers[graph]],
            "probabilities": dict(zip(self.class_names, p, strict=True)),
            **({} if self.sets is None else {"set": self.named_set(graph)}),
            "agreement": float(self.agreement[graph]),
            "spread": float(self.spread[graph]),
        }

    def said(self, graph: int) -> str:
        """The answer to one graph in words: ``high (62%)``."""
        number = self.numbers[graph]
        return f"{self.class_names[number]} ({self.probabilities[graph, number]:.0%})"


@dataclass(frozen=True, eq=False)
class NumberAnswers:
    """Answers to how large something is of each graph.

    Args:
        name: Of the target.
        values: The mean over seeds, shape (g).
        spread: Standard deviation over the networks, shape (g).
        models: How many networks answered: the members of all seeds.
        intervals: Lower and upper end of the conformal interval, shape (g, 2), or none as above.
    """

    name: str
    values: Array
    spread: Array
    models: int
    intervals: Array | None = None

    def record(self, graph: int) -> dict[str, Any]:
        """The answer to one graph, as JSON can hold it: an end that is not known is none."""
        ends = () if self.intervals is None else self.intervals[graph].tolist()
        return {
            "value": float(self.values[graph]),
            **({"interval": [end if isfinite(end) else None for end in ends]} if ends else {}),
            "spread": float(self.spread[graph]),
        }

    def said(self, graph: int) -> str:
        """The answer to one graph in words: ``logS −2.31``."""
        return f"{self.name} {self.values[graph]:.3g}".replace("-", MINUS)


Own = TypeVar("Own", bound=ClassAnswers | NumberAnswers)
Value = TypeVar("Value")


class OfOnlyTarget(Generic[Own, Value]):
    """An attribute of :class:`Predictions` that is one of its only target's answers.

    Args:
        kind: What that target must be.
        read: Gives the value.
    """

    def __init__(self, kind: type[Own], read: Callable[[Own], Value]) -> None:
        self.kind = kind
        self.read = read

    def __get__(self, answers: Predictions, owner: type[Predictions] | None = None) -> Value:
        first = answers.targets[0]
        if (count := len(answers.targets)) > 1:
            raise LookHopsError(f"The model answers {count} targets; look at each of `targets`.")
        if not isinstance(first, self.kind):
            number = isinstance(first, NumberAnswers)
            found = "a number; it is in `values`" if number else "a class; it is in `classes`"
            raise LookHopsError(f"The model answers {found}.")
        return self.read(first)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Answers for some graphs.

    Args:
        ids: What each graph is called, shape (g).
        targets: The answers to each target.
        similarity: To the most similar training graph, from 0 to 1, shape (g); none where the
            folder, of an earlier version, lacks what it takes.
        limit: Graphs below this similarity are unlike those that the model was trained on.
    """

    ids: list[str]
    targets: tuple[ClassAnswers | NumberAnswers, ...]
    similarity: Array | None = None
    limit: float = 0.0

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def unlike(self) -> Array:
        """Whether each graph is unlike all that the model was trained on, shape (g)."""
        if self.similarity is None:
            return np.zeros(len(self), dtype=bool)
        return np.asarray(self.similarity < self.limit)

    def record(self, graph: int) -> dict[str, Any]:
        """All that is answered to one graph, as JSON can hold it."""
        each = {target.name: target.record(graph) for target in self.targets}
        several = len(self.targets) > 1
        found: dict[str, Any] = {"targets": each} if several else next(iter(each.values()))
        if self.similarity is not None:
            found["similarity"] = float(self.similarity[graph])
            found["unlike"] = bool(self.unlike[graph])
        return found

    def part(self, chosen: slice) -> Predictions:
        """The answers for some of the graphs."""
        return _rowwise([self], lambda rows: rows[0][chosen])

    @classmethod
    def joined(cls, parts: Sequence[Predictions]) -> Predictions:
        """The answers of one model for several sets of graphs, one after the other."""
        return _rowwise(parts, _concatenated)

    def said(self, graph: int) -> str:
        """The answers to one graph in words."""
        several = len(self.targets) > 1
        return ", ".join(
            f"{target.name} {target.said(graph)}"
            if several and isinstance(target, ClassAnswers)
            else target.said(graph)
            for target in self.targets
        )

    # ---------------------------------------------------------------- one target

    class_names = OfOnlyTarget(ClassAnswers, lambda own: own.class_names)
    """Names of the classes, where these are the only target; as are those that follow."""
    probabilities = OfOnlyTarget(ClassAnswers, lambda own: own.probabilities)
    """Calibrated probabilities, shape (g, classes)."""
    numbers = OfOnlyTarget(ClassAnswers, lambda own: own.numbers)
    """Number of the class that is answered, shape (g)."""
    classes = OfOnlyTarget(ClassAnswers, lambda own: own.classes)
    """Name of the class that is answered, for each graph."""
    agreement = OfOnlyTarget(ClassAnswers, lambda own: own.agreement)
    """The share of networks that answer the same class alone, shape (g)."""
    values = OfOnlyTarget(NumberAnswers, lambda own: own.values)
    """The numbers that are answered, where these are the only target, shape (g)."""


def _rowwise(parts: Sequence[Any], join: Callable[[list[Any]], Any]) -> Any:
    """Answers whose values of each graph (lists and arrays) are made from those of some parts."""
    changed: dict[str, Any] = {}
    for own in fields(parts[0]):
        values = [getattr(part, own.name) for part in parts]
        if own.name == "targets":
            each = zip(*values, strict=True)
            changed["targets"] = tuple(_rowwise(targets, join) for targets in each)
        elif isinstance(values[0], list | np.ndarray):
            changed[own.name] = join(values)
    return replace(parts[0], **changed)


def _concatenated(rows: Sequence[Any]) -> Any:
    return list(chain(*rows)) if isinstance(rows[0], list) else np.concatenate(rows)

"""Answers to new graphs, as one object, as records and as the rows of a table."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, Generic, TypeVar

import numpy as np

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.row_files import write_csv
from lookhops.graphs import Graphs, in_input_order
from lookhops.models.neighbours import Neighbours
from lookhops.sources.graph_streams import GraphStream
from lookhops.tasks.answers import Column, TargetAnswers, rowwise

#: What a table says of a graph like none that the model was trained on.
UNLIKE = "unlike the training graphs"
Value = TypeVar("Value")


class OfOnlyTarget(Generic[Value]):
    """An attribute of :class:`Predictions` that is one of its only target's answers."""

    def __set_name__(self, owner: type[Predictions], name: str) -> None:
        self.name = name

    def __get__(self, answers: Predictions, owner: type[Predictions] | None = None) -> Value:
        first = answers.targets[0]
        if (count := len(answers.targets)) > 1:
            raise LookHopsError(f"The model answers {count} targets; look at each of `targets`.")
        if not hasattr(first, self.name):
            raise LookHopsError(f"The model answers {first.found_in}.")
        found: Value = getattr(first, self.name)
        return found


@dataclass(frozen=True, eq=False)
class Predictions:
    """Answers for some graphs.

    Args:
        ids: What each graph is called, shape (g).
        targets: The answers to each target.
        similarity: To the most similar training graph, from 0 to 1, shape (g); none where the
            model has no reference to compare with.
        limit: Graphs below this similarity are unlike those that the model was trained on.
        neighbours: The most similar training graphs, where they were asked for.
    """

    ids: list[str]
    targets: tuple[TargetAnswers, ...]
    similarity: Array | None = None
    limit: float = 0.0
    neighbours: Neighbours | None = None

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
        if self.neighbours is not None:
            found["neighbours"] = self.neighbours.records(graph)
        return found

    def part(self, chosen: slice) -> Predictions:
        """The answers for some of the graphs."""
        return rowwise([self], lambda parts: parts[0][chosen])

    @classmethod
    def joined(cls, parts: Sequence[Predictions]) -> Predictions:
        """The answers of one model for several sets of graphs, one after the other."""
        return rowwise(parts, _concatenated)

    def said(self, graph: int) -> str:
        """The answers to one graph in words."""
        several = len(self.targets) > 1
        return ", ".join(target.said(graph, named=several) for target in self.targets)

    # ---------------------------------------------------------------- one target

    class_names = OfOnlyTarget[tuple[str, ...]]()
    """Names of the classes, where these are the only target; as are those that follow."""
    probabilities = OfOnlyTarget[Array]()
    """Calibrated probabilities, shape (g, classes)."""
    numbers = OfOnlyTarget[Array]()
    """Number of the class that is answered, shape (g)."""
    classes = OfOnlyTarget[list[str]]()
    """Name of the class that is answered, for each graph."""
    agreement = OfOnlyTarget[Array]()
    """The share of networks that answer the same class alone, shape (g)."""
    values = OfOnlyTarget[Array]()
    """The numbers that are answered, where these are the only target, shape (g)."""


def _concatenated(rows: Sequence[Any]) -> Any:
    return list(chain(*rows)) if isinstance(rows[0], list) else np.concatenate(rows)


# -------------------------------------------------------------------- tables


def answer_records(graphs: Graphs, answers: Predictions) -> list[dict[str, Any]]:
    """A record for each row of the input: its answer, or why it has none."""
    rows = [{"id": name, **answers.record(i)} for i, name in enumerate(answers.ids)]
    skipped: list[dict[str, Any]] = [{**row.record()} for row in graphs.skipped]
    return in_input_order(rows, skipped, graphs.skipped)


def answer_csv(source: GraphStream, answers: Predictions, coverage: float) -> str:
    """The rows of the input as CSV, each with its answer or why it has none."""
    cells = source.cells()
    head, columns = answer_columns(source.head, cells, source.graphs, answers, coverage)
    text = io.StringIO()
    write_csv(text, [[name] for name in head])
    write_csv(text, columns)
    return text.getvalue()


def answer_columns(
    head: Sequence[str],
    cells: Sequence[Sequence[Any]],
    graphs: Graphs,
    answers: Predictions,
    coverage: float,
    as_text: bool = True,
) -> tuple[list[str], list[Any]]:
    """The rows of an input with their answers, column by column.

    Args:
        head: Names of the input's columns; ours are numbered where they have the same.
        cells: The rows of the input.
        graphs: Their graphs, and the rows that gave none.
        answers: The answers to the graphs.
        coverage: Of sets and intervals.
        as_text: Whether numbers are written out, as CSV files have them; else they are arrays of
            floats, and what is not known is NaN; or none, of texts.

    Returns:
        Names of all columns, and the columns. The last says what to be careful with: a graph unlike
        the training graphs, or why a row has no answer.
    """
    blank = ["" if as_text else None] * len(graphs.skipped)
    made: dict[str, Any] = {}
    for name, (values, written) in _answered(answers, coverage).items():
        own = values.tolist() if isinstance(values, np.ndarray) else values
        if as_text and written:
            own = ["" if value != value else written % value for value in own]
        own = in_input_order(own, blank, graphs.skipped)
        made[name] = np.array(own, dtype=float) if written and not as_text else own
    reasons = [f"skipped: {row.reason}" for row in graphs.skipped]
    warnings = [UNLIKE if unlike else "" for unlike in answers.unlike.tolist()]
    made["warning"] = in_input_order(warnings, reasons, graphs.skipped)
    return beside_rows(head, cells, made)


def beside_rows(
    head: Sequence[str], cells: Sequence[Sequence[Any]], made: Mapping[str, Any]
) -> tuple[list[str], list[Any]]:
    """The names and the columns of an input's rows, and after them columns that were made."""
    columns: list[Any] = list(zip(*cells, strict=True)) or [[] for _ in head]
    return [*head, *(free_name(name, head) for name in made)], [*columns, *made.values()]


def _answered(answers: Predictions, coverage: float) -> dict[str, Column]:
    """The columns of answers to graphs."""
    several = len(answers.targets) > 1
    found: dict[str, Column] = {}
    for target in answers.targets:
        own = target.columns(coverage)
        found |= {f"{target.name}_{key}" if several else key: own[key] for key in own}
    if answers.similarity is not None:
        found["similarity"] = answers.similarity, "%.3f"
    return found | ({} if answers.neighbours is None else answers.neighbours.columns())


def free_name(name: str, taken: Collection[str]) -> str:
    """A name that no other column has: ``predicted``, ``predicted_2``."""
    others = (f"{name}_{number}" for number in count(2))
    return next(own for own in chain([name], others) if own not in taken)

"""Answers as the rows of a table or as records: the same from a command and from the service."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from lookhops.core.row_files import write_csv
from lookhops.graphs import Graphs, in_input_order
from lookhops.models.answers import ClassAnswers, NumberAnswers, Predictions
from lookhops.sources.parts import GraphStream

#: What a table says of a graph like none that the model was trained on.
UNLIKE = "unlike the training graphs"


def answer_records(graphs: Graphs, answers: Predictions) -> list[dict[str, Any]]:
    """A record for each row of the input: its answer, or why it has none."""
    rows = [{"id": name, **answers.record(i)} for i, name in enumerate(answers.ids)]
    skipped: list[dict[str, Any]] = [{**row.record()} for row in graphs.skipped]
    return in_input_order(rows, skipped, graphs.skipped)


def answer_csv(source: Path | str, graphs: Graphs, answers: Predictions, coverage: float) -> str:
    """The rows of the input as CSV, each with its answer or why it has none."""
    stream = GraphStream(graphs, source)
    [cells] = [part.cells for part in stream.parts(max(stream.total, 1))] or [[]]
    head, columns = answer_columns(stream.head, cells, graphs, answers, coverage)
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
    names: list[str] = [*head]
    made: list[Any] = list(zip(*cells, strict=True)) or [[] for _ in head]
    blank = ["" if as_text else None] * len(graphs.skipped)
    for name, (values, written) in _answered(answers, coverage).items():
        names.append(free_name(name, head))
        own = values.tolist() if isinstance(values, np.ndarray) else values
        if as_text and written:
            own = [written % value for value in own]
        own = in_input_order(own, blank, graphs.skipped)
        made.append(np.array(own, dtype=float) if written and not as_text else own)
    reasons = [f"skipped: {row.reason}" for row in graphs.skipped]
    warnings = [UNLIKE if unlike else "" for unlike in answers.unlike.tolist()]
    names.append(free_name("warning", head))
    made.append(in_input_order(warnings, reasons, graphs.skipped))
    return names, made


#: The values of a column, and how they are written out; nothing where they are text.
_Column = tuple[Sequence[Any] | np.ndarray, str]


def _answered(answers: Predictions, coverage: float) -> dict[str, _Column]:
    """The columns of answers to graphs."""
    several = len(answers.targets) > 1
    found: dict[str, _Column] = {}
    for target in answers.targets:
        if isinstance(target, ClassAnswers):
            own = _of_classes(target, coverage)
        else:
            own = _of_numbers(target, coverage)
        found |= {f"{target.name}_{key}" if several else key: own[key] for key in own}
    if answers.similarity is not None:
        found["similarity"] = answers.similarity, "%.3f"
    return found


def _of_classes(target: ClassAnswers, coverage: float) -> dict[str, _Column]:
    found: dict[str, _Column] = {"predicted": (target.classes, "")}
    for name, column in zip(target.class_names, target.probabilities.T, strict=True):
        found[f"p_{name}"] = column, "%.4f"
    if target.sets is not None:
        found[f"set_{100 * coverage:g}"] = _sets(target), ""
    if target.models > 1:
        found |= {"agreement": (target.agreement, "%.2f"), "spread": (target.spread, "%.4f")}
    return found


def _sets(target: ClassAnswers) -> list[str]:
    """The conformal set of each graph in words: few are different."""
    assert target.sets is not None
    if not len(target.sets):
        return []
    _, first, which = np.unique(target.sets, axis=0, return_index=True, return_inverse=True)
    said = np.array([" | ".join(target.named_set(graph)) for graph in first], dtype=object)
    return said[which.ravel()].tolist()


def _of_numbers(target: NumberAnswers, coverage: float) -> dict[str, _Column]:
    found: dict[str, _Column] = {"predicted": (target.values, "%.6g")}
    if target.intervals is not None:
        for name, ends in zip(("low", "high"), target.intervals.T, strict=True):
            found[f"{name}_{100 * coverage:g}"] = ends, "%.6g"
    if target.models > 1:
        found["spread"] = target.spread, "%.4g"
    return found


def free_name(name: str, taken: Collection[str]) -> str:
    """A name that no other column has: ``predicted``, ``predicted_2``."""
    others = (f"{name}_{number}" for number in count(2))
    return next(own for own in chain([name], others) if own not in taken)

"""Answers as the rows of a table or as records: the same from a command and from the service."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from lookhops.datasets.molecule_files import table_cells
from lookhops.datasets.text_tables import TABLE_SUFFIXES, suffix_of
from lookhops.graphs import Graphs, in_input_order
from lookhops.models.answers import ClassAnswers, NumberAnswers, Predictions
from lookhops.models.evaluation import graph_ids
from lookhops.tables import csv_text

#: What a table says of a graph like none that the model was trained on.
UNLIKE = "unlike the training graphs"


def answer_records(graphs: Graphs, answers: Predictions) -> list[dict[str, Any]]:
    """A record for each row of the input: its answer, or why it has none."""
    rows = [{"id": name, **answers.record(i)} for i, name in enumerate(answers.ids)]
    skipped: list[dict[str, Any]] = [{**row.record()} for row in graphs.skipped]
    return in_input_order(rows, skipped, graphs.skipped)


def answer_csv(source: Path | str, graphs: Graphs, answers: Predictions, coverage: float) -> str:
    """The rows of the input as CSV, each with its answer or why it has none."""
    head, rows = input_rows(source, graphs)
    made = answer_columns(answers, coverage, head)
    blank = [""] * (len(made) - 1)
    answered = [list(cells) for cells in zip(*made.values(), strict=True)]
    skipped = [[*blank, f"skipped: {row.reason}"] for row in graphs.skipped]
    cells = in_input_order(answered, skipped, graphs.skipped)
    pairs = zip(rows, cells, strict=True)
    return csv_text([*head, *made], [[*row, *own] for row, own in pairs])


def input_rows(source: Path | str, graphs: Graphs) -> tuple[list[str], list[list[str]]]:
    """The input as it was given: names of its columns, and its rows, skipped ones too.

    Of sources that are no table: what each graph is called, and what else is known of it.
    """
    path = Path(source)
    of_molecules = graphs.featuriser.startswith("molecules") and path.is_file()
    if of_molecules and suffix_of(path) in TABLE_SUFFIXES:
        head, rows, _ = table_cells(path)
        return head, [list(row) for row in rows]
    columns = {"id": graph_ids(graphs)}
    columns |= {key: [str(v) for v in own] for key, own in graphs.columns.items() if key != "id"}
    known = [list(cells) for cells in zip(*columns.values(), strict=True)]
    blank = [""] * (len(columns) - 1)
    skipped = [[row.id, *blank] for row in graphs.skipped]
    return list(columns), in_input_order(known, skipped, graphs.skipped)


def answer_columns(
    answers: Predictions, coverage: float, taken: Collection[str] = ()
) -> dict[str, Sequence[str]]:
    """The columns of a table of answers, as text, the last with warnings.

    Args:
        answers: The answers.
        coverage: Of their sets and intervals.
        taken: Names of other columns of the same table: ours are then numbered.
    """
    several = len(answers.targets) > 1
    found: dict[str, Sequence[str]] = {}
    for target in answers.targets:
        if isinstance(target, ClassAnswers):
            own = _of_classes(target, coverage)
        else:
            own = _of_numbers(target, coverage)
        found |= {f"{target.name}_{key}" if several else key: own[key] for key in own}
    if answers.similarity is not None:
        found["similarity"] = [f"{value:.3f}" for value in answers.similarity]
    found["warning"] = [UNLIKE if unlike else "" for unlike in answers.unlike]
    return {_free(name, taken): cells for name, cells in found.items()}


def _of_classes(target: ClassAnswers, coverage: float) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {"predicted": target.classes}
    for name, column in zip(target.class_names, target.probabilities.T, strict=True):
        found[f"p_{name}"] = [f"{p:.4f}" for p in column]
    if target.sets is not None:
        sets = (target.named_set(graph) for graph in range(len(target.sets)))
        found[f"set_{100 * coverage:g}"] = [" | ".join(names) for names in sets]
    if target.models > 1:
        found["agreement"] = [f"{share:.2f}" for share in target.agreement]
        found["spread"] = [f"{spread:.4f}" for spread in target.spread]
    return found


def _of_numbers(target: NumberAnswers, coverage: float) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = {"predicted": [f"{value:.6g}" for value in target.values]}
    if target.intervals is not None:
        for name, ends in zip(("low", "high"), target.intervals.T, strict=True):
            found[f"{name}_{100 * coverage:g}"] = [f"{end:.6g}" for end in ends]
    if target.models > 1:
        found["spread"] = [f"{spread:.4g}" for spread in target.spread]
    return found


def _free(name: str, taken: Collection[str]) -> str:
    """A name that no other column has: ``predicted``, ``predicted_2``."""
    number = 1
    found = name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found

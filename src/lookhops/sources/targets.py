"""Which of the columns of a set are to be learnt, and whether as classes or as numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookhops.core.errors import LookHopsError
from lookhops.core.reading import Reading, called, listed, names_in
from lookhops.core.words import counted
from lookhops.graphs import Graphs, Target
from lookhops.graphs.columns import ALL, only_features
from lookhops.graphs.targets import (
    KINDS,
    NUMBERS,
    as_number,
    is_blank,
    known_targets,
    pack_targets,
    read_target,
    target_columns,
)

#: No more class names than this are listed in a sentence.
SHOWN = 5


def choose_columns(
    graphs: Graphs,
    reading: Reading,
    label: str | None = None,
    place: Callable[[int], str] | None = None,
    need_targets: bool = True,
) -> Graphs:
    """The graphs with the targets and the features of whole graphs that are asked for.

    Args:
        graphs: Graphs with targets, or with columns that can be.
        reading: Names the targets, with commas between, and says what they are; by default they are
            those of its ``defaults`` if all of them are there, else those that the source had.
            Names the features.
        label: The column that is the target where none is named.
        place: Where a graph stands in the source, for messages.
        need_targets: Whether a target that cannot be read is an error; else it stays a column.
    """
    place = place or f"{graphs.name}, graph {{}}".format
    names, kinds = None, parse_task(reading.task)
    if reading.target is not None:
        names = _names(reading.target, graphs)
    elif reading.defaults.target is not None:
        earlier = _names(reading.defaults.target, graphs)
        if all(_found(graphs, name) for name in earlier):
            names, kinds = earlier, parse_task(reading.defaults.task)
    if names is None and label is not None:
        if not all(map(is_blank, graphs.columns[label])):  # else nothing is known, or yet
            names = [label]
    elif names is None and set(kinds.values()) != {"auto"}:
        names = [target.name for target in graphs.targets]
    if names is not None:
        graphs = _with_targets(graphs, names, kinds, place, need_targets)
    if reading.features is None:
        return graphs
    if reading.features.strip().lower() != ALL:
        graphs = only_features(graphs, reading.features)
    return graphs.with_features(reading.features, reading, place)


def parse_task(text: str) -> dict[str, str]:
    """What targets are, by name; under ``""``, what the others are.

    ``classes``, ``numbers`` or ``auto`` for all, or ``logS=numbers,active=classes`` for each.
    """
    kinds = {"": "auto"}
    for part in names_in(text):
        name, _, kind = part.rpartition("=")
        if kind.strip() not in KINDS:
            raise LookHopsError(
                f"--task is one of {', '.join(KINDS)}, or NAME=KIND with commas between, not "
                f"{text!r}."
            )
        kinds[name.strip()] = kind.strip()
    return kinds


def target_sentences(graphs: Graphs) -> list[str]:
    """What each target was taken for, how to say otherwise, and how many graphs have none."""
    if graphs.y is None:
        return []
    said = []
    for target, values in target_columns(graphs.y, graphs.targets):
        filled = values[~np.isnan(values)]
        if target.classes:
            more = f" and {len(target.classes) - SHOWN} more" if len(target.classes) > SHOWN else ""
            what = f"classes ({', '.join(target.classes[:SHOWN])}{more})"
            other = "numbers" if None not in map(as_number, target.classes) else ""
        else:
            ends = f"{filled.min():g} to {filled.max():g}" if len(filled) else "none known"
            said_to_be = "numbers, a regression" if target.kind == "numbers" else target.kind
            what, other = f"{said_to_be} ({ends})", "classes"
            if target.kind == "numbers" and NUMBERS["counts"][1](filled).all():
                other += " or --task counts"
        otherwise = f"; say otherwise with --task {other}" if other else ""
        blank = len(values) - len(filled)
        left = f"; {counted(blank, 'graph')} without it left out" if blank else ""
        said.append(f"{target.name}: learnt as {what}{otherwise}{left}")
    alone = ~known_targets(graphs.y.view(len(graphs), -1)).any(1)
    if len(said) > 1 and bool(alone.any()):
        said.append(f"{counted(int(alone.sum()), 'graph')} without any target left out")
    return said


def _with_targets(
    graphs: Graphs,
    names: Sequence[str],
    kinds: Mapping[str, str],
    place: Callable[[int], str],
    needed: bool,
) -> Graphs:
    """The graphs with these targets; those that they had before become columns."""
    if strange := [name for name in kinds if name and name not in names]:
        raise LookHopsError(
            f"--task names {strange[0]!r}, which is no target; name it in --target."
        )
    before = {one.name: (one, values) for one, values in target_columns(graphs.y, graphs.targets)}
    cells = {name: target_cells(*target) for name, target in before.items()}
    columns = {**graphs.columns, **cells}
    chosen = []
    for name in names:
        found, kind = _found(graphs, name), kinds.get(name, kinds[""])
        if found is None:
            raise LookHopsError(
                f"{graphs.name}: no column is called {name!r}; the columns are "
                f"{listed(list(columns))}. Choose some of them (--target)."
            )
        if found in before and kind in ("auto", before[found][0].kind):
            chosen.append(before[found])
        else:
            try:
                chosen.append(read_target(found, columns[found], kind, place=place))
            except LookHopsError:
                if needed:
                    raise
                continue
        columns.pop(found)
    packed = pack_targets(chosen) if chosen else {"y": None, "targets": ()}
    return graphs.changed(columns=columns, **packed)


def _names(text: str, graphs: Graphs) -> list[str]:
    """The names in a text, with commas between; a column may have commas in its own name."""
    if _found(graphs, text) is not None:
        return [text]
    names = list(dict.fromkeys(names_in(text)))
    if not names:
        raise LookHopsError("--target names a column, or several with commas between.")
    return names


def _found(graphs: Graphs, name: str) -> str | None:
    """The column or target of this name, else of the same in another case."""
    targets = [target.name for target in graphs.targets if graphs.y is not None]
    return called(name, [*targets, *graphs.columns])


def target_cells(target: Target, values: NDArray[Any]) -> NDArray[Any]:
    """A target as a column: the names of classes, or numbers."""
    if not target.classes:
        return values
    cells = ["" if value != value else target.classes[int(value)] for value in values]
    return np.array(cells, dtype=object)

"""Which of the columns of a set are to be learnt, and whether as classes or as numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookhops.core.errors import LookHopsError
from lookhops.core.reading import Reading, called, listed
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


@dataclass(frozen=True)
class Offer:
    """What a source says of targets, before any is chosen.

    Args:
        label: The target where no other is named: a column, or none.
        place: Where a graph stands in the source, for messages; none where that is not known.
        needed: Whether a target that cannot be read is an error; else it stays a column.
    """

    label: str | None = None
    place: Callable[[int], str] | None = None
    needed: bool = True


def choose_columns(graphs: Graphs, reading: Reading, offer: Offer | None = None) -> Graphs:
    """The graphs with the targets and the features of whole graphs that are asked for.

    Args:
        graphs: Graphs with targets, or with columns that can be.
        reading: Names the targets, with commas between, and says what they are; by default they are
            those of its ``defaults`` if all of them are there, else those that the source had.
            Names the features.
        offer: What the source says of targets.
    """
    offer = offer or Offer()
    names, kinds = _wanted_targets(graphs, reading, offer)
    if names is not None:
        graphs = _with_targets(graphs, names, kinds, offer)
    if reading.features is None:
        return graphs
    if reading.features.strip().lower() != ALL:
        graphs = only_features(graphs, reading.features)
    return graphs.with_features(reading.features, reading, offer.place)


def _wanted_targets(
    graphs: Graphs, reading: Reading, offer: Offer
) -> tuple[list[str] | None, dict[str, str]]:
    """The names of the targets, none where they stay as they are, and what each is."""
    kinds = parse_task(reading.task)
    if reading.target is not None:
        return _names(reading.target, graphs), kinds
    if reading.defaults.target is not None:
        names = _names(reading.defaults.target, graphs)
        if all(_found(graphs, name) is not None for name in names):
            return names, parse_task(reading.defaults.task)
    if offer.label is not None:
        blank = all(map(is_blank, graphs.columns[offer.label]))  # nothing is known, or yet
        return None if blank else [offer.label], kinds
    if set(kinds.values()) == {"auto"}:
        return None, kinds
    return [target.name for target in graphs.targets], kinds


def parse_task(text: str) -> dict[str, str]:
    """What targets are, by name; under ``""``, what the others are.

    ``classes``, ``numbers`` or ``auto`` for all, or ``logS=numbers,active=classes`` for each.
    """
    kinds = {"": "auto"}
    for part in filter(None, map(str.strip, text.split(","))):
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
    graphs: Graphs, names: Sequence[str], kinds: Mapping[str, str], offer: Offer
) -> Graphs:
    """The graphs with these targets; those that they had before become columns."""
    if strange := [name for name in kinds if name and name not in names]:
        raise LookHopsError(
            f"--task names {strange[0]!r}, which is no target; name it in --target."
        )
    had = {one.name: (one, values) for one, values in target_columns(graphs.y, graphs.targets)}
    columns = {**graphs.columns, **{name: target_cells(*both) for name, both in had.items()}}
    chosen = []
    for given in names:
        found, kind = _found(graphs, given), kinds.get(given, kinds[""])
        if found is None:
            raise LookHopsError(
                f"{graphs.name}: no column is called {given!r}; the columns are "
                f"{listed(list(columns))}. Choose some of them (--target)."
            )
        before = had.get(found)
        if before is not None and kind in ("auto", before[0].kind):
            chosen.append(before)
        else:
            place = offer.place or f"{graphs.name}, graph {{}}".format
            try:
                chosen.append(read_target(found, columns[found], kind, place=place))
            except LookHopsError:
                if offer.needed:
                    raise
                continue
        columns.pop(found)
    packed = pack_targets(chosen) if chosen else {"y": None, "targets": ()}
    return graphs.changed(columns=columns, **packed)


def _names(text: str, graphs: Graphs) -> list[str]:
    """The names in a text, with commas between; a column may have commas in its own name."""
    if _found(graphs, text) is not None:
        return [text]
    names = list(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))
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

"""Columns of whole graphs as features: those that a user names, and those that a model reads."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.reading import AS_USUAL, Reading, called, listed
from lookhops.graphs.features import BLANK, Column, Features, Names
from lookhops.graphs.targets import PLAINLY, are_dates, as_number, is_blank, meant_as_number

if TYPE_CHECKING:
    from lookhops.graphs import Graphs

#: The column of :class:`~lookhops.graphs.Graphs` that says which graphs are the same: they have the
#: same number.
SAME = "duplicate_of"
#: Columns that say which graph one is, and are no features of it.
IDS = ("id", "smiles", SAME)
#: In place of names: every column that can be a feature.
ALL = "all"
#: A column of which at least this share are numbers is meant as numbers.
MOSTLY = 0.9
#: How a column of yes and no may be written.
_YES_OR_NO = {"False": "0", "True": "1"}


# -------------------------------------------------------------------- features that are named


def with_features(
    graphs: Graphs,
    names: str | Iterable[str],
    reading: Reading = AS_USUAL,
    place: Callable[[int], str] | None = None,
) -> Graphs:
    """The graphs with some of their columns as features of whole graphs, beside those they have.

    Numbers stay numbers; text and whole numbers of at most ten values become labels; blanks are NaN
    or a label of their own. The columns stay where they are, too.
    """
    from lookhops.graphs.table import Table, read_features  # pandas takes a while to import

    every = isinstance(names, str) and names.strip().lower() == ALL
    chosen = possible_features(graphs) if every else _named(graphs, names)
    if not chosen:
        return graphs
    table = Table("", _frame(graphs, chosen), place or f"{graphs.name}, graph {{}}".format)
    found, left_out = read_features(table, chosen, None, reading)
    if left_out:
        why = ", ".join(f"{name!r} ({reason})" for name, reason in left_out.items())
        if not every:
            raise LookHopsError(
                f"{graphs.name}: no model can read {why}; leave it out of features (--features)."
            )
        warnings.warn(f"{graphs.name}: no features, as no model can read {why}.", stacklevel=2)
    return graphs.changed(whole=graphs.whole.beside(found.packed()))


def possible_features(graphs: Graphs, but: Sequence[str] = ()) -> list[str]:
    """The columns that could be features of whole graphs and are none, but for some."""
    taken = {*IDS, *but, *_targets(graphs), *graphs.whole.names.features}
    return [
        name
        for name, column in graphs.columns.items()
        if name not in taken and _could_be_feature(column)
    ]


def only_features(graphs: Graphs, names: str) -> Graphs:
    """The graphs without features of columns other than these; other features stay."""
    wanted = [names, *map(str.strip, names.split(","))]
    given = [name for name in graphs.whole.names.features if name in graphs.columns]
    dropped = [name for name in given if not called(name, wanted)]
    return graphs.changed(whole=graphs.whole.without(dropped)) if dropped else graphs


def _could_be_feature(column: np.ndarray) -> bool:
    """Whether a column varies, and holds neither dates nor another text for most graphs."""
    cells = [cell for cell in column.tolist() if not is_blank(cell)]
    different = set(map(str, cells))
    if len(different) < 2 or column.dtype.kind in "biuf":
        return len(different) > 1
    if sum(as_number(cell) is not None for cell in cells) >= MOSTLY * len(cells):
        return True  # reading it refuses the few texts by name
    return len(different) <= max(len(cells) // 2, 2) and not are_dates(different)


def _targets(graphs: Graphs) -> list[str]:
    return [target.name for target in graphs.targets] if graphs.y is not None else []


def _named(graphs: Graphs, names: str | Iterable[str]) -> list[str]:
    """The columns of these names that are no features yet; others are refused by name."""
    columns = list(graphs.columns)
    if isinstance(names, str):  # a column may have a comma in its own name
        alone = called(names, columns) is not None
        names = [names] if alone else filter(None, map(str.strip, names.split(",")))
    found: dict[str, None] = {}
    for name in names:
        if called(name, graphs.whole.names.features):
            continue
        if target := called(name, _targets(graphs)):
            raise LookHopsError(
                f"{graphs.name}: {target!r} is to be learnt, so it is no feature; leave it out of "
                "features (--features)."
            )
        column = called(name, columns)
        if column in IDS:
            raise LookHopsError(
                f"{graphs.name}: {column!r} says which graph one is, and is no feature of it; "
                "leave it out of features (--features)."
            )
        if column is None:
            possible = [one for one in columns if one not in IDS]
            there = f"the columns are {listed(possible)}" if possible else "it has no columns"
            raise LookHopsError(
                f"{graphs.name}: no column called {name!r} can be a feature; {there} (--features)."
            )
        found[column] = None
    return list(found)


def _frame(graphs: Graphs, names: Sequence[str]) -> Any:
    """Columns as a frame; a blank text is none."""
    import pandas as pd

    found: dict[str, Any] = {name: graphs.columns[name] for name in names}
    for name, column in found.items():
        if column.dtype.kind not in "biuf":
            found[name] = pd.Series([None if is_blank(one) else one for one in column.tolist()])
    return pd.DataFrame(found)


# -------------------------------------------------------------------- features that are wanted


def completed(graphs: Graphs, wanted: Names) -> Features:
    """The features of whole graphs, with those that are wanted and missing taken from columns.

    A number is read as a number and a label as a label, whatever the values look like here, so that
    one row is read as all others are. What neither features nor columns have stays missing.
    """
    given, values = graphs.whole, wanted.values_of
    sides = given.decoded(), graphs.columns
    columns: list[Column] = []
    replaced = []
    for name in wanted.features:
        if called(name, given.label_names if name in values else given.number_names) is not None:
            continue
        for side in sides:
            if (name_here := called(name, side)) is not None:
                replaced.append(name_here)
                if name in values:
                    columns.append(_as_labels(name, side[name_here], values[name]))
                else:
                    columns.append(Column(name, _as_numbers(graphs, name, side[name_here])))
                break
    if not replaced:
        return given
    more = Features.of(columns).packed().map(lambda tensor: tensor.to(graphs.device))
    return given.without(replaced).beside(more)


def in_columns(features: Features, names: Names, others: Names) -> Features:
    """Features that have all of these names, in their order, with the values of others too."""
    here = {one.name: one for one in features.split()}
    columns = [here[name] for name in names.numbers]
    for name, first in names.values_of.items():
        values = tuple(dict.fromkeys((*first, *others.values_of.get(name, ()))))
        codes = torch.tensor([values.index(value) for value in here[name].values or ()])
        columns.append(Column(name, codes[here[name].data.long()], values))
    return Features.of(columns).packed()


def _as_numbers(graphs: Graphs, name: str, cells: np.ndarray) -> Tensor:
    """Cells as numbers, NaN where blank, shape (g)."""
    if cells.dtype.kind in "biuf":
        numbers = cells.astype(np.float64)
    else:
        numbers = np.full(len(cells), np.nan)
        for row, cell in enumerate(cells.tolist()):
            if not is_blank(cell) and cell != BLANK:
                number = as_number(cell)
                if number is None or np.isnan(number):
                    how = f"; {PLAINLY}" if meant_as_number(cell) is not None else ""
                    raise _refused(graphs, name, row, cell, f"is no number{how}")
                numbers[row] = number
    with np.errstate(over="ignore"):
        wrong = np.isinf(numbers.astype(np.float32))
    if wrong.any():
        row = int(wrong.argmax())
        raise _refused(graphs, name, row, cells[row], "is not a finite number")
    return torch.from_numpy(numbers).float()


def _refused(graphs: Graphs, name: str, row: int, cell: Any, why: str) -> LookHopsError:
    """That a cell is not what a model reads there."""
    ids = graphs.columns.get("id")
    return LookHopsError(
        f"{graphs.name}, graph {row if ids is None else ids[row]}: {str(cell)!r} in the column "
        f"{name!r} {why}; mend it, or leave it empty."
    )


def _as_labels(name: str, cells: np.ndarray, values: Sequence[str]) -> Column:
    """Cells as labels, written as the values are."""
    numeric = all(as_number(value) is not None for value in values if value != BLANK)
    yes_or_no = set(values) & {*_YES_OR_NO}
    words = {number: word for word, number in _YES_OR_NO.items()}

    def text(cell: Any) -> str:
        if is_blank(cell):
            return BLANK
        if isinstance(cell, bool):
            return _YES_OR_NO[str(cell)] if numeric else str(cell)
        number = as_number(cell)
        if number is None or not (numeric or yes_or_no or not isinstance(cell, str)):
            return str(cell)
        plain = str(int(number)) if number == np.round(number) else str(number)
        return words.get(plain, plain) if yes_or_no else plain

    places: dict[str, int] = {}
    codes = [places.setdefault(text(cell), len(places)) for cell in cells.tolist()]
    return Column(name, torch.tensor(codes, dtype=torch.long), tuple(places))

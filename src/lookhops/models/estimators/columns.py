"""What is to be learnt, as scikit-learn's users give it: lists, arrays, Series and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.words import joined
from lookhops.encoding.inputs import OwnTarget
from lookhops.graphs.targets import is_blank, read_target

#: What the only target is called inside.
ONE = "y"


def names_of(columns: Sequence[Any]) -> list[str]:
    """What the targets are called inside: none is known by its name."""
    if len(columns) == 1:
        return [ONE]
    return [f"y{number}" for number in range(len(columns))]


def columns_of(y: Any, count: int | None) -> list[Array]:
    """A list, an array, a Series or a table as its columns, each of as many as there are graphs."""
    table = np.asarray(y)
    if table.ndim > 2:
        raise LookHopsError(f"y has a column for each target, not the shape {table.shape}.")
    if table.ndim < 2 or table.shape[1] == 1:
        table = column_or_1d(table, warn=True)[:, None]
    if count is not None and len(table) != count:
        raise LookHopsError(f"There are {count} graphs but {len(table)} labels in y.")
    return list(table.T)


def own_classes(targets: Sequence[OwnTarget]) -> list[Array]:
    """The classes that graphs carry themselves, a column for each target."""
    if not targets:
        raise LookHopsError("requires y to be passed: the graphs carry no classes themselves.")
    of_numbers = [own for own in targets if own.kind not in ("auto", "classes")]
    if of_numbers:
        _refuse_own(targets, of_numbers, "LookHopsRegressor", "classes")
    return [own_column(own) for own in targets]


def own_numbers(targets: Sequence[OwnTarget]) -> list[Array]:
    """The numbers that graphs carry themselves, NaN where blank, a column for each target."""
    if not targets:
        raise LookHopsError("requires y to be passed: the graphs carry no numbers themselves.")
    of_classes = [own for own in targets if not own.are_numbers]
    if of_classes:
        _refuse_own(targets, of_classes, "LookHopsClassifier", "numbers")
    return [read_target(own.name, own.cells, "numbers")[1] for own in targets]


def own_column(own: OwnTarget) -> Array:
    """The values of a target as an array of whatever they are."""
    column = np.empty(len(own.cells), dtype=object)
    column[:] = own.cells
    return column


def _refuse_own(
    targets: Sequence[OwnTarget], others: Sequence[OwnTarget], estimator: str, wanted: str
) -> NoReturn:
    """Say what graphs carry in place of what is wanted, and which estimator learns it."""
    kind = "numbers" if wanted == "classes" else "classes"
    names = joined([repr(own.name) for own in others])
    carried = f"no {wanted}, but {kind} in {names}"
    if len(others) < len(targets):
        estimator, carried = "LookHopsMultitask", f"{kind} in {names}, beside {wanted}"
    raise LookHopsError(f"The graphs carry {carried}: use {estimator}, or pass {wanted} as y.")


def classes_of(column: Array) -> tuple[Array, Array]:
    """The labels of a column, sorted, and the place of each graph's among them; NaN where blank."""
    known = np.array([not is_blank(value) for value in column.tolist()], dtype=bool)
    values = np.asarray(column[known].tolist())
    if not len(values):
        raise LookHopsError("No graph has a label (Found array with 0 sample(s)).")
    classes, places = np.unique(values, return_inverse=True)
    codes = np.full(len(column), np.nan)
    codes[known] = places.reshape(-1)
    return classes, codes


def refuse_numbers(column: Array) -> None:
    """Refuse labels that are fractions, or that scikit-learn takes for no classes otherwise."""
    values = np.asarray([value for value in column.tolist() if not is_blank(value)])
    try:
        check_classification_targets(values)
    except ValueError as error:
        is_float = values.dtype.kind == "f"
        strange = values[np.isinf(values) | (values != np.rint(values))] if is_float else values
        raise LookHopsError(
            f"The labels in y are not classes, but such as {strange.tolist()[0]!r}: "
            "LookHopsRegressor learns numbers, LookHopsMultitask numbers and classes; write "
            f"classes as whole numbers or text ({str(error).split('. ')[0].rstrip('.')})."
        ) from error


def accuracy(true: Array, answers: Array, sample_weight: Any = None) -> float:
    """The accuracy of classes, fractions among them, which scikit-learn's takes for no classes."""
    if true.dtype.kind in "biuf" and answers.dtype.kind in "biuf":
        _, places = np.unique(np.concatenate([true, answers]), return_inverse=True)
        true, answers = np.split(places, 2)
    return float(accuracy_score(true, answers, sample_weight=sample_weight))


def mean_score(score: Any, true: Sequence[Array], answers: Array, sample_weight: Any) -> float:
    """The mean over targets of a score on the graphs that have them."""
    each = zip(true, answers.reshape(len(answers), -1).T, strict=True)
    return float(np.mean([score_of(score, *pair, sample_weight) for pair in each]))


def score_of(score: Any, true: Array, answers: Array, sample_weight: Any) -> float:
    """A score on the graphs that have the target."""
    known = np.array([not is_blank(value) for value in true.tolist()], dtype=bool)
    weight = None if sample_weight is None else np.asarray(sample_weight)[known]
    pair = (np.asarray(values[known].tolist()) for values in (true, answers))
    return float(score(*pair, sample_weight=weight))

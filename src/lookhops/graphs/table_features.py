"""Columns of tables as features: numbers, and texts and few whole numbers as labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, time, timedelta

import numpy as np
import pandas as pd
import torch

from lookhops.core.errors import LookHopsError
from lookhops.core.reading import Reading, names_in
from lookhops.graphs.features import BLANK, Features
from lookhops.graphs.table import Table, holds_decimals
from lookhops.graphs.targets import PLAINLY, are_dates, meant_as_number

#: A column of whole numbers with at most so many different ones is one of categories.
FEW_NUMBERS = 10
#: A column with more different texts than this holds names, remarks or dates, not categories.
MANY_TEXTS = 1000
#: Of a column of text, the share that must be numbers for the others to look like mistakes.
MOSTLY = 0.9


def read_features(
    table: Table, columns: Iterable[str], rows: np.ndarray | None, reading: Reading
) -> tuple[Features, dict[str, str]]:
    """Columns as features, of all rows or of those named in their order.

    Columns that cannot be features are returned with the reason of each.
    """
    numbers: dict[str, torch.Tensor] = {}
    labels: dict[str, tuple[torch.Tensor, tuple[str, ...]]] = {}
    left_out: dict[str, str] = {}
    columns = list(columns)
    decimals = [name for name in columns if holds_decimals(table.frame[name])]
    if decimals:
        plain = {name: table.frame[name].astype(np.float64) for name in decimals}
        table = replace(table, frame=table.frame.assign(**plain))
    for name in columns:
        if _is_number(table.frame[name], name, reading):
            numbers[name] = _tensor(_numbers(table, name), rows, np.float32)
            continue
        try:
            codes, values = _categories(table, name, told=name in names_in(reading.categories))
            labels[name] = _tensor(codes, rows, np.int32), values
        except _NoCategories as reason:
            left_out[name] = str(reason)
    return Features.of(numbers, labels), left_out


def _is_number(column: pd.Series, name: str, reading: Reading) -> bool:
    """Whether a column is read as numbers: as told, else by its type and its values."""
    if name in names_in(reading.categories):
        return False
    if name == "weight" or name in names_in(reading.numbers):
        return True
    types = pd.api.types
    if types.is_bool_dtype(column) or not types.is_numeric_dtype(column):
        return False
    different = column.iloc[: 100 * FEW_NUMBERS].unique()  # most columns show it in the first rows
    if len(different) <= FEW_NUMBERS + 1:
        different = column.unique()
    known = pd.Series(different).dropna().to_numpy(dtype=np.float64)
    whole = np.isfinite(known) & (known == np.round(known))
    return len(known) > FEW_NUMBERS or not whole.all()


def _numbers(table: Table, name: str) -> np.ndarray:
    """A column as float64, NaN where a cell is empty."""
    column = table.frame[name]
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    with np.errstate(over="ignore"):
        wrong = np.isinf(numbers.astype(np.float32))
    if np.isnan(numbers).any():
        wrong |= np.isnan(numbers) & column.notna().to_numpy()
    if wrong.any():
        row = int(wrong.argmax())
        why = "is too large" if np.isfinite(numbers[row]) else "is not a finite number"
        raise LookHopsError(
            f"{table.place(row)}: {str(column.iloc[row])!r} in the column {name!r} {why}; mend it, "
            "or leave it empty."
        )
    return numbers


class _NoCategories(Exception):
    """Why a column can be neither numbers nor categories."""


def _categories(table: Table, name: str, told: bool) -> tuple[np.ndarray, tuple[str, ...]]:
    """The place of each cell among the values, and the values: numbers by size, texts by letter."""
    column, types = table.frame[name], pd.api.types
    if types.is_datetime64_any_dtype(column) or types.is_timedelta64_dtype(column):
        raise _NoCategories("dates")
    try:
        codes, known = pd.factorize(column)
    except TypeError as error:
        raise _NoCategories("lists") from error
    if len(known) and all(isinstance(value, date | time | timedelta) for value in known):
        raise _NoCategories("dates")
    if types.is_numeric_dtype(column) and not types.is_bool_dtype(column):
        values = np.asarray(known, dtype=np.float64)
        whole = bool(np.all(values == np.round(values)))
        texts = [str(int(value)) if whole else str(value) for value in values]
        order = np.argsort(values)
    else:
        texts = [str(value) for value in known]
        if not told:
            _check_texts(table, name, codes, texts)
        order = np.array(sorted(range(len(texts)), key=texts.__getitem__), dtype=np.int64)
    place = np.empty(len(texts) + 1, dtype=np.int64)
    place[order], place[-1] = np.arange(len(texts)), len(texts)  # -1 is an empty cell
    blank = (BLANK,) if (codes < 0).any() else ()
    return place[codes], (*(texts[i] for i in order), *blank)


def _check_texts(table: Table, name: str, codes: np.ndarray, texts: list[str]) -> None:
    """Refuse texts that are no categories, and a column of numbers in which a few are text."""
    known = codes[codes >= 0]
    if len(known) and are_dates(texts):
        raise _NoCategories("dates")
    is_number = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").notna()
    numbers = is_number.to_numpy()[known]
    if not numbers.all():
        row = int(np.flatnonzero(codes >= 0)[numbers.argmin()])
        first = f"{table.place(row)}: {texts[codes[row]]!r} in the column {name!r}"
        if numbers.mean() >= MOSTLY:
            raise LookHopsError(
                f"{first}, where {numbers.mean():.1%} are numbers; mend it, or read the column as "
                f"text with categories (--categories {name!r})."
            )
        strays = (text for text, plain in zip(texts, is_number, strict=True) if not plain)
        if all(meant_as_number(text) is not None for text in strays):
            warnings.warn(
                f"{first}, which looks like numbers, is read as text; {PLAINLY}.", stacklevel=4
            )
    if len(texts) > MANY_TEXTS:
        raise _NoCategories(f"{len(texts):,} different texts")
    if len(texts) == len(codes) > 2 * FEW_NUMBERS:
        raise _NoCategories("another text in each row")


def _tensor(column: np.ndarray, rows: np.ndarray | None, dtype: type[np.generic]) -> torch.Tensor:
    """A column in the order of the rows."""
    return torch.from_numpy((column if rows is None else column[rows]).astype(dtype))

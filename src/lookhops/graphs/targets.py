"""What is to be learnt of each graph: classes or numbers, one target or several, with blanks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.tensors import LARGEST
from lookhops.core.words import counted, joined

if TYPE_CHECKING:
    from lookhops.graphs import Graphs

#: Texts that stand for no value, in any case; the last are Excel's for what it cannot compute.
BLANK_TEXTS = (
    *("", "nan", "na", "n/a", "null", "<na>", "#n/a", "#na"),
    *("#value!", "#div/0!", "#ref!", "#name?", "#num!", "#null!"),
)
#: How Python's own absent values print.
_ABSENT = ("None", "nan", "<NA>", "NaT")
#: A column with more different numbers than this is not one of classes.
MANY_CLASSES = 20
#: The kinds of numbers: what each one is, and which are of that kind, of an array.
NUMBERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "numbers": ("a finite number, at most 1e100 in size", lambda y: np.abs(y) <= LARGEST),
    "counts": ("a whole number from 0", lambda y: (y >= 0) & (y <= LARGEST) & (np.rint(y) == y)),
}
#: What a column may be said to be; ``auto`` looks at its values.
KINDS = ("auto", "classes", *NUMBERS)
#: No more cells than this are named in a sentence.
SHOWN = 3
#: Digits with separators, perhaps of a share, beyond a limit or with a unit.
_GROUPED = re.compile(
    r"[<>~≤≥≈]?=? ?[+-]?\d[\d.,' \u00a0\u202f]*"
    r"(%|[°µμ][\w/^·-]{,7}|(?<=[ \u00a0\u202f])[a-zA-Z][\w/°^·-]{,7})?"
)
#: How to write what :func:`meant_as_number` knows.
PLAINLY = "write 1200.5 for 1,200.50, 8.4 for 8,4, 12 for 12%, 25 for 25 °C and 100 for >100"
#: A day as people write it, perhaps with a time.
_DATE = re.compile(
    r"(\d{4}-\d\d-\d\d|\d{4}[./]\d\d?[./]\d\d?|\d\d?[.-]\d\d?[.-]\d{4}|\d\d?/\d\d?/(\d\d){1,2}"
    r"|\d\d?[. -]+[A-Za-z]{3,9}[. -]+(\d\d){1,2})([ T]\d\d?:\d\d(:\d\d(\.\d+)?)?"
    r"( ?(Z|UTC|AM|PM|[+-]\d\d(:?\d\d)?))?)?"
)


@dataclass(frozen=True)
class Target:
    """One thing that is known of each graph, to be learnt.

    Args:
        name: What to call it: the name of its column.
        classes: The names of its classes; none where it is a number.
        kind: ``classes``, or one of :data:`NUMBERS`; by default what ``classes`` say.
    """

    name: str
    classes: tuple[str, ...] = ()
    kind: str = ""

    def __post_init__(self) -> None:
        kind = self.kind or ("classes" if self.classes else "numbers")
        if kind not in KINDS[1:] or (kind == "classes") != bool(self.classes):
            raise LookHopsError(f"{self.name}: a target with these classes is not of {kind!r}.")
        object.__setattr__(self, "kind", kind)


def is_blank(value: Any) -> bool:
    """Whether a cell holds no value: empty text, None, NaN, pandas' NA."""
    if isinstance(value, str):
        return value.strip().lower() in BLANK_TEXTS
    return str(value) in _ABSENT


def as_number(cell: Any) -> float | None:
    """A cell as a number, if it is one."""
    if isinstance(cell, bool | np.bool_) or (isinstance(cell, str) and "_" in cell):
        return None  # Python alone reads 1_000 as a number
    try:
        return float(cell)
    except (TypeError, ValueError):
        return None


def is_fraction(cell: Any) -> bool:
    """Whether a cell is a number that is not whole."""
    return isinstance(cell, float) and cell == cell and cell % 1 != 0


def meant_as_number(cell: Any) -> float | None:
    """The digits of what people write for a number and Python does not read: 1,200.50, 25 °C."""
    text = str(cell)
    if not _GROUPED.fullmatch(text) or not re.search(r"[,%°<>~≤≥≈=a-zA-Zµμ]", text):
        return None
    return as_number(re.sub(r"[^\d+-]", "", re.split(r"[%°a-zA-Zµμ]", text)[0]))


def are_dates(cells: Iterable[Any]) -> bool:
    """Whether all cells are days, in the ways that people write them."""
    return all(_DATE.fullmatch(str(cell)) for cell in cells)


def read_target(
    name: str,
    values: Iterable[Any],
    kind: str = "auto",
    classes: Sequence[str] | None = None,
    place: Callable[[int], str] = "graph {}".format,
) -> tuple[Target, NDArray[np.float64]]:
    """A target from the cells of a column: numbers, or text, with blanks.

    Numbers are classes where they are few: at most 20 different ones, and of fractions no more than
    half as many as there are graphs. Text is classes, but among a majority of numbers that would be
    numbers by themselves it is taken for a mistake.

    Args:
        name: Of the column.
        values: One cell a graph.
        kind: ``classes``, ``numbers``, or ``auto``.
        classes: The classes' names in their order; by default those found, sorted.
        place: Says in messages where a cell stands.

    Returns:
        The target, and its value for each graph: the number, or the place of the class among the
        classes; NaN where the cell is blank.
    """
    if kind not in KINDS:
        raise LookHopsError(f"{name}: a target is one of {', '.join(KINDS)}, not {kind!r}.")
    cells = [value.strip() if isinstance(value, str) else value for value in values]
    filled = [i for i, cell in enumerate(cells) if not is_blank(cell)]
    if not filled:
        raise LookHopsError(f"{name}: no graph has a value; choose another column.")
    found = np.full(len(cells), np.nan)
    numbers = [as_number(cells[i]) for i in filled]
    what, fits = NUMBERS.get(kind, NUMBERS["numbers"])
    for i, number in zip(filled, numbers, strict=True):
        if kind in NUMBERS if number is None else not fits(number):
            raise LookHopsError(
                f"{place(i)}: {str(cells[i])!r} of {name!r} is not {what}; mend it, or leave it "
                "blank."
            )
    if kind == "auto" and classes is None:
        kind = _kind_of(name, {i: cells[i] for i in filled}, numbers, place)
    if kind in NUMBERS:
        found[filled] = np.array(numbers, dtype=float)
        return Target(name, kind=kind), found
    texts = _class_texts([cells[i] for i in filled], [None] if classes else numbers)
    order = tuple(classes or _found_classes(name, texts))
    number_of = {text: number for number, text in enumerate(order)}
    for i, text in zip(filled, texts, strict=True):
        if text not in number_of:
            raise LookHopsError(
                f"{place(i)}: {text!r} of {name!r} is not a class; the classes are "
                f"{', '.join(order)}."
            )
        found[i] = number_of[text]
    return Target(name, order), found


def _kind_of(
    name: str,
    cells: Mapping[int, Any],
    numbers: Sequence[float | None],
    place: Callable[[int], str],
) -> str:
    """Whether cells are numbers or classes; refuses a column of numbers in which some are text."""
    strays = [i for i, number in zip(cells, numbers, strict=True) if number is None]
    meant = {i: found for i in strays if (found := meant_as_number(cells[i])) is not None}
    values = [*(number for number in numbers if number is not None), *meant.values()]
    if 2 * len(values) <= len(cells) or not _are_many(values):
        return "classes"
    if strays:
        strays.sort(key=meant.__contains__)  # what is furthest from a number is named first
        named = [f"{str(cells[i])!r} ({place(i)})" for i in strays[:SHOWN]]
        if len(strays) > SHOWN:
            named.append(f"{len(strays) - SHOWN:,} more")
        but = "look like numbers, but cannot all be read:" if meant else "are numbers, but not"
        how = f" ({PLAINLY})" if meant else ""
        few = len({str(cell) for cell in cells.values()}) <= max(MANY_CLASSES, len(cells) // 2)
        ways = "leave them blank, or learn all as classes (--task classes)"
        raise LookHopsError(
            f"{name!r}: {len(values):,} of {len(cells):,} values {but} {joined(named)}; mend "
            f"them{how}, {ways if few else 'or leave them blank'}."
        )
    return "numbers"


def _found_classes(name: str, texts: Sequence[str]) -> tuple[str, ...]:
    """The classes of a column whose user names none: numbers by size, text by letter."""
    different = set(texts)
    if len(different) > max(MANY_CLASSES, len(texts) // 2):
        raise LookHopsError(
            f"{name!r} has {len(different)} different values for {len(texts)} graphs, so they are "
            "not classes; choose another column (--target), or sort the values into a few classes "
            "first."
        )
    numbers = {text: as_number(text) for text in different}
    by_size = None not in numbers.values()
    return tuple(sorted(different, key=lambda text: (numbers[text] or 0.0) if by_size else text))


def pack_targets(columns: Sequence[tuple[Target, NDArray[np.float64]]]) -> dict[str, Any]:
    """The fields ``y`` and ``targets`` of :class:`~lookhops.graphs.Graphs` for these targets.

    One target of classes is whole numbers, -1 where blank; others are float64, NaN there.
    """
    targets, values = zip(*columns, strict=True)
    y = torch.from_numpy(np.stack(values, axis=1)).double()
    if len(targets) == 1:
        y = y.flatten().nan_to_num(-1).long() if targets[0].classes else y.flatten()
    return {"y": y, "targets": targets}


def targets_of(y: Tensor | None, class_names: Sequence[str] | None = None) -> tuple[Target, ...]:
    """What a tensor of targets is about, where nobody says: whole numbers are classes."""
    if y is None:
        return (Target("class", tuple(class_names)),) if class_names else ()
    if y.dim() > 1:
        return tuple(Target(f"target {j}") for j in range(y.shape[1]))
    if y.is_floating_point():
        return (Target("value"),)
    if class_names is None:
        class_names = [str(c) for c in range(int(y.max()) + 1 if y.numel() else 0)]
    return (Target("class", tuple(class_names)),)


def target_columns(
    y: Tensor | None, targets: Sequence[Target]
) -> list[tuple[Target, NDArray[Any]]]:
    """Each target with its value for each graph, float64: NaN where it is blank."""
    if y is None:
        return []
    table = y.cpu().double().view(len(y), len(targets))
    if not y.is_floating_point():
        table = torch.where(table < 0, torch.nan, table)
    return list(zip(targets, table.numpy().T, strict=True))


def class_names_of(values: Iterable[Any], names: Sequence[str] | None) -> list[Any]:
    """Cells of classes; where the classes have ``names``, a whole number is a place among them."""
    if names is None:
        return list(values)
    cells = []
    for value in values:
        if type(value) is int and not 0 <= value < len(names):
            count = counted(len(names), "name")
            raise LookHopsError(f"class_names has {count}, so {value} is no class.")
        cells.append(names[value] if type(value) is int else value)
    return cells


def columns_of_rows(values: Iterable[Any]) -> list[list[Any]]:
    """A column for each target of what graphs carry as ``y``, one cell a graph; None is a blank.

    Args:
        values: A value or a row of several for each graph, or None; tensors and arrays too.
    """
    plain = [value.tolist() if hasattr(value, "tolist") else value for value in values]
    rows = [[] if v is None else [*v] if isinstance(v, list | tuple) else [v] for v in plain]
    width = next((len(row) for row in rows if row), 0)
    for number, row in enumerate(rows):
        if row and len(row) != width:
            raise LookHopsError(
                f"Graph {number}: y must be one class, one number, or a row of {width} as in the "
                f"other graphs (found {row}); pass y=None to leave it out, or another as y=..."
            )
    return [[row[j] if row else None for row in rows] for j in range(width)]


def one_target_each(graphs: Graphs) -> list[Graphs]:
    """The same graphs with each of their targets alone; as they are where they have at most one."""
    if graphs.y is None or len(graphs.targets) < 2:
        return [graphs]
    columns = target_columns(graphs.y, graphs.targets)
    return [replace(graphs, **pack_targets([column])) for column in columns]


def known_targets(y: Tensor) -> Tensor:
    """Where a target has a value, shape of ``y``."""
    return ~y.isnan() if y.is_floating_point() else y >= 0


def are_sound(y: Tensor | None, targets: Sequence[Target], count: int) -> bool:
    """Whether ``y`` holds, for so many graphs, what the targets say."""
    if y is None:
        return True
    one_of_classes = len(targets) == 1 and bool(targets[0].classes)
    shape = (count,) if len(targets) == 1 else (count, len(targets))
    if y.shape != shape or y.dtype != (torch.long if one_of_classes else torch.float64):
        return False
    for target, column in target_columns(y, targets):
        filled = column[~np.isnan(column)]
        if not NUMBERS.get(target.kind, NUMBERS["numbers"])[1](filled).all():
            return False
        if target.classes and not np.isin(filled, np.arange(len(target.classes))).all():
            return False
    return one_of_classes is False or y.numel() == 0 or int(y.min()) >= -1


def _are_many(values: Sequence[float]) -> bool:
    """Whether there are more different numbers than a column of classes has."""
    different = np.unique(values)
    whole = bool(np.all(different == np.round(different)))
    return len(different) > (MANY_CLASSES if whole else min(MANY_CLASSES, len(values) // 2))


def _class_texts(cells: Sequence[Any], numbers: Sequence[float | None]) -> list[str]:
    """The names of cells as classes: where all are numbers, 1 and 1.0 are the same class."""
    values = [number for number in numbers if number is not None]
    if len(values) < len(cells):
        return [str(cell) for cell in cells]
    whole = all(value == round(value) for value in values)
    return [str(int(value)) if whole else str(value) for value in values]

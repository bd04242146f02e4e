"""Splits of a set of graphs into training, validation and test parts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lookhops.errors import LookHopsError
from lookhops.files import read_bytes, replacing
from lookhops.graphs import Graphs

PARTS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Split:
    """Numbers of the graphs to train on, to stop by and to test on, each a 1-D tensor."""

    train: Tensor
    val: Tensor
    test: Tensor


def split(
    graphs: Graphs | int,
    seed: int,
    fractions: Sequence[float] = (0.8, 0.1, 0.1),
    stratify: bool = False,
) -> Split:
    r"""Split :math:`g` graphs at random: the same split for the same seed on every machine.

    With fractions :math:`(a, b, c)`, the first :math:`\lfloor a g \rfloor` graphs of a seeded
    permutation are for training, the next :math:`\lfloor b g \rfloor` for validation and all the
    rest for testing.

    Args:
        graphs: The graphs, or how many there are.
        seed: Any whole number from 0.
        fractions: Of training, validation and test, together 1.
        stratify: Also keep the classes' proportions in every part, to within one graph or two.
    """
    count = graphs if isinstance(graphs, int) else len(graphs)
    if len(fractions) != 3 or min(fractions) < 0 or abs(sum(fractions) - 1) > 1e-6:
        raise LookHopsError(f"Fractions of a split are three and sum to 1, not {fractions}.")
    if seed < 0:
        raise LookHopsError(f"The seed of a split is a whole number from 0, not {seed}.")
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    if stratify:
        if isinstance(graphs, int) or graphs.y is None:
            raise LookHopsError("Graphs without classes cannot be split by class.")
        order = order[_interleave(graphs.y.cpu()[order])]
    # Without the small number, 0.1 * 30 and the like could fall just below a whole number.
    first, second = (int(fraction * count + 1e-9) for fraction in fractions[:2])
    parts = order.split([first, second, count - first - second])
    for part, name, fraction in zip(parts, PARTS, fractions, strict=True):
        if fraction > 0 and not part.numel():
            raise LookHopsError(f"{count} graphs are too few: the {name} part would be empty.")
    return Split(*parts)


def _interleave(y: Tensor) -> Tensor:
    """An order in which every stretch holds the classes in their proportions.

    The j-th of the m graphs of a class goes to the place (j + 1/2) / m between 0 and 1.
    """
    by_class = y.argsort(stable=True)
    sizes = y.bincount()
    rank = torch.arange(len(y)) - (sizes.cumsum(0) - sizes)[y[by_class]]
    place = torch.empty(len(y), dtype=torch.float64)
    place[by_class] = (rank.double() + 0.5) / sizes[y[by_class]]
    return place.argsort(stable=True)


def read_splits(path: Path | str, num_graphs: int) -> list[Split]:
    """Read splits from JSON: a list of ``{"train": [...], "val": [...], "test": [...]}``.

    Graphs are numbered from 0. No graph may stand in two parts of a split, or twice in one; graphs
    that stand in none are left out.
    """
    try:
        content = json.loads(read_bytes(Path(path)).decode())
    except json.JSONDecodeError as error:
        raise LookHopsError(f"{path}, line {error.lineno}: not JSON ({error.msg}).") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise LookHopsError(f"{path}: cannot be read ({error}).") from error
    if not isinstance(content, list) or not content:
        raise LookHopsError(f"{path}: expected a list of splits, and at least one.")
    return [
        _checked(entry, f"{path}, split {number}", num_graphs)
        for number, entry in enumerate(content, 1)
    ]


def _checked(entry: Any, where: str, num_graphs: int) -> Split:
    if not isinstance(entry, dict) or any(part not in entry for part in PARTS):
        raise LookHopsError(f'{where}: expected {{"train": [...], "val": [...], "test": [...]}}.')
    part_of: dict[int, str] = {}
    for part in PARTS:
        numbers = entry[part]
        if not isinstance(numbers, list) or not numbers:
            raise LookHopsError(f"{where}: {part} must be a list of graph numbers, not empty.")
        for number in numbers:
            if type(number) is not int or not 0 <= number < num_graphs:
                raise LookHopsError(
                    f"{where}: {part} has {json.dumps(number)}, which is not the number of a "
                    f"graph; they go from 0 to {num_graphs - 1}."
                )
            if number in part_of:
                other = f"in {part_of[number]} too" if part_of[number] != part else "there twice"
                raise LookHopsError(f"{where}: graph {number} of {part} is {other}.")
            part_of[number] = part
    return Split(*(torch.tensor(entry[part], dtype=torch.long) for part in PARTS))


def write_splits(path: Path | str, splits: Sequence[Split]) -> None:
    """Write splits as :func:`read_splits` reads them."""
    content = [{part: getattr(one, part).tolist() for part in PARTS} for one in splits]
    with replacing(path) as part_file:
        part_file.write_text(json.dumps(content) + "\n", encoding="utf-8")

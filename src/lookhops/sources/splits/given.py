"""Splits that are given: a file of them, or a test set that came apart."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.files import read_bytes, replacing
from lookhops.core.reading import called
from lookhops.graphs import Graphs
from lookhops.graphs.choosing import concatenate
from lookhops.graphs.columns import SAME, completed, in_columns
from lookhops.graphs.targets import Target, pack_targets, read_target, target_columns
from lookhops.sources.splits.split import PARTS, Split, codes_of, parsed
from lookhops.sources.targets import target_cells

#: The form of Errica et al.: the parts for training and validation stand in a list within.
INNER = "model_selection"
EXPECTED = (
    'expected {"train": [...], "val": [...], "test": [...]}, or {"test": [...], '
    '"model_selection": [{"train": [...], "validation": [...]}]}'
)


def read_splits(path: Path | str, graphs: Graphs | int) -> list[Split]:
    """Read splits from JSON: a list of ``{"train": [...], "val": [...], "test": [...]}``.

    The folds that Errica et al. published are read as they are: a list of ``{"test": [...],
    "model_selection": [{"train": [...], "validation": [...]}]}``, of which the first inner pair is
    taken. Graphs are numbered from 0, or named by their ids (texts). No graph may stand in two
    parts of a split, or twice in one; graphs that stand in none are left out.

    Args:
        path: The file.
        graphs: The graphs, or how many there are.
    """
    try:
        content = json.loads(read_bytes(Path(path)).decode())
    except json.JSONDecodeError as error:
        raise LookHopsError(f"{path}, line {error.lineno}: not JSON ({error.msg}).") from error
    except (ValueError, RecursionError) as error:
        raise LookHopsError(f"{path}: cannot be read ({error}).") from error
    if not isinstance(content, list) or not content:
        raise LookHopsError(f"{path}: expected a list of splits, and at least one.")
    find, found = _finder(graphs), []
    for count, entry in enumerate(content, 1):
        where = f"{path}, split {count}"
        found.append(_checked(_parts(entry, where), where, find))
    return found


def _parts(entry: Any, where: str) -> dict[str, Any]:
    """The three lists of an entry in either form."""
    inner = entry.get(INNER) if isinstance(entry, dict) else None
    if isinstance(inner, list) and inner and isinstance(inner[0], dict):
        train, val = inner[0].get("train"), inner[0].get("validation")
        entry = {"train": train, "val": val, "test": entry.get("test")}
    if not isinstance(entry, dict) or any(part not in entry for part in PARTS):
        raise LookHopsError(f"{where}: {EXPECTED}.")
    return entry


def _finder(graphs: Graphs | int) -> Callable[[Any, str], int]:
    """Finds the number of a graph by what a file calls it."""
    count = graphs if isinstance(graphs, int) else len(graphs)
    ids = [] if isinstance(graphs, int) else [str(name) for name in graphs.columns.get("id", ())]
    by_id = {name: number for number, name in enumerate(ids)}
    skipped = 0 if isinstance(graphs, int) else len(graphs.skipped)

    def find(name: Any, where: str) -> int:
        if isinstance(name, str) and by_id:
            if len(by_id) < len(ids):
                raise LookHopsError(f"{where}: graphs are named by id, but their ids repeat.")
            if name not in by_id:
                raise LookHopsError(f"{where} has {json.dumps(name)}, which is no graph's id.")
            return by_id[name]
        if type(name) is not int or not 0 <= name < count:
            raise LookHopsError(
                f"{where} has {json.dumps(name)}, which is not the number of a graph; they go from "
                f"0 to {count - 1}."
            )
        if skipped:
            raise LookHopsError(
                f"{where}: graphs are numbered, but {skipped} rows of the source were skipped, so "
                "the numbers may mean others; name the graphs by their ids."
            )
        return name

    return find


def _checked(entry: Mapping[str, Any], where: str, find: Callable[[Any, str], int]) -> Split:
    part_of: dict[int, str] = {}
    for part in PARTS:
        if not isinstance(entry[part], list) or not entry[part]:
            raise LookHopsError(f"{where}: {part} must be a list of graph numbers, not empty.")
        for name in entry[part]:
            number = find(name, f"{where}: {part}")
            if number in part_of:
                other = f"in {part_of[number]} too" if part_of[number] != part else "there twice"
                raise LookHopsError(f"{where}: graph {name} of {part} is {other}.")
            part_of[number] = part
    return Split(*(torch.tensor([n for n in part_of if part_of[n] == part]) for part in PARTS))


def write_splits(path: Path | str, splits: Sequence[Split]) -> None:
    """Write splits as :func:`read_splits` reads them."""
    content = [{part: getattr(one, part).tolist() for part in PARTS} for one in splits]
    with replacing(path) as part_file:
        part_file.write_text(json.dumps(content) + "\n", encoding="utf-8")


# -------------------------------------------------------------------- a test set


def with_test_set(graphs: Graphs, test: Graphs) -> tuple[Graphs, Tensor]:
    """Both as one set, and the numbers of the test graphs in it.

    Test graphs have the same features and targets; classes are found by name, and molecules that
    are the same in both are marked as such.
    """
    if graphs.y is None or test.y is None or not len(test):
        raise LookHopsError(
            f"{test.name}: a test set has graphs with the targets of {graphs.name}."
        )
    test = replace(test, **pack_targets([target_in(one, test) for one in graphs.targets]))
    both = concatenate(_alike(graphs, test))
    columns = {
        name: np.concatenate((column, test.columns[name]))
        for name, column in graphs.columns.items()
        if name in test.columns and name != SAME
    }
    if "smiles" in columns:
        from rdkit.Chem import MolToSmiles

        columns[SAME] = codes_of(map(MolToSmiles, map(parsed, columns["smiles"]))).numpy()
    return replace(both, columns=columns), torch.arange(len(graphs), len(both))


def _alike(graphs: Graphs, test: Graphs) -> list[Graphs]:
    """Both with the features of whole graphs of the first, with the values of either."""
    if not graphs.whole.width or graphs.whole.names.are_unknown:
        return [graphs, test]
    wanted = graphs.whole.names
    found = completed(test, wanted)
    each = []
    for one, whole in ((graphs, graphs.whole), (test, found)):
        missing = [name for name in wanted.features if name not in whole.names.features]
        if missing:
            raise LookHopsError(f"{test.name}: there is no {missing[0]!r}, which is a feature.")
        each.append(replace(one, whole=in_columns(whole, wanted, found.names)))
    return each


def target_in(target: Target, test: Graphs) -> tuple[Target, NDArray[np.float64]]:
    """A target, and its values in other graphs: classes by their names, numbers as they are."""
    assert test.y is not None
    found = {other.name: (other, values) for other, values in target_columns(test.y, test.targets)}
    name = called(target.name, found)
    if name is None:
        others = ", ".join(found)
        raise LookHopsError(f"{test.name}: there is no target {target.name!r}; it has {others}.")
    other, values = found[name]
    if (other.kind, other.classes) == (target.kind, target.classes):
        return target, values
    cells, place = target_cells(other, values), f"{test.name}, graph {{}}".format
    return read_target(target.name, cells, target.kind, target.classes or None, place)

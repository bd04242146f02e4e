"""What splits are drawn by: groups that stay in one part, and times that put graphs in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from math import isfinite
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.reading import called
from lookhops.graphs import Graphs
from lookhops.graphs.columns import SAME
from lookhops.graphs.targets import is_blank
from lookhops.sources.splits.split import PARTS, divide, labelled


def codes_of(values: Iterable[object]) -> Tensor:
    """Equal values as equal whole numbers from 0."""
    texts = np.array([str(value) for value in values], dtype=object)
    return torch.from_numpy(np.unique(texts, return_inverse=True)[1].astype(np.int64).reshape(-1))


def same_graphs(graphs: Graphs) -> Tensor | None:
    """The group of each graph, where the source knows that some graphs are the same."""
    known = graphs.columns.get(SAME)
    if known is None or not len(known):
        return None
    codes = codes_of(known)
    return codes if int(codes.max()) + 1 < len(graphs) else None


def column_of(graphs: Graphs, name: str, option: str) -> np.ndarray:
    """A column of the source, or a sentence that says which there are."""
    if called(name, graphs.whole.names.features):
        raise LookHopsError(
            f"{graphs.name}: {name!r} decides the split ({option}), so it is no feature; leave it "
            "out of features (--features)."
        )
    found = called(name, graphs.columns)
    if found is None:
        known = ", ".join(graphs.columns) or "none"
        raise LookHopsError(
            f"{graphs.name}: {option} asks for the column {name!r}; the columns are: {known}."
        )
    return graphs.columns[found]


def smiles_of(graphs: Graphs) -> np.ndarray:
    """The SMILES of molecules."""
    if "smiles" not in graphs.columns:
        raise LookHopsError(
            f"{graphs.name}: a scaffold split is for molecules; these graphs have no SMILES."
        )
    return graphs.columns["smiles"]


def canonical(smiles: object) -> str:
    """The canonical SMILES of a molecule."""
    from rdkit import Chem

    return Chem.MolToSmiles(_molecule(smiles))


def _molecule(smiles: object) -> Any:
    """The molecule of a SMILES, which may not have been parsed before."""
    from rdkit import Chem, rdBase

    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(str(smiles))
    if molecule is None:
        raise LookHopsError(f"{str(smiles)!r} is not the SMILES of a molecule; mend it.")
    return molecule


def scaffolds(graphs: Graphs) -> Tensor:
    """The group of each molecule by its Bemis-Murcko scaffold: its rings and what joins them.

    Molecules without a ring have no scaffold in common with others: each is a group of its own,
    with those whose canonical SMILES is the same.
    """
    from rdkit import Chem
    from rdkit.Chem.Scaffolds import MurckoScaffold

    found = []
    for molecule in map(_molecule, smiles_of(graphs)):
        scaffold = MurckoScaffold.MurckoScaffoldSmiles(mol=molecule)
        found.append(scaffold or f"acyclic {Chem.MolToSmiles(molecule)}")
    return codes_of(found)


def joined_groups(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    """Groups that keep together what either keeps together."""
    if first is None or second is None:
        return second if first is None else first
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    size = int(first.max()) + 1
    shape = (total := size + int(second.max()) + 1, total)
    pairs = (first.numpy(), size + second.numpy())
    links = coo_array((np.ones(len(first)), pairs), shape=shape)
    return torch.from_numpy(connected_components(links)[1].astype(np.int64))[first]


def folds_of_groups(groups: np.ndarray, folds: int, seed: int) -> np.ndarray:
    """The fold of each graph: groups stay whole, and folds have about the same size.

    The largest group comes first, those of one size in an order that the seed decides; each goes to
    the fold that is smallest so far. (Scikit-learn's ``GroupKFold`` does so without a seed; with
    one its folds have as many groups, not as many graphs.)
    """
    _, code, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if len(sizes) < folds:
        raise LookHopsError(f"{len(sizes)} groups of graphs cannot make {folds} folds.")
    order = np.random.default_rng(seed).permutation(len(sizes))
    totals, place = np.zeros(folds, dtype=np.int64), np.empty(len(sizes), dtype=np.int64)
    for group in order[np.argsort(-sizes[order], kind="stable")]:
        place[group] = totals.argmin()
        totals[place[group]] += sizes[group]
    return place[code]


# -------------------------------------------------------------------- parts that a column names

#: What a column may call the parts.
WORDS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}


def named_parts(graphs: Graphs, name: str) -> dict[str, Tensor]:
    """The parts that a column names; where it names no validation part, ``train`` stays open."""
    column = column_of(graphs, name, f"--split column:{name}")
    found: dict[str, list[int]] = {part: [] for part in PARTS}
    for number, value in enumerate(column):
        word = WORDS.get(str(value).strip().lower())
        if word is None:
            raise LookHopsError(
                f"{graphs.name}: {str(value)!r} in the column {name!r} is no part; a part is "
                "called train, val or test."
            )
        found[word].append(number)
    for part in ("train", "test"):
        if not found[part]:
            raise LookHopsError(f"{graphs.name}: the column {name!r} names no {part} part.")
    parts = {part: torch.tensor(numbers) for part, numbers in found.items() if numbers}
    if "val" not in parts:
        del parts["train"]
    return parts


def parts_in_time(graphs: Graphs, name: str, fractions: Sequence[float]) -> dict[str, Tensor]:
    """The earliest graphs to train on, the latest to test on; those of one time stay together."""
    known = labelled(graphs)
    times = times_of(graphs, name, known)
    groups = torch.zeros(len(graphs), dtype=torch.long)
    groups[known] = times.unique(return_inverse=True)[1]
    order = known[times.argsort(stable=True)]
    return dict(zip(PARTS, divide(order, fractions, PARTS, groups, in_order=True), strict=True))


def times_of(graphs: Graphs, name: str, which: Tensor) -> Tensor:
    """The time of each of these graphs, as numbers that can be ordered, float64.

    Args:
        graphs: The graphs.
        name: Of the column: numbers, or ISO dates where the first value is no number.
        which: Numbers of the graphs.
    """
    column = column_of(graphs, name, f"--split time:{name}")
    cells = [(number, str(column[number]).strip()) for number in which.tolist()]
    as_numbers = bool(cells) and _read(float, cells[0][1]) is not None
    read, kind = (float, "number") if as_numbers else (_date, "ISO date such as 2024-05-31")
    found = []
    for number, cell in cells:
        value = None if is_blank(cell) else _read(read, cell)
        if value is None:
            what = "is blank" if is_blank(cell) else f"has {cell!r}, which is no {kind}"
            graph = graphs.columns["id"][number] if "id" in graphs.columns else number
            raise LookHopsError(
                f"{graphs.name}: the column {name!r} of graph {graph} {what}; a split by time "
                "takes numbers, or ISO dates."
            )
        found.append(value)
    return torch.tensor(found, dtype=torch.float64)


def _read(read: Callable[[str], float], cell: str) -> float | None:
    """What a cell says; none where it cannot be read."""
    try:
        value = read(cell)
    except (ValueError, OverflowError):
        return None
    return value if isfinite(value) else None


def _date(cell: str) -> float:
    """Seconds since 1970; a month is its first day, and what names no zone is in UTC."""
    day = f"{cell}-01" if re.fullmatch(r"\d{4}-\d{2}", cell) else cell
    found = datetime.fromisoformat(day)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()

"""One split of a set of graphs, and the groups, times and columns that it is drawn by."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.reading import called
from lookhops.core.words import counted
from lookhops.graphs import Graphs
from lookhops.graphs.columns import SAME
from lookhops.graphs.targets import is_blank, known_targets

PARTS = ("train", "val", "test")
#: What a column may call the parts.
WORDS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}


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
    groups: Tensor | None = None,
) -> Split:
    r"""Split :math:`g` graphs at random: the same split for the same seed on every machine.

    With fractions :math:`(a, b, c)`, the first :math:`\lfloor a g \rfloor` graphs of a seeded
    permutation are for training, the next :math:`\lfloor b g \rfloor` for validation and all the
    rest for testing. With groups the parts have about these sizes: see :func:`divide`.

    Args:
        graphs: The graphs, or how many there are.
        seed: Any whole number from 0.
        fractions: Of training, validation and test, together 1.
        stratify: Also keep the classes' proportions in every part, to within one graph or two.
        groups: The group of each graph, whole numbers, shape (g): graphs of one group stay in one
            part.
    """
    count = graphs if isinstance(graphs, int) else len(graphs)
    if len(fractions) != 3 or min(fractions) < 0 or abs(sum(fractions) - 1) > 1e-6:
        raise LookHopsError(f"Fractions of a split are three and sum to 1, not {fractions}.")
    order = seeded_order(count, seed)
    if stratify:
        order = order[interleaved(class_codes(graphs)[order])]
    return Split(*divide(order, fractions, PARTS, groups))


def seeded_order(count: int, seed: int) -> Tensor:
    """Numbers from 0 in an order that the seed alone decides."""
    if seed < 0:
        raise LookHopsError(f"The seed of a split is a whole number from 0, not {seed}.")
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed))


def labelled(graphs: Graphs) -> Tensor:
    """Numbers of the graphs that have a target; all of them where none are known."""
    if graphs.y is None:
        return torch.arange(len(graphs))
    has_target = known_targets(graphs.y.cpu())
    return (has_target if has_target.dim() == 1 else has_target.any(1)).nonzero().flatten()


def has_classes(graphs: Graphs) -> bool:
    """Whether the graphs have one target, and it is a class."""
    return graphs.y is not None and graphs.y.dim() == 1 and not graphs.y.is_floating_point()


def class_codes(graphs: Graphs | int) -> Tensor:
    """The class of each graph from 0, shape (g); graphs without one make a class of their own."""
    if isinstance(graphs, int) or graphs.y is None or not has_classes(graphs):
        raise LookHopsError("Graphs without classes cannot be split by class.")
    return graphs.y.cpu().unique(return_inverse=True)[1]


def interleaved(codes: Tensor) -> Tensor:
    """An order in which every stretch holds the classes in their proportions.

    The j-th of the m graphs of a class goes to the place (j + 1/2) / m between 0 and 1.
    """
    by_class = codes.argsort(stable=True)
    sizes = codes.bincount()
    rank = torch.arange(len(codes)) - (sizes.cumsum(0) - sizes)[codes[by_class]]
    place = torch.empty(len(codes), dtype=torch.float64)
    place[by_class] = (rank.double() + 0.5) / sizes[codes[by_class]]
    return place.argsort(stable=True)


def divide(
    order: Tensor,
    fractions: Sequence[float],
    names: Sequence[str] = PARTS,
    groups: Tensor | None = None,
    in_order: bool = False,
) -> list[Tensor]:
    """Cut an order of graphs into consecutive parts of these fractions; the last takes the rest.

    Groups (one number for each graph of the set) stay whole: a group stands where its first graph
    stands, and belongs to the part in which its middle falls. Unless all stay ``in_order``, groups
    of more than half of a later part come first, so that they are trained on (as in Chemprop's
    balanced scaffold split). Each part gets a group at least.
    """
    count = len(order)
    # Without the small number, 0.1 * 30 and the like could fall just below a whole number.
    sizes = [int(fraction * count + 1e-9) for fraction in fractions[:-1]]
    sizes.append(count - sum(sizes))
    ends = np.cumsum(sizes[:-1])
    if groups is not None:
        order, ends = _with_whole_groups(order, sizes, groups[order].numpy(), in_order)
    parts = list(order.tensor_split(torch.from_numpy(ends)))
    for part, name, fraction in zip(parts, names, fractions, strict=True):
        if fraction > 0 and not part.numel():
            what = counted(count, "graph")
            if groups is not None:
                kinds = len(groups[order].unique())
                what = f"{counted(kinds, 'group')} of {count} graphs that stay together"
            raise LookHopsError(f"{what}: too few, the {name} part would be empty.")
    return parts


def _with_whole_groups(
    order: Tensor, sizes: Sequence[int], codes: np.ndarray, in_order: bool
) -> tuple[Tensor, np.ndarray]:
    """The order with groups side by side, and where parts of about these sizes end in it."""
    _, first, unit, members = np.unique(
        codes, return_index=True, return_inverse=True, return_counts=True
    )
    later = [size for size in sizes[1:] if size]
    large = (members > min(later, default=0) / 2) & (not in_order)
    rank = np.lexsort((first, ~large)).argsort()  # of each group in the new order
    sequence = members[rank.argsort()]
    stop = sequence.cumsum()
    cuts = np.searchsorted(stop - sequence / 2, np.cumsum(sizes[:-1]))
    for i in reversed(range(len(cuts))):  # no later part that was asked for is without a group
        after = cuts[i + 1] if i + 1 < len(cuts) else len(sequence)
        cuts[i] = min(cuts[i], after - (sizes[i + 1] > 0))
    ends = np.concatenate(([0], stop))[cuts.clip(min=0)]
    return order[torch.from_numpy(rank[unit].argsort(kind="stable"))], ends


# -------------------------------------------------------------------- groups that stay in one part


def codes_of(values: Iterable[object]) -> Tensor:
    """Equal values as equal whole numbers from 0."""
    texts = np.array([str(value) for value in values], dtype=object)
    return torch.from_numpy(np.unique(texts, return_inverse=True)[1].astype(np.int64).reshape(-1))


def same_graphs(graphs: Graphs) -> Tensor | None:
    """The group of each graph, where the source knows that some graphs are the same."""
    column = graphs.columns.get(SAME)
    if column is None or not len(column):
        return None
    codes = codes_of(column)
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
        names = ", ".join(graphs.columns) or "none"
        raise LookHopsError(
            f"{graphs.name}: {option} asks for the column {name!r}; the columns are: {names}."
        )
    return graphs.columns[found]


def smiles_of(graphs: Graphs) -> np.ndarray:
    """The SMILES of molecules, or a sentence that there are none."""
    if "smiles" not in graphs.columns:
        raise LookHopsError(
            f"{graphs.name}: a scaffold split is for molecules; these graphs have no SMILES."
        )
    return graphs.columns["smiles"]


def parsed(smiles: object) -> Any:
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
    for molecule in map(parsed, smiles_of(graphs)):
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

    As scikit-learn's ``GroupKFold``, but groups of one size come in an order that the seed decides.
    (With a seed, folds of ``GroupKFold`` have as many groups, not as many graphs.)
    """
    _, code, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    if len(sizes) < folds:
        raise LookHopsError(f"{len(sizes)} groups of graphs cannot make {folds} folds.")
    order = np.random.default_rng(seed).permutation(len(sizes))
    totals, place = np.zeros(folds, dtype=np.int64), np.empty(len(sizes), dtype=np.int64)
    for group in order[np.argsort(-sizes[order], kind="stable")]:  # to the smallest fold so far
        place[group] = totals.argmin()
        totals[place[group]] += sizes[group]
    return place[code]


# -------------------------------------------------------------------- parts that a column names


def named_parts(graphs: Graphs, name: str) -> dict[str, Tensor]:
    """The parts that a column names; where it names no validation part, ``train`` stays open."""
    column = column_of(graphs, name, f"--split column:{name}")
    parts = [WORDS.get(str(value).strip().lower()) for value in column]
    if None in parts:
        raise LookHopsError(
            f"{graphs.name}: {str(column[parts.index(None)])!r} in the column {name!r} is no part; "
            "a part is called train, val or test."
        )
    found = {part: [n for n, one in enumerate(parts) if one == part] for part in PARTS}
    for part in ("train", "test"):
        if not found[part]:
            raise LookHopsError(f"{graphs.name}: the column {name!r} names no {part} part.")
    if not found["val"]:
        found = {"test": found["test"]}
    return {part: torch.tensor(numbers) for part, numbers in found.items()}


def parts_in_time(graphs: Graphs, name: str, fractions: Sequence[float]) -> dict[str, Tensor]:
    """The earliest graphs to train on, the latest to test on; those of one time stay together."""
    numbers = labelled(graphs)
    times = times_of(graphs, name, numbers)
    groups = torch.zeros(len(graphs), dtype=torch.long)
    groups[numbers] = times.unique(return_inverse=True)[1]
    order = numbers[times.argsort(stable=True)]
    return dict(zip(PARTS, divide(order, fractions, PARTS, groups, in_order=True), strict=True))


def times_of(graphs: Graphs, name: str, which: Tensor) -> Tensor:
    """The time of each of these graphs, as numbers that can be ordered, float64.

    The column holds numbers, or ISO dates where its first value is no number.
    """
    column = column_of(graphs, name, f"--split time:{name}")
    cells = [(number, str(column[number]).strip()) for number in which.tolist()]
    as_numbers = bool(cells) and _finite(float, cells[0][1]) is not None
    read, kind = (float, "number") if as_numbers else (_date, "ISO date such as 2024-05-31")
    found = [_finite(read, cell) for _, cell in cells]
    for (number, cell), time in zip(cells, found, strict=True):
        if time is None:
            what = "is blank" if is_blank(cell) else f"has {cell!r}, which is no {kind}"
            raise LookHopsError(
                f"{graphs.name}: the column {name!r} of graph {graphs.ids[number]} {what}; a split "
                "by time takes numbers, or ISO dates."
            )
    return torch.tensor(found, dtype=torch.float64)


def _finite(read: Callable[[str], float], cell: str) -> float | None:
    with suppress(ValueError, OverflowError):
        return value if isfinite(value := read(cell)) else None
    return None


def _date(cell: str) -> float:
    """Seconds since 1970; a month is its first day, and what names no zone is in UTC."""
    day = f"{cell}-01" if re.fullmatch(r"\d{4}-\d{2}", cell) else cell
    found = datetime.fromisoformat(day)
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()

"""One split of a set of graphs into training, validation and test parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.words import counted
from lookhops.graphs import Graphs
from lookhops.graphs.targets import known_targets

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
    known = known_targets(graphs.y.cpu())
    return (known if known.dim() == 1 else known.any(1)).nonzero().flatten()


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
    """Cut an order of graphs into consecutive parts, the last of which takes the rest.

    Groups stay whole: a group stands where its first graph stands, and belongs to the part in which
    its middle falls. Groups of more than half of a later part come first, so that they are trained
    on (as in Chemprop's balanced scaffold split), and each part gets a group at least.

    Args:
        order: Numbers of the graphs.
        fractions: Of each part, together 1.
        names: Of the parts, for errors.
        groups: The group of each graph of the set, not of the order alone.
        in_order: Whether large groups too stay where they stand.
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

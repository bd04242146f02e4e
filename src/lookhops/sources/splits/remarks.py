"""What is worth a warning about splits: parts that share graphs, classes with few of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lookhops.core.words import agreeing, counted, joined
from lookhops.graphs import Graphs
from lookhops.graphs.targets import one_target_each
from lookhops.sources.splits.groups import same_graphs
from lookhops.sources.splits.split import Split, has_classes, labelled

PART_NAMES = {"train": "training", "val": "validation", "test": "test"}
#: A class with fewer graphs than this in a part is worth a warning, which names so many classes.
FEW, SHOWN = 5, 5


def shared_graphs(graphs: Graphs, splits: Sequence[Split]) -> list[str]:
    """How many graphs of another part are the same as one in the training part; the most.

    Parts that are drawn share none; those that the user gave are left as they are.
    """
    same, known = same_graphs(graphs), labelled(graphs)
    if same is None:
        return []
    said, total, differ = [], 0, False
    for part in ("test", "val"):
        counts = []
        for split in splits:
            tested, trained = (n[torch.isin(n, known)] for n in (getattr(split, part), split.train))
            counts.append((int(torch.isin(same[tested], same[trained]).sum()), len(tested)))
        count, size = max(counts)
        differ |= len(set(counts)) > 1
        if count:
            said.append(f"{count:,} of {counted(size, f'{PART_NAMES[part]} graph')}")
            total += count
    if not said:
        return []
    most = ", the most of all splits" if differ else ""
    verb = agreeing(total, "is", "are")
    return [
        f"{joined(said)} {verb} in the training part too{most}: on those a model looks too good"
    ]


def rare_classes(graphs: Graphs, splits: Sequence[Split]) -> list[str]:
    """Classes of which a part has none, or fewer than five graphs; the fewest."""
    several = len(graphs.targets) > 1
    said = [
        f"{one.targets[0].name} {few}" if several else few
        for one in one_target_each(graphs)
        for few in _rare_of_target(one, splits)
    ]
    if not said:
        return []
    more = (
        f" and {counted(len(said) - SHOWN, 'class', 'classes')} more" if len(said) > SHOWN else ""
    )
    least = ", the least of all splits" if len(splits) > 1 else ""
    what = f"fewer than five graphs of a class in a part{least}: "
    return [what + ", ".join(said[:SHOWN]) + more]


def _rare_of_target(graphs: Graphs, splits: Sequence[Split]) -> list[str]:
    """Classes of the one target of these graphs that a part has few of, with how many."""
    if not has_classes(graphs):
        return []
    counts = {
        name: torch.stack([_class_counts(graphs, getattr(one, part)) for one in splits]).amin(0)
        for part, name in PART_NAMES.items()
    }
    said = []
    for number, name in enumerate(graphs.class_names):
        few = [f"{part} {n}" for part, each in counts.items() if (n := int(each[number])) < FEW]
        said += [f"{name!r} ({', '.join(few)})"] if few else []
    return said


def _class_counts(graphs: Graphs, part: Tensor) -> Tensor:
    """How many graphs of each class a part has; those without a class are not counted."""
    assert graphs.y is not None
    y = graphs.y.cpu()[part]
    return y[y >= 0].bincount(minlength=len(graphs.class_names))

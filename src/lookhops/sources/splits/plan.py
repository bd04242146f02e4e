"""The plan: from graphs and a protocol to the split of each seed."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Protocol, parse_split
from lookhops.core.words import counted
from lookhops.graphs import Graphs
from lookhops.sources.splits.groups import (
    codes_of,
    column_of,
    folds_of_groups,
    joined,
    same_graphs,
    scaffolds,
    smiles_of,
    times_of,
)
from lookhops.sources.splits.remarks import rare_classes, shared_graphs
from lookhops.sources.splits.split import (
    PARTS,
    Split,
    class_codes,
    divide,
    has_classes,
    interleaved,
    labelled,
    seeded_order,
)

#: Kinds of splits that a column decides.
NAMED = ("group", "time", "column")
#: What a column may call the parts.
WORDS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("val", "valid", "validation", "dev"), "val"),
    **dict.fromkeys(("test", "testing"), "test"),
}


class Kept(NamedTuple):
    """What splits are drawn from besides the seed.

    Args:
        labelled: Numbers of the graphs to draw from: those that have a target, and of which a given
            test part does not hold the same.
        stratify: Whether classes keep their proportions.
        groups: The group of each graph, or none.
        fixed: Parts that do not depend on the seed, by name.
    """

    labelled: Tensor
    stratify: bool
    groups: Tensor | None
    fixed: Mapping[str, Tensor]


@dataclass(frozen=True, eq=False)
class SplitPlan:
    """The split of each seed.

    Args:
        protocol: How graphs are split and models trained; ``auto`` is no longer in it.
        splits: By seed, in the order of the protocol's.
        source: What decides the splits besides the graphs' tensors and the protocol: a digest of
            columns or of a file; none where nothing does.
        tested: How many graphs are in no part because a given test part holds the same.
    """

    protocol: Protocol
    splits: Mapping[int, Split]
    source: str | None = None
    tested: int = 0

    @property
    def training_graphs(self) -> int:
        """Graphs of the largest training part."""
        return max(len(part.train) for part in self.splits.values())

    @classmethod
    def of(cls, graphs: Graphs, protocol: Protocol, test: Tensor | None = None) -> SplitPlan:
        """Draw the split of each seed.

        Args:
            graphs: The graphs.
            protocol: Says how: its ``split``, ``folds``, ``fractions`` and ``seeds``.
            test: Numbers of the graphs that are the test part of every split.
        """
        protocol = resolved(graphs, protocol)
        kept = _kept(graphs, protocol, test)
        partition = cache(partial(_partition, graphs, protocol.folds or 0, kept))
        drawn = {seed: _draw(graphs, protocol, kept, seed, partition) for seed in protocol.seeds}
        source = source_of(graphs, protocol, test)
        left_out = len(labelled(graphs)) - len(kept.labelled) - (0 if test is None else len(test))
        return cls(protocol, drawn, source, max(left_out, 0))

    @classmethod
    def given(cls, protocol: Protocol, splits: Sequence[Split]) -> SplitPlan:
        """Splits that were read from a file: one for each seed, or one for all of them."""
        seeds = protocol.seeds
        if len(splits) not in (1, len(seeds)):
            raise LookHopsError(
                f"There are {len(splits)} splits for {len(seeds)} seeds; give one for each."
            )
        each = splits if len(splits) == len(seeds) else list(splits) * len(seeds)
        parts = [getattr(one, part).numpy() for one in splits for part in PARTS]
        protocol = replace(protocol, split="file", folds=None)
        return cls(protocol, dict(zip(seeds, each, strict=True)), _digest(*parts))

    def of_seeds(self, seeds: Sequence[int]) -> SplitPlan:
        """The same of these seeds only, in their order."""
        protocol = replace(self.protocol, seeds=tuple(seeds))
        return replace(self, protocol=protocol, splits={seed: self.splits[seed] for seed in seeds})

    def remarks(self, graphs: Graphs) -> list[str]:
        """In words, what is worth a warning."""
        splits = list(self.splits.values())
        said = [*shared_graphs(graphs, splits), *rare_classes(graphs, splits)]
        if self.tested:
            graph = counted(self.tested, "graph is", "graphs are")
            said = [f"{graph} left out of training: the test set has the same", *said]
        return said


def resolved(graphs: Graphs, protocol: Protocol) -> Protocol:
    """The protocol with ``auto`` replaced: stratified where there are classes, else random."""
    if protocol.split != "auto":
        return protocol
    return replace(protocol, split="stratified" if has_classes(graphs) else "random")


def source_of(graphs: Graphs, protocol: Protocol, test: Tensor | None = None) -> str | None:
    """A digest of what decides splits besides the graphs' tensors and the protocol, or none."""
    kind, name = parse_split(protocol.split)
    parts = []
    if kind == "scaffold":
        parts.append(smiles_of(graphs))
    elif kind in NAMED:
        parts.append(column_of(graphs, name, f"--split {protocol.split}"))
    if (same := same_graphs(graphs)) is not None:
        parts.append(same.numpy())
    if test is not None:
        parts.append(test.numpy())
    return _digest(*parts) if parts else None


def _digest(*columns: np.ndarray) -> str:
    digest = hashlib.sha256()
    for column in columns:
        digest.update("\0".join(map(str, column.tolist())).encode() + b"\1")
    return digest.hexdigest()[:16]


def _kept(graphs: Graphs, protocol: Protocol, test: Tensor | None) -> Kept:
    """What the protocol's kind of split keeps, from the graphs."""
    kind, name = parse_split(protocol.split)
    if kind == "file":
        raise LookHopsError("These splits came from a file: give it again (--splits).")
    groups, fixed = None, {} if test is None else {"test": test}
    stratify = kind == "stratified"
    if kind == "scaffold":
        groups = scaffolds(graphs)
    elif kind == "group":
        groups = codes_of(column_of(graphs, name, f"--split {protocol.split}"))
    elif kind in ("column", "time"):
        if fixed:
            raise LookHopsError(f"{protocol.split} names the test part already: leave out --test.")
        if kind == "time":
            fixed = _parts_in_time(graphs, name, protocol.fractions)
        else:
            fixed, stratify = _named_parts(graphs, name), has_classes(graphs)
    if fixed and protocol.folds:
        raise LookHopsError("Folds are all tested on in turn: leave out --folds or the test part.")
    same, known = same_graphs(graphs), labelled(graphs)
    if same is not None and test is not None:  # what is tested on is not trained on
        known = known[~torch.isin(same, same[test])[known]]
    return Kept(known, stratify, joined(groups, same), fixed)


def _named_parts(graphs: Graphs, name: str) -> dict[str, Tensor]:
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


def _parts_in_time(graphs: Graphs, name: str, fractions: Sequence[float]) -> dict[str, Tensor]:
    """The earliest graphs to train on, the latest to test on; those of one time stay together."""
    known = labelled(graphs)
    times = times_of(graphs, name, known)
    groups = torch.zeros(len(graphs), dtype=torch.long)
    groups[known] = times.unique(return_inverse=True)[1]
    order = known[times.argsort(stable=True)]
    return dict(zip(PARTS, divide(order, fractions, PARTS, groups, in_order=True), strict=True))


def _draw(
    graphs: Graphs,
    protocol: Protocol,
    kept: Kept,
    seed: int,
    partition: Callable[[int], Sequence[Tensor]],
) -> Split:
    """The split of a seed: what is not fixed is drawn."""
    if "train" in kept.fixed:
        return Split(*(kept.fixed[part] for part in PARTS))
    test = kept.fixed.get("test")
    if protocol.folds is not None:
        repetition, fold = divmod(seed, protocol.folds)
        test = partition(repetition)[fold]
    order = kept.labelled[seeded_order(len(kept.labelled), seed)]
    if test is not None:
        order = order[~torch.isin(order, test)]
    if kept.stratify:
        order = order[interleaved(class_codes(graphs)[order])]
    if test is None:
        return Split(*divide(order, protocol.fractions, PARTS, kept.groups))
    train, val, _ = protocol.fractions
    shares = train / (train + val), val / (train + val)
    first, second = divide(order, shares, PARTS[:2], kept.groups)
    return Split(first, second, test)


def _partition(graphs: Graphs, folds: int, kept: Kept, repetition: int) -> list[Tensor]:
    """The graphs in k parts of about the same size, each the test part of one seed.

    Seed s has fold ``s mod k`` of repetition ``s div k``.
    """
    from sklearn.model_selection import KFold, StratifiedGroupKFold, StratifiedKFold

    y = class_codes(graphs)[kept.labelled].numpy() if kept.stratify else None
    groups = None if kept.groups is None else kept.groups[kept.labelled].numpy()
    if groups is not None and not kept.stratify:
        place = folds_of_groups(groups, folds, repetition)
        return [kept.labelled[torch.from_numpy(place == fold)] for fold in range(folds)]
    kind = KFold if y is None else StratifiedKFold if groups is None else StratifiedGroupKFold
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of rare classes; ours comes later
            splitter = kind(folds, shuffle=True, random_state=repetition)
            parts = [part for _, part in splitter.split(kept.labelled, y, groups)]
    except ValueError as error:
        raise LookHopsError(f"{graphs.name}: {folds} folds cannot be made ({error}).") from error
    return [kept.labelled[torch.from_numpy(part)] for part in parts]

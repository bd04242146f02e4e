"""The plan: from graphs and a protocol to the split of each seed."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Protocol, parse_split
from lookhops.core.words import agreeing, counted, joined
from lookhops.graphs import Graphs
from lookhops.graphs.targets import one_target_each
from lookhops.sources.splits.split import (
    PARTS,
    Split,
    class_codes,
    codes_of,
    column_of,
    divide,
    folds_of_groups,
    has_classes,
    interleaved,
    joined_groups,
    labelled,
    named_parts,
    parts_in_time,
    same_graphs,
    scaffolds,
    seeded_order,
    smiles_of,
)

#: Kinds of splits that a column decides.
NAMED = ("group", "time", "column")


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
        draw = _Draw(graphs, protocol, test)
        splits = {seed: draw.split(seed) for seed in protocol.seeds}
        tested = len(labelled(graphs)) - len(draw.labelled) - (0 if test is None else len(test))
        return cls(protocol, splits, source_of(graphs, protocol, test), max(tested, 0))

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


class _Draw:
    """Draws the split of each seed."""

    def __init__(self, graphs: Graphs, protocol: Protocol, test: Tensor | None) -> None:
        self.graphs, self.protocol = graphs, protocol
        kind, name = parse_split(protocol.split)
        if kind == "file":
            raise LookHopsError("These splits came from a file: give it again (--splits).")
        groups: Tensor | None = None
        #: Parts that do not depend on the seed, and whether classes keep their proportions.
        self.fixed, self.stratify = {} if test is None else {"test": test}, kind == "stratified"
        if kind == "scaffold":
            groups = scaffolds(graphs)
        elif kind == "group":
            groups = codes_of(column_of(graphs, name, f"--split {protocol.split}"))
        elif kind in ("column", "time"):
            if self.fixed:
                raise LookHopsError(
                    f"{protocol.split} names the test part already: leave out --test."
                )
            if kind == "time":
                self.fixed = parts_in_time(graphs, name, protocol.fractions)
            else:
                self.fixed, self.stratify = named_parts(graphs, name), has_classes(graphs)
        if self.fixed and protocol.folds:
            raise LookHopsError(
                "Folds are all tested on in turn: leave out --folds or the test part."
            )
        #: The graphs to draw from.
        same, self.labelled = same_graphs(graphs), labelled(graphs)
        if same is not None and test is not None:  # what is tested on is not trained on
            self.labelled = self.labelled[~torch.isin(same, same[test])[self.labelled]]
        self.groups = joined_groups(groups, same)
        self.folds = cache(self._folds)

    def split(self, seed: int) -> Split:
        if "train" in self.fixed:
            return Split(*(self.fixed[part] for part in PARTS))
        test = self.fixed.get("test")
        if self.protocol.folds is not None:
            repetition, fold = divmod(seed, self.protocol.folds)
            test = self.folds(repetition)[fold]
        order = self.labelled[seeded_order(len(self.labelled), seed)]
        if test is not None:
            order = order[~torch.isin(order, test)]
        if self.stratify:
            order = order[interleaved(class_codes(self.graphs)[order])]
        if test is None:
            return Split(*divide(order, self.protocol.fractions, PARTS, self.groups))
        train, val, _ = self.protocol.fractions
        shares = train / (train + val), val / (train + val)
        first, second = divide(order, shares, PARTS[:2], self.groups)
        return Split(first, second, test)

    def _folds(self, repetition: int) -> list[Tensor]:
        """The graphs in k parts of about the same size, each the test part of one seed."""
        from sklearn.model_selection import KFold, StratifiedGroupKFold, StratifiedKFold

        count = self.protocol.folds or 0
        y = class_codes(self.graphs)[self.labelled].numpy() if self.stratify else None
        groups = None if self.groups is None else self.groups[self.labelled].numpy()
        if groups is not None and y is None:
            fold_of = folds_of_groups(groups, count, repetition)
            return [self.labelled[torch.from_numpy(fold_of == fold)] for fold in range(count)]
        kind = KFold if y is None else StratifiedKFold if groups is None else StratifiedGroupKFold
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of rare classes; ours comes later
                splitter = kind(count, shuffle=True, random_state=repetition)
                parts = [part for _, part in splitter.split(self.labelled, y, groups)]
        except ValueError as error:
            raise LookHopsError(
                f"{self.graphs.name}: {count} folds cannot be made ({error})."
            ) from error
        return [self.labelled[torch.from_numpy(part)] for part in parts]


# -------------------------------------------------------------------- what is worth a warning

PART_NAMES = {"train": "training", "val": "validation", "test": "test"}
#: A class with fewer graphs than this in a part is worth a warning, which names so many classes.
FEW, SHOWN = 5, 5


def shared_graphs(graphs: Graphs, splits: Sequence[Split]) -> list[str]:
    """How many graphs of another part are in the training part too; only given parts share any."""
    same, with_target = same_graphs(graphs), labelled(graphs)
    if same is None:
        return []
    said, total, differ = [], 0, False
    for part in ("test", "val"):
        counts = []
        for split in splits:
            tested, trained = (
                n[torch.isin(n, with_target)] for n in (getattr(split, part), split.train)
            )
            counts.append((int(torch.isin(same[tested], same[trained]).sum()), len(tested)))
        count, size = max(counts)
        differ |= len(set(counts)) > 1
        if count:
            said.append(f"{count:,} of {counted(size, f'{PART_NAMES[part]} graph')}")
            total += count
    if not said:
        return []
    most = ", the most of all splits" if differ else ""
    return [
        f"{joined(said)} {agreeing(total, 'is', 'are')} in the training part too{most}: on those a "
        "model looks too good"
    ]


def rare_classes(graphs: Graphs, splits: Sequence[Split]) -> list[str]:
    """Classes of which a part has none, or fewer than five graphs; the fewest."""
    said = []
    for one in filter(has_classes, one_target_each(graphs)):
        target = f"{one.targets[0].name} " if len(graphs.targets) > 1 else ""
        fewest = {
            name: np.min([_class_counts(one, getattr(split, part)) for split in splits], axis=0)
            for part, name in PART_NAMES.items()
        }
        for number, name in enumerate(one.class_names):
            few = [f"{part} {n[number]}" for part, n in fewest.items() if n[number] < FEW]
            said += [f"{target}{name!r} ({', '.join(few)})"] if few else []
    if not said:
        return []
    more = ""
    if len(said) > SHOWN:
        more = f" and {counted(len(said) - SHOWN, 'class', 'classes')} more"
    least = ", the least of all splits" if len(splits) > 1 else ""
    what = f"fewer than five graphs of a class in a part{least}: "
    return [what + ", ".join(said[:SHOWN]) + more]


def _class_counts(graphs: Graphs, part: Tensor) -> np.ndarray:
    assert graphs.y is not None
    y = graphs.y.cpu()[part]
    return y[y >= 0].bincount(minlength=len(graphs.class_names)).numpy()

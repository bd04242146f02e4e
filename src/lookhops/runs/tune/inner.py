"""Inner splits: what a search sees of an outer split, which is all but its test part."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from lookhops.core.options import parse_split
from lookhops.graphs import Graphs
from lookhops.sources.splits import Split, SplitPlan

#: Kinds of splits whose validation part is given by the user or by time: no other is drawn.
GIVEN = ("column", "time", "file")


def inner_splits(graphs: Graphs, plan: SplitPlan, seed: int, count: int) -> dict[int, Split]:
    """Splits of the graphs outside the test part of an outer split, by their seeds.

    The first is the outer split's own training and validation part; the others part the same
    graphs anew, by the same rule (classes in proportion, scaffolds together, ...). Where the parts
    were given by a column, by time or by a file, the first is the only one.

    Args:
        graphs: The graphs.
        plan: The outer splits.
        seed: Of the outer split.
        count: How many inner splits.
    """
    outer = plan.splits[seed]
    found = {seed: outer}
    if parse_split(plan.protocol.split)[0] in GIVEN or count < 2:
        return found
    seeds = tuple(inner_seed(seed, number) for number in range(1, count))
    protocol = replace(plan.protocol, seeds=seeds, folds=None)
    return found | dict(SplitPlan.of(graphs, protocol, outer.test).splits)


def inner_seed(seed: int, number: int) -> int:
    """The seed of an inner split: it follows from the outer one's, and is like no user's."""
    return int.from_bytes(hashlib.sha256(f"inner {seed} {number}".encode()).digest()[:4], "little")

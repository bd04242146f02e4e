"""The splits of a training: drawn or given, and checked before it begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Protocol
from lookhops.graphs import Graphs
from lookhops.sources.splits import PARTS, Split, SplitPlan
from lookhops.tasks import Task


def draw_splits(
    graphs: Graphs,
    task: Task,
    protocol: Protocol,
    splits: SplitPlan | Sequence[Split] | None = None,
) -> SplitPlan:
    """Each seed's split, drawn or given, checked against what training needs."""
    if not graphs.num_nodes:
        raise LookHopsError(f"{graphs.name}: no graph has a node; there is nothing to look at.")
    if splits is None:
        plan = SplitPlan.of(graphs, protocol)
    elif isinstance(splits, SplitPlan):
        plan = splits.of_seeds(protocol.seeds)
    else:
        plan = SplitPlan.given(protocol, splits)
    known = task.known(task.targets(graphs)).cpu()
    if not bool(known.all()):  # parts that were given may hold graphs without any target
        parts = {
            seed: Split(*(own[known[own]] for own in (part.train, part.val, part.test)))
            for seed, part in plan.splits.items()
        }
        plan = replace(plan, splits=parts)
    for seed, part in plan.splits.items():
        _check_split(graphs, task, part, seed)
    return plan


def _check_split(graphs: Graphs, task: Task, part: Split, seed: int) -> None:
    for name in PARTS:
        if len(getattr(part, name)) == 0:
            raise LookHopsError(
                f"{graphs.name}: {len(graphs)} graphs are too few: the {name} part of seed {seed} "
                "would be empty."
            )
    if lacking := task.lacking(task.targets(graphs).cpu(), part.train):
        raise LookHopsError(
            f"{graphs.name}: {lacking} in the training part of seed {seed}; "
            "use more graphs, another seed, or stratified splits."
        )

"""Runs: the training of one network on a split, finished or on its way; and their splits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Architecture, Protocol
from lookhops.encoding.preprocessing import Preprocessing
from lookhops.graphs import Graphs
from lookhops.sources.splits import PARTS, Split, SplitPlan
from lookhops.tasks import Task

#: Stands where a seed does, for networks that are trained on all graphs.
FINAL = -1


@dataclass(frozen=True)
class Rates:
    """The options of a training that shape nothing: networks that differ in them stack."""

    learning_rate: float
    weight_decay: float
    dropout: float

    @classmethod
    def of(cls, architecture: Architecture, protocol: Protocol) -> Rates:
        return cls(protocol.learning_rate, protocol.weight_decay, architecture.dropout)


@dataclass
class Run:
    """The training of one network on the split of a seed, finished or on its way.

    Args:
        seed: The seed.
        split: Its parts.
        history: One row an epoch: epoch, train_loss, val_loss, the watched metric (``val_accuracy``
            of classes, ``val_mae`` of a number), seconds.
        best_epoch: Epoch of the lowest validation loss.
        best_loss: That loss.
        weights: The weights of that epoch.
        predictions: The network's outputs for the ``val`` and ``test`` parts with these weights,
            in the units of the targets; under ``unseen`` those for the validation graphs, each
            at the epoch that would have been kept without it (:class:`~.unseen.Unseen`).
        preprocessing: What was fitted on a training part.
        fitted: What the task took from the training part.
        member: Which of several networks on this split, from 0.
        members: Where this stands for several networks, all of them: ``predictions`` are of their
            average, all else is of the first.
        together: How many networks were trained at once.
        failed: Whether its loss stopped being a number, and others went on without it.
        pruned: Whether it was ended early, as not worth going on with.
        chosen: What the validation part chose besides the epoch, by name.
        rates: Its learning rate, weight decay and dropout, where they are not those of the protocol
            and the architecture.
        beside: Tensors that its members share and that no gradient has fitted.
        score: The main metric of the validation part, where runs are candidates to choose from.
        variance: Of numbers, the variance of its predictions by part, where the learner has one.
    """

    seed: int
    split: Split
    history: list[dict[str, float]] = field(default_factory=list)
    best_epoch: int = 0
    best_loss: float = float("inf")
    weights: dict[str, Tensor] = field(default_factory=dict)
    predictions: dict[str, Tensor] = field(default_factory=dict)
    preprocessing: Preprocessing = field(default_factory=Preprocessing)
    fitted: Tensor | None = None
    member: int = 0
    members: tuple[Run, ...] = ()
    together: int = 1
    failed: bool = False
    pruned: bool = False
    chosen: Mapping[str, Any] = field(default_factory=dict)
    rates: Rates | None = None
    beside: Mapping[str, Tensor] = field(default_factory=dict)
    score: float | None = None
    variance: dict[str, Tensor] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Its name in files."""
        return run_key(self.seed, self.member)

    @property
    def networks(self) -> tuple[Run, ...]:
        return self.members or (self,)

    @property
    def seconds(self) -> float:
        return sum(row["seconds"] for row in self.history)

    @property
    def unseen(self) -> Tensor:
        """Its outputs for validation graphs that had no say in the epoch, where there are such."""
        return self.predictions.get("unseen", self.predictions["val"])

    def deviation(self, task: Task, part: str) -> Tensor | None:
        """How far its answers to a part may be off (:meth:`~lookhops.tasks.Task.deviation`)."""
        kept = part if part in self.predictions else "val"
        outputs = [one.predictions[kept] for one in self.networks]
        return task.deviation(outputs, self.variance.get("val" if part == "unseen" else part))

    def done(self, protocol: Protocol) -> bool:
        return (
            self.failed
            or self.pruned
            or len(self.history) - self.best_epoch >= protocol.patience
            or len(self.history) >= protocol.max_epochs
        )


def run_key(seed: int, member: int) -> str:
    """What files call a run: its seed, then its member's number where that is not the first."""
    name = "final" if seed == FINAL else f"{seed}"
    return f"{name}-{member}" if member else name


def member_seed(seed: int, member: int) -> int:
    """The seed of all that is random in a member: of the first the split's own, else from both."""
    if member == 0 and seed != FINAL:
        return seed
    return int.from_bytes(hashlib.sha256(f"{seed} {member}".encode()).digest()[:4], "little")


#: Gives, for the runs of a stack, what an earlier :class:`Epoch` held of it.
Resume = Callable[[list[Run]], tuple[list[Run], dict[str, Tensor]] | None]


class NotFinite(LookHopsError):
    """The loss stopped being a number; ``runs`` hold the last good weights."""

    def __init__(self, message: str, runs: Sequence[Run] = ()) -> None:
        super().__init__(message)
        self.runs = list(runs)


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened to runs.

    Args:
        text: It in words; empty where there is only something to draw.
        finished: How many runs it brings a plan nearer to its end.
    """

    text: str = ""
    finished: int = 0


@dataclass(frozen=True)
class Epoch(Event):
    """The runs of a stack were trained for one epoch more.

    ``state`` gives all that a later training needs to go on from here, but the runs; it is called
    while the event is handled, not later.
    """

    runs: list[Run]
    protocol: Protocol
    state: Callable[[], dict[str, Tensor]]


#: Called with each event, and with each epoch of a stack.
OnEvent = Callable[[Event], None]
OnEpoch = Callable[[Epoch], None]


def by_split(runs: Sequence[Run], task: Task) -> list[Run]:
    """One run for each split: that of its only network, or one that stands for several."""
    by_seed: dict[int, list[Run]] = {}
    for run in runs:
        by_seed.setdefault(run.seed, []).append(run)
    return [
        members[0] if len(members) == 1 else _average(members, task) for members in by_seed.values()
    ]


def _average(members: Sequence[Run], task: Task) -> Run:
    tested = all(run.predictions for run in members)
    predictions = {
        part: task.average([run.predictions[part] for run in members])
        for part in (members[0].predictions if tested else ())
    }
    return replace(members[0], predictions=predictions, members=tuple(members))


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
            seed: Split(*(part[known[part]] for part in (split.train, split.val, split.test)))
            for seed, split in plan.splits.items()
        }
        plan = replace(plan, splits=parts)
    for seed, split in plan.splits.items():
        _check_split(graphs, task, split, seed)
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

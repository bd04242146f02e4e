"""Several targets at once: one network, a head for each, blanks left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.words import counted, joined
from lookhops.graphs import Graphs
from lookhops.graphs.targets import target_columns
from lookhops.tasks.metrics import Metric
from lookhops.tasks.target_task import TargetTask
from lookhops.tasks.task import Calibration, Head, Maybe, MetricValues, Task, Tensors

MEAN_SCORE = Metric("mean_score", "mean of AUROC, R² and D²", share=False)
LOSS = Metric("loss", "loss", higher_is_better=False, share=False, shown=False)


@dataclass(frozen=True)
class SeveralTargets(Task):
    r"""Classes and numbers, each with blanks: a head for each, one loss.

    .. math::
        \mathcal{L} = \frac{\sum_t \sum_{i \in K_t} w_{ti} \ell_t(o_{ti}, y_{ti})}
                           {\sum_t \sum_{i \in K_t} w_{ti}}

    over the graphs :math:`K_t` whose target :math:`t` is known: every known label has the same say
    (classes may be weighed). Heads of the same kind and width stand beside one another and are
    computed at once. Models are ranked by the mean over the targets of AUROC (classes),
    :math:`R^2` (numbers) and :math:`D^2` (counts), of those targets where they are defined.

    Args:
        names: Of the targets.
        tasks: What is asked of each.
    """

    names: tuple[str, ...]
    tasks: tuple[TargetTask, ...]

    kind = "several"
    ranked_by = MEAN_SCORE
    name = "targets"
    class_names = ()
    main = MEAN_SCORE  # what is known of the kind; a task names its own

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "tasks", tuple(self.tasks))
        if len(self.names) != len(self.tasks) or not self.names:
            raise LookHopsError("Several targets are at least one, each with its name.")
        if any(isinstance(task, SeveralTargets) for task in self.tasks):
            raise LookHopsError("One of several targets cannot be several targets itself.")
        titles = list(dict.fromkeys(task.ranked_by.title for task in self.tasks))
        title = f"mean {titles[0]}" if len(titles) == 1 else f"mean of {joined(titles)}"
        object.__setattr__(self, "main", replace(MEAN_SCORE, title=title))

    def to_dict(self) -> dict[str, Any]:
        tasks = [task.to_dict() for task in self.tasks]
        return {"kind": self.kind, "names": list(self.names), "tasks": tasks}

    @property
    def heads(self) -> Sequence[Head]:
        """The targets, in the order of the output's channels."""
        found: list[Head] = []
        channel = taken = 0
        for column, (name, task) in enumerate(zip(self.names, self.tasks, strict=True)):
            width = task.out_channels
            size = task.fitted_size
            fitted = slice(taken, taken + size) if size else None
            found.append(Head(name, task, column, slice(channel, channel + width), fitted))
            channel, taken = channel + width, taken + size
        return found

    @property
    def out_channels(self) -> int:
        return sum(task.out_channels for task in self.tasks)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The mean score, and the metrics of each target under its name."""
        of_targets = (
            replace(metric, name=head.key(metric.name), title=head.key(metric.title))
            for head in self.heads
            for metric in head.task.metrics
            if metric.name != LOSS.name
        )
        return (self.main, LOSS, *of_targets)

    @property
    def watched(self) -> Metric:
        """The loss: a mean score is not a mean over graphs."""
        return LOSS

    def targets(self, graphs: Graphs) -> Tensor:
        """A column for each head, shape (g, t), float64, NaN where blank."""
        assert graphs.y is not None
        columns = {target.name: v for target, v in target_columns(graphs.y, graphs.targets)}
        table = np.stack([columns[name] for name in self.names], axis=1)
        return torch.from_numpy(table).to(graphs.device)

    def known(self, target: Tensor) -> Tensor:
        """Where any target is known."""
        return (~target.isnan()).any(-1)

    def lacking(self, target: Tensor, train: Tensor) -> str | None:
        """The first target that no graph of the training part has."""
        blank = target[train].isnan().all(0).tolist()
        names = (name for name, all_blank in zip(self.names, blank, strict=True) if all_blank)
        return next((f"{name!r} has no value" for name in names), None)

    def fit(self, train_target: Tensor) -> Tensor | None:
        """What the heads take from the training part, one after the other, float64."""
        each = [head.task.fit(head.target(train_target)) for head in self.heads if head.fitted]
        return torch.cat([one.double() for one in each if one is not None]) if each else None

    @property
    def fitted_size(self) -> int:
        return sum(task.fitted_size for task in self.tasks)

    def losses(
        self, output: Tensor, target: Tensor, fitted: Maybe = None, real: Maybe = None
    ) -> tuple[Tensor, Tensor]:
        """Mean loss over all known labels, and the sum of their weights."""
        total, weight = output.new_zeros(output.shape[:-2]), output.new_zeros(output.shape[:-2])
        for _, group in groupby(
            self.heads, key=lambda head: (head.task.kind, head.task.out_channels)
        ):
            heads = list(group)
            first, last = heads[0], heads[-1]
            of_heads = None
            if first.fitted and last.fitted:
                assert fitted is not None
                of_heads = fitted[..., first.fitted.start : last.fitted.stop]
                of_heads = of_heads.unflatten(-1, (len(heads), -1))
            channels = output[..., first.channels.start : last.channels.stop]
            # The targets become a leading axis, as members are: shape (..., heads, g, channels).
            channels = channels.unflatten(-1, (len(heads), -1)).movedim(-2, -3)
            y = target[..., first.column : last.column + 1].movedim(-1, -2)
            there = None if real is None else real.unsqueeze(-2)
            mean, of = first.task.losses(channels, y, of_heads, there)
            total, weight = total + (mean * of).sum(-1), weight + of.sum(-1)
        return total / weight.clamp(min=1e-12), weight

    scores = losses

    def in_units(self, output: Tensor, fitted: Maybe) -> Tensor:
        each = []
        for head in self.heads:
            taken = None if fitted is None or head.fitted is None else fitted[..., head.fitted]
            each.append(head.task.in_units(head.of(output), taken).double())
        return torch.cat(each, -1)

    def average(self, outputs: Sequence[Tensor]) -> Tensor:
        return torch.cat([one.task.average([*map(one.of, outputs)]) for one in self.heads], -1)

    def answers(self, output: Tensor, calibration: Calibration) -> Tensor:
        found = [one.task.answers(one.of(output), one.values(calibration)) for one in self.heads]
        return torch.cat(found, -1)

    def calibrate(
        self, output: Tensor, target: Tensor, unseen: Maybe = None, deviation: Maybe = None
    ) -> Calibration:
        """What each head's validation part says, under its name."""
        found: dict[str, float] = {}
        for head in self.heads:
            y, expected = head.target(target), head.deviation(deviation)
            values = head.task.calibrate(head.of(output), y, head.of(unseen), expected)
            found |= head.named(values)
        return found

    def evaluate(
        self, output: Tensor, target: Tensor, by: Calibration | None = None, deviation: Maybe = None
    ) -> MetricValues:
        """The metrics of each head under its name, and the mean score of those that have one."""
        found: MetricValues = {}
        scores = []
        for head in self.heads:
            y, calibration = head.target(target), None if by is None else head.values(by)
            values: MetricValues = dict.fromkeys(metric.name for metric in head.task.metrics)
            if bool(head.task.known(y).any()):
                expected = head.deviation(deviation)
                values = head.task.evaluate(head.of(output), y, calibration, expected)
            if (score := values[head.task.ranked_by.name]) is not None:
                scores.append(score)
            found |= head.named(values)
        return {MEAN_SCORE.name: float(np.mean(scores)) if scores else None, **found}

    def naive(self, train_target: Tensor, target: Tensor) -> MetricValues:
        found: MetricValues = {}
        for head, y in self._labelled(target):
            found |= head.named(head.task.naive(head.target(train_target), y))
        return found

    def resampled(self, output: Tensor, target: Tensor) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for head, y in self._labelled(target):
            found |= head.named(head.task.resampled(head.of(output), y))
        return found

    def _labelled(self, target: Tensor) -> Iterator[tuple[Head, Tensor]]:
        """Each head that any of these graphs has a target of, with its target."""
        each = ((head, head.target(target)) for head in self.heads)
        return ((head, y) for head, y in each if bool(head.task.known(y).any()))

    def overview(
        self, outputs: Tensors, targets: Tensors, calibrations: Sequence[Calibration] = ()
    ) -> dict[str, Any]:
        found = {}
        for head in self.heads:
            y, by = [*map(head.target, targets)], [*map(head.values, calibrations)]
            found[head.name] = head.task.overview([*map(head.of, outputs)], y, by)
        return {"targets": found}

    @property
    def columns(self) -> tuple[str, ...]:
        """The targets, then the answers of each."""
        return (
            *self.names,
            *(
                head.key(name) if head.task.class_names else name
                for head in self.heads
                for name in head.task.columns[1:]
            ),
        )

    def labels(self, target: Any) -> tuple[str, ...]:
        return tuple(task.label(value) for value, task in zip(target, self.tasks, strict=True))

    @property
    def asked(self) -> str:
        """``with 3 targets``."""
        return f"with {counted(len(self.tasks), 'target')}"

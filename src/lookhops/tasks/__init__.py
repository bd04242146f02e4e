"""What is asked of a graph, and all that follows from it: head, loss, metrics, answers, charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.schema import AtLeast, read
from lookhops.graphs import Graphs
from lookhops.tasks.answers import ClassAnswers, NumberAnswers, TargetAnswers
from lookhops.tasks.classes import Classification
from lookhops.tasks.counts import Counts
from lookhops.tasks.metrics import Metric
from lookhops.tasks.numbers import Regression
from lookhops.tasks.several import SeveralTargets
from lookhops.tasks.target_task import TargetTask
from lookhops.tasks.task import Calibration, Task

__all__ = [
    "KINDS",
    "TASKS",
    "Calibration",
    "ClassAnswers",
    "Classification",
    "Counts",
    "Metric",
    "NumberAnswers",
    "Regression",
    "SeveralTargets",
    "TargetAnswers",
    "TargetTask",
    "Task",
    "task_from_dict",
    "task_of",
]

#: What can be asked about a target, in the order in which the heads of several stand.
KINDS: tuple[type[TargetTask], ...] = (Classification, Regression, Counts)
#: Every kind of task by its name.
TASKS: dict[str, type[Task]] = {
    **{kind.kind: kind for kind in KINDS},
    SeveralTargets.kind: SeveralTargets,
}
#: What a task of several targets is written as.
SEVERAL = AtLeast({"names": Sequence[str], "tasks": Sequence[Mapping[str, Any]]})
_BY_WORDS = {kind.words: kind for kind in KINDS}


def task_of(
    graphs: Graphs, class_weights: bool = False, loss: str = "mse", threshold: str | None = None
) -> Task:
    """What these graphs ask, from the targets that they carry.

    Of several, targets of one kind and width stand together: their heads are computed at once.

    Args:
        graphs: Graphs with targets.
        class_weights: Whether the loss weighs classes by their rarity in the training part.
        loss: Of numbers: ``mse``, ``mae`` or ``huber``.
        threshold: Of two classes: from which probability the second is answered, or how that is
            chosen on a validation part (see :class:`Classification`).
    """
    if graphs.y is None:
        raise LookHopsError(
            f"{graphs.name}: the graphs have no classes to learn; name the column that has "
            "them (--target), or give graphs in tables a table of graphs with a column 'class'."
        )
    if graphs.num_classes and len(graphs.y[graphs.y >= 0].unique()) < 2:
        raise LookHopsError(
            f"{graphs.name}: all graphs are of one class; there is nothing to learn."
        )
    if threshold is not None and all(len(target.classes) != 2 for target in graphs.targets):
        raise LookHopsError(
            f"{graphs.name}: a threshold is for two classes, and no target has two; leave it out."
        )
    asked = []
    for target in graphs.targets:
        kind, classes = _BY_WORDS[target.kind], target.classes
        given: dict[str, Any] = {"name": target.name, "class_names": classes, "loss": loss}
        given["class_weights"] = class_weights
        given["threshold"] = threshold if len(classes) == 2 else None
        options = {one.name: given[one.name] for one in fields(kind)}  # type: ignore[arg-type]
        asked.append((target.name, kind(**options)))
    if len(asked) == 1:
        return asked[0][1]
    asked.sort(key=lambda one: (KINDS.index(type(one[1])), one[1].out_channels))
    names, tasks = zip(*asked, strict=True)
    return SeveralTargets(names, tasks)


def task_from_dict(values: Any, path: str = "task") -> Task:
    """The task that :meth:`Task.to_dict` wrote, checked; errors name the ``path``."""
    options = dict(read(Mapping[str, Any], values, path))
    kind = options.pop("kind", None)
    if not isinstance(kind, str) or kind not in TASKS:
        raise LookHopsError(f"There is no task {kind!r}; known are {', '.join(TASKS)}.")
    if TASKS[kind] is not SeveralTargets:
        return read(TASKS[kind], options, path)
    read(SEVERAL, options, path)
    tasks = [task_from_dict(one, f"{path}.tasks[{i}]") for i, one in enumerate(options["tasks"])]
    return SeveralTargets(options["names"], tasks)  # type: ignore[arg-type]  # which checks it

"""What is asked of a graph: head, loss, metrics and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.schema import read
from lookhops.graphs import Graphs
from lookhops.tasks.classes import Classification
from lookhops.tasks.numbers import Regression
from lookhops.tasks.several import SeveralTargets
from lookhops.tasks.task import Calibration, Metric, Task

__all__ = [
    "TASKS",
    "Calibration",
    "Classification",
    "Metric",
    "Regression",
    "SeveralTargets",
    "Task",
    "task_from_dict",
    "task_of",
]

#: Every kind of task by its name.
TASKS: dict[str, type[Task]] = {
    kind.kind: kind for kind in (Classification, Regression, SeveralTargets)
}


def task_of(
    graphs: Graphs,
    class_weights: bool = False,
    loss: str = "mse",
    threshold: str | None = None,
) -> Task:
    """What these graphs ask, from the targets that they carry.

    Args:
        graphs: Graphs with targets.
        class_weights: Whether the loss weighs classes by their rarity in the training part.
        loss: Of numbers: ``mse``, ``mae`` or ``huber``.
        threshold: Of two classes: from which probability the second is answered, or how that is
            chosen on a validation part (see :class:`Classification`).
    """
    if threshold is not None and all(len(target.classes) != 2 for target in graphs.targets):
        raise LookHopsError(
            f"{graphs.name}: a threshold is for two classes, and no target has two; leave it out."
        )
    if graphs.y is None or graphs.num_classes:
        return Classification.of(graphs, class_weights, threshold)
    if len(graphs.targets) == 1:
        return Regression(graphs.targets[0].name, loss)
    return SeveralTargets.of(graphs, class_weights, loss, threshold)


def task_from_dict(values: Mapping[str, Any]) -> Task:
    """The task that :meth:`Task.to_dict` wrote."""
    options = dict(values)
    kind = options.pop("kind", None)
    if not isinstance(kind, str) or kind not in TASKS:
        raise LookHopsError(f"There is no task {kind!r}; known are {', '.join(TASKS)}.")
    for name in ("class_names", "names"):
        given = options.get(name, [])
        read(Sequence[str], list(given) if isinstance(given, tuple) else given, name)
    try:
        return TASKS[kind](**options)
    except LookHopsError:
        raise
    except (TypeError, ValueError, AttributeError, LookupError) as error:
        raise LookHopsError(f"The task is not a {kind}: {error}.") from error

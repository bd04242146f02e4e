"""What learners without a network are asked: one target after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.graphs import Graphs
from lookhops.sources.splits import Split
from lookhops.tasks import Task

T = TypeVar("T")
#: The lowest probability before they are scaled to sum to 1: a forest that agrees is not certain.
LEAST = 1e-3


@dataclass(frozen=True, eq=False)
class Question:
    """One target on one split.

    Args:
        name: Of the target; nothing where it is the only one.
        y: Class numbers, or numbers, of all graphs; -1 or NaN where they are blank.
        classes: How many classes there are; 0 for numbers.
        train: Numbers of the training graphs that have the target.
        val: Numbers of the validation graphs that have it.
    """

    name: str
    y: Array
    classes: int
    train: Array
    val: Array

    @property
    def has_one_class(self) -> bool:
        """Whether the training part has one class alone: then there is nothing to tell apart."""
        return bool(self.classes) and len(np.unique(self.y[self.train])) < 2

    def goodness(self, val_answers: Array) -> float:
        """How right answers to the validation graphs are, to choose by: accuracy, or minus MAE."""
        y = self.y[self.val]
        if not len(y):
            return 0.0
        if self.classes == 0:
            return -float(np.abs(val_answers[:, 0] - y).mean())
        return float((val_answers.argmax(1) == y).mean())


def classes_of(task: Task) -> list[int]:
    """The number of classes of each target; 0 for numbers."""
    return [len(head.task.class_names) for head in task.heads]


def questions_of(graphs: Graphs, task: Task, split: Split) -> Iterator[Question]:
    """Each target, in the order of the outputs."""
    columns = task.targets(graphs).cpu().numpy().reshape(len(graphs), -1).T
    train, val = split.train.cpu().numpy(), split.val.cpu().numpy()
    for head, classes, y in zip(task.heads, classes_of(task), columns, strict=True):
        known = ~np.isnan(y) & ((y >= 0) | (classes == 0))
        if classes:
            y = np.nan_to_num(y, nan=-1).astype(int)
        yield Question(head.name, y, classes, train[known[train]], val[known[val]])


def fit_each(
    graphs: Graphs,
    task: Task,
    split: Split,
    fit: Callable[[Question], tuple[Mapping[str, Any], T]],
) -> tuple[list[T], dict[str, Any]]:
    """What is fitted for each target, and what was chosen for each, by name."""
    found: list[T] = []
    chosen: dict[str, Any] = {}
    for question in questions_of(graphs, task, split):
        about, one = fit(question)
        found.append(one)
        prefix = f"{question.name}: " if question.name else ""
        chosen |= {f"{prefix}{name}": value for name, value in about.items()}
    return found, chosen


def log_probabilities(p: Array) -> Array:
    """Logarithms of probabilities, of which none is below one in a thousand."""
    p = p.clip(min=LEAST)
    logs: Array = np.log(p / p.sum(1, keepdims=True))
    return logs


def log_softmax(scores: Array) -> Array:
    """Log-probabilities from one score a class, shape (n, classes)."""
    shifted = scores - scores.max(1, keepdims=True)
    logs: Array = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return logs


def side_by_side(each: list[Array], task: Task) -> Tensor:
    """The outputs of all targets, shape (g, channels); single precision where all are classes.

    Args:
        each: Log-probabilities of classes, or numbers, of each target.
        task: What was asked.
    """
    dtype = torch.float32 if all(classes_of(task)) else torch.float64
    outputs = [head.task.outputs(own) for head, own in zip(task.heads, each, strict=True)]
    return torch.from_numpy(np.concatenate(outputs, axis=1)).to(dtype)

"""One target after the other: what a learner without a network is asked, and what it fits.

scikit-learn fits; what it has fitted becomes arrays, which answer by themselves, without pickle.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import torch
from scipy.special import log_softmax
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.tensors import Saved, numbers, positive, saved
from lookhops.graphs import Graphs
from lookhops.sources.splits import Split
from lookhops.tasks import Task

T = TypeVar("T")
#: What is said of a candidate where it is chosen, and what was fitted.
Candidate = tuple[Mapping[str, Any], T]
#: The lowest probability before they are scaled to sum to 1: a forest that agrees is not certain.
LEAST = 1e-3


@dataclass(frozen=True, eq=False)
class Question:
    """One target on one split."""

    y: Array  # class numbers, or numbers, of all graphs; -1 or NaN where they are blank
    classes: int  # how many there are; 0 for numbers
    train: Array  # numbers of the training graphs that have the target
    val: Array  # those of the validation graphs

    @property
    def has_one_class(self) -> bool:
        """Whether the training part has one class alone: then there is nothing to tell apart."""
        return bool(self.classes) and len(np.unique(self.y[self.train])) < 2

    def best(self, candidates: Iterable[tuple[Candidate[T], Array]]) -> tuple[Candidate[T], Array]:
        """The first of the candidates whose answers to the validation graphs are best."""
        return max(candidates, key=lambda one: self._goodness(one[1]))

    def _goodness(self, answers: Array) -> float:
        """Accuracy, or minus the MAE."""
        y = self.y[self.val]
        if not len(y):
            return 0.0
        if self.classes == 0:
            return -float(np.abs(answers[:, 0] - y).mean())
        return float((answers.argmax(1) == y).mean())


def classes_of(task: Task) -> list[int]:
    """The number of classes of each target; 0 for numbers."""
    return [len(head.task.class_names) for head in task.heads]


def fit_each(
    graphs: Graphs, task: Task, split: Split, fit: Callable[[Question], Candidate[T]]
) -> tuple[tuple[T, ...], dict[str, Any]]:
    """What is fitted for each target, and what was chosen for each, by name."""
    found: list[T] = []
    chosen: dict[str, Any] = {}
    columns = task.targets(graphs).cpu().numpy().reshape(len(graphs), -1).T
    train, val = split.train.cpu().numpy(), split.val.cpu().numpy()
    for head, classes, y in zip(task.heads, classes_of(task), columns, strict=True):
        has_target = ~np.isnan(y)
        if classes:
            y = np.nan_to_num(y, nan=-1).astype(int)
        about, fitted = fit(Question(y, classes, train[has_target[train]], val[has_target[val]]))
        found.append(fitted)
        chosen |= {head.key(name): value for name, value in about.items()}
    return tuple(found), chosen


def log_probabilities(p: Array) -> Array:
    """Logarithms of probabilities, of which none is below one in a thousand."""
    p = p.clip(min=LEAST)
    logs: Array = np.log(p / p.sum(1, keepdims=True))
    return logs


def side_by_side(each: Sequence[Array], task: Task) -> Tensor:
    """The outputs of all targets, shape (g, channels), from those of each.

    They are log-probabilities of classes, or numbers; in single precision where all are classes.
    """
    dtype = torch.float32 if all(classes_of(task)) else torch.float64
    outputs = [head.task.outputs(values) for head, values in zip(task.heads, each, strict=True)]
    return torch.from_numpy(np.concatenate(outputs, axis=1)).to(dtype)


class Arrays(Saved):
    """The same with arrays of NumPy in memory."""

    def tensors(self) -> dict[str, Tensor]:
        return {
            name: torch.from_numpy(np.array(getattr(self, name), order="C"))
            for name in (one.name for one in fields(self))  # type: ignore[arg-type]
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], **sizes: int) -> Self:
        checked = super().from_tensors(tensors, **sizes)
        return cls(**{name: value.numpy() for name, value in vars(checked).items()})


class Scorer(Arrays, ABC):
    """What is fitted for one target on rows of numbers.

    The sizes that its tensors name are the ``columns`` of the rows and the ``channels`` of answers.
    """

    kind: ClassVar[str]  #: its name in a model folder

    @abstractmethod
    def answers(self, rows: Array, classes: int) -> Array:
        """Probabilities of so many classes, or for none numbers, of rows; shape (n, channels)."""


@dataclass(frozen=True, eq=False)
class Constant(Scorer):
    """The share of each class, or the mean, whatever the graph."""

    kind: ClassVar[str] = "constant"

    value: Array = saved(numbers("channels"))

    @classmethod
    def fit(cls, question: Question, rows: Array, seed: int) -> Constant:
        """Those of the training part."""
        y = question.y[question.train]
        if not question.classes:
            return cls(np.array([y.mean()]))
        return cls(np.bincount(y, minlength=question.classes) / len(y))

    def answers(self, rows: Array, classes: int) -> Array:
        return np.tile(self.value, (len(rows), 1))


@dataclass(frozen=True, eq=False)
class Linear(Scorer):
    r""":math:`W (x - m) / s + b`, of classes the logits of a softmax; blanks are read as the mean.

    The bias of a class without training graphs is minus infinity.
    """

    kind: ClassVar[str] = "linear"

    weight: Array = saved(numbers("channels", "columns"))
    bias: Array = saved(numbers("channels", low=-inf))
    mean: Array = saved(numbers("columns"))
    spread: Array = saved(positive("columns"))

    @classmethod
    def fit(
        cls, question: Question, rows: Array, seed: int, penalty: float, standardise: bool = False
    ) -> Linear:
        """Logistic regression of classes, or ridge regression of numbers, on the training rows.

        Features may be standardised by the training part. Nothing is random.
        """
        from sklearn.linear_model import LogisticRegression, Ridge
        from sklearn.preprocessing import StandardScaler

        logistic = LogisticRegression(C=1 / penalty, max_iter=2000)
        model = logistic if question.classes else Ridge(alpha=penalty)
        train = training_rows(question, rows)
        mean, spread = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
        if standardise:
            scaler = StandardScaler().fit(train)
            mean, spread = scaler.mean_, scaler.scale_
        model.fit(np.nan_to_num((train - mean) / spread), question.y[question.train])
        if not question.classes:
            return cls(np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_), mean, spread)
        weight = np.zeros((question.classes, rows.shape[1]))
        bias = np.full(question.classes, -np.inf)
        binary = len(model.classes_) == 2  # then the logit of the first class is 0
        with_logit = model.classes_[1:] if binary else model.classes_
        bias[model.classes_] = 0.0
        weight[with_logit], bias[with_logit] = model.coef_, model.intercept_
        return cls(weight, bias, mean, spread)

    def answers(self, rows: Array, classes: int) -> Array:
        raw = np.nan_to_num((rows - self.mean) / self.spread) @ self.weight.T + self.bias
        return np.exp(log_softmax(raw, 1)) if classes else raw


def training_rows(question: Question, rows: Array) -> Array:
    """The training rows, with zeros in columns that are blank in all of them: they decide nothing.

    scikit-learn has no bins for such columns and no mean.
    """
    train = rows[question.train]
    return np.where(np.isnan(train).all(0), 0.0, train)

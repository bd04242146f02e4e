"""One target after the other: what a learner without a network is asked, and what it fits.

scikit-learn fits; what it has fitted becomes arrays, which answer by themselves, without pickle.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.tensors import Expected, check_tensors, numbers, places, positive
from lookhops.graphs import Graphs
from lookhops.sources.splits import Split
from lookhops.tasks import Task

T = TypeVar("T")
#: The lowest probability before they are scaled to sum to 1: a forest that agrees is not certain.
LEAST = 1e-3
#: Rows that walk through all trees at a time.
BATCH = 256


@dataclass(frozen=True, eq=False)
class Question:
    """One target on one split.

    Args:
        y: Class numbers, or numbers, of all graphs; -1 or NaN where they are blank.
        classes: How many classes there are; 0 for numbers.
        train: Numbers of the training graphs that have the target.
        val: Numbers of the validation graphs that have it.
    """

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


def fit_each(
    graphs: Graphs, task: Task, split: Split, fit: Callable[[Question], tuple[Mapping[str, Any], T]]
) -> tuple[list[T], dict[str, Any]]:
    """What is fitted for each target, and what was chosen for each, by name."""
    found: list[T] = []
    chosen: dict[str, Any] = {}
    columns = task.targets(graphs).cpu().numpy().reshape(len(graphs), -1).T
    train, val = split.train.cpu().numpy(), split.val.cpu().numpy()
    for head, classes, y in zip(task.heads, classes_of(task), columns, strict=True):
        known = ~np.isnan(y) & ((y >= 0) | (classes == 0))
        if classes:
            y = np.nan_to_num(y, nan=-1).astype(int)
        about, fitted = fit(Question(y, classes, train[known[train]], val[known[val]]))
        found.append(fitted)
        chosen |= {head.key(name): value for name, value in about.items()}
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


def side_by_side(each: Sequence[Array], task: Task) -> Tensor:
    """The outputs of all targets, shape (g, channels); single precision where all are classes.

    Args:
        each: Log-probabilities of classes, or numbers, of each target.
        task: What was asked.
    """
    dtype = torch.float32 if all(classes_of(task)) else torch.float64
    outputs = [head.task.outputs(values) for head, values in zip(task.heads, each, strict=True)]
    return torch.from_numpy(np.concatenate(outputs, axis=1)).to(dtype)


# -------------------------------------------------------------------- arrays that answer


class Arrays:
    """What is saved as its arrays. Subclasses are frozen dataclasses of them."""

    def tensors(self) -> dict[str, Tensor]:
        """Its arrays, by name."""
        return {
            name: torch.from_numpy(np.array(getattr(self, name), order="C"))
            for name in (field.name for field in fields(self))  # type: ignore[arg-type]
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], table: Mapping[str, Expected]) -> Self:
        """What :meth:`tensors` gave, held against a table."""
        check_tensors(tensors, table)
        return cls(**{name: value.numpy() for name, value in tensors.items()})


class Scorer(Arrays, ABC):
    """What is fitted for one target on rows of numbers."""

    kind: ClassVar[str]  #: its name in a model folder

    @staticmethod
    @abstractmethod
    def table(width: int, channels: int) -> dict[str, Expected]:
        """What its tensors must be.

        Args:
            width: Columns of the rows.
            channels: Of the answers.
        """

    @abstractmethod
    def answers(self, rows: Array, classes: int) -> Array:
        """Probabilities of so many classes, or for none numbers, shape (n, channels).

        Args:
            rows: The features of the graphs, shape (n, d).
            classes: How many classes there are; 0 for numbers.
        """


@dataclass(frozen=True, eq=False)
class Constant(Scorer):
    """The same answer to every graph.

    Args:
        value: The share of each class, or the mean, shape (channels).
    """

    kind: ClassVar[str] = "constant"

    value: Array

    @staticmethod
    def table(width: int, channels: int) -> dict[str, Expected]:
        return {"value": numbers(channels)}

    @classmethod
    def of(cls, question: Question) -> Constant:
        """The shares of the classes of the training part, or its mean."""
        y = question.y[question.train]
        if not question.classes:
            return cls(np.array([y.mean()]))
        return cls(np.bincount(y, minlength=question.classes) / len(y))

    def answers(self, rows: Array, classes: int) -> Array:
        return np.tile(self.value, (len(rows), 1))


@dataclass(frozen=True, eq=False)
class Linear(Scorer):
    r""":math:`W (x - m) / s + b`, of classes the logits of a softmax; blanks are read as the mean.

    Args:
        weight: The :math:`W`, shape (channels, d).
        bias: The :math:`b`, minus infinity of classes without training graphs, shape (channels).
        mean: The :math:`m`, shape (d).
        spread: The :math:`s`, shape (d).
    """

    kind: ClassVar[str] = "linear"

    weight: Array
    bias: Array
    mean: Array
    spread: Array

    @staticmethod
    def table(width: int, channels: int) -> dict[str, Expected]:
        return {
            "weight": numbers(channels, width),
            "bias": numbers(channels, low=-inf),
            "mean": numbers(width),
            "spread": positive(width),
        }

    @classmethod
    def fit(cls, question: Question, rows: Array, penalty: float, standardise: bool) -> Linear:
        """Logistic regression of classes, or ridge regression of numbers, on the training rows.

        Args:
            question: What is asked.
            rows: Of all graphs, shape (g, d).
            penalty: Of the squared weights.
            standardise: Whether features get mean 0 and variance 1 on the training part.
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
        model.fit(_standardised(train, mean, spread), question.y[question.train])
        if not question.classes:
            return cls(np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_), mean, spread)
        weight = np.zeros((question.classes, rows.shape[1]))
        bias = np.full(question.classes, -np.inf)
        binary = len(model.classes_) == 2  # then the logit of the first class is 0
        known = model.classes_[1:] if binary else model.classes_
        bias[model.classes_] = 0.0
        weight[known], bias[known] = model.coef_, model.intercept_
        return cls(weight, bias, mean, spread)

    def answers(self, rows: Array, classes: int) -> Array:
        raw = _standardised(rows, self.mean, self.spread) @ self.weight.T + self.bias
        return np.exp(log_softmax(raw)) if classes else raw


def _standardised(rows: Array, mean: Array, spread: Array) -> Array:
    return np.nan_to_num((rows - mean) / spread)


@dataclass(frozen=True, eq=False)
class Trees(Scorer):
    """Trees whose leaves are added up: a random forest, whose leaves hold shares of an average.

    Args:
        feature: Of each node, which feature it asks for, shape (nodes).
        threshold: Values up to this go left, shape (nodes).
        left: The node on the left; of a leaf itself, shape (nodes).
        right: The node on the right; of a leaf itself, shape (nodes).
        blank_left: Whether blanks go left, shape (nodes).
        value: What a leaf adds, shape (nodes, channels).
        root: The first node of each tree, shape (trees).
        base: What the leaves are added to, shape (channels).
    """

    kind: ClassVar[str] = "forest"

    feature: Array
    threshold: Array
    left: Array
    right: Array
    blank_left: Array
    value: Array
    root: Array
    base: Array

    @staticmethod
    def table(width: int, channels: int) -> dict[str, Expected]:
        return {
            "feature": places("nodes", of=max(width, 1), dtype="int32"),
            "threshold": numbers("nodes", low=-inf, high=inf),
            **dict.fromkeys(("left", "right"), places("nodes", of="nodes", dtype="int32")),
            "blank_left": Expected(("nodes",), "bool"),
            "value": numbers("nodes", channels),
            "root": places("trees", of="nodes", dtype="int32"),
            "base": numbers(channels, low=-inf),
        }

    @classmethod
    def joined(cls, trees: Sequence[Mapping[str, Array]], base: Array) -> Self:
        """One set of nodes from those of several trees, whose children count from 0 in each.

        Beside these arrays trees say which nodes are leaves, ``leaf``; what they have else of
        leaves, and as the value of other nodes, is not read.
        """
        sizes = np.array([len(tree["leaf"]) for tree in trees])
        root = np.cumsum(sizes) - sizes
        nodes = {name: np.concatenate([tree[name] for tree in trees]) for name in trees[0]}
        leaf, here, first = (
            nodes["leaf"].astype(bool),
            np.arange(sum(sizes)),
            np.repeat(root, sizes),
        )
        return cls(
            feature=np.where(leaf, 0, nodes["feature"]).astype(np.int32),
            threshold=np.where(leaf, 0.0, nodes["threshold"]),
            left=np.where(leaf, here, nodes["left"] + first).astype(np.int32),
            right=np.where(leaf, here, nodes["right"] + first).astype(np.int32),
            blank_left=nodes["blank_left"].astype(bool),
            value=np.where(leaf[:, None], nodes["value"], 0.0),
            root=root.astype(np.int32),
            base=base,
        )

    def answers(self, rows: Array, classes: int) -> Array:
        return self._sums(rows)

    def _sums(self, rows: Array) -> Array:
        """The sum of the leaves that each row reaches, shape (n, channels)."""
        found = [self.base + np.zeros((0, len(self.base)))]
        for start in range(0, len(rows), BATCH):
            batch = rows[start : start + BATCH]
            row = np.arange(len(batch))[:, None]
            node = np.broadcast_to(self.root, (len(batch), len(self.root)))
            while True:
                asked = batch[row, self.feature[node]]
                goes_left = np.where(
                    np.isnan(asked), self.blank_left[node], asked <= self.threshold[node]
                )
                following = np.where(goes_left, self.left[node], self.right[node])
                if np.array_equal(following, node):
                    break
                node = following
            found.append(self.base + self.value[node].sum(1))
        return np.concatenate(found)

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], table: Mapping[str, Expected]) -> Self:
        """What :meth:`tensors` gave; every node leads to a later one, or is a leaf."""
        found = super().from_tensors(tensors, table)
        here = np.arange(len(found.feature))
        for name in ("left", "right"):
            if (getattr(found, name) < here).any():
                raise LookHopsError(f"{name!r} leads back to an earlier node")
        return found


class Boosting(Trees):
    """Trees of gradient boosting: what they add up to are logits of classes, or numbers."""

    kind: ClassVar[str] = "boosting"

    def answers(self, rows: Array, classes: int) -> Array:
        raw = self._sums(rows)
        return np.exp(log_softmax(raw)) if classes else raw


#: Every kind by its name in a model folder.
SCORERS: Mapping[str, type[Scorer]] = {
    scorer.kind: scorer for scorer in (Constant, Linear, Trees, Boosting)
}


def training_rows(question: Question, rows: Array) -> Array:
    """The training rows, with zeros in columns that are blank in all of them: they decide nothing.

    scikit-learn has no bins for such columns and no mean.
    """
    train = rows[question.train]
    return np.where(np.isnan(train).all(0), 0.0, train)

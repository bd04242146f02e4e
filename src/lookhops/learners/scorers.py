"""What is fitted for one target, as arrays: constants, linear models and trees, without pickle.

scikit-learn fits; what it has fitted becomes arrays, and these answer by themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.learners.targets import Question, log_softmax

#: Rows that walk through all trees at a time.
BATCH = 256


class Scorer(ABC):
    """What is fitted for one target. Subclasses are frozen dataclasses of arrays."""

    @abstractmethod
    def answers(self, rows: Array, classes: int) -> Array:
        """Probabilities of so many classes, or for none numbers, shape (n, channels).

        Args:
            rows: The features of the graphs, shape (n, d).
            classes: How many classes there are; 0 for numbers.
        """

    def tensors(self) -> dict[str, Tensor]:
        """Its arrays, by name."""
        each = {own.name: np.asarray(getattr(self, own.name)) for own in fields(self)}  # type: ignore[arg-type]
        return {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in each.items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Self:
        """What :meth:`tensors` gave."""
        names = [own.name for own in fields(cls)]  # type: ignore[arg-type]
        if set(tensors) != set(names):
            wanted, found = ", ".join(names), ", ".join(tensors)
            raise LookHopsError(f"a {cls.__name__} is made of {wanted}, not of {found}")
        return cls(**{name: tensors[name].numpy() for name in names})


@dataclass(frozen=True, eq=False)
class Constant(Scorer):
    """The same answer to every graph.

    Args:
        value: The share of each class, or the mean, shape (channels).
    """

    value: Array

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

    weight: Array
    bias: Array
    mean: Array
    spread: Array

    @classmethod
    def fit(cls, question: Question, rows: Array, model: Any, standardise: bool) -> Linear:
        """Fit a linear model of scikit-learn on the training rows.

        Args:
            question: What is asked.
            rows: Of all graphs, shape (g, d).
            model: A ``LogisticRegression``, or of numbers a ``Ridge``.
            standardise: Whether features get mean 0 and variance 1 on the training part.
        """
        from sklearn.preprocessing import StandardScaler

        train = _training(question, rows)
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

    feature: Array
    threshold: Array
    left: Array
    right: Array
    blank_left: Array
    value: Array
    root: Array
    base: Array

    @classmethod
    def joined(cls, trees: Sequence[Mapping[str, Array]], base: Array) -> Self:
        """One set of nodes from those of several trees, whose children count from 0 in each."""
        sizes = np.array([len(tree["feature"]) for tree in trees])
        root = np.cumsum(sizes) - sizes
        names = ("feature", "threshold", "left", "right", "blank_left", "value")
        nodes = {name: np.concatenate([tree[name] for tree in trees]) for name in names}
        first = np.repeat(root, sizes)
        for name in ("left", "right"):
            nodes[name] = (nodes[name] + first).astype(np.int32)
        return cls(**nodes, root=root.astype(np.int32), base=base)

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
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Self:
        """What :meth:`tensors` gave; no node may lead elsewhere."""
        found = super().from_tensors(tensors)
        for name in ("left", "right", "root"):
            own = getattr(found, name)
            if len(own) and not 0 <= own.min() <= own.max() < len(found.feature):
                raise LookHopsError(f"{name} names a node that is not there")
        return found


class Boosting(Trees):
    """Trees of gradient boosting: what they add up to are logits of classes, or numbers."""

    def answers(self, rows: Array, classes: int) -> Array:
        raw = self._sums(rows)
        return np.exp(log_softmax(raw)) if classes else raw


#: Every kind by its name in a model folder.
SCORERS: Mapping[str, type[Scorer]] = {
    "constant": Constant,
    "linear": Linear,
    "forest": Trees,
    "boosting": Boosting,
}
NAMES: Mapping[type[Scorer], str] = {kind: name for name, kind in SCORERS.items()}


def fit_forest(question: Question, rows: Array, trees: int, seed: int) -> Trees:
    """A random forest of scikit-learn, fitted on the training rows."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    make = RandomForestClassifier if question.classes else RandomForestRegressor
    model = make(trees, random_state=seed)
    model.fit(_training(question, rows), question.y[question.train])
    known = model.classes_ if question.classes else np.zeros(1, dtype=int)
    channels = question.classes or 1

    def nodes(tree: Any) -> dict[str, Array]:
        leaf, here = tree.children_left < 0, np.arange(tree.node_count)
        value = np.zeros((tree.node_count, channels))
        own = tree.value[:, 0]
        value[:, known] = (own / own.sum(1, keepdims=True) if question.classes else own) / trees
        value[~leaf] = 0.0
        return {
            "feature": np.where(leaf, 0, tree.feature).astype(np.int32),
            "threshold": tree.threshold,
            "left": np.where(leaf, here, tree.children_left),
            "right": np.where(leaf, here, tree.children_right),
            "blank_left": tree.missing_go_to_left.astype(bool),
            "value": value,
        }

    found = Trees.joined([nodes(one.tree_) for one in model.estimators_], np.zeros(channels))
    return _checked(found, model, question, rows)


def fit_boosting(question: Question, rows: Array, seed: int) -> Boosting:
    """Gradient-boosted trees of scikit-learn, fitted on the training rows.

    Their nodes are in private attributes, which are read here alone.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    make = HistGradientBoostingClassifier if question.classes else HistGradientBoostingRegressor
    model = make(random_state=seed).fit(_training(question, rows), question.y[question.train])
    known = model.classes_ if question.classes else np.zeros(1, dtype=int)
    base = np.full(question.classes or 1, -np.inf)
    base[known] = 0.0
    column_of = known[1:] if question.classes and len(known) == 2 else known
    base[column_of] = np.ravel(model._baseline_prediction)

    def nodes(tree: Any, column: int) -> dict[str, Array]:
        own, here = tree.nodes, np.arange(len(tree.nodes))
        leaf = own["is_leaf"].astype(bool)
        value = np.zeros((len(own), len(base)))
        value[leaf, column] = own["value"][leaf]
        return {
            "feature": np.where(leaf, 0, own["feature_idx"]).astype(np.int32),
            "threshold": np.where(leaf, 0.0, own["num_threshold"]),
            "left": np.where(leaf, here, own["left"]),
            "right": np.where(leaf, here, own["right"]),
            "blank_left": own["missing_go_to_left"].astype(bool),
            "value": value,
        }

    trees = [
        nodes(tree, column)
        for iteration in model._predictors
        for tree, column in zip(iteration, column_of, strict=True)
    ]
    return _checked(Boosting.joined(trees, base), model, question, rows)


def _training(question: Question, rows: Array) -> Array:
    """The training rows, with zeros in columns that are blank in all of them: they decide nothing.

    scikit-learn has no bins for such columns and no mean.
    """
    train = rows[question.train]
    return np.where(np.isnan(train).all(0), 0.0, train)


def _checked(found: Any, model: Any, question: Question, rows: Array) -> Any:
    """Refuse arrays that answer otherwise than the model of scikit-learn they are made from."""
    some = rows[question.train[:BATCH]]
    answers = found.answers(some, question.classes)
    if question.classes:
        expected, answers = model.predict_proba(some), answers[:, model.classes_]
    else:
        expected = model.predict(some)[:, None]
    if not np.allclose(answers, expected, rtol=1e-6, atol=1e-9):
        raise LookHopsError(
            "This version of scikit-learn keeps its trees otherwise than LookHops reads them; "
            "install scikit-learn 1.9 or the version that LookHops asks for."
        )
    return found

"""Trees of scikit-learn as arrays: random forests and gradient boosting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import log_softmax
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.tensors import Expected, numbers, places, saved
from lookhops.learners.scorers import Question, Scorer, training_rows

#: Trees of a forest.
TREES = 500
#: Rows that walk through all trees at a time.
BATCH = 256
#: What scikit-learn's trees call what :class:`Forest` has of nodes: those of forests, and those of
#: gradient boosting.
IN_FORESTS = {
    "feature": "feature",
    "threshold": "threshold",
    "left": "children_left",
    "right": "children_right",
    "blank_left": "missing_go_to_left",
}
IN_BOOSTING = {
    "leaf": "is_leaf",
    "feature": "feature_idx",
    "threshold": "num_threshold",
    "left": "left",
    "right": "right",
    "blank_left": "missing_go_to_left",
}


@dataclass(frozen=True, eq=False)
class Forest(Scorer):
    """Trees whose leaves are added up, as shares of their average.

    A node asks for a ``feature``: values up to its ``threshold`` go left, and so do blanks where
    ``blank_left`` says so. Left and right of a leaf is the leaf itself, which adds its ``value``.
    Trees begin at their ``root``; ``base`` is what leaves are added to.
    """

    kind: ClassVar[str] = "forest"

    feature: Array = saved(places("nodes", of="columns", dtype="int32"))
    threshold: Array = saved(numbers("nodes", low=-inf, high=inf))
    left: Array = saved(places("nodes", of="nodes", dtype="int32"))
    right: Array = saved(places("nodes", of="nodes", dtype="int32"))
    blank_left: Array = saved(Expected(("nodes",), "bool"))
    value: Array = saved(numbers("nodes", "channels"))
    root: Array = saved(places("trees", of="nodes", dtype="int32"))
    base: Array = saved(numbers("channels", low=-inf))

    @classmethod
    def fit(cls, question: Question, rows: Array, seed: int, trees: int = TREES) -> Forest:
        """A random forest of scikit-learn, fitted on the training rows."""
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        make = RandomForestClassifier if question.classes else RandomForestRegressor
        model = make(trees, random_state=seed)
        model.fit(training_rows(question, rows), question.y[question.train])
        channels = model.classes_ if question.classes else [0]
        base, nodes = np.zeros(question.classes or 1), []
        for tree in (one.tree_ for one in model.estimators_):
            value = np.zeros((tree.node_count, len(base)))
            leaves = tree.value[:, 0]
            if question.classes:
                leaves = leaves / leaves.sum(1, keepdims=True)
            value[:, channels] = leaves / trees
            found = {name: getattr(tree, field) for name, field in IN_FORESTS.items()}
            nodes.append({**found, "leaf": tree.children_left < 0, "value": value})
        return cls._joined(nodes, base, model, question, rows)

    @classmethod
    def _joined(
        cls,
        trees: Sequence[Mapping[str, Array]],
        base: Array,
        model: Any,
        question: Question,
        rows: Array,
    ) -> Self:
        """One set of nodes from those of several trees, whose children count from 0 in each.

        What trees have else of leaves, and as the value of other nodes, is not read. Arrays that
        answer otherwise than the model that they are made from are refused.
        """
        sizes = np.array([len(tree["leaf"]) for tree in trees])
        root = np.cumsum(sizes) - sizes
        nodes = {name: np.concatenate([tree[name] for tree in trees]) for name in trees[0]}
        leaf, number = nodes["leaf"].astype(bool), np.arange(sum(sizes))
        first = np.repeat(root, sizes)
        made = cls(
            feature=np.where(leaf, 0, nodes["feature"]).astype(np.int32),
            threshold=np.where(leaf, 0.0, nodes["threshold"]),
            left=np.where(leaf, number, nodes["left"] + first).astype(np.int32),
            right=np.where(leaf, number, nodes["right"] + first).astype(np.int32),
            blank_left=nodes["blank_left"].astype(bool),
            value=np.where(leaf[:, None], nodes["value"], 0.0),
            root=root.astype(np.int32),
            base=base,
        )
        sample = rows[question.train[:BATCH]]
        answers = made.answers(sample, question.classes)
        if question.classes:
            expected, answers = model.predict_proba(sample), answers[:, model.classes_]
        else:
            expected = model.predict(sample)[:, None]
        if not np.allclose(answers, expected, rtol=1e-6, atol=1e-9):
            raise LookHopsError(
                "This version of scikit-learn keeps its trees otherwise than LookHops reads them; "
                "install scikit-learn 1.9 or the version that LookHops asks for."
            )
        return made

    def answers(self, rows: Array, classes: int) -> Array:
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
    def from_tensors(cls, tensors: Mapping[str, Tensor], **sizes: int) -> Self:
        """What :meth:`tensors` gave; every node leads to a later one, or is a leaf."""
        sizes["columns"] = max(sizes["columns"], 1)  # a leaf asks for the first, if any
        found = super().from_tensors(tensors, **sizes)
        for name in ("left", "right"):
            if (getattr(found, name) < np.arange(len(found.feature))).any():
                raise LookHopsError(f"{name!r} leads back to an earlier node")
        return found


class Boosting(Forest):
    """Trees of gradient boosting: what they add up to are logits of classes, or numbers."""

    kind: ClassVar[str] = "boosting"

    @classmethod
    def fit(cls, question: Question, rows: Array, seed: int) -> Boosting:  # type: ignore[override]
        """Gradient-boosted trees of scikit-learn, fitted on the training rows.

        Their nodes are in private attributes, which are read here alone.
        """
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        make = HistGradientBoostingClassifier if question.classes else HistGradientBoostingRegressor
        model = make(random_state=seed)
        model.fit(training_rows(question, rows), question.y[question.train])
        base, channels = np.zeros(1), [0]
        if question.classes:
            base = np.full(question.classes, -np.inf)
            base[model.classes_] = 0.0
            channels = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
        base[channels] = np.ravel(model._baseline_prediction)
        nodes = []
        for iteration in model._predictors:
            for tree, channel in zip(iteration, channels, strict=True):
                value = np.zeros((len(tree.nodes), len(base)))
                value[:, channel] = tree.nodes["value"]
                found = {name: tree.nodes[field] for name, field in IN_BOOSTING.items()}
                nodes.append({**found, "value": value})
        return cls._joined(nodes, base, model, question, rows)

    def answers(self, rows: Array, classes: int) -> Array:
        raw = super().answers(rows, classes)
        return np.exp(log_softmax(raw, 1)) if classes else raw

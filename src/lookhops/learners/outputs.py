"""What classical models are asked, target by target, and what they answer with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.graphs import Graphs
from lookhops.sources.splits import Split
from lookhops.tasks import task_of

_LEAST = 1e-3


@dataclass(frozen=True)
class Outputs:
    """One model's answers on one split.

    Args:
        predictions: Outputs in the units of the targets for the ``val`` and ``test`` parts, as a
            network's :class:`~lookhops.training.runs.Run`: log-probabilities of classes, in
            single precision where there are classes alone, and numbers.
        chosen: What the validation part chose.
    """

    predictions: dict[str, Tensor]
    chosen: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Question:
    """One target on one split.

    Args:
        name: What is asked for, where there are several targets.
        y: Class numbers, or numbers, of all graphs; -1 or NaN where they are blank.
        classes: How many classes there are; 0 for numbers.
        train: Numbers of the training graphs that have the target.
        val: Numbers of all validation graphs.
        test: Numbers of all test graphs.
    """

    name: str
    y: Array
    classes: int
    train: Array
    val: Array
    test: Array

    def known(self, part: Array) -> Array:
        """Which graphs of a part have the target."""
        return ~np.isnan(self.y[part]) if self.classes == 0 else self.y[part] >= 0

    def goodness(self, val_answers: Array) -> float:
        """How right answers to the validation part are, to choose by: accuracy, or minus MAE."""
        known = self.known(self.val)
        answers, y = val_answers[known], self.y[self.val][known]
        if not len(y):
            return 0.0
        if self.classes == 0:
            return -float(np.abs(answers[:, 0] - y).mean())
        return float((answers.argmax(1) == y).mean())


#: Answers to the validation and the test part, and what the validation part chose.
Answers = tuple[Array, Array, Mapping[str, Any]]


def answer_each(graphs: Graphs, split: Split, answer: Callable[[Question], Answers]) -> Outputs:
    """Ask a model for each target of the graphs, and put its answers side by side.

    A target of which the training part has one class alone is answered by that class.
    """
    val, test = [], []
    chosen: dict[str, Any] = {}
    questions = list(questions_of(graphs, split))
    for question in questions:
        one_class = question.classes and len(np.unique(question.y[question.train])) < 2
        own_val, own_test, found = (answer_mean if one_class else answer)(question)
        val.append(own_val)
        test.append(own_test)
        prefix = f"{question.name}: " if len(questions) > 1 else ""
        chosen |= {f"{prefix}{name}": value for name, value in found.items()}
    dtype = torch.float32 if all(question.classes for question in questions) else torch.float64
    parts = {"val": np.concatenate(val, axis=1), "test": np.concatenate(test, axis=1)}
    return Outputs({part: torch.from_numpy(rows).to(dtype) for part, rows in parts.items()}, chosen)


def answer_mean(question: Question) -> Answers:
    """The training part's mean, or its share of each class, whatever the graph."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    model = DummyClassifier() if question.classes else DummyRegressor()
    return *fit_and_answer(question, model, np.zeros((len(question.y), 1))), {}


def questions_of(graphs: Graphs, split: Split) -> Iterator[Question]:
    """Each target, in the order of a network's outputs."""
    task = task_of(graphs)
    columns = task.targets(graphs).cpu().numpy().reshape(len(graphs), -1).T
    train, val, test = (part.cpu().numpy() for part in (split.train, split.val, split.test))
    for head, y in zip(task.heads, columns, strict=True):
        classes = len(head.task.class_names)
        if classes:
            y = np.nan_to_num(y, nan=-1).astype(int)
        question = Question(head.name, y, classes, train, val, test)
        yield replace(question, train=train[question.known(train)])


def fit_and_answer(question: Question, model: Any, rows: Any) -> tuple[Array, Array]:
    """Fit a scikit-learn model on the training rows; its answers to the other parts."""
    model.fit(rows[question.train], question.y[question.train])
    val, test = (answers_of(question, model, rows[part]) for part in (question.val, question.test))
    return val, test


def answers_of(question: Question, model: Any, rows: Any) -> Array:
    """Log-probabilities of a fitted classifier, or numbers of a regressor, a column each.

    A probability is at least one in a thousand before they are scaled to sum to 1: a forest whose
    trees agree is not certain.
    """
    if question.classes == 0:
        numbers: Array = np.asarray(model.predict(rows), dtype=np.float64)[:, None]
        return numbers
    p = all_classes(model.predict_proba(rows), model.classes_, question.classes, otherwise=0.0)
    p = p.clip(min=_LEAST)
    logs: Array = np.log(p / p.sum(1, keepdims=True))
    return logs


def all_classes(scores: Array, known: Array, num_classes: int, otherwise: float) -> Array:
    """Columns for all classes, where scikit-learn has them for those in the training part.

    Args:
        scores: Shape (n, classes in training).
        known: Those classes.
        num_classes: How many there are in all.
        otherwise: The score of the others.
    """
    full = np.full((len(scores), num_classes), otherwise, dtype=np.float64)
    full[:, known] = scores
    return full


def best_of(question: Question, answers: Mapping[Any, tuple[Array, Array]]) -> Any:
    """The first of those answers that are best on the validation part."""
    return max(answers, key=lambda name: question.goodness(answers[name][0]))


def check_targets(graphs: Graphs) -> None:
    """Refuse graphs that ask nothing."""
    task_of(graphs)

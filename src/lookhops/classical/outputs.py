"""What every classical model answers with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookhops.datasets.splits import Split
from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs

Array = NDArray[Any]
_LEAST = 1e-3


@dataclass(frozen=True)
class Outputs:
    """One model's answers on one split.

    Args:
        predictions: Log-probabilities of the ``val`` and ``test`` parts, float32, each of shape
            (graphs of the part, classes), as a network's :class:`~lookhops.training.trainer.Run`.
        chosen: What the validation part chose.
    """

    predictions: dict[str, Tensor]
    chosen: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_arrays(cls, val: Array, test: Array, **chosen: Any) -> Outputs:
        """From log-probabilities in NumPy."""
        predictions = {"val": torch.from_numpy(val).float(), "test": torch.from_numpy(test).float()}
        return cls(predictions, chosen)


def classes_of(graphs: Graphs) -> Array:
    """The class of each graph; graphs without classes are refused."""
    if graphs.y is None:
        raise LookHopsError(f"{graphs.name} has no classes to learn.")
    return graphs.y.cpu().numpy()


def parts_of(split: Split) -> tuple[Array, Array, Array]:
    """Numbers of the training, validation and test graphs, in NumPy."""
    train, val, test = (part.cpu().numpy() for part in (split.train, split.val, split.test))
    return train, val, test


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


def log_probabilities(model: Any, rows: Array, num_classes: int) -> Array:
    """Log-probabilities of a fitted scikit-learn classifier, shape (n, num_classes).

    A probability is at least one in a thousand before they are scaled to sum to 1: a forest whose
    trees agree is not certain.
    """
    p = all_classes(model.predict_proba(rows), model.classes_, num_classes, otherwise=0.0)
    p = p.clip(min=_LEAST)
    logs: Array = np.log(p / p.sum(1, keepdims=True))
    return logs


def accuracy(log_p: Array, y: Array) -> float:
    """The share of rows whose largest entry is in column ``y``."""
    return float((log_p.argmax(1) == y).mean())

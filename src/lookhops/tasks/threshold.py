"""From which probability the second of two classes is answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookhops.core.errors import LookHopsError
from lookhops.tasks.metrics import confusion_matrix, rates, two_class_rates

#: What a threshold can be chosen for on a validation part.
CHOSEN_FOR = ("f1", "youden")


def check_threshold(threshold: str, class_names: Sequence[str]) -> None:
    """Refuse a threshold that is none, or that is for other than two classes."""
    if len(class_names) != 2:
        raise LookHopsError(
            f"A threshold is for two classes, and these are {len(class_names)}; leave it out."
        )
    if threshold not in CHOSEN_FOR and not 0 < _number(threshold) < 1:
        raise LookHopsError(
            f"A threshold is a probability between 0 and 1, or {' or '.join(CHOSEN_FOR)}, not "
            f"{threshold!r}."
        )


def choose_threshold(p: NDArray[Any], y: NDArray[Any], threshold: str) -> float:
    """The probability from which the second class is answered.

    Halfway between two probabilities that occur, where F1 or the recalls of the two classes
    together are highest; of several the one nearest to 0.5. 0.5 where only one class is there.

    Args:
        p: Probabilities of the second class, shape (n).
        y: Classes, 0 or 1, shape (n).
        threshold: A number, or one of :data:`CHOSEN_FOR`.
    """
    if threshold not in CHOSEN_FOR:
        return float(threshold)
    if len(np.unique(y)) < 2:
        return 0.5
    values = np.unique(np.concatenate(([0, 1], p)))
    places = np.append((values[1:] + values[:-1]) / 2, 0.5)
    best, chosen = -1.0, 0.5
    for place in sorted(places.tolist(), key=lambda place: abs(place - 0.5)):
        matrix = confusion_matrix(y, (p >= place).astype(np.int64), 2)
        by_f1 = threshold == "f1"
        value = two_class_rates(matrix)["f1"] if by_f1 else rates(matrix)["balanced_accuracy"]
        if value > best + 1e-12:
            best, chosen = float(value), place
    return chosen


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")

"""How good predictions are: accuracy and its kin, ranking, and calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: Resamples of a bootstrap interval, and the share of them that it holds.
RESAMPLES, COVERAGE = 1000, 0.95
#: Bins of the expected calibration error.
BINS = 15


def confusion_matrix(y: Array, predicted: Array, num_classes: int) -> Array:
    """How often each true class (row) was taken for each class (column)."""
    pairs = np.bincount(y * num_classes + predicted, minlength=num_classes**2)
    return pairs.reshape(num_classes, num_classes)


def rates(confusion: Array) -> dict[str, Array]:
    """Accuracy, balanced accuracy and macro-F1, shape (...), of confusion matrices.

    Balanced accuracy is the mean recall of the classes that are there; macro-F1 is the mean over
    the classes that are there or predicted.

    Args:
        confusion: Shape (..., classes, classes), true classes in rows.
    """
    hits = confusion.diagonal(axis1=-2, axis2=-1)
    true, predicted = confusion.sum(-1), confusion.sum(-2)
    there, either = true > 0, true + predicted > 0
    recall = hits / np.maximum(true, 1)
    f1 = 2 * hits / np.maximum(true + predicted, 1)
    return {
        "accuracy": hits.sum(-1) / true.sum(-1),
        "balanced_accuracy": recall.sum(-1) / there.sum(-1),
        "macro_f1": f1.sum(-1) / either.sum(-1),
    }


# -------------------------------------------------------------------- ranking


def auroc(p: Array, y: Array, weight: Array | None = None) -> float | None:
    """Area under the ROC curve; of more than two classes the mean of one against the rest.

    Classes that are not in ``y``, or that are all of it, have no curve; where no class has one
    the answer is none.

    Args:
        p: Probabilities, shape (n, classes).
        y: Classes, shape (n).
        weight: How often each row counts, shape (n); by default once.
    """
    weight = np.ones(len(y)) if weight is None else weight
    classes = range(1, 2) if p.shape[1] == 2 else range(p.shape[1])
    areas = [_area(p[:, c], weight * (y == c), weight * (y != c)) for c in classes]
    known = [area for area in areas if area is not None]
    return float(np.mean(known)) if known else None


def _area(score: Array, positive: Array, negative: Array) -> float | None:
    """The chance that a positive scores above a negative; equal scores count half."""
    pairs = positive.sum() * negative.sum()
    if pairs == 0:
        return None
    _, group = np.unique(score, return_inverse=True)
    above, below = np.bincount(group, positive), np.bincount(group, negative)
    return float((above * (below.cumsum() - below / 2)).sum() / pairs)


def bootstrap_auroc(p: Array, y: Array, resamples: int = RESAMPLES, seed: int = 0) -> Array:
    """AUROC of resampled rows, shape (resamples); NaN where a resample has none."""
    generator = np.random.default_rng(seed)
    n = len(y)
    drawn = np.full(resamples, np.nan)
    for i in range(resamples):
        weight = np.bincount(generator.integers(n, size=n), minlength=n)
        area = auroc(p, y, weight)
        drawn[i] = np.nan if area is None else area
    return drawn


def interval(draws: Array) -> list[float] | None:
    """The middle 95% of the draws that are numbers."""
    known = draws[np.isfinite(draws)]
    if not known.size:
        return None
    rest = (1 - COVERAGE) / 2
    return [float(value) for value in np.quantile(known, (rest, 1 - rest))]


# -------------------------------------------------------------------- calibration


def calibration_error(p: Array, y: Array, bins: int = BINS) -> float:
    r"""Expected calibration error :math:`\sum_b \frac{n_b}{n} |\mathrm{acc}_b - \mathrm{conf}_b|`.

    Rows fall into ``bins`` bins of equal width by the probability of their likeliest class.
    """
    confidence, hit = p.max(1), p.argmax(1) == y
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    gap = np.bincount(place, hit - confidence, minlength=bins)
    return float(np.abs(gap).sum() / len(y))


def fit_temperature(output: Array, y: Array) -> float:
    r"""The temperature :math:`T` that makes the classes ``y`` likeliest.

    .. math::
        \min_T \; -\sum_i \log \mathrm{softmax}(o_i / T)_{y_i} + \tfrac12 (\ln T)^2

    The last term, worth less than one graph, keeps a small validation part without a mistake from
    asking for certainty (:math:`T = 0`).
    """
    from scipy.optimize import minimize_scalar  # takes its time to import
    from scipy.special import log_softmax

    rows = np.arange(len(y))

    def cost(log_t: float) -> float:
        likelihood = log_softmax(output / np.exp(log_t), axis=-1)[rows, y].sum()
        return float(log_t**2 / 2 - likelihood)

    found = minimize_scalar(cost, bounds=(-4, 4), method="bounded", options={"xatol": 1e-6})
    return float(np.exp(found.x))

"""How good predictions are: accuracy and its kin, ranking, and calibration.

Here ``p`` are probabilities, shape (n, classes), and ``y`` the numbers of the true classes, or true
numbers, shape (n).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import floor, inf, log10, nan

import numpy as np

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.paired import CONFIDENCE, ROUNDING
from lookhops.core.words import MINUS, NONE

#: Resamples of a bootstrap interval.
RESAMPLES = 1000
#: Metrics that are the share of the graphs of which something is true.
COUNTED = ("accuracy", "coverage")
#: Graphs of a class below which redrawn sets are too alike: metrics over classes have no interval.
LEAST_OF_CLASS = 10
#: Parts of the rows by which a temperature is judged.
FOLDS = 5
#: Bins of the expected calibration error.
BINS = 15
#: What a threshold of two classes can be chosen for on a validation part.
CHOSEN_FOR = ("f1", "youden")


@dataclass(frozen=True)
class Metric:
    """One number about a model's answers."""

    name: str  #: its key in configs, stores and exports
    title: str  #: what tables call it
    higher_is_better: bool = True
    share: bool = True  #: whether it is from 0 to 1 and shown in per cent
    shown: bool = True  #: whether tables of results have a row for it
    about_calibration: bool = False  #: whether it is about how sure the answers are, not how right
    over_classes: bool = False  #: whether every class counts alike, however few graphs it has
    of_class: str = ""  #: the class whose graphs it is about, where it is about one class

    @property
    def scale(self) -> float:
        """What values are multiplied by to be shown: 100 for shares, else 1."""
        return 100.0 if self.share else 1.0

    @property
    def heading(self) -> str:
        """Its title with its unit, above a column of values: ``accuracy, %``."""
        return f"{self.title}, %" if self.share else self.title

    def digits(self, size: float) -> int:
        """Digits after the point of values of about this size: one of shares, else three in all."""
        if self.share:
            return 1
        return max(2 - floor(log10(abs(size))), 0) if 0 < abs(size) < inf else 2

    def written(self, *values: float | None, joint: str = " ± ") -> str:
        """Values of it as tables show them: ``77.5 %``, ``77.5 ± 1.3 %``, ``0.532 ± 0.021``.

        There is one, or two that belong together: mean and spread, or the ends of an interval, with
        ``joint`` between them. Shares are in per cent with one digit, other numbers have three
        significant digits of the first; a dash stands where there is no value.
        """
        known = [value for value in values if value is not None]
        if not known:
            return NONE
        digits = self.digits(known[0])
        texts = [f"{self.scale * value:,.{digits}f}" for value in known]
        return joint.join(texts).replace("-", MINUS) + (" %" if self.share else "")


def confusion_matrix(y: Array, predicted: Array, num_classes: int) -> Array:
    """How often each true class (row) was taken for each class (column)."""
    pairs = np.bincount(y * num_classes + predicted, minlength=num_classes**2)
    return pairs.reshape(num_classes, num_classes)


def rates(confusion: Array) -> dict[str, Array]:
    """Accuracy, balanced accuracy and macro-F1, shape (...), of confusion matrices.

    These have shape (..., classes, classes), true classes in rows. Balanced accuracy is the mean
    recall of the classes that are there; macro-F1 is the mean over those there or predicted.
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


def two_class_rates(confusion: Array) -> dict[str, float]:
    r"""F1 of the second of two classes, and Matthews' correlation coefficient.

    .. math::
        F_1 = \frac{2\,tp}{2\,tp + fp + fn}, \qquad \mathrm{MCC} =
        \frac{tp \cdot tn - fp \cdot fn}{\sqrt{(tp + fp)(tp + fn)(tn + fp)(tn + fn)}},

    0 where the denominator is, by the confusion matrix with true classes in rows.
    """
    (tn, fp), (fn, tp) = confusion.astype(float).tolist()
    root = np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return {
        "f1": 2 * tp / max(2 * tp + fp + fn, 1),
        "mcc": float((tp * tn - fp * fn) / root) if root else 0.0,
    }


def check_threshold(threshold: str, classes: int) -> None:
    """Refuse a threshold that is none, or that is for other than two classes."""
    if classes != 2:
        raise LookHopsError(
            f"A threshold is for two classes, and these are {classes}; leave it out."
        )
    try:
        probability = float(threshold)
    except ValueError:
        probability = nan
    if threshold not in CHOSEN_FOR and not 0 < probability < 1:
        raise LookHopsError(
            f"A threshold is a probability between 0 and 1, or {' or '.join(CHOSEN_FOR)}, not "
            f"{threshold!r}."
        )


def choose_threshold(p: Array, y: Array, threshold: str) -> float:
    """The probability from which the second class is answered.

    Halfway between two probabilities that occur, where F1 or the recalls of the two classes
    together are highest; of several the one nearest to 0.5. 0.5 where only one class is there.

    ``p`` are probabilities of the second class, shape (n); ``threshold`` is a number, or one of
    :data:`CHOSEN_FOR`.
    """
    if threshold not in CHOSEN_FOR:
        return float(threshold)
    if len(np.unique(y)) < 2:
        return 0.5
    values = np.unique(np.concatenate(([0, 1], p)))
    tried = np.append((values[1:] + values[:-1]) / 2, 0.5)
    # How many of each class are at each of these probabilities or above.
    fp, tp = (np.sum(y == c) - np.searchsorted(np.sort(p[y == c]), tried) for c in (0, 1))
    negatives, positives = np.sum(y == 0), np.sum(y == 1)
    score = (
        tp / positives - fp / negatives if threshold == "youden" else 2 * tp / (tp + fp + positives)
    )
    best = tried[score > score.max() - 1e-12]
    return float(best[np.abs(best - 0.5).argmin()])


def classification_metrics(
    p: Array, y: Array, decided: Array, loss: float
) -> dict[str, float | None]:
    """All rates of the classes that are ``decided``, how well ``p`` rank, and the loss."""
    matrix = confusion_matrix(y, decided, p.shape[1])
    found: dict[str, float | None] = {name: float(one) for name, one in rates(matrix).items()}
    found |= {"auroc": auroc(p, y), "loss": loss}
    if p.shape[1] != 2:
        return found
    return found | {"average_precision": average_precision(p[:, 1], y), **two_class_rates(matrix)}


def average_precision(score: Array, y: Array) -> float | None:
    """Mean precision over the ranks of the positives (``y`` = 1); none where there is none.

    The sum of (R_t - R_{t-1}) P_t over the scores t from the largest down, where P_t and R_t are
    precision and recall of those who score t or more: as scikit-learn has it, to the last bit, but
    that one takes a millisecond, and there are thousands to draw.
    """
    if not (y == 1).any():
        return None
    _, group = np.unique(-score, return_inverse=True)
    hits, seen = np.bincount(group, y == 1).cumsum(), np.bincount(group).cumsum()
    recall = np.append(0.0, hits / hits[-1])
    return float(-np.sum(np.diff(recall[::-1]) * (hits / seen)[::-1]))


def auroc(p: Array, y: Array, weight: Array | None = None) -> float | None:
    """Area under the ROC curve; of more than two classes the mean of one against the rest.

    Classes that are not in ``y``, or that are all of it, have no curve; where no class has one
    the answer is none. ``weight`` is how often each row counts, shape (n), by default once.
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


def bootstrap_auroc(p: Array, y: Array, resamples: int = RESAMPLES) -> Array:
    """AUROC of resampled rows, shape (resamples); NaN where a resample has none."""
    weights = (np.bincount(rows, minlength=len(y)) for rows in _resamples(len(y), resamples))
    areas = (auroc(p, y, weight) for weight in weights)
    return np.array([np.nan if area is None else area for area in areas])


def bootstrap_means(values: Mapping[str, Array], resamples: int = RESAMPLES) -> dict[str, Array]:
    """The mean of each array over resampled rows, each of shape (resamples)."""
    count = len(next(iter(values.values())))
    if not count:
        return {name: np.full(resamples, np.nan) for name in values}
    drawn = [
        [each[rows].mean() for each in values.values()] for rows in _resamples(count, resamples)
    ]
    return dict(zip(values, np.array(drawn).T, strict=True))


def _resamples(count: int, resamples: int) -> Iterator[Array]:
    generator = np.random.default_rng(0)
    return (generator.integers(count, size=count) for _ in range(resamples))


def interval(draws: Array) -> list[float] | None:
    """The middle 95% of the draws that are numbers; none where it has no width.

    What is the same in all redrawn sets, as of one graph or where all answers are right, would look
    certain: redrawing cannot tell how sure it is.
    """
    known = draws[np.isfinite(draws)]
    if not known.size:
        return None
    tail = (1 - CONFIDENCE) / 2
    low, high = (float(value) for value in np.quantile(known, (tail, 1 - tail)))
    return [low, high] if high - low > ROUNDING * max(abs(low), abs(high)) else None


def exact_interval(share: float, count: int) -> list[float]:
    r"""The 95% interval of Clopper and Pearson of a share of so many graphs.

    Of ``count`` that are all right it begins at :math:`0.025^{1 / \mathrm{count}}`.
    """
    from scipy.stats import binomtest  # takes its time to import

    found = binomtest(round(share * count), count).proportion_ci(CONFIDENCE)
    return [float(found.low), float(found.high)]


def number_errors(answer: Array, y: Array) -> dict[str, float | None]:
    r"""MAE, RMSE, :math:`R^2` and Spearman's rank correlation; none where they are not defined.

    .. math::
        R^2 = 1 - \frac{\sum_i (y_i - a_i)^2}{\sum_i (y_i - \bar y)^2}
    """
    from scipy.stats import spearmanr  # takes its time to import

    if not len(y):
        return dict.fromkeys(("mae", "rmse", "r2", "spearman"))
    error, spread = answer - y, float(((y - y.mean()) ** 2).sum())
    ranked = min(np.ptp(answer), np.ptp(y)) > 0
    return {
        "mae": float(np.abs(error).mean()),
        "rmse": float(np.sqrt((error**2).mean())),
        "r2": 1 - float((error**2).sum()) / spread if spread > 0 else None,
        "spearman": float(spearmanr(answer, y).statistic) if ranked else None,
    }


def calibration_error(p: Array, y: Array, bins: int = BINS) -> float:
    r"""Expected calibration error :math:`\sum_b \frac{n_b}{n} |\mathrm{acc}_b - \mathrm{conf}_b|`.

    Rows fall into ``bins`` bins of equal width by the probability of their likeliest class.
    """
    confidence, hit = p.max(1), p.argmax(1) == y
    in_bin = np.minimum((confidence * bins).astype(int), bins - 1)
    gap = np.bincount(in_bin, hit - confidence, minlength=bins)
    return float(np.abs(gap).sum() / len(y))


def choose_temperature(output: Array, y: Array) -> float:
    """The temperature of :func:`fit_temperature`, or 1 where it is not clearly better than none.

    Each fifth of the rows is judged by the temperature of the others: the mean gain in log loss is
    to exceed its standard error. Of fewer than ten rows the calibration error is not to grow.
    ``output`` are outputs, or logarithms of probabilities, shape (n, classes).
    """
    from scipy.special import log_softmax, softmax  # takes its time to import

    chosen = fit_temperature(output, y)
    if len(y) < 2 * FOLDS:
        plain, scaled = (calibration_error(softmax(output / t, -1), y) for t in (1, chosen))
        return chosen if scaled <= plain else 1.0
    fold = np.random.default_rng(0).permutation(len(y)) % FOLDS
    each = [fit_temperature(output[fold != part], y[fold != part]) for part in range(FOLDS)]
    scaled = log_softmax(output / np.array(each)[fold, None], -1) - log_softmax(output, -1)
    gain = scaled[np.arange(len(y)), y]
    return chosen if gain.mean() > gain.std() / np.sqrt(len(y)) else 1.0


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

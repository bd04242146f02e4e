r"""Sets of classes and intervals of numbers that hold the truth with a chosen probability.

Split-conformal prediction (Vovk et al., 2005; Lei et al., 2018): how far the truth of :math:`n`
validation graphs is from their answers, their scores, says how far that of a new graph may be.
Whatever the model, a region of coverage :math:`1 - \alpha` then holds the truth of a graph of the
same kind with at least that probability. Several models, each with its own training and validation
part, answer together as in cross-conformal prediction and the CV+ interval (Vovk, 2015; Barber et
al., 2021).

Each class is compared with validation graphs of that class alone (class-conditional or Mondrian
prediction; Vovk, 2012): a rare class is in as large a share of its sets as a common one. Where a
model says of each graph how far it expects to be off, its *deviation*, distances are divided by a
scale that grows with it: intervals are then narrow near the training set and wide far from it
(normalised conformal prediction; Papadopoulos et al., 2008; Lei et al., 2018).

Scores have shape (n, 2): the distance, and beside it what regions also depend on, the number of
the class or the deviation. With shape (n) there is nothing beside: the classes share their scores,
and the intervals one width.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, inf

import numpy as np
from numpy.typing import NDArray

from lookhops.core.arrays import Array

#: The coverage that is measured when a model is trained, and the default afterwards.
COVERAGE = 0.9
#: Numbers that are compared at a time.
CHUNK = 10_000_000
#: Validation graphs from which on it is tried whether their deviations say anything.
LEAST_FOR_SCALE = 30
#: Weights of deviations that are tried, for those with a mean square of 1.
WEIGHTS = (0.0, *(4.0**power for power in range(-2, 6)))


def conformal_quantile(scores: Array, coverage: float = COVERAGE) -> float:
    r"""The distance that one model's region reaches up to; infinite where too few are given.

    It is the :math:`\lceil (1 - \alpha) (n + 1) \rceil`-th smallest of the :math:`n` given.
    """
    rank = ceil(coverage * (len(scores) + 1) - 1e-9)
    return float(np.partition(scores, rank - 1)[rank - 1]) if rank <= len(scores) else inf


def class_quantiles(scores: Array, classes: int, coverage: float = COVERAGE) -> list[float]:
    """How far one model's :func:`class_sets` reach for each class, and for all together, to 1.

    ``scores`` are the :func:`class_scores` of its validation part.
    """
    together = min(conformal_quantile(scores[:, 0], coverage), 1.0)
    found = []
    for c in range(classes):
        of_class = scores[scores[:, 1] == c, 0]
        reach = conformal_quantile(of_class, coverage)
        found.append(reach if reach < inf else max(together, of_class.max(initial=0)))
    return [*found, together]


def class_scores(p: Array, y: Array) -> Array:
    """One less the probability of the true class, and that class, of rows that have one.

    ``p`` are probabilities, shape (g, classes), ``y`` numbers of classes, NaN where blank.
    """
    known = np.flatnonzero(y >= 0)
    classes = y[known].astype(np.int64)
    return np.stack((1 - p[known, classes], classes), 1)


def class_sets(p: Array, scores: Sequence[Array], coverage: float = COVERAGE) -> Array:
    r"""Which classes may be the true one, shape (g, classes), booleans.

    Class :math:`c` is in the set if :math:`1 - p_c` is among the smallest :math:`1 - \alpha` of the
    scores :math:`s_{ki}` of the :math:`n_{kc}` validation graphs of that class,

    .. math::
        w_c = 1 + \sum_k \#\{i : y_{ki} = c, s_{ki} \ge 1 - p_{kc}\}
        > \max\Big(\alpha \big(1 + \sum_k n_{kc}\big), 1\Big),

    or if no class is likelier. Without the maximum a class with fewer than :math:`1 / \alpha - 1`
    graphs (nine, for 90%) would be in every set; with it, the class reaches as far as the farthest
    of its graphs, and at least as far as all classes together do.

    Here ``p`` are probabilities by each of the models, shape (models, g, classes), ``scores`` the
    :func:`class_scores` of each one's validation part, and ``coverage`` is :math:`1 - \alpha`.
    """
    together = _among_smallest(p, [one if one.ndim == 1 else one[:, 0] for one in scores], coverage)
    for c in range(p.shape[-1]) if scores[0].ndim > 1 else ():
        of_class = [one[one[:, 1] == c, 0] for one in scores]
        enough = (1 - coverage) * (1 + sum(map(len, of_class))) > 1 - 1e-9
        reached = _among_smallest(p[..., c], of_class, coverage, least=1)
        together[:, c] = reached if enough else reached | together[:, c]
    likeliest = p.mean(0).argmax(-1)
    together[np.arange(len(together)), likeliest] = True
    return together


def _among_smallest(
    p: Array, scores: Sequence[Array], coverage: float, least: float = 0
) -> NDArray[np.bool_]:
    """Whether :math:`1 - p` is among the smallest scores, of the shape of a model's p."""
    alike, limit = np.ones_like(p[0]), max((1 - coverage) * (1 + sum(map(len, scores))), least)
    for of_model, each in zip(p, scores, strict=True):
        alike += len(each) - np.searchsorted(np.sort(each), 1 - of_model, side="left")
    return np.asarray(alike > limit + 1e-9)


def number_scores(answers: Array, y: Array, deviation: Array | None = None) -> Array:
    """Absolute residuals of rows whose number is known, and their deviations where given."""
    known = np.isfinite(y)
    residual = np.abs(y[known] - answers[known])
    return residual if deviation is None else np.stack((residual, deviation[known]), 1)


def number_intervals(
    answers: Array,
    scores: Sequence[Array],
    coverage: float = COVERAGE,
    deviation: Array | None = None,
) -> Array:
    r"""Lower and upper ends of intervals for numbers, shape (g, 2).

    With the absolute residuals :math:`r_{ki}` of the validation graphs, over their scales
    :math:`\sigma_{ki}`, the ends are the :math:`\lfloor \alpha (n + 1) \rfloor`-th smallest of all
    :math:`\mu_k - \sigma_k r_{ki} / \sigma_{ki}` and the
    :math:`\lceil (1 - \alpha) (n + 1) \rceil`-th smallest of all
    :math:`\mu_k + \sigma_k r_{ki} / \sigma_{ki}`; infinite where there are too few. Of one model
    this is :math:`\mu \pm \sigma` times a quantile; :func:`scale_of` gives :math:`\sigma`.

    Here ``answers`` are numbers :math:`\mu` by each of the models and ``deviation`` how far they
    expect to be off, if they say so, shape (models, g), ``scores`` the :func:`number_scores` of
    each one's validation part, and ``coverage`` is :math:`1 - \alpha`.
    """
    if deviation is None:
        scores = [one if one.ndim == 1 else one[:, 0] for one in scores]
    residuals, weights = zip(*map(normalised, scores), strict=True)
    each = [None] * len(answers) if deviation is None else deviation
    scales = np.stack(
        [np.ones(answers.shape[1]) * scale_of(*pair) for pair in zip(each, weights, strict=True)]
    )
    count = sum(map(len, scores))
    low = floor((1 - coverage) * (count + 1) + 1e-9)
    ends = np.tile([-inf, inf], (answers.shape[1], 1))
    if low < 1:
        return ends
    rows = max(CHUNK // count, 1)
    for start in range(0, len(ends), rows):
        part = answers[:, start : start + rows, None]
        wide = scales[:, start : start + rows, None]
        reaches = [scale * residual for scale, residual in zip(wide, residuals, strict=True)]
        below = np.concatenate([mu - reach for mu, reach in zip(part, reaches, strict=True)], 1)
        above = np.concatenate([mu + reach for mu, reach in zip(part, reaches, strict=True)], 1)
        # By symmetry the upper end is as far from the top as the lower one from the bottom.
        ends[start : start + rows, 0] = np.partition(below, low - 1)[:, low - 1]
        ends[start : start + rows, 1] = np.partition(above, count - low)[:, count - low]
    return ends


def normalised(scores: Array) -> tuple[Array, float]:
    """Residuals of :func:`number_scores` over their scales, and the weight of deviations in these.

    Without deviations the scale is 1.
    """
    if scores.ndim == 1:
        return scores, 0.0
    residual, deviation = scores.T
    weight = deviation_weight(residual, deviation)
    return residual / scale_of(deviation, weight), weight


def scale_of(deviation: Array | None, weight: float) -> Array | float:
    r""":math:`\sqrt{1 + w d^2}`: the scale of graphs with deviations :math:`d`, or 1 of any."""
    return 1.0 if deviation is None or weight == 0 else np.sqrt(1 + weight * deviation**2)


def deviation_weight(residual: Array, deviation: Array) -> float:
    r"""The weight of deviations with which scales suit the residuals best.

    It is the likeliest one of Laplace distributions whose widths are the scales up to a factor: it
    minimises :math:`\ln \overline{r / \sigma} + \overline{\ln \sigma}`. 0, and one width for all,
    where deviations say nothing, or there are too few graphs to tell.
    """
    size = float((deviation**2).mean()) if len(deviation) else 0.0
    if len(residual) < LEAST_FOR_SCALE or not 0 < size < inf or not residual.any():
        return 0.0

    def loss(weight: float) -> float:
        scale = scale_of(deviation, weight)
        return float(np.log((residual / scale).mean()) + np.mean(np.log(scale)))

    return min((weight / size for weight in WEIGHTS), key=loss)

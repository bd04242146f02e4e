r"""Sets of classes and intervals of numbers that hold the truth with a chosen probability.

Split-conformal prediction (Vovk et al., 2005; Lei et al., 2018): how far the truth of :math:`n`
validation graphs is from their answers, the nonconformity, says how far that of a new graph may be.
Whatever the model, a region of coverage :math:`1 - \alpha` then holds the truth of a graph of the
same kind with at least that probability. Several models, each with its own training and validation
part, answer together as in cross-conformal prediction and the CV+ interval (Vovk, 2015; Barber et
al., 2021). Where a model says of each graph how far it expects to be off, its *deviation*,
distances are divided by a scale that grows with it: intervals are then narrow near the training set
and wide far from it (normalised conformal prediction; Papadopoulos et al., 2008; Lei et al., 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, inf

import numpy as np

from lookhops.core.arrays import Array

#: The coverage that is measured when a model is trained, and the default afterwards.
COVERAGE = 0.9
#: Numbers that are compared at a time.
CHUNK = 10_000_000
#: Validation graphs from which on it is tried whether their deviations say anything.
LEAST_FOR_SCALE = 30
#: Weights of deviations that are tried, for those with a mean square of 1.
WEIGHTS = (0.0, *(4.0**power for power in range(-2, 6)))


def conformal_quantile(nonconformity: Array, coverage: float = COVERAGE) -> float:
    r"""The nonconformity that one model's region reaches up to; infinite where too few are given.

    It is the :math:`\lceil (1 - \alpha) (n + 1) \rceil`-th smallest of the :math:`n` given.
    """
    rank = ceil(coverage * (len(nonconformity) + 1) - 1e-9)
    return (
        float(np.partition(nonconformity, rank - 1)[rank - 1])
        if rank <= len(nonconformity)
        else inf
    )


def with_likeliest(sets: Array, p: Array) -> Array:
    """Sets of classes, the likeliest one always among them: an empty set says nothing.

    Args:
        sets: Shape (g, classes), booleans.
        p: Probabilities, shape (g, classes).
    """
    likeliest = p.argmax(-1, keepdims=True)
    return sets | (np.arange(p.shape[-1]) == likeliest)


def class_sets(p: Array, nonconformity: Sequence[Array], coverage: float = COVERAGE) -> Array:
    r"""Which classes may be the true one, shape (g, classes), booleans.

    The nonconformity of class :math:`c` is :math:`1 - p_c`. The class is in the set if that is
    among the smallest :math:`1 - \alpha` of the values :math:`s_{ki}` of the validation graphs,

    .. math::
        1 + \sum_k \#\{i : s_{ki} \ge 1 - p_{kc}\} > \alpha \Big(1 + \sum_k n_k\Big),

    or if no class is likelier.

    Args:
        p: Probabilities by each of the models, shape (models, g, classes).
        nonconformity: For each model the :func:`class_nonconformity` of its validation part.
        coverage: The probability :math:`1 - \alpha`.
    """
    worse, total = np.ones(p.shape[1:], np.int64), 1
    for own, known in zip(p, nonconformity, strict=True):
        ordered = np.sort(known)
        worse += len(ordered) - np.searchsorted(ordered, 1 - own, side="left")
        total += len(ordered)
    return with_likeliest(worse > (1 - coverage) * total + 1e-9, p.mean(0))


def class_nonconformity(p: Array, y: Array) -> Array:
    """One less the probability of the true class, shape (n), of rows that have one (from 0)."""
    known = np.flatnonzero(y >= 0)
    return 1 - p[known, y[known]]


def number_intervals(
    answers: Array,
    nonconformity: Sequence[Array],
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

    Args:
        answers: Numbers :math:`\mu` by each of the models, shape (models, g).
        nonconformity: For each model the :func:`number_nonconformity` of its validation part.
        coverage: The probability :math:`1 - \alpha`.
        deviation: How far each of the models expects to be off, shape (models, g), where they
            say so.
    """
    if deviation is None:
        nonconformity = [one if one.ndim == 1 else one[:, 0] for one in nonconformity]
    residuals, weights = zip(*map(normalised, nonconformity), strict=True)
    each = [None] * len(answers) if deviation is None else deviation
    scales = np.stack(
        [np.ones(answers.shape[1]) * scale_of(*pair) for pair in zip(each, weights, strict=True)]
    )
    count = sum(map(len, nonconformity))
    low = floor((1 - coverage) * (count + 1) + 1e-9)
    ends = np.tile([-inf, inf], (answers.shape[1], 1))
    if low < 1:
        return ends
    rows = max(CHUNK // count, 1)
    for start in range(0, len(ends), rows):
        part = answers[:, start : start + rows, None]
        wide = scales[:, start : start + rows, None]
        triples = list(zip(part, wide, residuals, strict=True))
        below = np.concatenate([own - scale * known for own, scale, known in triples], 1)
        above = np.concatenate([own + scale * known for own, scale, known in triples], 1)
        # By symmetry the upper end is as far from the top as the lower one from the bottom.
        ends[start : start + rows, 0] = np.partition(below, low - 1)[:, low - 1]
        ends[start : start + rows, 1] = np.partition(above, count - low)[:, count - low]
    return ends


def number_nonconformity(answers: Array, y: Array, deviation: Array | None = None) -> Array:
    """Absolute residuals, shape (n), of rows whose number is known.

    With deviations these stand beside, shape (n, 2).
    """
    known = np.isfinite(y)
    residual = np.abs(y[known] - answers[known])
    return residual if deviation is None else np.stack((residual, deviation[known]), 1)


def normalised(nonconformity: Array) -> tuple[Array, float]:
    """Residuals over their scales, shape (n), and the weight of deviations in a scale.

    Args:
        nonconformity: What :func:`number_nonconformity` gave. Without deviations the scale is 1.
    """
    if nonconformity.ndim == 1:
        return nonconformity, 0.0
    residual, deviation = nonconformity.T
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

r"""Sets of classes and intervals of numbers that hold the truth with a chosen probability.

Split-conformal prediction (Vovk et al., 2005; Lei et al., 2018): how far the truth of :math:`n`
validation graphs is from their answers, the nonconformity, says how far that of a new graph may be.
Whatever the model, a region of coverage :math:`1 - \alpha` then holds the truth of a graph of the
same kind with at least that probability. Several models, each with its own training and validation
part, answer together as in cross-conformal prediction and the CV+ interval (Vovk, 2015; Barber et
al., 2021).
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
    answers: Array, nonconformity: Sequence[Array], coverage: float = COVERAGE
) -> Array:
    r"""Lower and upper ends of intervals for numbers, shape (g, 2).

    With the absolute residuals :math:`r_{ki}` of the validation graphs, the ends are the
    :math:`\lfloor \alpha (n + 1) \rfloor`-th smallest of all :math:`\mu_k - r_{ki}` and the
    :math:`\lceil (1 - \alpha) (n + 1) \rceil`-th smallest of all :math:`\mu_k + r_{ki}`; infinite
    where there are too few. Of one model this is :math:`\mu \pm` a quantile of its residuals.

    Args:
        answers: Numbers :math:`\mu` by each of the models, shape (models, g).
        nonconformity: For each model the :func:`number_nonconformity` of its validation part.
        coverage: The probability :math:`1 - \alpha`.
    """
    count = sum(map(len, nonconformity))
    low = floor((1 - coverage) * (count + 1) + 1e-9)
    ends = np.tile([-inf, inf], (answers.shape[1], 1))
    if low < 1:
        return ends
    rows = max(CHUNK // count, 1)
    for start in range(0, len(ends), rows):
        part = answers[:, start : start + rows, None]
        pairs = list(zip(part, nonconformity, strict=True))
        below = np.concatenate([own - known for own, known in pairs], 1)
        above = np.concatenate([own + known for own, known in pairs], 1)
        # By symmetry the upper end is as far from the top as the lower one from the bottom.
        ends[start : start + rows, 0] = np.partition(below, low - 1)[:, low - 1]
        ends[start : start + rows, 1] = np.partition(above, count - low)[:, count - low]
    return ends


def number_nonconformity(answers: Array, y: Array) -> Array:
    """Absolute residuals, shape (n), of rows whose number is known."""
    known = np.isfinite(y)
    return np.abs(y[known] - answers[known])

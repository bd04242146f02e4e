"""Statistics over seeds: spreads, pairs of models, ranks, and what a score costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from lookhops.core.paired import ALPHA, Estimate, corrected_t


def mean_std(values: ArrayLike) -> tuple[float, float]:
    """Mean and sample standard deviation; of one value the latter is 0."""
    array = np.asarray(values, dtype=float)
    return float(array.mean()), float(array.std(ddof=1)) if array.size > 1 else 0.0


def over_datasets(estimates: Sequence[Estimate]) -> Estimate:
    r"""The mean of estimates from different data sets, each with the same say.

    The data sets are independent, so the variance is :math:`\sum_i v_i / m^2`; its degrees of
    freedom are Satterthwaite's, :math:`(\sum v_i)^2 / \sum (v_i^2 / f_i)`.
    """
    m = len(estimates)
    total = sum(e.variance for e in estimates)
    parts = sum(e.variance**2 / e.freedom for e in estimates)
    freedom = total**2 / parts if parts > 0 else sum(e.freedom for e in estimates)
    mean = sum(e.mean for e in estimates) / m
    return Estimate.of(mean, total / m**2, freedom, sum(e.n for e in estimates))


def holm(p: ArrayLike) -> np.ndarray:
    r"""Holm's step-down adjustment of m p-values, in the order given.

    The i-th smallest becomes :math:`\max_{j \le i} \min(1, (m - j + 1) p_{(j)})`.
    """
    values = np.asarray(p, dtype=float)
    order = values.argsort(kind="stable")
    factors = np.arange(values.size, 0, -1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, factors * values[order]))
    return adjusted


@dataclass(frozen=True)
class Pair:
    """Two models compared over the splits they share: ``first`` minus ``second``."""

    first: str
    second: str
    difference: Estimate
    adjusted_p: float


def compare_pairs(
    scores: Mapping[str, ArrayLike], test_to_train: float, higher_is_better: bool = True
) -> list[Pair]:
    """All pairs of models, the better mean first, with Holm's adjustment over all of them.

    Args:
        scores: Each model's score on the same splits in the same order.
        test_to_train: Test graphs over training graphs.
    """
    order = by_mean(scores, higher_is_better)
    pairs = list(combinations(order, 2))
    found = [
        corrected_t(np.asarray(scores[a], float) - np.asarray(scores[b], float), test_to_train)
        for a, b in pairs
    ]
    adjusted = holm([estimate.p for estimate in found])
    return [
        Pair(a, b, estimate, float(p))
        for (a, b), estimate, p in zip(pairs, found, adjusted, strict=True)
    ]


def by_mean(scores: Mapping[str, ArrayLike], higher_is_better: bool = True) -> list[str]:
    """The models, best mean first; equal means in the order given."""
    sign = -1 if higher_is_better else 1
    return sorted(scores, key=lambda name: sign * float(np.mean(np.asarray(scores[name], float))))


def mean_ranks(scores: Mapping[str, ArrayLike], higher_is_better: bool = True) -> dict[str, float]:
    """Mean rank of each model over the splits: 1 is the best, ties share their ranks' mean."""
    from scipy.stats import rankdata  # takes its time to import

    table = np.array([np.asarray(values, float) for values in scores.values()])
    ranks = rankdata(-table if higher_is_better else table, axis=0).mean(axis=1)
    return {name: float(rank) for name, rank in zip(scores, ranks, strict=True)}


def cliques(order: Sequence[str], pairs: Sequence[Pair]) -> list[list[str]]:
    """Longest runs of neighbours in ``order`` in which no pair differs at the 5% level."""
    apart = {frozenset((p.first, p.second)) for p in pairs if p.adjusted_p < ALPHA}
    runs: list[list[str]] = []
    for start, first in enumerate(order):
        run = [first]
        for model in order[start + 1 :]:
            if any(frozenset((model, other)) in apart for other in run):
                break
            run.append(model)
        if len(run) > 1 and not any(set(run) <= set(earlier) for earlier in runs):
            runs.append(run)
    return runs


def pareto_front(
    costs: Sequence[float], scores: Sequence[float], higher_is_better: bool = True
) -> list[int]:
    """The points that no other beats in one of the two and equals in the other, by rising cost."""
    gains = [score if higher_is_better else -score for score in scores]
    order = sorted(range(len(costs)), key=lambda i: (costs[i], -gains[i]))
    front: list[int] = []
    for i in order:
        last = front[-1] if front else i
        same = (costs[i], gains[i]) == (costs[last], gains[last])
        if same or gains[i] > gains[last]:
            front.append(i)
    return front

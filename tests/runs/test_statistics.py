"""Statistics against values worked out by hand and against SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookhops.core.paired import Estimate, corrected_t
from lookhops.runs.statistics import (
    by_mean,
    cliques,
    compare_pairs,
    holm,
    mean_ranks,
    mean_std,
    over_datasets,
)


def test_mean_and_sample_deviation():
    assert mean_std([1, 2, 3, 4]) == (2.5, pytest.approx(np.sqrt(5 / 3)))
    assert mean_std([7]) == (7, 0)


def test_holm_by_hand():
    # Sorted 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1: 0.04, 0.06, 0.06, 0.04 -> running maximum.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.8]) == pytest.approx([1, 1])
    assert holm([0.03]) == pytest.approx([0.03])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_as_the_step_down_procedure_does(p):
    order = np.argsort(p, kind="stable")
    rejected = set()
    for step, i in enumerate(order):
        if p[i] * (len(p) - step) >= 0.05:
            break
        rejected.add(i)
    assert {i for i, q in enumerate(holm(p)) if q < 0.05} == rejected


def test_over_datasets_by_hand():
    one, two = corrected_t([1, 2, 3], 1 / 6), corrected_t([3, 5, 7, 5], 1 / 4)
    both = over_datasets([one, two])
    # Variances 0.5 and (1/4 + 1/4) * 8/3 = 4/3.
    assert both.mean == pytest.approx(3.5)
    assert both.variance == pytest.approx((0.5 + 4 / 3) / 4)
    assert both.freedom == pytest.approx((0.5 + 4 / 3) ** 2 / (0.25 / 2 + (16 / 9) / 3))
    alone = over_datasets([one])
    assert (alone.low, alone.high, alone.p) == pytest.approx((one.low, one.high, one.p))


def test_ranks_share_ties():
    ranks = mean_ranks({"a": [3, 2], "b": [3, 1], "c": [1, 5]})
    assert ranks == {"a": pytest.approx(1.75), "b": pytest.approx(2.25), "c": pytest.approx(2)}


def test_pairs_are_ordered_by_mean_and_adjusted_together():
    generator = np.random.default_rng(0)
    base = generator.normal(70, 3, 10)
    scores = {
        "low": base,
        "high": base + generator.normal(5, 0.5, 10),
        "same": base + generator.normal(0, 0.5, 10),
    }
    pairs = compare_pairs(scores, 0.125)
    assert [pair.first for pair in pairs[:2]] == ["high", "high"]
    assert all(pair.difference.mean >= 0 for pair in pairs)
    assert [p.adjusted_p for p in pairs] == pytest.approx(
        holm([p.difference.p for p in pairs]).tolist()
    )
    groups = cliques(["high", "same", "low"], pairs)
    assert groups == [["same", "low"]]


def test_cliques_may_overlap():
    from lookhops.runs.statistics import Pair

    def pair(a, b, p):
        return Pair(a, b, Estimate(0, 0, 0, p, 10, 0, 9), p)

    pairs = [pair("a", "b", 0.5), pair("b", "c", 0.5), pair("a", "c", 0.01)]
    assert cliques(["a", "b", "c"], pairs) == [["a", "b"], ["b", "c"]]


def test_of_errors_the_lowest_come_first():
    scores = {"mean": [1.5, 1.6, 1.4], "forest": [0.5, 0.6, 0.55], "ours": [0.5, 0.5, 0.5]}
    assert by_mean(scores, higher_is_better=False) == ["ours", "forest", "mean"]
    ranks = mean_ranks(scores, higher_is_better=False)
    assert ranks["mean"] == 3
    assert ranks["ours"] < ranks["forest"]
    pairs = compare_pairs(scores, 1 / 8, higher_is_better=False)
    assert (pairs[0].first, pairs[0].second) == ("ours", "forest")
    assert all(pair.difference.mean < 0 for pair in pairs)

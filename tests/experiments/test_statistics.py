"""Statistics against values worked out by hand and against SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lookhops.experiments.statistics import (
    cliques,
    compare_pairs,
    corrected_t,
    holm,
    mean_ranks,
    mean_std,
    over_datasets,
)

numbers = st.lists(st.floats(-5, 5).map(lambda x: round(x, 3)), min_size=3, max_size=12)


def test_mean_and_sample_deviation():
    assert mean_std([1, 2, 3, 4]) == (2.5, pytest.approx(np.sqrt(5 / 3)))
    assert mean_std([7]) == (7, 0)


def test_corrected_t_by_hand():
    # d = 1, 2, 3: mean 2, s² = 1; factor 1/3 + 1/6 = 1/2, so t = 2 / sqrt(0.5) with 2 d.o.f.
    found = corrected_t([1, 2, 3], 1 / 6)
    t = 2 / np.sqrt(0.5)
    # With 2 degrees of freedom: p = 1 - t / sqrt(t² + 2), and the 97.5% point is 4.30265.
    assert found.p == pytest.approx(1 - t / np.sqrt(t**2 + 2))
    assert found.low == pytest.approx(2 - 4.302653 * np.sqrt(0.5), abs=1e-5)
    assert found.high == pytest.approx(2 + 4.302653 * np.sqrt(0.5), abs=1e-5)
    assert (found.mean, found.n, found.freedom) == (2, 3, 2)


@given(numbers)
def test_without_the_correction_it_is_the_usual_paired_test(differences):
    array = np.array(differences)
    found = corrected_t(array, 0.0)
    if array.std() < 1e-9:
        assert found.low == found.high == pytest.approx(array.mean())
        return
    usual = stats.ttest_1samp(array, 0)
    interval = usual.confidence_interval()
    assert found.p == pytest.approx(usual.pvalue, rel=1e-6, abs=1e-12)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


@given(numbers, st.floats(0.01, 1))
def test_the_correction_widens(differences, ratio):
    plain, corrected = corrected_t(differences, 0.0), corrected_t(differences, ratio)
    assert corrected.high - corrected.low >= plain.high - plain.low
    assert corrected.p >= plain.p - 1e-12


def test_equal_scores_and_constant_differences():
    assert corrected_t([0, 0, 0], 0.125).p == 1
    always = corrected_t([2, 2, 2], 0.125)
    assert (always.p, always.low, always.high) == (0, 2, 2)


def test_one_difference_is_no_test():
    with pytest.raises(ValueError, match="two"):
        corrected_t([1.0], 0.125)


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
    from lookhops.experiments.statistics import Estimate, Pair

    def pair(a, b, p):
        return Pair(a, b, Estimate(0, 0, 0, p, 10, 0, 9), p)

    pairs = [pair("a", "b", 0.5), pair("b", "c", 0.5), pair("a", "c", 0.01)]
    assert cliques(["a", "b", "c"], pairs) == [["a", "b"], ["b", "c"]]

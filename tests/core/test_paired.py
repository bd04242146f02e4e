"""Paired differences against values worked out by hand and against SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lookhops.core.paired import corrected_t

numbers = st.lists(st.floats(-5, 5).map(lambda x: round(x, 3)), min_size=3, max_size=12)


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
    assert always.interval is None  # without width it says nothing
    rounded = corrected_t([0.9 - 0.8, 0.5 - 0.4], 0.125)  # which are not the same to the last bit
    assert (rounded.p, rounded.interval) == (0.5, None)  # of two signs
    spread = corrected_t([1, 2, 3], 0.125)
    assert spread.interval == (spread.low, spread.high)


def test_one_difference_is_no_test():
    with pytest.raises(ValueError, match="two"):
        corrected_t([1.0], 0.125)

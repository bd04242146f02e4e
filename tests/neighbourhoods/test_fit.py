"""The decay of the gains, and the k that follows from it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import curve_fit

from lookhops.neighbourhoods import fit_decay, smallest_k
from lookhops.neighbourhoods.gain import fit_rates

K = np.arange(2, 10)


@given(st.floats(0.01, 500), st.floats(-0.5, 6))
def test_finds_the_curve_that_made_the_gains(a: float, b: float):
    found = fit_decay(K, a * np.exp(-b * K))
    assert found.b == pytest.approx(b, abs=1e-6)
    assert found.a == pytest.approx(a, rel=1e-5)
    np.testing.assert_allclose(found(K), a * np.exp(-b * K), rtol=1e-4)


def test_is_scipys_least_squares():
    gain = np.array([3.85, 1.07, 0.3455, 0.1315, 0.0603, 0.0306, 0.0175, 0.01])
    (a, b), _ = curve_fit(lambda k, a, b: a * np.exp(-b * k), K, gain, p0=(50, 1))
    found = fit_decay(K, gain)
    assert (found.a, found.b) == pytest.approx((a, b), rel=1e-5)
    residual = gain - a * np.exp(-b * K)
    assert found.mse == pytest.approx((residual**2).mean(), rel=1e-4)
    assert found.r2 == pytest.approx(1 - residual.var() / gain.var(), abs=2e-4)


def test_fits_many_at_once_as_one_by_one():
    rng = np.random.default_rng(0)
    gains = np.exp(-K * rng.uniform(0.1, 3, (20, 1))) * rng.uniform(0.9, 1.1, (20, 8))
    a, b = fit_rates(K, gains)
    for i, gain in enumerate(gains):
        one = fit_decay(K, gain)
        assert (one.a, one.b) == pytest.approx((a[i], b[i]), rel=1e-9)


def test_two_gains_are_met_exactly():
    found = fit_decay(np.array([2, 3]), np.array([4.0, 1.0]))
    assert found.b == pytest.approx(math.log(4), abs=1e-6)
    assert found.mse == pytest.approx(0, abs=1e-12)


@given(st.floats(0.05, 5), st.floats(0.001, 0.5))
def test_smallest_k(b: float, epsilon: float):
    k = int(smallest_k(b, epsilon))
    assert math.exp(-b * k) <= epsilon * (1 + 1e-6)
    assert k == 1 or math.exp(-b * (k - 1)) > epsilon


def test_smallest_k_of_the_paper():
    assert smallest_k(1.2501, 0.05) == 3  # PROTEINS: 2.35% is lost
    assert math.exp(-3 * 1.2501) == pytest.approx(0.0235, abs=5e-5)


@pytest.mark.parametrize("b", [0.0, -0.3])
def test_no_k_without_decay(b: float):
    assert smallest_k(b, 0.05) == math.inf


def test_no_gain_at_all_is_over_at_once():
    found = fit_decay(K, np.zeros(8))
    assert smallest_k(found.b, 0.05) == 1
    assert found(K).tolist() == [0.0] * 8

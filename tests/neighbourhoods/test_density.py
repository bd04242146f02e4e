"""Densities and divergences against SciPy, and the binned against the exact."""

import math

import numpy as np
import pytest
from naive_information import density_at
from naive_information import divergence as naive_divergence
from scipy.stats import gaussian_kde

from lookhops.neighbourhoods import density
from lookhops.neighbourhoods.density import (
    Sample,
    convolve,
    divergence,
    evaluate,
    evaluate_exactly,
    global_density,
    share,
)


def observations(seed: int, size: int) -> np.ndarray:
    """Entropies as they come: a heap at 0, some repeated values, the rest spread out."""
    rng = np.random.default_rng(seed)
    values = rng.gamma(4, 0.5, size)
    values[: size // 5] = 0
    values[size // 5 : size // 3] = np.log(rng.integers(1, 6, size // 3 - size // 5))
    return rng.permutation(values)


def samples(values: np.ndarray) -> list[Sample]:
    distinct, counts = np.unique(values, return_counts=True)
    return [Sample.observed(values), Sample(distinct, counts)]


@pytest.mark.parametrize("size", [7, 60, 3000])
def test_bandwidth_is_scipys(size: int):
    values = observations(0, size)
    distinct, counts = np.unique(values, return_counts=True)
    scipy = gaussian_kde(distinct, (0.75 * size) ** -0.2, weights=counts)
    for sample in samples(values):
        assert sample.bandwidth == pytest.approx(math.sqrt(scipy.covariance[0, 0]), rel=1e-12)
        assert (sample.total, sample.ends) == (size, (values.min(), values.max()))


@pytest.mark.parametrize("size", [7, 60, 3000])
def test_binned_density_is_close_to_scipys_everywhere(size: int):
    values = observations(1, size)
    distinct, counts = np.unique(values, return_counts=True)
    scipy = gaussian_kde(distinct, (0.75 * size) ** -0.2, weights=counts)
    low, high = values.min() - 1, values.max() + 2  # far out in the tails
    exact = scipy(np.linspace(low, high, density.POINTS))
    for sample in samples(values):
        binned = evaluate(sample, low, high)
        # The error that FINENESS promises: z^2 / (8 FINENESS^2), z the bandwidths to a value.
        points = np.linspace(low, high, density.POINTS)
        nearest = np.abs(points[:, None] - distinct).min(axis=1) / sample.bandwidth
        bound = np.maximum(nearest + 3, 1) ** 2 / (8 * density.FINENESS**2)
        assert np.all(np.abs(binned - exact) <= bound * exact + 1e-18)


def test_a_lattice_much_finer_than_the_points():
    rng = np.random.default_rng(2)
    values = np.append(rng.normal(0, 1e-3, 500), 10.0)  # a narrow heap and one far away
    sample = Sample.observed(values)
    exact = evaluate_exactly(sample, np.linspace(-1, 11, density.POINTS))
    np.testing.assert_allclose(evaluate(sample, -1, 11), exact, rtol=1e-2, atol=1e-12)


def test_sharing_out_keeps_the_sum_and_the_mean():
    values = observations(3, 500)
    for cell, cells in ((0.01, 2000), (0.37, 40), (values.max(), 2)):
        mass = share(values / cell, np.ones(500), cells)
        assert mass.min() >= 0
        assert mass.sum() == pytest.approx(500)
        assert cell * (mass @ np.arange(cells)) == pytest.approx(values.sum())
        assert np.array_equal(np.flatnonzero(share(np.array([3.25]), np.ones(1), 9)), [3, 4])


@pytest.mark.parametrize("every", [1, 3])
def test_convolution_is_a_plain_sum(every: int):
    rng = np.random.default_rng(4)
    mass = rng.random(40)
    naive = [
        sum(m * math.exp(-0.5 * ((i * every - j) / 2.5) ** 2) for j, m in enumerate(mass))
        for i in range(math.ceil(40 / every))
    ]
    np.testing.assert_allclose(convolve(mass, 2.5, every), naive, rtol=1e-12)


@pytest.mark.parametrize("size", [60, 4000])
def test_divergence(size: int):
    new, old = observations(5, size), observations(6, size) ** 1.3
    exact = naive_divergence(new, old)
    for p in samples(new):
        for q in samples(old):
            assert divergence(p, q) == pytest.approx(exact, rel=2e-4)


def test_divergence_of_densities_that_hardly_meet():
    # The floor inside the logarithm decides it: rounding of the size of the peak would show.
    rng = np.random.default_rng(7)
    new, old = rng.normal(8, 0.2, 3000), rng.normal(0, 0.2, 3000)
    exact = naive_divergence(new, old)
    assert exact > 25
    assert divergence(Sample.observed(new), Sample.observed(old)) == pytest.approx(exact, rel=2e-4)


def test_no_divergence_where_all_values_agree():
    point = Sample.observed(np.full(10, math.log(3)) + 1e-15 * np.arange(10))
    assert point.bandwidth == 0
    assert Sample.observed(np.array([-1e-17, 0.0, 0.0])).bandwidth == 0
    other = Sample.observed(observations(8, 50))
    assert math.isnan(divergence(point, other))
    assert math.isnan(divergence(other, point))


def test_values_that_differ_by_rounding_are_one():
    rng = np.random.default_rng(9)
    values = np.log(rng.integers(1, 5, 300))
    noisy = values + rng.normal(0, 1e-15, 300)
    exact, again = Sample.observed(values), Sample.observed(noisy)
    assert again.concentration == exact.concentration
    assert again.bandwidth == pytest.approx(exact.bandwidth, rel=1e-12)


@pytest.mark.parametrize("size", [50, 5000])
def test_global_density(size: int):
    rng = np.random.default_rng(10)
    values = np.append(rng.standard_t(3, size), 40.0).astype(np.float32)  # with an outlier
    # A value far from all others is shared out and read again: at worst 1 / (4 FINENESS^2) off.
    np.testing.assert_allclose(global_density(values), density_at(values), rtol=1e-3)
    repeated = rng.integers(0, 30, size).astype(np.float32)
    np.testing.assert_allclose(global_density(repeated), density_at(repeated), rtol=1e-12)

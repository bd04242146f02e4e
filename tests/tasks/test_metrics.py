"""Formulas against scikit-learn and against naive versions."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score

from lookhops.tasks.metrics import (
    auroc,
    bootstrap_auroc,
    bootstrap_means,
    calibration_error,
    choose_temperature,
    confusion_matrix,
    fit_temperature,
    interval,
    rates,
)


def random_predictions(seed: int, n: int = 60, classes: int = 3):
    generator = np.random.default_rng(seed)
    p = generator.dirichlet(np.ones(classes), size=n)
    return np.log(p), generator.integers(classes, size=n)


@settings(derandomize=True, max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 5))
def test_rates_of_many_matrices_are_those_of_each(seed, classes):
    matrices = np.random.default_rng(seed).integers(0, 3, size=(4, classes, classes))
    matrices[:, 0, 0] += 1
    found = rates(matrices)
    for i, matrix in enumerate(matrices):
        y, predicted = np.repeat(np.indices(matrix.shape).reshape(2, -1), matrix.ravel(), axis=1)
        assert np.array_equal(confusion_matrix(y, predicted, classes), matrix)
        assert found["accuracy"][i] == pytest.approx(accuracy_score(y, predicted))
        with warnings.catch_warnings():  # of classes that are predicted but never true
            warnings.simplefilter("ignore")
            balanced = balanced_accuracy_score(y, predicted)
        assert found["balanced_accuracy"][i] == pytest.approx(balanced)
        assert found["macro_f1"][i] == pytest.approx(f1_score(y, predicted, average="macro"))


def test_weighted_auroc_is_auroc_of_repeated_rows():
    log_p, y = random_predictions(1, classes=2)
    index = np.random.default_rng(2).integers(len(y), size=len(y))
    weight = np.bincount(index, minlength=len(y))
    assert auroc(np.exp(log_p), y, weight) == pytest.approx(auroc(np.exp(log_p[index]), y[index]))


def test_auroc_without_a_curve_is_none():
    log_p, _ = random_predictions(3, classes=2)
    y = np.zeros(len(log_p), dtype=int)
    assert auroc(np.exp(log_p), y) is None
    assert interval(bootstrap_auroc(np.exp(log_p), y, resamples=5)) is None


def test_interval_holds_the_estimate_and_is_the_same_each_time():
    log_p, y = random_predictions(4, n=200, classes=2)
    p = np.exp(log_p + np.eye(2)[y])
    draws = bootstrap_auroc(p, y, resamples=200)
    low, high = interval(draws)
    assert low < auroc(p, y) < high
    assert np.array_equal(draws, bootstrap_auroc(p, y, resamples=200))


def test_what_all_redrawn_sets_give_is_no_interval():
    p, y = np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]]), np.array([0, 1, 1])
    draws = bootstrap_auroc(p, y, resamples=200)
    assert set(draws[np.isfinite(draws)]) == {1.0}
    assert interval(draws) is None
    assert interval(bootstrap_means({"mae": np.array([4.2])})["mae"]) is None
    assert interval(np.array([0.1 + 0.2, 0.3] * 50)) is None  # the same but for the last bit
    assert interval(np.zeros(10)) is None


def test_calibration_error_by_hand():
    p = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    y = np.array([0, 1, 0, 1])
    # 0.9 twice with one hit of two, 0.6 with a hit, 0.8 with a hit
    expected = (2 * abs(0.5 - 0.9) + abs(1 - 0.6) + abs(1 - 0.8)) / 4
    assert calibration_error(p, y) == pytest.approx(expected)


def test_a_temperature_is_chosen_only_where_it_clearly_helps():
    generator = np.random.default_rng(0)
    p = generator.dirichlet((1, 1, 1), 300)
    chosen = []
    for _ in range(20):
        y = (p.cumsum(1) > generator.random((300, 1))).argmax(1)
        chosen.append(choose_temperature(np.log(p), y))
        assert choose_temperature(3 * np.log(p), y) == fit_temperature(3 * np.log(p), y)
    assert chosen.count(1.0) >= 15
    assert choose_temperature(3 * np.log(p[:9]), y[:9]) == 1


def test_temperature_of_few_right_answers_stays_sensible():
    p = np.full((5, 2), (0.3, 0.7))
    temperature = fit_temperature(np.log(p), np.ones(5, dtype=int))
    assert 0.1 < temperature < 1

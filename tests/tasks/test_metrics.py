"""Metrics against scikit-learn and against naive versions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, roc_auc_score
from sklearn.metrics import confusion_matrix as sklearn_confusion_matrix

from lookhops.tasks.metrics import (
    auroc,
    bootstrap_auroc,
    calibrated,
    calibration_error,
    confusion_matrix,
    evaluate,
    fit_temperature,
    interval,
)


def random_predictions(seed: int, n: int = 60, classes: int = 3, ties: bool = False):
    generator = np.random.default_rng(seed)
    p = generator.dirichlet(np.ones(classes), size=n)
    if ties:
        p = np.round(p, 1) + 0.05
        p /= p.sum(1, keepdims=True)
    return np.log(p), generator.integers(classes, size=n)


@settings(derandomize=True, max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 5), st.booleans())
def test_same_as_scikit_learn(seed, classes, ties):
    log_p, y = random_predictions(seed, classes=classes, ties=ties)
    found = evaluate(log_p, y)
    p, predicted = np.exp(log_p), log_p.argmax(1)
    assert found["accuracy"] == pytest.approx(accuracy_score(y, predicted))
    expected = sklearn_confusion_matrix(y, predicted, labels=range(classes))
    assert np.array_equal(confusion_matrix(y, predicted, classes), expected)
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, predicted))
    assert found["macro_f1"] == pytest.approx(f1_score(y, predicted, average="macro"))
    if len(np.unique(y)) == classes:
        score = p[:, 1] if classes == 2 else p
        assert found["auroc"] == pytest.approx(roc_auc_score(y, score, multi_class="ovr"))


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


def test_calibration_error_by_hand():
    p = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    y = np.array([0, 1, 0, 1])
    # 0.9 twice with one hit of two, 0.6 with a hit, 0.8 with a hit
    expected = (2 * abs(0.5 - 0.9) + abs(1 - 0.6) + abs(1 - 0.8)) / 4
    assert calibration_error(p, y) == pytest.approx(expected)


def test_temperature_undoes_overconfidence():
    generator = np.random.default_rng(0)
    log_p, _ = random_predictions(5, n=5000, classes=3)
    y = np.array([generator.choice(3, p=row) for row in np.exp(log_p)])
    sharp = log_p * 3
    sharp -= np.log(np.exp(sharp).sum(1, keepdims=True))
    temperature = fit_temperature(sharp, y)
    assert temperature == pytest.approx(3, rel=0.1)
    before, after = (calibration_error(calibrated(sharp, t), y) for t in (1, temperature))
    assert after < before / 3


def test_temperature_of_few_right_answers_stays_sensible():
    p = np.full((5, 2), (0.3, 0.7))
    temperature = fit_temperature(np.log(p), np.ones(5, dtype=int))
    assert 0.1 < temperature < 1

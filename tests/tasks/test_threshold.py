"""Decision thresholds: chosen as scikit-learn's metrics say, and used wherever a class is said."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, f1_score

from lookhops.core.errors import LookHopsError
from lookhops.sources.loading import load
from lookhops.tasks import Classification, Regression, task_of
from lookhops.tasks.metrics import choose_threshold

SCORES = {"f1": f1_score, "youden": balanced_accuracy_score}


@settings(max_examples=6)
@given(st.integers(0, 1000), st.sampled_from(list(SCORES)))
def test_no_other_threshold_is_better(seed, name):
    score = SCORES[name]
    generator = np.random.default_rng(seed)
    p = generator.random(40).round(2)
    y = (generator.random(40) < 0.2 + 0.6 * p).astype(int)
    y[:2] = 0, 1
    found = choose_threshold(p, y, name)
    reached = score(y, p >= found)
    others = [score(y, p >= place) for place in np.linspace(0.025, 0.975, 20)]
    assert reached >= max(others) - 1e-12


def test_one_class_says_nothing_and_a_number_is_itself():
    assert choose_threshold(np.array([0.1, 0.9]), np.array([1, 1]), "f1") == 0.5
    assert choose_threshold(np.array([0.1, 0.9]), np.array([0, 1]), "0.3") == 0.3


def test_answers_and_metrics_use_it():
    task = Classification(("no", "yes"), threshold="0.9")
    output = torch.tensor([[0.0, 1.0], [0.0, 4.0], [2.0, 0.0]])
    calibration = {"temperature": 1.0, "threshold": 0.9}
    p = task.answers(output, calibration).numpy()
    assert task.decided(p, calibration).tolist() == [0, 1, 0]
    assert task.decided(p, {}).tolist() == [1, 1, 0]
    target = torch.tensor([0, 1, 0])
    assert task.evaluate(output, target, calibration)["accuracy"] == 1
    assert task.evaluate(output, target)["accuracy"] == pytest.approx(2 / 3)
    assert task.overview([output], [target], [calibration])["confusion"] == [[2, 0], [0, 1]]
    assert task.calibrate(output, target)["threshold"] == 0.9


@pytest.mark.parametrize("threshold", ["0", "1", "nan", "half", "90"])
def test_what_is_no_threshold(threshold):
    with pytest.raises(LookHopsError, match="youden"):
        Classification(("no", "yes"), threshold=threshold)


def test_only_two_classes_have_one():
    with pytest.raises(LookHopsError, match="threshold"):
        task_of(load("solubility")[:50], threshold="f1")
    assert not hasattr(Regression("logS"), "threshold")

"""Measures against scikit-learn and by hand."""

import itertools

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from lookhops.explain.measures import agreement, node_auc, precision_at_size

PTR = np.array([0, 6, 10, 12])


def test_node_auc_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    share, truth = rng.integers(0, 4, 12).astype(float), rng.random(12) < 0.5
    truth[:2], truth[6:8], truth[10:] = (True, False), (True, False), True
    found = node_auc(share, truth, PTR)
    for number in (0, 1):
        part = slice(PTR[number], PTR[number + 1])
        assert found[number] == pytest.approx(roc_auc_score(truth[part], share[part]))
    assert np.isnan(found[2])  # every node decides: there is nothing to tell apart


def test_precision_at_the_true_size():
    share = np.array([5.0, 4, 3, 2, 1, 0, 1, 1, 1, 0, 0, 0])
    truth = np.array([1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0], dtype=bool)
    found = precision_at_size(share, truth, PTR)
    assert found[0] == 0.5
    assert found[1] == pytest.approx(1 / 3)  # one of three that are level
    assert np.isnan(found[2])


def test_agreement_is_the_mean_rank_correlation():
    rng = np.random.default_rng(1)
    shares = [rng.random(12) for _ in range(3)]
    want = [
        spearmanr(a[i:j], b[i:j]).statistic
        for i, j in itertools.pairwise(PTR)
        for a, b in ((shares[0], shares[1]), (shares[0], shares[2]), (shares[1], shares[2]))
    ]
    assert agreement(shares, PTR) == pytest.approx(np.mean(want))
    assert np.isnan(agreement([np.ones(12), np.ones(12)], PTR))

"""Ridge regression on sparse rows against the normal equations."""

import numpy as np
from scipy.sparse import csr_array

from lookhops.neighbourhoods import labels
from lookhops.neighbourhoods.labels import ridge_predictions


def test_predictions_are_those_of_the_normal_equations(monkeypatch):
    monkeypatch.setattr(labels, "TOLERANCE", 1e-6)
    rng = np.random.default_rng(0)
    rows = (rng.random((40, 15)) < 0.3).astype(np.float32)
    targets = rng.normal(size=(40, 3)).astype(np.float32)
    train = (rng.random((40, 3)) < 0.7).astype(np.float32)
    targets[:, 2] = 0  # nothing to solve
    found = ridge_predictions(csr_array(rows), targets, train, 0.5)
    for column in range(3):
        own = train[:, column] == 1
        x, y = rows[own].astype(float), targets[own, column]
        weights = np.linalg.solve(x.T @ x + 0.5 * np.eye(15), x.T @ y)
        np.testing.assert_allclose(found[:, column], rows @ weights, atol=1e-4)

"""The linear reading of neighbourhoods."""

from dataclasses import replace

import pytest
import torch

from lookhops.classical.fingerprint import LinearReading, Reading, fit_fingerprint
from lookhops.datasets.splits import split
from lookhops.neighbourhoods import Vocabulary, graph_totals, identities, unary_codes

QUICK = Reading(hops=1, max_epochs=5)


def test_the_product_is_that_of_the_dense_matrix(tasks):
    codes = unary_codes(tasks, identities(tasks, 2))
    rows = Vocabulary.choose(tasks, codes).rows(tasks, codes)
    totals = graph_totals(tasks).float()
    model = LinearReading(rows.num_columns, totals.shape[1], 2, scale=3.0)
    for parameter in model.parameters():
        assert not parameter.any()
        torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(0))
    dense = torch.from_numpy(rows.to_scipy(normalise=True).toarray())
    expected = 3 * dense @ model.features + totals @ model.totals + model.bias
    assert torch.allclose(model(rows, totals), expected.log_softmax(1), atol=1e-4)


def test_seeds_order_the_batches_and_nothing_else(tasks):
    parts = split(tasks, 1)
    small = replace(QUICK, batch_size=16)
    one, same, other = (
        fit_fingerprint(tasks, parts, seed, small).predictions["test"] for seed in (1, 1, 2)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    whole = replace(QUICK, batch_size=1000)
    one, other = (fit_fingerprint(tasks, parts, s, whole).predictions["test"] for s in (1, 2))
    assert torch.allclose(one, other, atol=1e-5)


def test_a_prediction_does_not_depend_on_the_graphs_beside_it(tasks):
    parts = split(tasks, 1)
    some = replace(parts, test=parts.test[:2])
    whole = fit_fingerprint(tasks, parts, 0, QUICK).predictions["test"]
    assert torch.equal(fit_fingerprint(tasks, some, 0, QUICK).predictions["test"], whole[:2])


def test_weights_are_those_of_the_lowest_validation_loss(tasks):
    """Steps so large that the loss soon climbs: what comes back is from before."""
    parts = split(tasks, 1)
    fast = Reading(hops=2, learning_rate=0.3, patience=20, max_epochs=60)
    outputs = fit_fingerprint(tasks, parts, 0, fast)
    best = outputs.chosen["epochs"]
    assert best < 40
    stopped = fit_fingerprint(tasks, parts, 0, replace(fast, max_epochs=best))
    assert torch.equal(stopped.predictions["val"], outputs.predictions["val"])


@pytest.mark.parametrize("totals", [True, False])
def test_parameters_are_counted(tasks, totals):
    parts = split(tasks, 1)
    codes = unary_codes(tasks, identities(tasks, 1))
    features = len(Vocabulary.choose(tasks, codes, parts.train))
    numbers = graph_totals(tasks).shape[1] if totals else 0
    outputs = fit_fingerprint(tasks, parts, 0, replace(QUICK, totals=totals))
    assert outputs.chosen["parameters"] == 2 * (features + numbers + 1)

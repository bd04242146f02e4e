"""The bootstrap against literally measuring the graphs that were drawn."""

from dataclasses import replace

import numpy as np
import pytest
from random_sets import random_graphs

from lookhops import Graphs
from lookhops.neighbourhoods import compositions, gain
from lookhops.neighbourhoods.entropy import Scope
from lookhops.neighbourhoods.gain import Resampling, measure
from lookhops.sources.hop_tasks import hop_task


def quiet(_what: str, _share: float) -> None:
    pass


@pytest.mark.parametrize(
    "graphs",
    [
        random_graphs(1, features="labels"),
        random_graphs(2, features="attributes"),
        random_graphs(3, features="all"),
        hop_task(2, 100),
    ],
    ids=["labels", "attributes", "all", "hops-2"],
)
@pytest.mark.parametrize("pending", [1000, 1 << 23])
def test_equals_measuring_the_drawn_graphs(
    graphs: Graphs, pending: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(compositions, "PENDING", pending)
    scope = Scope.of(graphs, 5, "walk", 4096)
    drawn = Resampling.draw(scope, 12, seed=3)
    assert drawn.weights.shape == (12, len(graphs))
    assert np.array_equal(drawn.weights.sum(axis=1), np.full(12, len(graphs)))
    fast = measure(scope, drawn, quiet).resampled
    literal = []
    for weights in drawn.weights:
        times = weights[drawn.unit].astype(int)
        again = replace(scope, members=np.repeat(np.arange(len(graphs)), times))
        literal.append(measure(again, Resampling.draw(again, 0, 0), quiet).mean)
    # What the histograms' cells cost is small beside how much resamples differ.
    error = np.sqrt(((fast - literal) ** 2).mean(axis=0))
    assert np.all(error < 0.15 * np.std(literal, axis=0))


def test_the_whole_sample_comes_out_as_itself():
    scope = Scope.of(random_graphs(4, graphs=300, features="all"), 5, "walk", 4096)
    drawn = Resampling.draw(scope, 1, seed=0)
    once = replace(drawn, weights=np.ones_like(drawn.weights))
    found = measure(scope, once, quiet)
    np.testing.assert_allclose(found.resampled[0], found.mean, rtol=5e-3, atol=1e-3)


def test_many_graphs_are_drawn_in_bundles(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gain, "UNITS", 10)
    scope = Scope.of(random_graphs(5, graphs=45), 4, "walk", 4096)
    drawn = Resampling.draw(scope, 8, seed=1)
    assert drawn.weights.shape == (8, 10)
    assert set(np.bincount(drawn.unit)) == {4, 5}
    assert measure(scope, drawn, quiet).resampled.shape == (8, 3)


def test_bundles_vary_as_much_as_graphs(monkeypatch: pytest.MonkeyPatch):
    scope = Scope.of(random_graphs(6, graphs=400, most_nodes=12), 4, "walk", 4096)
    spread = []
    for units in (400, 100):
        monkeypatch.setattr(gain, "UNITS", units)
        found = measure(scope, Resampling.draw(scope, 300, seed=2), quiet).resampled
        spread.append(found.std(axis=0))
    np.testing.assert_allclose(spread[1], spread[0], rtol=0.3)


def test_the_same_seed_draws_the_same():
    scope = Scope.of(random_graphs(7), 4, "walk", 4096)
    first, again, other = (Resampling.draw(scope, 5, seed).weights for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)

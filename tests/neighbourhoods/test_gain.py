"""Information gain: against loops, and what it must not depend on."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from naive_information import divergence as naive_divergence
from random_sets import random_graphs

from lookhops import Graphs
from lookhops.graphs.features import Features
from lookhops.neighbourhoods import compositions, entropy, kinfo, reach
from lookhops.neighbourhoods.entropy import Scope
from lookhops.neighbourhoods.gain import Gains, Resampling, measure
from strategies import renumbered


def gains(graphs: Graphs, kind: str = "walk", block_size: int = 4096, max_k: int = 5) -> Gains:
    scope = Scope.of(graphs, max_k, kind, block_size)
    return measure(scope, Resampling.draw(scope, 0, 0), lambda _what, _share: None)


def test_mean_over_channels_of_the_divergences():
    # Attributes with many values: their entropies agree only where the neighbourhoods do.
    graphs = random_graphs(1, features="attributes")
    entropy = kinfo(graphs, 5)
    expected = [
        [naive_divergence(entropy[k, :, c], entropy[k - 1, :, c]) for c in range(entropy.shape[2])]
        for k in range(1, 5)
    ]
    found = gains(graphs)
    np.testing.assert_allclose(found.by_channel, expected, rtol=1e-3)
    np.testing.assert_allclose(found.mean, np.mean(expected, axis=1), rtol=1e-3)


@pytest.mark.parametrize("kind", ["walk", "ball"])
def test_block_size_does_not_matter(kind: str):
    graphs = random_graphs(2, features="all")
    whole = gains(graphs, kind)
    for block_size in (1, 37, 200):
        found = gains(graphs, kind, block_size)
        np.testing.assert_allclose(found.by_channel, whole.by_channel, rtol=1e-9)
    labels = random_graphs(2)
    assert np.array_equal(gains(labels, kind, 37).by_channel, gains(labels, kind).by_channel)


def test_order_of_graphs_and_nodes_does_not_matter():
    graphs = random_graphs(3, features="all")
    rng = np.random.default_rng(0)
    shuffled = graphs.select(rng.permutation(len(graphs)))
    place = np.lexsort((rng.random(shuffled.num_nodes), shuffled.batch.numpy()))
    other = renumbered(shuffled, torch.from_numpy(place))
    np.testing.assert_allclose(gains(other).by_channel, gains(graphs).by_channel, rtol=1e-9)


def test_scale_and_shift_of_an_attribute_do_not_matter():
    graphs = random_graphs(4, features="attributes")
    moved = replace(
        graphs, nodes=replace(graphs.nodes, numbers=graphs.nodes.numbers.double() * 1e-6 - 3e-6)
    )
    np.testing.assert_allclose(gains(moved).by_channel, gains(graphs).by_channel, rtol=1e-3)


def test_two_values_are_two_values_whether_label_or_attribute():
    graphs = random_graphs(5)
    one_hot = replace(graphs, nodes=Features(numbers=4 * graphs.x - 1))
    two_columns = replace(
        graphs,
        nodes=replace(
            graphs.nodes,
            labels=torch.cat((graphs.nodes.labels, graphs.nodes.labels), dim=1),
            label_names=("one", "other"),
            label_values=(graphs.nodes.label_values[0], (*graphs.nodes.label_values[0], "never")),
        ),
    )
    whole = gains(graphs).by_channel
    np.testing.assert_allclose(gains(one_hot).by_channel, whole, rtol=1e-9)
    np.testing.assert_allclose(gains(two_columns).by_channel, np.hstack((whole, whole)), rtol=1e-9)


@pytest.mark.parametrize("pending", [1, 2000])
def test_compositions_are_merged_on_the_way(pending: int, monkeypatch: pytest.MonkeyPatch):
    graphs = random_graphs(6, most_nodes=60)
    whole = gains(graphs)
    monkeypatch.setattr(compositions, "PENDING", pending)
    np.testing.assert_allclose(gains(graphs).by_channel, whole.by_channel, rtol=1e-12)


def test_few_channels_are_held_at_once(monkeypatch: pytest.MonkeyPatch):
    graphs = random_graphs(7, features="attributes")
    whole = gains(graphs)
    monkeypatch.setattr(entropy, "HELD_BYTES", 1)
    np.testing.assert_allclose(gains(graphs).by_channel, whole.by_channel, rtol=1e-12)


def test_panels_do_not_matter(monkeypatch: pytest.MonkeyPatch):
    graphs = random_graphs(8, graphs=5, most_nodes=300)
    whole = gains(graphs)
    monkeypatch.setattr(reach, "PANEL_BYTES", 1)
    assert np.array_equal(gains(graphs).by_channel, whole.by_channel)

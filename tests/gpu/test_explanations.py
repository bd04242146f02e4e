"""Shares of an answer are the same on CPU and GPU, stacked or one network after another."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lookhops import Graphs
from lookhops.datasets.hop_tasks import hop_task
from lookhops.explanations import attribute, networks
from lookhops.models.predictor import Predictor
from lookhops.models.resumable_training import train_into
from lookhops.options import RECOMMENDED, Architecture, Protocol

NUMBERS = ("value", "baseline", "whole")
SHARES = ("node", "edge", "node_spread", "edge_spread")
SMALL = replace(RECOMMENDED, hidden=8, layers=3, fingerprint=2)


def trees() -> Graphs:
    """Trees whose nodes and edges all differ: no rounding decides which of them is largest."""
    graphs = hop_task(1, 40)
    draws = np.random.default_rng(0)
    pair = torch.minimum(graphs.source, graphs.target), torch.maximum(graphs.source, graphs.target)
    _, pair = torch.unique(torch.stack(pair, 1), dim=0, return_inverse=True)
    told = torch.from_numpy(draws.random((int(pair.max()) + 1, 2)))[pair]
    attributes = torch.from_numpy(draws.random((graphs.num_nodes, 2)))
    return replace(
        graphs,
        attributes=attributes,
        attribute_names=("one", "two"),
        edge_attributes=told,
        edge_attribute_names=("weight", "length"),
    )


def trained(folder, graphs, architecture=SMALL):
    """A folder of four networks."""
    seeds = Protocol(seeds=(11, 22), members=2, max_epochs=3, batch_size=16, learning_rate=0.01)
    train_into(folder, graphs, architecture, seeds, device="cpu")
    return folder


def same(one, two, apart):
    """The same numbers, and shares that differ in all by no more than a part of their size.

    At a point of the path where a ReLU bends, or two nodes are the largest, rounding decides which
    way its gradient goes: then some shares move, and what they add up to does not.
    """
    for part in NUMBERS:
        np.testing.assert_allclose(getattr(one, part), getattr(two, part), atol=1e-3, err_msg=part)
    for part in SHARES:
        found, wanted = getattr(one, part), getattr(two, part)
        moved = np.abs(found - wanted).sum() / np.abs(wanted).sum()
        assert moved <= apart, f"{part}: {moved:.4f}"


@pytest.mark.parametrize("pool", ["lookhops", "none", "topk", "edge", "asap", "diffpool"])
def test_a_stack_has_the_shares_that_each_network_has_on_the_cpu(tmp_path, pool):
    graphs = trees()
    architecture = SMALL if pool == "lookhops" else Architecture(pool=pool, hidden=8, layers=2)
    folder = trained(tmp_path / "model", graphs, architecture)
    plain = attribute(Predictor(folder, "cpu"), graphs[:20])
    there = Predictor(folder, "cuda")
    apart = 0.5 if pool == "edge" else 0.05  # which edges merge first is decided by rounding too
    same(attribute(there, graphs[:20]), plain, apart)  # stacked, as is usual on a GPU
    same(attribute(there, graphs[:20], stacked=False), plain, apart)


def test_few_points_at_a_time_give_the_same_shares(tmp_path, monkeypatch):
    graphs = trees()
    there = Predictor(trained(tmp_path / "model", graphs), "cuda")
    found = attribute(there, graphs)
    monkeypatch.setitem(networks.MOST_NODES, "cuda", 500)
    same(attribute(there, graphs), found, 0.01)


def test_a_wide_stack_of_many_graphs_adds_up(tmp_path):
    graphs = hop_task(2, 600)
    folder = trained(tmp_path / "model", graphs, replace(RECOMMENDED, layers=3))
    found = attribute(Predictor(folder, "cuda"), graphs)
    graph = found.graphs.batch.cpu().numpy()
    nodes = np.bincount(graph, found.node_with_edges, len(found))
    np.testing.assert_allclose(found.baseline + found.whole + nodes, found.value, atol=1e-6)
    size = np.maximum(np.abs(found.value - found.baseline), 1)
    assert (np.abs(found.residual) <= 0.01 * size).all()

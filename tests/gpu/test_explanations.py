"""Shares of an answer are the same on CPU and GPU, stacked or one network after another."""

from dataclasses import replace

import numpy as np
import pytest

from explanation_cases import POOLS, architecture_with, same, trained, trees
from lookhops.core.options import RECOMMENDED
from lookhops.explain import attribute, networks
from lookhops.models.predictor import Predictor
from lookhops.sources.hop_tasks import hop_task


def test_shares_on_cpu_and_gpu_agree(tmp_path):
    graphs = hop_task(1, 40)  # many of whose nodes are alike
    folder = trained(tmp_path / "model", graphs)
    plain, other = (attribute(Predictor(folder, on), graphs[:20]) for on in ("cpu", "cuda"))
    same(other, plain, 1e-3)


@pytest.mark.parametrize("pool", POOLS)
def test_a_stack_has_the_shares_that_each_network_has_on_the_cpu(tmp_path, pool):
    graphs = trees()
    folder = trained(tmp_path / "model", graphs, architecture_with(pool))
    plain = attribute(Predictor(folder, "cpu"), graphs[:20])
    there = Predictor(folder, "cuda")
    atol = 5e-3 if pool == "edge" else 1e-3  # which edges merge is decided by rounding on a CPU too
    same(attribute(there, graphs[:20]), plain, atol)  # stacked, as is usual on a GPU
    same(attribute(there, graphs[:20], stacked=False), plain, atol)


def test_few_points_at_a_time_give_the_same_shares(tmp_path, monkeypatch):
    graphs = trees()
    there = Predictor(trained(tmp_path / "model", graphs), "cuda")
    found = attribute(there, graphs)
    monkeypatch.setitem(networks.MOST_NODES, "cuda", 500)
    same(attribute(there, graphs), found, 1e-3)


def test_a_wide_stack_of_many_graphs_adds_up(tmp_path):
    graphs = hop_task(2, 600)
    folder = trained(tmp_path / "model", graphs, replace(RECOMMENDED, layers=3))
    found = attribute(Predictor(folder, "cuda"), graphs)
    graph = found.graphs.batch.cpu().numpy()
    nodes = np.bincount(graph, found.node_with_edges, len(found))
    np.testing.assert_allclose(found.baseline + found.whole + nodes, found.value, atol=1e-6)
    size = np.maximum(np.abs(found.value - found.baseline), 1)
    assert (np.abs(found.residual) <= 0.01 * size).all()

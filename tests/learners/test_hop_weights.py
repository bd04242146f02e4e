"""The weight of each hop in a Gaussian process, by the evidence."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from lookhops import LookHopsError, load, look_weights
from lookhops.learners import hop_weights
from lookhops.neighbourhoods.labels import seen_by_hop


@pytest.mark.parametrize("k", range(1, 7))
def test_hop_tasks_name_their_hop(k: int):
    found = look_weights(load(f"hops-{k}"), draws=4)
    assert found.enough == k
    assert found.weights.argmax() == k
    assert found.weights[k] > 0.8
    assert found.spread[k] < 0.1
    assert (found.weights[k + 1 :] == 0).all()
    assert f"hop {k} has its largest weight" in found.sentence()


def test_shuffled_classes_need_no_hop():
    graphs = load("hops-1", size=200)
    order = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(0))
    found = look_weights(replace(graphs, y=graphs.y[order]), 2, draws=4)
    assert found.enough is None
    assert found.to_dict()["enough"] is None
    assert "no better than the commonest class" in found.sentence()


def test_kernels_count_what_graphs_share():
    graphs = load("hops-2", size=12)
    kernels = hop_weights._kernels(graphs, 2)
    for hop, seen in enumerate(seen_by_hop(graphs, 2)):
        held = [
            Counter(
                (column, code)
                for row in seen[graphs.node_ptr[g] : graphs.node_ptr[g + 1]].tolist()
                for column, code in enumerate(row)
            )
            for g in range(len(graphs))
        ]
        naive = [[(a & b).total() / (a | b).total() for b in held] for a in held]
        np.testing.assert_allclose(kernels[hop], naive, rtol=1e-12)


def test_the_score_leaves_each_graph_out():
    graphs = load("solubility", target="value")[:40]
    kernels, targets = hop_weights._kernels(graphs, 1), hop_weights._targets(graphs)
    weights = hop_weights.Weights(torch.tensor([0.5, 1.0], dtype=torch.float64), 0.1)
    covariance = (0.5 * kernels[0] + kernels[1] + 0.1 * torch.eye(40)).double()
    errors = []
    for i in range(40):
        others = torch.arange(40) != i
        solved = torch.linalg.solve(covariance[others][:, others], targets[others])
        errors.append(float((covariance[i, others] @ solved - targets[i]) ** 2))
    r2 = 1 - sum(errors) / float(targets.square().sum())
    assert hop_weights._score(kernels, weights, targets, 0) == pytest.approx(r2, rel=1e-9)


def test_numbers_and_blanks():
    graphs = load("solubility", target="value")[:150]
    y = graphs.y.clone()
    y[::10] = torch.nan
    found = look_weights(replace(graphs, y=y), 1, draws=2)
    assert found.graphs == 108
    assert found.number == "value"
    assert "R²" in found.sentence()


def test_what_cannot_be_asked():
    graphs = load("hops-1", size=100)
    for arguments in ({"max_hops": -1}, {"draws": 1}):
        with pytest.raises(LookHopsError, match=next(iter(arguments))):
            look_weights(graphs, **arguments)
    with pytest.raises(LookHopsError, match="hops-1"):
        look_weights(replace(graphs, y=None, targets=()))

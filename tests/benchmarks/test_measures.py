"""Measures of explanations against scikit-learn and by hand."""

import itertools

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from lookhops.sources.hop_tasks import hop_task
from measures import (
    agreement,
    node_auc,
    only_nodes,
    precision_at_size,
    retrained_accuracy,
    top_nodes,
)
from truths import hops_truth

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


def test_top_nodes_are_those_of_each_graph():
    score, ptr = np.array([3.0, 1, 2, 0, 5]), np.array([0, 3, 5])
    assert top_nodes(score, np.array([2, 1]), ptr).tolist() == [True, False, True, False, True]


def test_a_part_is_the_induced_subgraph():
    graphs = hop_task(1, 6)
    keep = torch.rand(graphs.num_nodes, generator=torch.Generator().manual_seed(0)) < 0.6
    parts, first = only_nodes(graphs, keep).to_networkx(), graphs.node_ptr.tolist()
    for number, graph in enumerate(graphs.to_networkx()):
        inside = [node for node in graph if keep[first[number] + node]]
        want = nx.convert_node_labels_to_integers(graph.subgraph(inside), ordering="sorted")
        assert set(parts[number].edges) == set(want.edges)
        assert len(parts[number]) == len(inside)


def test_what_decides_can_be_learnt_again_and_the_rest_cannot():
    """Marked nodes and the ends beside them hold the class; all other nodes know nothing of it."""
    task = hops_truth(1, size=80)
    assert task.graphs.nodes.labels is not None
    decides = (task.truth | (task.graphs.nodes.labels[:, 0] == 1)).numpy().astype(float)
    assert retrained_accuracy(task.graphs, decides) > 0.8
    assert retrained_accuracy(task.graphs, -decides) < 0.7

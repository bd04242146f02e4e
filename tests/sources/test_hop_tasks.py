"""Hop tasks: fewer than K hops tell nothing, K hops tell all, and nothing else helps."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path
from sklearn.ensemble import RandomForestClassifier

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.sources.hop_tasks import BLUE, MARKED, NODE_LABELS, RED, hop_task

HOPS = range(1, 7)
FARTHEST = 20  # farther than any node of a tree is from its root


def adjacency(graphs: Graphs) -> csr_array:
    source, target = graphs.edge_index.numpy()
    return csr_array((np.ones(len(source)), (source, target)), (graphs.num_nodes,) * 2)


def shells(graphs: Graphs) -> np.ndarray:
    """Nodes of each label at each distance from each marked node: (graph, mark, hop, label)."""
    labels = graphs.nodes.labels[:, 0].numpy()
    marks = np.flatnonzero(labels == MARKED)
    assert np.array_equal(graphs.batch.numpy()[marks], np.repeat(np.arange(len(graphs)), 2))
    one_hot = np.eye(len(NODE_LABELS))[labels]
    edges = adjacency(graphs)
    shell = csr_array(
        (np.ones(len(marks)), (np.arange(len(marks)), marks)), (len(marks), len(labels))
    )
    seen = shell
    counts = np.zeros((len(marks), FARTHEST, len(NODE_LABELS)))
    for hop in range(FARTHEST):
        counts[:, hop] = shell @ one_hot
        reached = (shell @ edges).sign()
        shell = reached - reached.multiply(seen)
        seen = seen + shell
    return counts.reshape(len(graphs), 2, FARTHEST, len(NODE_LABELS))


def accuracy(features: np.ndarray, y: np.ndarray) -> float:
    """Of a forest trained on the first half of the graphs, over the second half."""
    half = len(y) // 2
    flat = features.reshape(len(y), -1)
    forest = RandomForestClassifier(40, random_state=0).fit(flat[:half], y[:half])
    return float(forest.score(flat[half:], y[half:]))


@pytest.fixture(scope="module", params=HOPS)
def task(request: pytest.FixtureRequest) -> tuple[int, Graphs, np.ndarray, np.ndarray]:
    graphs = hop_task(request.param, size=1000, seed=3)
    return request.param, graphs, shells(graphs), graphs.y.numpy()


def at_chance(value: float, tested: int = 500) -> bool:
    """Within four standard errors of a half: some thirty such checks are made here."""
    return abs(value - 0.5) <= 4 * 0.5 / tested**0.5


def test_exactly_k_hops_decide(task):
    k, _, counts, y = task
    assert accuracy(counts[:, :, : k + 1], y) > 0.97
    colours = counts[:, :, k, [RED, BLUE]]
    assert (colours.sum(-1) == 2).all()
    assert np.array_equal((colours.max(-1) == 2).all(-1), y == 1)
    assert np.array_equal((colours == 1).all((1, 2)), y == 0)


def test_fewer_hops_are_at_chance(task):
    k, _, counts, y = task
    for hops in range(k):
        assert at_chance(accuracy(counts[:, :, : hops + 1], y)), hops


def test_farther_hops_alone_are_at_chance(task):
    k, _, counts, y = task
    assert at_chance(accuracy(counts[:, :, k + 1 :], y))


def test_whole_graphs_are_at_chance(task):
    _, graphs, _, y = task
    degree = graphs.row_ptr.diff().numpy()
    batch, labels = graphs.batch.numpy(), graphs.nodes.labels[:, 0].numpy()
    table = np.zeros((len(graphs), len(NODE_LABELS), degree.max() + 1))
    np.add.at(table, (batch, labels, degree), 1)
    sizes = np.stack((graphs.nodes_per_graph.numpy(), graphs.edge_ptr.diff().numpy()), axis=1)
    assert at_chance(accuracy(np.hstack((table.reshape(len(y), -1), sizes)), y))


def test_classes_have_the_same_averages(task):
    """A finer sieve than a classifier: plain, red and blue in all, and at any distance but K."""
    k, _, counts, y = task
    counts = counts.sum(1)  # over both marked nodes
    in_all = counts.sum(1)
    coloured = in_all[:, [RED, BLUE]].sum(1, keepdims=True)
    elsewhere = np.delete(counts, k, axis=1).reshape(len(y), -1)
    values = np.hstack((in_all, coloured, elsewhere))
    same, different = values[y == 1], values[y == 0]
    error = np.sqrt(same.var(0) / len(same) + different.var(0) / len(different))
    assert (np.abs(same.mean(0) - different.mean(0)) <= 4 * error).all()


def test_decoys_stand_nearer_and_farther(task):
    """Without them, any colours in reach would do, and the mark would not be needed."""
    k, _, counts, _ = task
    coloured = counts[..., [RED, BLUE]].sum((0, 1, 3))
    assert (coloured[k + 1 : k + 3] > 0).all()
    assert (coloured[1:k] > 0).all()
    assert coloured[0] == 0


def refinement(graphs: Graphs, labels: np.ndarray, rounds: int) -> list[Counter[object]]:
    """The views of all nodes of one graph after each round: all that message passing can see."""
    source, target = graphs.edge_index.numpy()
    views: list[object] = list(labels.tolist())
    seen = [Counter(views)]
    for _ in range(rounds):
        incoming: list[list[object]] = [[] for _ in views]
        for a, b in zip(source.tolist(), target.tolist(), strict=True):
            incoming[b].append(views[a])
        views = [
            hash((view, tuple(sorted(Counter(near).items(), key=repr))))
            for view, near in zip(views, incoming, strict=True)
        ]
        seen.append(Counter(views))
    return seen


@pytest.mark.parametrize("k", HOPS)
def test_no_message_passing_of_fewer_hops_can_tell(k):
    """Every graph has a twin of the other class that looks the same until K hops.

    The twin is found by exchanging two ends of different colours between the two trees.
    """
    for graph in (hop_task(k, size=6, seed=1)[i] for i in range(6)):
        labels = graph.nodes.labels[:, 0].numpy()
        distance = shortest_path(adjacency(graph), unweighted=True)
        ends = [
            [i for i in np.flatnonzero(distance[mark] == k) if labels[i] in (RED, BLUE)]
            for mark in np.flatnonzero(labels == MARKED)
        ]
        mine = refinement(graph, labels, k)
        twins = []
        for a in ends[0]:
            for b in ends[1]:
                twin = labels.copy()
                twin[[a, b]] = labels[[b, a]]
                if labels[a] != labels[b]:
                    twins.append(refinement(graph, twin, k))
        assert any(twin[:k] == mine[:k] and twin[k] != mine[k] for twin in twins)


def test_graphs_are_undirected_trees_in_two_classes_of_one_size():
    graphs = hop_task(3, size=101, seed=0)
    assert graphs.is_undirected
    assert graphs.class_names == ("different", "same")
    assert abs(int((2 * graphs.y - 1).sum())) == 1
    assert torch.equal(graphs.edge_ptr.diff(), 2 * (graphs.nodes_per_graph - 2))
    assert (graphs.name, graphs.featuriser, graphs.num_features) == ("hops-3", "hop-tasks-1", 4)
    assert len(hop_task(1, size=2)) == 2


def test_same_arguments_same_graphs():
    again = hop_task(4, size=50, seed=7)
    assert hop_task(4, size=50, seed=7).fingerprint == again.fingerprint
    assert hop_task(4, size=50, seed=8).fingerprint != again.fingerprint
    # Written down once: no machine and no version may change what a seed means.
    first = hop_task(2, size=2, seed=0)
    assert first.y.tolist() == [0, 1]
    assert first.nodes.labels[:14, 0].tolist() == [0, 2, 2, 0, 3, 3, 1, 0, 0, 0, 3, 0, 0, 0]
    assert first.source[:14].tolist() == [11, 2, 11, 1, 6, 8, 13, 15, 23, 5, 9, 4, 3, 12]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"k": 0}, "hops-0: there are hop tasks from hops-1 to hops-6."),
        ({"k": 7}, "hops-7: there are hop tasks from hops-1 to hops-6."),
        ({"k": 2, "size": 1}, "hops-2: 1 graphs cannot hold two classes; ask for 2 or more."),
        ({"k": 2, "seed": -1}, "hops-2: the seed is -1; it must be 0 or more."),
    ],
)
def test_impossible_tasks(arguments, sentence):
    with pytest.raises(LookHopsError) as error:
        hop_task(**arguments)
    assert str(error.value) == sentence

"""What hops tell about the classes."""

import json
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from lookhops import Graphs, LookHopsError, load, look_labels
from lookhops.graphs import Target
from lookhops.neighbourhoods import LabelInformation, labels
from lookhops.neighbourhoods.labels import PENALTY, ridge_predictions
from lookhops.sources.splits import split
from naive_wl import naive_colours, naive_shells


@pytest.mark.parametrize("k", range(1, 7))
def test_hop_tasks_are_decided_within_k_hops(k: int):
    found = look_labels(load(f"hops-{k}"))
    assert found.enough == k
    assert (found.mean[:k] < 0.6).all()
    assert (found.mean[k:] > 0.9).all()
    assert f"decided within {k} hop" in found.sentence()
    assert ("still helped" in found.sentence()) == (k == 6)


def test_other_graphs_and_splits_give_the_same():
    assert look_labels(load("hops-3", seed=4), seeds=range(400, 410)).enough == 3


def test_shuffled_classes_are_not_told():
    graphs = load("hops-2", size=300)
    order = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(0))
    found = look_labels(replace(graphs, y=graphs.y[order]))
    assert found.enough is None
    assert found.to_dict()["enough"] is None
    assert "does not predict your classes" in found.sentence()


def naive_accuracies(graphs: Graphs, hops: int, seeds: list[int]) -> list[float]:
    """The whole of it, graph by graph, by dense matrices."""
    colours = [*naive_colours(graphs, hops)[: hops + 1], *naive_shells(graphs, hops)]
    graph = graphs.batch.tolist()
    features, seen = defaultdict(set), Counter()
    for family, column in enumerate(colours):
        for node, colour in enumerate(column):
            what = (family, colour)
            features[graph[node]].add((what, seen[graph[node], what]))
            seen[graph[node], what] += 1
    often = Counter(feature for own in features.values() for feature in own)
    kept = sorted((f for f in often if often[f] > 1), key=repr)
    x = np.array([[f in features[g] for f in kept] for g in range(len(graphs))], float)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y, shares = graphs.y.numpy(), []
    for seed in seeds:
        parts = split(graphs, seed, stratify=True)
        train, val = parts.train.numpy(), parts.val.numpy()
        targets = np.eye(graphs.num_classes)[y]
        mean = targets[train].mean(0)
        gram = x[train] @ x[train].T + PENALTY * np.eye(len(train))
        scores = x[val] @ x[train].T @ np.linalg.solve(gram, targets[train] - mean) + mean
        shares.append((scores.argmax(1) == y[val]).mean())
    return shares


@pytest.mark.parametrize("classes", [2, 3])
def test_agrees_with_a_naive_version(classes: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(labels, "TOLERANCE", 1e-5)
    graphs = load("hops-2", size=120)
    if classes == 3:
        y = torch.where(graphs.nodes_per_graph > graphs.nodes_per_graph.median(), 2, graphs.y)
        graphs = replace(graphs, y=y, targets=(Target("class", ("a", "b", "c")),))
    found = look_labels(graphs, 2, [1, 2, 3])
    naive = [naive_accuracies(graphs, hops, [1, 2, 3]) for hops in range(3)]
    np.testing.assert_allclose(found.scores, naive)


def test_numbers_are_read_in_bins():
    graphs = load("hops-1", size=200)
    value = torch.where(graphs.nodes.labels.float() > 1, graphs.nodes.labels * 10.0, 0.0)
    marked = (graphs.nodes.labels == 1).to(graphs.nodes.labels)
    plain = replace(
        graphs, nodes=replace(graphs.nodes, labels=marked, label_values=(("no", "yes"),))
    )
    assert look_labels(plain, 2).enough is None
    assert look_labels(replace(plain, nodes=replace(plain.nodes, numbers=value)), 2).enough == 1


def test_what_edges_tell_is_seen_beside_numbers():
    """The wires of a ring of accounts, though ages make every neighbourhood different."""
    transfers = load("transfers")
    found = look_labels(transfers, 2, 5)
    assert found.enough == 1
    assert found.mean[0] < 0.6
    assert found.mean[1] > 0.95


def test_numbers_of_edges_are_read_in_bins():
    graphs = load("hops-1", size=200)
    order = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(0))
    graphs = replace(graphs, y=graphs.y[order])
    of_edges = graphs.y[graphs.batch[graphs.target]]
    noise = torch.rand(graphs.num_edges, generator=torch.Generator().manual_seed(1))
    assert look_labels(graphs, 1, 5).enough is None
    told = replace(graphs, edges=replace(graphs.edges, numbers=(of_edges + noise)[:, None]))
    assert look_labels(told, 1, 5).enough == 1


def test_a_number_that_lies_two_hops_away_is_told_within_two():
    """The red nodes exactly two hops from a marked one, counted; noise is not told at all."""
    graphs = load("hops-2", size=300)
    label, edges = graphs.nodes.labels[:, 0], graphs.edge_index
    one = torch.zeros(graphs.num_nodes).index_add_(0, edges[1], (label == 2).float()[edges[0]])
    red = torch.zeros(graphs.num_nodes).index_add_(0, edges[1], one[edges[0]]) - one
    count = torch.zeros(len(graphs)).index_add_(0, graphs.batch, red * (label == 1))
    numbers = replace(graphs, y=100 + 7 * count.double(), targets=(Target("red"),))
    found = look_labels(numbers, 3, 5)
    assert found.enough in (1, 2)
    assert found.mean[2] > 0.5
    assert found.mean[0] < found.mean[2] - 0.2
    assert "red is predicted within" in found.sentence()
    assert "R² 0." in found.sentence()
    noise = torch.randn(len(graphs), generator=torch.Generator().manual_seed(0)).double()
    noise[::3] = torch.nan
    found = look_labels(replace(numbers, y=noise), 2, 5)
    assert found.enough is None
    assert found.graphs == 200
    assert "does not predict red" in found.sentence()
    assert found.naive.max() < 1e-6
    assert "number" in found.to_dict()
    assert "r2" in found.to_frame()


def information(*accuracy: float, majority: float = 0.5) -> LabelInformation:
    noise = np.array([0.01, -0.01, 0.0, 0.02, -0.02])
    rows = np.array(
        [one + noise[[(i + j) % 5 for j in range(5)]] for i, one in enumerate(accuracy)]
    )
    return LabelInformation("made up", 100, rows, np.full(5, majority), 0.125)


@pytest.mark.parametrize(
    ("accuracy", "enough", "said"),
    [
        ((0.5, 0.5, 0.5), None, "does not predict"),
        ((0.8,), 0, "without any edge: 80.0% right, against 50.0% for the commonest class."),
        ((0.8, 0.8, 0.81), 0, "(at most 81.0%, with 2)"),
        ((0.5, 0.8, 0.8), 1, "decided within 1 hop: 80.0% right, against 50.0%"),
        ((0.5, 0.7, 0.9), 2, "The last hop still helped"),
    ],
)
def test_the_fewest_hops_within_noise_of_the_best(accuracy, enough, said):
    found = information(*accuracy)
    assert found.enough == enough
    assert said in found.sentence()


def test_as_numbers(tasks):
    found = look_labels(tasks, 2, 3)
    told = found.to_dict()
    assert json.loads(json.dumps(told)) == told
    assert told["hops"] == [0, 1, 2]
    assert told["splits"] == 3
    assert found.to_frame()["accuracy"].tolist() == told["accuracy"]


@pytest.mark.parametrize(
    ("change", "options", "named"),
    [
        (lambda g: replace(g, y=None, targets=()), {}, "hops-1"),
        (lambda g: replace(g, y=g.y * 0), {}, "hops-1"),
        (lambda g: g.select(range(30)), {}, "30 graphs"),
        (lambda g: g, {"max_hops": -1}, "max_hops.*-1"),
        (lambda g: g, {"seeds": [1]}, "seeds"),
    ],
)
def test_what_cannot_be_told(tasks, change, options, named):
    with pytest.raises(LookHopsError, match=named):
        look_labels(change(tasks), **options)


@pytest.mark.data
def test_nci1_climbs(data_dir):
    found = look_labels(load("NCI1", data_dir=data_dir), max_hops=5)
    assert found.mean[0] < 0.68
    assert found.mean[-1] > 0.84
    assert found.enough in (3, 4)


# -------------------------------------------------------------------- ridge regression


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

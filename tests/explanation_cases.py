"""Graphs, models and comparisons for tests of explanations, on the CPU and on a GPU."""

from dataclasses import replace

import numpy as np
import torch

from lookhops import Graphs
from lookhops.core.options import RECOMMENDED, Architecture, Protocol
from lookhops.explain import Attributions
from lookhops.models.training import train_into
from lookhops.sources.hop_tasks import hop_task
from lookhops.tasks import ClassAnswers

POOLS = ("lookhops", "none", "topk", "edge", "asap", "diffpool")
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
        nodes=replace(graphs.nodes, numbers=attributes, number_names=("one", "two")),
        edges=replace(graphs.edges, numbers=told, number_names=("weight", "length")),
    )


def trained(folder, graphs, architecture=SMALL):
    """A folder of four networks."""
    seeds = Protocol(seeds=(11, 22), members=2, max_epochs=3, batch_size=16, learning_rate=0.01)
    train_into(folder, graphs, architecture, seeds, device="cpu")
    return folder


def same(one, two, atol):
    """The same numbers and shares, one by one."""
    for part in NUMBERS + SHARES:
        found, wanted = getattr(one, part), getattr(two, part)
        np.testing.assert_allclose(found, wanted, atol=atol, err_msg=part)


def moved(one, two, part):
    """How much shares differ in all, as a part of their size."""
    found, wanted = getattr(one, part), getattr(two, part)
    return np.abs(found - wanted).sum() / np.abs(wanted).sum()


def architecture_with(pool: str) -> Architecture:
    """A small network with this pooling; the recommended one has ours."""
    return SMALL if pool == "lookhops" else Architecture(pool=pool, hidden=8, layers=2)


def sums(found: Attributions) -> np.ndarray:
    """Baseline and all shares of each graph."""
    graph = found.graphs.batch.numpy()
    nodes = np.bincount(graph, found.node, len(found))
    edges = np.bincount(graph[found.graphs.target.numpy()], found.edge, len(found))
    return found.baseline + found.whole + nodes + edges + found.features.sum(1)


def check(found: Attributions) -> None:
    """Shares add up to the answer, and did so within 1 % before what they lacked was spread."""
    answers = found.answers.targets[found.target]
    if isinstance(answers, ClassAnswers):
        p = answers.probabilities[np.arange(len(found)), answers.numbers]
        asked = np.arange(answers.probabilities.shape[1]) == np.asarray(answers.numbers)[:, None]
        others = np.where(asked, 0, answers.probabilities).sum(1)  # 1 - p has no digits left near 1
        np.testing.assert_allclose(found.value, np.log(p) - np.log(others), atol=1e-6)
    else:
        np.testing.assert_allclose(found.value, answers.values)
    np.testing.assert_allclose(sums(found), found.value, rtol=1e-9, atol=1e-9)
    size = np.abs(found.value - found.baseline)
    assert (np.abs(found.residual) <= 0.01 * np.maximum(size, 1)).all()

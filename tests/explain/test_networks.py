"""Networks that are explained at once have the shares that each of them has alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lookhops import Graphs
from lookhops.core.options import FINGERPRINT, RECOMMENDED, Architecture
from lookhops.explain import attribute, networks
from lookhops.explain.path import copies
from lookhops.graphs.features import Features
from lookhops.graphs.targets import targets_of
from lookhops.nn import GraphBatch

PARTS = ("value", "baseline", "whole", "node", "edge", "node_spread", "edge_spread")
SMALL = replace(RECOMMENDED, hidden=8, layers=3, fingerprint=2)
ARCHITECTURES = {
    "recommended": SMALL,
    "fingerprint": FINGERPRINT,
    "gcn-topk": Architecture(conv="gcn", pool="topk", hidden=8, layers=2, ratio=0.6),
    **{
        pool: Architecture(pool=pool, hidden=8, layers=2)
        for pool in ("none", "edge", "asap", "diffpool", "hgpsl", "ipool")
    },
}


@pytest.fixture(scope="module")
def graphs() -> Graphs:
    """Trees in two classes whose nodes and edges all differ: no rounding decides which is first."""
    draws = np.random.default_rng(0)
    sizes = draws.integers(4, 12, 40)
    first = np.repeat(sizes.cumsum() - sizes, sizes - 1)
    child = np.concatenate([np.arange(1, size) for size in sizes])
    parent = draws.integers(0, child)
    ends = torch.from_numpy(np.stack((first + child, first + parent)))
    return Graphs.from_edges(
        *torch.cat((ends, ends.flip(0)), 1),
        torch.from_numpy(sizes),
        nodes=Features(numbers=torch.from_numpy(draws.random((sizes.sum(), 2)))),
        edges=Features(
            numbers=torch.from_numpy(draws.random((len(child), 2))).repeat(2, 1),
            number_names=("weight", "length"),
        ),
        y=torch.arange(40) % 2,
    )


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_stack_has_the_shares_of_its_networks(trained, graphs, name):
    model = trained(graphs, ARCHITECTURES[name], seeds=(11, 22), members=2, max_epochs=2)
    alone, stacked = (attribute(model, graphs[:12], stacked=one) for one in (False, True))
    assert stacked.networks == 4
    for part in PARTS:
        np.testing.assert_allclose(
            *(getattr(one, part) for one in (stacked, alone)), atol=1e-5, err_msg=part
        )


def test_molecules_in_a_stack_have_the_same_shares_but_for_ties(of_classes, molecules):
    """Which of two equal atoms is read as the largest, rounding decides."""
    alone, stacked = (attribute(of_classes, molecules, stacked=one) for one in (False, True))
    for part in PARTS:
        found, wanted = (getattr(one, part) for one in (stacked, alone))
        np.testing.assert_allclose(found, wanted, atol=0.02 * np.abs(alone.node).max())


def test_numbers_are_explained_in_a_stack(trained, graphs):
    y = graphs.nodes_per_graph.double()
    known = replace(graphs, y=y, targets=targets_of(y))
    model = trained(known, SMALL, seeds=(11, 22), max_epochs=2)
    alone, stacked = (attribute(model, known, stacked=one) for one in (False, True))
    np.testing.assert_allclose(stacked.node, alone.node, atol=1e-5)


def test_members_whose_average_is_calibrated_add_up(trained, graphs):
    model = trained(graphs, SMALL, seeds=(11, 22), members=2, max_epochs=5)
    for seed, temperature in (("11", 0.25), ("22", 3.0)):
        model.config["metrics"]["seeds"][seed]["temperature"] = temperature
    found = attribute(model, graphs)
    size = np.maximum(np.abs(found.value - found.baseline), 1)
    assert (np.abs(found.residual) <= 0.01 * size).all()


def test_what_is_computed_at_once_does_not_matter(trained, graphs, monkeypatch):
    model = trained(graphs, SMALL, seeds=(11, 22), max_epochs=2)
    found = []
    for most in (20, 100, 100_000):  # a point of one network; some points of both; everything
        monkeypatch.setitem(networks.MOST_NODES, "cpu", most)
        found.append(attribute(model, graphs[:12], stacked=True))
    for part in PARTS:
        for one in found[1:]:
            np.testing.assert_allclose(getattr(one, part), getattr(found[0], part), atol=1e-5)


def test_layers_of_others_are_explained_one_network_after_another(trained, graphs):
    pytest.importorskip("torch_geometric")
    architecture = Architecture(conv="pyg:GraphConv", hidden=8, layers=2)
    model = trained(graphs, architecture, seeds=(11, 22), max_epochs=1)
    alone, stacked = (attribute(model, graphs[:4], stacked=one) for one in (False, True))
    np.testing.assert_array_equal(stacked.node, alone.node)


def test_edges_with_blanks_are_explained(trained, graphs):
    told = graphs.edges.numbers.clone()
    told[::7, 1] = torch.nan
    blank = replace(graphs, edges=replace(graphs.edges, numbers=told))
    found = attribute(trained(blank, SMALL, max_epochs=2), blank[:8])
    assert np.isfinite(found.edge).all()


def test_copies_are_the_graphs_once_more(trained, graphs):
    network = trained(graphs, Architecture(hidden=8, layers=2), max_epochs=1).models[11]
    some = graphs[:3]
    level: GraphBatch = network.batch(some, torch.rand(some.num_nodes, 2))
    many = copies(level, 3)
    many = replace(many, x=level.x.repeat(3, 1))
    once, found = network(level), network(many)
    torch.testing.assert_close(found, once.repeat(3, 1))

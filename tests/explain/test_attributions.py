"""Shares add up to the answer, belong to their graph, and point at what a model can only know."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from explanation_cases import check
from lookhops import Graphs, LookHopsError
from lookhops.core.options import FINGERPRINT, RECOMMENDED, Architecture
from lookhops.explain import attribute, networks
from lookhops.graphs.features import Features
from lookhops.graphs.targets import Target, targets_of
from lookhops.sources.hop_tasks import hop_task
from lookhops.sources.molecules import from_smiles

#: Poolings that merge nodes, or make edges anew: what they do jumps on the way to the graph.
MERGING = ("edge", "asap", "diffpool", "hgpsl", "ipool")


def test_shares_of_classes_add_up_over_seeds(of_classes, molecules):
    found = attribute(of_classes, molecules)
    check(found)
    assert found.networks == 2
    assert found.in_log_odds
    assert (found.node_spread > 0).any()
    with_edges = np.bincount(found.graphs.batch.numpy(), found.node_with_edges, len(found))
    parts = found.baseline + found.whole + found.features.sum(1) + with_edges
    np.testing.assert_allclose(parts, found.value)


def test_shares_of_numbers_add_up(trained, molecules):
    y = molecules.nodes_per_graph.double()
    graphs = replace(molecules, y=y, targets=targets_of(y))
    check(attribute(trained(graphs, members=2), graphs))


def test_one_of_several_targets_is_explained(trained, molecules):
    size = molecules.nodes_per_graph.double()
    y = torch.stack((size, (size > size.median()).double()), 1)
    graphs = replace(molecules, y=y, targets=(Target("atoms"), Target("large", ("no", "yes"))))
    predictor = trained(graphs)
    with pytest.raises(LookHopsError, match="large, atoms"):
        attribute(predictor, graphs)
    with pytest.raises(LookHopsError, match="'small'"):
        attribute(predictor, graphs, "small")
    for name in ("atoms", "large"):
        check(attribute(predictor, graphs, name))


@pytest.mark.parametrize(
    "architecture",
    [
        Architecture(hidden=8, layers=2),
        Architecture(conv="gcn", pool="topk", hidden=8, layers=3, ratio=0.6),
        replace(RECOMMENDED, hidden=8, layers=3, edge_ratio=0.5, fingerprint=None, totals=False),
        FINGERPRINT,
        *(Architecture(pool=pool, hidden=8, layers=2) for pool in MERGING),
    ],
    ids=["licheb", "gcn-topk", "edge-ratio", "fingerprint", *MERGING],
)
def test_every_architecture_adds_up(trained, architecture):
    graphs = hop_task(1, 40)
    check(attribute(trained(graphs, architecture), graphs[:20]))


def test_an_explanation_belongs_to_its_graph(of_classes, molecules):
    together = attribute(of_classes, molecules[:12])
    alone = attribute(of_classes, molecules[5:6])
    ptr = molecules.node_ptr
    own = slice(int(ptr[5]), int(ptr[6]))
    np.testing.assert_allclose(together.node[own], alone.node, atol=2e-4)
    np.testing.assert_allclose(together[5].edge, alone[0].edge, atol=2e-4)


def test_batches_on_two_threads_give_the_same_bits(of_classes, molecules, monkeypatch):
    monkeypatch.setitem(networks.MOST_GRAPHS, "cpu", 2)
    threads, found = torch.get_num_threads(), []
    for number in (1, 2):
        torch.set_num_threads(number)
        found.append(attribute(of_classes, molecules[:4], seed=11))
    torch.set_num_threads(threads)
    for part in ("value", "node", "edge", "whole"):
        np.testing.assert_array_equal(*(getattr(one, part) for one in found))


def test_a_fingerprint_is_shared_out_exactly(trained):
    """Without a network there is no integral: nothing is left to spread."""
    graphs = hop_task(1, 40)
    found = attribute(trained(graphs, FINGERPRINT), graphs)
    np.testing.assert_allclose(found.residual, 0, atol=1e-5)
    assert not found.edge.any()
    assert not found.baseline.any()


def test_the_node_that_tells_the_class_has_the_largest_share(trained):
    """Stars whose class is the label of one leaf."""
    torch.manual_seed(0)
    size, leaves = 60, 6
    y = torch.arange(size) % 2
    labels = torch.zeros(size, leaves + 1, dtype=torch.long)
    told = torch.randint(1, leaves + 1, (size,))
    labels[torch.arange(size), told] = 1 + y
    first = torch.arange(size).repeat_interleave(leaves) * (leaves + 1)
    leaf = first + torch.arange(1, leaves + 1).repeat(size)
    graphs = Graphs.from_edges(
        torch.cat((first, leaf)),
        torch.cat((leaf, first)),
        torch.full((size,), leaves + 1),
        nodes=Features(labels=labels.view(-1, 1)),
        y=y,
    )
    predictor = trained(graphs, max_epochs=40)
    found = attribute(predictor, graphs)
    right = found.answers.numbers == y.numpy()
    assert right.mean() > 0.9
    largest = np.abs(found.node).reshape(size, -1).argmax(1)
    assert (largest == told.numpy())[right].mean() > 0.9


def test_where_edges_tell_the_class_they_and_their_ends_have_the_largest_shares(trained):
    """Cycles of nodes that are all alike; the kind of one edge is the class."""
    size, length = 40, 8
    y = torch.arange(size) % 2
    told = torch.from_numpy(np.random.default_rng(0).integers(length, size=size))
    kind = torch.zeros(size, length, dtype=torch.long)
    kind[torch.arange(size), told] = 1 + y
    node = torch.arange(size * length)
    onward = node.view(size, length).roll(-1, 1).flatten()
    graphs = Graphs.from_edges(
        torch.cat((node, onward)),
        torch.cat((onward, node)),
        torch.full((size,), length),
        edges=Features(labels=kind.flatten().repeat(2)[:, None]),
        y=y,
    )
    found = attribute(trained(graphs, max_epochs=15), graphs)
    right = found.answers.numbers == y.numpy()
    assert right.mean() > 0.9
    true = torch.stack((told, (told + 1) % length), 1).sort(1).values.numpy()
    for view in (found.node_with_edges, found.node_weight):
        ends = np.sort(view.reshape(size, length).argsort(1)[:, -2:], 1)
        assert (ends == true).all(1)[right].mean() > 0.9
    every = [found[number] for number in range(size)]
    first = np.stack([one.edges[np.abs(one.edge).argmax()] for one in every])
    assert (first == true).all(1)[right].mean() > 0.9


def test_a_graph_without_edges_is_explained_without_a_warning(of_classes):
    graphs = from_smiles(["C", "N"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = attribute(of_classes, graphs)
    check(found)
    assert "The largest parts are" in found[0].sentence
    assert "The largest part is C (atom 0)" in replace(found[0], features={}).sentence


def test_one_graph_has_each_edge_once(of_classes, molecules):
    found = attribute(of_classes, molecules[:3])
    one = found[1]
    assert one.smiles == molecules.columns["smiles"][1]
    assert len(one.edges) * 2 == int(molecules.edge_ptr[2] - molecules.edge_ptr[1])
    total = one.baseline + one.whole + one.node.sum() + one.edge.sum() + sum(one.features.values())
    assert total == pytest.approx(one.value)

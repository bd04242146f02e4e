"""Shares of Gaussian processes and of blends add up, whatever is asked."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from lookhops import Graphs, LookHopsError
from lookhops.core.options import Protocol
from lookhops.explain import Attributions, attribute
from lookhops.explain.kept import explain
from lookhops.graphs.targets import pack_targets, read_target
from lookhops.learners import learner_of
from lookhops.models import Predictor, train_into
from lookhops.sources.loading import load
from lookhops.tasks import ClassAnswers

GP = "gp/hops=2/pairs=3"
BLEND = "blend/hops=2/hidden=8/layers=2/fingerprint=1"


@pytest.fixture(scope="module")
def molecules() -> Graphs:
    return load("solubility", target="value")[:80]


def asked(molecules: Graphs, *kinds: str) -> Graphs:
    """The molecules with these targets."""
    value = molecules.y.numpy()
    cells = {
        "numbers": value,
        "counts": molecules.nodes_per_graph.numpy(),
        "two": [str(v > -3) for v in value],
        "three": [f"class {n}" for n in np.digitize(value, (-4, -2))],
    }
    known = {"numbers", "counts"}
    columns = [
        read_target(k, cells[k], k) if k in known else read_target(k, cells[k]) for k in kinds
    ]
    return replace(molecules, **pack_targets(columns))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    def train(graphs: Graphs, model: str, **options: object) -> Predictor:
        folder = tmp_path_factory.mktemp("sums")
        protocol = Protocol(**{"seeds": (11,), "max_epochs": 2, "batch_size": 16, **options})
        train_into(folder, graphs, learner_of(model), protocol, device="cpu")
        return Predictor(folder, "cpu")

    return train


def check(found: Attributions) -> None:
    """All shares add up to the answer of ``predict``, and did so before the rest was spread."""
    own = found.answers.targets[found.target]
    if isinstance(own, ClassAnswers):
        p = own.probabilities[np.arange(len(found)), own.numbers]
        np.testing.assert_allclose(found.value, np.log(p) - np.log1p(-p), atol=1e-6)
    else:
        np.testing.assert_allclose(found.value, own.values)
    graph = found.graphs.batch.numpy()
    total = found.baseline + found.whole + found.features.sum(1)
    total += np.bincount(graph, found.node, len(found))
    total += np.bincount(graph[found.graphs.target.numpy()], found.edge, len(found))
    np.testing.assert_allclose(total, found.value, rtol=1e-9, atol=1e-9)
    size = np.maximum(np.abs(found.value - found.baseline), 1)
    assert (np.abs(found.residual) <= 0.01 * size).all()


@pytest.mark.parametrize("kind", ["numbers", "counts", "two", "three"])
def test_shares_of_a_process_add_up_exactly(molecules, fitted, kind):
    graphs = asked(molecules, kind)
    found = attribute(fitted(graphs, GP), graphs[:12])
    check(found)
    assert found.networks == 1
    assert np.abs(found.residual).max() < 1e-5  # single precision of log-probabilities
    assert {"MolLogP", "RingCount"} <= {*found.feature_names}


@pytest.mark.parametrize("kind", ["numbers", "counts", "two"])
def test_shares_of_a_blend_add_up(molecules, fitted, kind):
    graphs = asked(molecules, kind)
    predictor = fitted(graphs, BLEND, members=2)
    for member in predictor.fitted[11]:
        member.weight.fill_(0.3)
    found = attribute(predictor, graphs[:12])
    check(found)
    assert found.networks == 4
    assert (found.node_spread > 0).any()


def test_what_has_no_weight_in_a_blend_is_left_out(molecules, fitted):
    graphs = asked(molecules, "two")
    predictor = fitted(graphs, BLEND)
    [member] = predictor.fitted[11]
    member.weight.fill_(0.0)
    found = attribute(predictor, graphs[:5])
    assert found.networks == 1
    check(found)
    [one, *_] = explain(predictor, graphs[:1])  # its network has pooled all the same
    assert len(one.layers) == 1


def test_several_targets_and_seeds(molecules, fitted):
    graphs = asked(molecules, "numbers", "two")
    predictor = fitted(graphs, GP, seeds=(11, 22))
    for name in ("numbers", "two"):
        found = attribute(predictor, graphs[:6], name)
        check(found)
        assert found.networks == 2
    alone = attribute(predictor, graphs[:6], "numbers", seed=22)
    assert alone.networks == 1
    assert not np.array_equal(alone.value, attribute(predictor, graphs[:6], "numbers").value)


def test_neither_the_order_of_nodes_nor_other_graphs_matter(fitted):
    graphs = load("hops-1", size=60)
    predictor = fitted(graphs, GP)
    some = graphs[:6]
    together = attribute(predictor, some)
    check(together)
    ptr = some.node_ptr.tolist()
    turned = torch.cat([torch.arange(a, b).flip(0) for a, b in pairwise(ptr)])
    new = torch.empty_like(turned)
    new[turned] = torch.arange(len(turned))
    order = new[some.target.long()].argsort(stable=True)
    other = Graphs.from_edges(
        new[some.source.long()][order],
        new[some.target.long()][order],
        some.nodes_per_graph,
        nodes=some.nodes.take(turned),
        y=some.y,
        class_names=some.class_names,
    )
    again = attribute(predictor, other)
    np.testing.assert_allclose(again.node, together.node[turned], atol=1e-9)
    alone = attribute(predictor, some[4:5])
    np.testing.assert_allclose(alone.node, together.node[ptr[4] : ptr[5]], atol=1e-9)
    np.testing.assert_allclose(alone.edge.sum(), together[4].edge.sum(), atol=1e-9)


def test_a_process_has_no_pooling_to_show(molecules, fitted):
    graphs = asked(molecules, "two")
    with pytest.raises(LookHopsError, match="gp"):
        next(explain(fitted(graphs, GP), graphs[:2]))

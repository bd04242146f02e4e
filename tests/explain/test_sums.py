"""Shares of Gaussian processes and of blends add up, whatever is asked."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from explanation_cases import check
from lookhops import Graphs, LookHopsError
from lookhops.explain import attribute
from lookhops.explain.kept import explain
from lookhops.graphs.targets import pack_targets, read_target
from lookhops.learners import learner_of
from lookhops.models import Predictor
from lookhops.sources.loading import load
from strategies import renumbered

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
def fitted(trained):
    def train(graphs: Graphs, model: str, **options: object) -> Predictor:
        return trained(graphs, learner_of(model), **{"max_epochs": 2, **options})

    return train


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
    other = renumbered(some, turned)
    again = attribute(predictor, other)
    np.testing.assert_allclose(again.node, together.node[turned], atol=1e-9)
    alone = attribute(predictor, some[4:5])
    np.testing.assert_allclose(alone.node, together.node[ptr[4] : ptr[5]], atol=1e-9)
    np.testing.assert_allclose(alone.edge.sum(), together[4].edge.sum(), atol=1e-9)


def test_a_process_has_no_pooling_to_show(molecules, fitted):
    graphs = asked(molecules, "two")
    with pytest.raises(LookHopsError, match="gp"):
        next(explain(fitted(graphs, GP), graphs[:2]))

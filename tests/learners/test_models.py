"""Every classical model: one interface, answers by the split alone."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch

from lookhops import Graphs, LookHopsError
from lookhops.core.options import CLASSICAL
from lookhops.graphs.targets import pack_targets, read_target
from lookhops.learners import CHECKS, MODELS, wl
from lookhops.sources.loading import load
from lookhops.sources.splits import Split, split
from lookhops.tasks import task_of


@pytest.fixture(scope="module")
def molecules() -> Graphs:
    return load("solubility")[:120]


def test_every_name_has_a_model_and_a_check():
    assert tuple(MODELS) == tuple(CHECKS) == CLASSICAL


def share_right(graphs: Graphs, part: torch.Tensor, log_p: torch.Tensor) -> float:
    return (log_p.argmax(1) == graphs.y[part]).float().mean().item()


@pytest.mark.parametrize("name", MODELS)
def test_answers_are_log_probabilities_of_the_two_parts(name, molecules):
    parts = split(molecules, 3)
    outputs = MODELS[name](molecules, parts, 5)
    for part in ("val", "test"):
        log_p = outputs.predictions[part]
        assert log_p.shape == (len(getattr(parts, part)), molecules.num_classes)
        assert log_p.dtype == torch.float32
        assert torch.allclose(log_p.exp().sum(1), torch.ones(len(log_p)), atol=1e-5)
    again = MODELS[name](molecules, parts, 5)
    assert torch.equal(again.predictions["test"], outputs.predictions["test"])


@pytest.mark.parametrize("name", MODELS)
def test_classes_of_the_test_part_are_never_looked_at(name, molecules):
    parts = split(molecules, 3)
    y = molecules.y.clone()
    y[parts.test] = 1 - y[parts.test]
    turned = MODELS[name](replace(molecules, y=y), parts, 0)
    assert torch.equal(
        turned.predictions["test"], MODELS[name](molecules, parts, 0).predictions["test"]
    )


@pytest.mark.parametrize("name", MODELS)
def test_numbers_and_several_targets_with_blanks(name, molecules):
    """Each target is answered as it is alone, by the graphs that have it."""
    parts = split(molecules, 3)
    value = molecules.columns["value"].copy()
    value[::4] = np.nan
    columns = [
        read_target("value", value, "numbers"),
        read_target("low", [None if i % 5 == 0 else y == 0 for i, y in enumerate(molecules.y)]),
    ]
    both = MODELS[name](replace(molecules, **pack_targets(columns)), parts, 0).predictions
    for column, place in zip(columns, (slice(2, 3), slice(0, 2)), strict=True):
        graphs = replace(molecules, **pack_targets([column]))
        alone = MODELS[name](graphs, parts, 0).predictions
        for part in ("val", "test"):
            found = both[part][:, place]
            torch.testing.assert_close(found, alone[part].double(), rtol=0, atol=1e-5)
    target = task_of(graphs := replace(molecules, **pack_targets(columns[:1])))
    error = target.evaluate(both["test"][:, 2:], graphs.y[parts.test])["mae"]
    naive = target.naive(graphs.y[parts.train], graphs.y[parts.test])["mean_mae"]
    assert error == pytest.approx(naive) if name == "mean" else error < naive


def test_a_target_with_one_class_in_training_is_answered_by_it(molecules):
    parts = split(molecules, 3)
    once = [None] * len(molecules)
    for i in parts.train[:20].tolist():
        once[i] = "no"
    once[int(parts.test[0])] = "yes"
    columns = [read_target("rare", once), read_target("size", molecules.nodes_per_graph, "numbers")]
    graphs = replace(molecules, **pack_targets(columns))
    for name in ("wl", "baseline", "morgan-ridge"):
        rare = MODELS[name](graphs, parts, 0).predictions["test"][:, :2]
        assert (rare.argmax(1) == 0).all()


@pytest.mark.parametrize("name", ["wl", "wl-oa"])
def test_what_one_hop_decides_is_found(name):
    graphs = load("hops-1", size=600)
    parts = split(graphs, 1)
    outputs = MODELS[name](graphs, parts, 0)
    assert share_right(graphs, parts.test, outputs.predictions["test"]) > 0.9


def test_the_baseline_cannot_see_hops_but_sees_sizes():
    graphs = load("hops-1", size=300)
    parts = split(graphs, 1)
    outputs = MODELS["baseline"](graphs, parts, 0)
    assert share_right(graphs, parts.test, outputs.predictions["test"]) < 0.75
    sizes = [3 + i % 20 for i in range(200)]
    paths = Graphs.from_networkx([nx.path_graph(n) for n in sizes], y=[n > 12 for n in sizes])
    parts = split(paths, 1)
    outputs = MODELS["baseline"](paths, parts, 0)
    assert share_right(paths, parts.test, outputs.predictions["test"]) == 1


@pytest.mark.parametrize("name", MODELS)
def test_more_classes_than_the_training_part_has(name):
    smiles = ["CCO", "CCCO", "CCN", "CCCN", "CCF", "CCCF", "CC", "CCC"]
    from lookhops.sources.molecules import from_smiles

    y = ["a", "a", "b", "b", "c", "c", "d", "d"]
    graphs = from_smiles(smiles, y)
    parts = Split(*(torch.tensor(part) for part in ([0, 1, 2, 3, 4, 5], [1, 3, 6], [0, 2, 5, 7])))
    log_p = MODELS[name](graphs, parts, 0).predictions["test"]
    assert log_p.shape == (4, 4)
    assert log_p.isfinite().all()
    assert (log_p.argmax(1) != 3).all()


def test_splits_share_a_kernel_and_kinds_do_not(molecules, monkeypatch):
    computed, gram_by_hop = [], wl.gram_by_hop

    def counting(graphs, hops, kind):
        computed.append((len(graphs), kind))
        return gram_by_hop(graphs, hops, kind)

    monkeypatch.setattr(wl, "gram_by_hop", counting)
    graphs = molecules[:60]  # of its own, so that nothing is known of it
    first, second = split(graphs, 4), split(graphs, 5)
    alone = [MODELS["wl"](molecules[:60], part, 0) for part in (first, second)]
    computed.clear()
    shared = [MODELS["wl"](graphs, part, 0) for part in (first, second)]
    assert computed == [(60, "subtree")]
    for one, other in zip(alone, shared, strict=True):
        assert torch.equal(one.predictions["test"], other.predictions["test"])
        assert one.chosen == other.chosen
        assert set(one.chosen) == {"hops", "C"}
    other = MODELS["wl-oa"](graphs, first, 0)
    assert computed[1:] == [(60, "optimal-assignment")]
    assert not torch.equal(other.predictions["test"], shared[0].predictions["test"])


def test_more_graphs_than_a_kernel_has_room_for(molecules, monkeypatch):
    monkeypatch.setattr(wl, "MOST_GRAPHS", 100)
    for name in ("wl", "wl-oa"):
        with pytest.raises(LookHopsError, match=r"at most 100 graphs, not of 120; choose finger"):
            CHECKS[name](molecules)
        CHECKS[name](molecules[:100])


def test_what_cannot_be_learnt_is_refused(tasks):
    parts = split(tasks, 1)
    for name in MODELS:
        with pytest.raises(LookHopsError, match="to learn"):
            MODELS[name](replace(tasks, y=None), parts, 0)
    with pytest.raises(LookHopsError, match=r"for molecules, and .* has no SMILES"):
        MODELS["morgan-forest"](tasks, parts, 0)
    broken = replace(tasks, columns={"smiles": np.array(["C("] * len(tasks))})
    with pytest.raises(LookHopsError, match=r"Molecule 1: 'C\(' is not a SMILES"):
        MODELS["morgan-forest"](broken, parts, 0)

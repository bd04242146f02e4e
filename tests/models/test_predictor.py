"""Predictions of a model folder: an ensemble, calibrated, and careful with strange features."""

import warnings
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch

from lookhops import Graphs
from lookhops.core.errors import LookHopsError
from lookhops.core.options import RECOMMENDED, Protocol
from lookhops.encoding import ReadOtherwise
from lookhops.graphs.features import Features
from lookhops.learners.gp import GaussianProcess
from lookhops.models.answers import Predictions
from lookhops.models.predictor import Predictor
from lookhops.models.training import train_into
from lookhops.sources.loading import load
from lookhops.sources.molecules import from_smiles
from lookhops.tasks import ClassAnswers, NumberAnswers


@pytest.fixture(scope="module")
def predictor(model_folder) -> Predictor:
    return Predictor(model_folder, "cpu")


def test_the_ensemble_is_the_mean_of_calibrated_seeds(predictor, tasks):
    answers = predictor.predict(tasks)
    each = []
    for seed in (11, 22):
        temperature = predictor.config["metrics"]["seeds"][str(seed)]["temperature"]
        with torch.no_grad():
            outputs = predictor.models[seed](tasks).double()
        each.append((outputs / temperature).softmax(1).numpy())
    mean = np.mean(each, axis=0)
    assert np.allclose(answers.probabilities, mean, atol=1e-6)
    assert np.allclose(answers.probabilities.sum(1), 1)
    votes = np.mean([p.argmax(1) == mean.argmax(1) for p in each], axis=0)
    assert np.array_equal(answers.agreement, votes)
    assert answers.classes == [("different", "same")[c] for c in mean.argmax(1)]


def test_an_answer_belongs_to_its_graph(predictor, tasks):
    together = predictor.predict(tasks).probabilities
    order = torch.randperm(len(tasks), generator=torch.Generator().manual_seed(0))
    shuffled = predictor.predict(tasks[order]).probabilities
    assert np.allclose(shuffled, together[order.numpy()], atol=1e-6)
    alone = predictor.predict(tasks[5]).probabilities
    assert np.allclose(alone[0], together[5], atol=1e-6)


def test_no_graphs_no_answers(predictor, tasks):
    answers = predictor.predict(tasks[:0])
    assert len(answers) == 0
    assert answers.probabilities.shape == (0, 2)


def test_names_are_ids_or_numbers(predictor, tasks, molecule_folder):
    assert predictor.predict(tasks[:3]).ids == ["0", "1", "2"]
    molecules = from_smiles(["CCO", "CCN"], ids=["ethanol", "ethylamine"])
    assert Predictor(molecule_folder, "cpu").predict(molecules).ids == ["ethanol", "ethylamine"]


def test_strange_features_are_refused(predictor, tasks, data_dir):
    with pytest.raises(LookHopsError, match=r"'molecules-2'.*hops-1"):
        predictor.predict(from_smiles(["CCO"]))
    unnamed = replace(tasks, nodes=Features(numbers=torch.ones(tasks.num_nodes, 3)))
    with pytest.raises(LookHopsError, match=r"3 features.*hops-1.*4"):
        predictor.predict(replace(unnamed, featuriser=""))
    columns = torch.cat((tasks.nodes.labels, tasks.nodes.labels), 1) % 2
    halves = replace(
        tasks, nodes=replace(tasks.nodes, labels=columns, label_names=(), label_values=())
    )
    with pytest.raises(LookHopsError, match=r"'kind'.*'label 0', 'label 1'"):
        predictor.predict(halves)
    with pytest.raises(LookHopsError, match="'tu'"):
        predictor.predict(load("PROTEINS", data_dir=data_dir))


def test_features_from_pyg_are_the_same_features(predictor, tasks):
    turned = Graphs.from_pyg(tasks.to_pyg())
    expected = predictor.predict(tasks).probabilities
    assert np.allclose(predictor.predict(turned).probabilities, expected, atol=1e-6)


# -------------------------------------------------------------------- graphs as vectors


def test_an_embedding_is_what_the_last_layers_answer_from(predictor, tasks):
    found = predictor.embed(tasks, seed=22)
    network = predictor.models[22]
    assert found.readout.dtype == np.float32
    with torch.no_grad():
        outputs = network.mlp(torch.from_numpy(found.readout))
        torch.testing.assert_close(outputs, network(tasks), rtol=1e-4, atol=1e-5)
    first = predictor.embed(tasks)
    assert not np.allclose(first.readout, found.readout)
    assert np.array_equal(first.readout, predictor.embed(tasks, seed=11).readout)
    assert first.fingerprint.shape == (len(tasks), 0)
    with pytest.raises(LookHopsError, match=r"seed 5.*11, 22"):
        predictor.embed(tasks, seed=5)


def test_an_embedding_belongs_to_its_graph(accounts_folder):
    model = Predictor(accounts_folder, "cpu")
    rings = Graphs.from_networkx([accounts(("old", "new", "vip"), i) for i in range(9)])
    found = model.embed(rings, bits=64)
    assert found.matrix.shape == (9, found.readout.shape[1] + 64)
    alone = model.embed(rings[4], bits=64)
    assert np.allclose(alone.readout[0], found.readout[4], atol=1e-5)
    assert np.array_equal(alone.fingerprint[0], found.fingerprint[4])
    assert 0 < found.fingerprint.mean() < 1
    codes = model.prepare(rings[4]).codes
    assert alone.fingerprint.sum() == len({int(code) % 64 for code in codes.flatten()})
    assert len(model.embed(rings[:0])) == 0


# -------------------------------------------------------------------- features by name


def accounts(roles, number: int = 0, **more: float):
    """A ring of accounts with a role and an age."""
    ring = nx.cycle_graph(4 + number % 3)
    for node in ring:
        role = roles[(number + node) % len(roles)]
        ring.nodes[node].update(role=role, age=20.0 + 3 * node + number, **more)
    return ring


@pytest.fixture(scope="module")
def accounts_folder(tmp_path_factory) -> Path:
    """A model of all that the recommended network reads, trained on role and age."""
    rings = [accounts(("old", "new", "vip")[: 2 + i % 2], i) for i in range(40)]
    graphs = Graphs.from_networkx(rings, y=[i % 2 for i in range(40)], name="accounts")
    architecture = replace(RECOMMENDED, layers=2, hidden=8, fingerprint=2)
    folder = tmp_path_factory.mktemp("accounts")
    train_into(folder, graphs, architecture, Protocol((11, 22), max_epochs=2), device="cpu")
    return folder


def test_the_same_graph_has_the_same_answer_whatever_values_stand_beside_it(accounts_folder):
    model = Predictor(accounts_folder, "cpu")
    asked = accounts(("new", "old"), 4)
    alone = Graphs.from_networkx([asked])
    assert alone.nodes.label_values == (("new", "old"),)
    beside = Graphs.from_networkx([accounts(("old", "new", "vip"), 3), asked])
    turned = replace(
        beside,
        nodes=replace(
            beside.nodes,
            labels=2 - beside.nodes.labels,
            label_values=(beside.nodes.label_values[0][::-1],),
        ),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = model.predict(alone).probabilities[0]
        for graphs in (beside, turned):
            assert np.allclose(model.predict(graphs).probabilities[1], expected, atol=1e-6)


def test_graphs_with_other_columns_are_refused_by_name(accounts_folder):
    model = Predictor(accounts_folder, "cpu")
    strange = accounts(("x", "y", "z"), zipcode=8001.0)
    for node in strange:
        del strange.nodes[node]["age"]
    with pytest.raises(LookHopsError) as said:
        model.predict(Graphs.from_networkx([strange]))
    for name in ("'age'", "'zipcode'", "'role'", "'x', 'y', 'z'", "accounts"):
        assert name in str(said.value)
    more = Graphs.from_networkx([accounts(("old", "new"), zipcode=8001.0)])
    with pytest.warns(ReadOtherwise, match="'zipcode'"):
        answer = model.predict(more).probabilities
    plain = model.predict(Graphs.from_networkx([accounts(("old", "new"))])).probabilities
    assert np.array_equal(answer, plain)


def test_a_value_that_was_not_seen_is_counted_and_answered(accounts_folder):
    model = Predictor(accounts_folder, "cpu")
    with pytest.warns(ReadOtherwise, match=r"'role'.*guest \(2\)"):
        answer = model.predict(Graphs.from_networkx([accounts(("old", "guest"))]))
    assert np.isfinite(answer.probabilities).all()
    with pytest.warns(ReadOtherwise, match="visitor"):
        other = model.predict(Graphs.from_networkx([accounts(("old", "visitor"))]))
    assert np.array_equal(answer.probabilities, other.probabilities)


def test_a_model_that_uses_edges_reads_them_by_name(tasks, tmp_path):
    low, high = torch.stack((tasks.source, tasks.target)).sort(0).values
    told = replace(
        tasks,
        edges=Features(
            numbers=torch.stack(((low % 5 + 1).float(), (high % 7).float()), 1),
            number_names=("weight", "length"),
            labels=((low + high) % 2)[:, None].to(torch.uint8),
            label_names=("kind",),
            label_values=(("thick", "thin"),),
        ),
    )
    architecture = replace(RECOMMENDED, hidden=8, layers=2, edges="use")
    protocol = Protocol(seeds=(11,), max_epochs=2, batch_size=32)
    train_into(tmp_path / "model", told, architecture, protocol, device="cpu")
    predictor = Predictor(tmp_path / "model", "cpu")
    answers = predictor.predict(told).probabilities
    turned = replace(
        told,
        edges=replace(
            told.edges,
            numbers=told.edges.numbers.flip(1),
            number_names=("length", "weight"),
            labels=1 - told.edges.labels,
            label_values=(("thin", "thick"),),
        ),
    )
    assert np.allclose(predictor.predict(turned).probabilities, answers, atol=1e-6)
    for change in (
        {"edges.labels": 1 - told.edges.labels},
        {"edges.numbers": told.edges.numbers * torch.tensor([[2.0, 1.0]])},
        {"edges.numbers": told.edges.numbers + torch.tensor([[0.0, 9.0]])},
    ):
        changed = told.with_tensors(change)
        assert not np.allclose(predictor.predict(changed).probabilities, answers)
    with pytest.raises(LookHopsError, match="edges"):
        predictor.predict(tasks)


def test_an_answer_of_another_kind_is_said():
    zeros = np.zeros(2)
    number = NumberAnswers("logS", zeros, 1, zeros)
    classes = ClassAnswers("", zeros, 1, ("no", "yes"), np.eye(2), np.arange(2), zeros)
    with pytest.raises(LookHopsError, match="`values`"):
        _ = Predictions(["a", "b"], (number,)).numbers
    with pytest.raises(LookHopsError, match="`classes`"):
        _ = Predictions(["a", "b"], (classes,)).values
    with pytest.raises(LookHopsError, match=r"2 .*`targets`"):
        _ = Predictions(["a", "b"], (number, classes)).values


@pytest.fixture(scope="module")
def shuffled() -> Graphs:
    """400 molecules; the file has them by what they are made of."""
    order = torch.randperm(1000, generator=torch.Generator().manual_seed(1))[:400]
    return load("solubility", target="value")[order]


@pytest.fixture(scope="module")
def process(tmp_path_factory, shuffled) -> Predictor:
    """A Gaussian process of a number, with validation graphs enough to tell."""
    folder = tmp_path_factory.mktemp("process")
    learner, graphs = GaussianProcess(hops=2), shuffled[:300]
    train_into(folder, graphs, learner, Protocol((1,), fractions=(0.5, 0.3, 0.2)), device="cpu")
    return Predictor(folder, "cpu")


def test_intervals_of_a_process_are_wider_where_it_is_less_sure(process, shuffled):
    graphs = shuffled[300:]
    answers = process.predict(graphs)
    low, high = answers.targets[0].intervals.T
    assert np.ptp(high - low) > 0.1
    assert np.corrcoef(high - low, answers.similarity)[0, 1] < -0.3
    order = torch.randperm(100, generator=torch.Generator().manual_seed(0))
    again = process.predict(graphs[order]).targets[0].intervals
    assert np.allclose(again, answers.targets[0].intervals[order], rtol=1e-9)
    found = process.config["metrics"]["seeds"]["1"]
    assert found["deviation_weight"] > 0
    assert found["interval_width"] == pytest.approx((high - low).mean(), rel=0.3)

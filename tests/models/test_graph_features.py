"""Features of whole graphs are read beside totals: learnt, saved, found by name, explained."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from lookhops.core.errors import LookHopsError
from lookhops.core.options import RECOMMENDED, Protocol
from lookhops.encoding import Encoding, ReadOtherwise
from lookhops.explain.attributions import attribute
from lookhops.graphs import Graphs
from lookhops.graphs.features import Features
from lookhops.learners import learner_of
from lookhops.models import Predictor, train_into
from lookhops.models import predictor as predictors
from lookhops.models.export import compare, export_model, load_exported
from lookhops.sources.loading import load
from lookhops.sources.rdkit import descriptors
from lookhops.training import train

NETWORK = replace(RECOMMENDED, hidden=16, layers=2, fingerprint=1)
PROTOCOL = Protocol(seeds=(11,), max_epochs=60, batch_size=32, learning_rate=0.01)


def rings(count: int = 240) -> Graphs:
    """Triangles or chains, hot or cold: a class is whether a triangle is hot or a chain is cold."""
    generator = torch.Generator().manual_seed(1)
    triangle, hot = (torch.rand(2, count, generator=generator) > 0.5).unbind(0)
    chain = torch.tensor([[0, 1], [1, 2], [1, 0], [2, 1]])
    closed = torch.cat((chain, torch.tensor([[0, 2], [2, 0]])))
    edges = [(closed if ring else chain) + 3 * i for i, ring in enumerate(triangle.tolist())]
    source, target = torch.cat(edges).unbind(1)
    temperature = torch.where(hot, 90.0, 10.0) + torch.rand(count, generator=generator)
    temperature[::17] = torch.nan
    y = (triangle == hot).long()
    y[::17] = triangle[::17].long()  # where the temperature is blank, the structure decides
    return Graphs.from_edges(
        source,
        target,
        torch.full((count,), 3),
        y=y,
        whole=Features(
            temperature[:, None],
            ("temperature",),
            torch.arange(count)[:, None] % 2,
            ("solvent",),
            (("water", "ethanol"),),
        ),
        name="rings",
    )


@pytest.fixture(scope="module")
def graphs():
    return rings()


@pytest.fixture(scope="module")
def folder(graphs, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m"
    train_into(path, graphs, NETWORK, PROTOCOL, device="cpu")
    return path


def test_structure_times_a_column_is_learnt(graphs, folder, tmp_path):
    known = Predictor(folder, "cpu").predict(graphs).targets[0].chosen
    assert (known == graphs.y.numpy()).mean() > 0.95
    without = replace(graphs, whole=Features())
    train_into(tmp_path / "m", without, NETWORK, PROTOCOL, device="cpu")
    guessed = Predictor(tmp_path / "m", "cpu").predict(without).targets[0].chosen
    assert (guessed == graphs.y.numpy()).mean() < 0.7


def test_columns_are_found_by_name_and_missing_ones_are_named(graphs, folder):
    predictor = Predictor(folder, "cpu")
    expected = predictor.predict(graphs).targets[0].probabilities
    whole = graphs.whole
    other = Features(
        torch.cat((torch.rand(len(graphs), 1), whole.numbers), 1),
        ("pressure", "temperature"),
        1 - whole.labels.long(),
        ("solvent",),
        (("ethanol", "water"),),
    )
    with pytest.warns(UserWarning, match="pressure"):
        found = predictor.predict(replace(graphs, whole=other)).targets[0].probabilities
    np.testing.assert_allclose(found, expected, atol=1e-6)
    with pytest.raises(LookHopsError, match="temperature"):
        predictor.predict(replace(graphs, whole=Features()))


def test_values_that_were_not_seen_have_no_effect(graphs, folder):
    whole = graphs.whole
    strange = replace(whole, label_values=(("water", "brine"),))
    with pytest.warns(UserWarning, match="brine"):
        read = Encoding.fit(graphs).read(replace(graphs, whole=strange))
    encoded = Encoding.fit(graphs).encode_whole(read)
    assert (encoded[1::2, -2:] == 0).all()
    assert (encoded[::2, -2] == 1).all()


def test_an_answer_belongs_to_its_graph(graphs, folder):
    predictor = Predictor(folder, "cpu")
    together = predictor.predict(graphs).targets[0].probabilities
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = [predictor.predict(graphs[[i]]).targets[0].probabilities[0] for i in (0, 5, 17)]
    np.testing.assert_allclose(alone, together[[0, 5, 17]], atol=1e-6)


def test_shares_of_features_add_up_with_all_others(graphs, folder):
    found = attribute(Predictor(folder, "cpu"), graphs[:20])
    assert found.feature_names == ("temperature", "solvent")
    total = found.baseline + found.whole + found.features.sum(1)
    graph = graphs[:20].batch.numpy()
    np.add.at(total, graph, found.node)
    np.add.at(total, graph[graphs[:20].target.numpy()], found.edge)
    np.testing.assert_allclose(total, found.value, atol=1e-6)
    assert np.abs(found.residual).max() < 0.05 * np.abs(found.value).max()
    assert np.abs(found.features[1:, 0]).mean() > 10 * np.abs(found.features[1:, 1]).mean()
    one = found[1]
    assert "temperature" in one.sentence
    assert set(one.as_json()["features"]) == {"temperature", "solvent"}


def test_an_exported_file_takes_them_as_inputs(graphs, folder, tmp_path):
    predictor = Predictor(folder, "cpu")
    path = tmp_path / "m.pt2"
    about = export_model(predictor, path, predictor.read(graphs[:8]))
    assert about["inputs"][-2:] == ["graph_labels", "graph_numbers"]
    assert about["graph_numbers"] == ["temperature"]
    assert about["graph_labels"] == {"solvent": ["water", "ethanol"]}
    assert compare(predictor, load_exported(path), predictor.read(graphs)).is_small


def test_they_travel_with_graphs_in_windows(graphs, tmp_path):
    """Graphs that stay in main memory while a network is trained give the same network."""
    weights = []
    for stream in (False, True):
        protocol = replace(PROTOCOL, max_epochs=3, stream=stream)
        [run] = train(graphs, NETWORK, protocol, device="cpu")
        weights.append(run.weights)
    for name, value in weights[0].items():
        torch.testing.assert_close(weights[1][name], value, atol=1e-5, rtol=1e-4)


def test_another_rdkit_that_computes_other_values_is_named(tmp_path, monkeypatch):
    graphs = load("solubility")[:40]
    learner = learner_of("descriptors-ridge")
    config = train_into(tmp_path / "m", graphs, learner, Protocol(seeds=(11,)))
    assert config["versions"]["rdkit"] == predictors.rdkit_version()
    monkeypatch.setattr(predictors, "rdkit_version", lambda: "2099.3.1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Predictor(tmp_path / "m").predict(graphs[:2])
    changed = dict(descriptors._functions()) | {"MolLogP": lambda molecule: 1.0}
    monkeypatch.setattr(descriptors, "_functions", lambda: changed)
    with pytest.warns(ReadOtherwise, match=r"2099\.3\.1 .*MolLogP"):
        Predictor(tmp_path / "m").predict(graphs[:2])

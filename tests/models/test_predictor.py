"""Predictions of a model folder: an ensemble, calibrated, and careful with strange features."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lookhops.datasets import load
from lookhops.datasets.molecules import from_smiles
from lookhops.errors import LookHopsError
from lookhops.models.predictor import Predictor


@pytest.fixture(scope="module")
def predictor(model_folder) -> Predictor:
    return Predictor(model_folder, "cpu")


def test_the_ensemble_is_the_mean_of_calibrated_seeds(predictor, tasks):
    answers = predictor.predict(tasks)
    each = []
    for seed in (11, 22):
        temperature = predictor.checkpoint.config["metrics"]["seeds"][str(seed)]["temperature"]
        with torch.no_grad():
            outputs = predictor.checkpoint.model(seed)(tasks).double()
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
    with pytest.raises(
        LookHopsError, match="made by 'molecules-1'; the model was trained on hops-1"
    ):
        predictor.predict(from_smiles(["CCO"]))
    unnamed = replace(tasks, labels=None, attributes=torch.ones(tasks.num_nodes, 3))
    with pytest.raises(LookHopsError, match=r"3 features a node; .* hops-1, which has 4"):
        predictor.predict(replace(unnamed, featuriser=""))
    columns = torch.cat((tasks.labels, tasks.labels), 1) % 2
    halves = replace(tasks, labels=columns, label_names=(), label_values=())
    with pytest.raises(LookHopsError, match=r"node labels take \[2, 2\] values"):
        predictor.predict(halves)
    with pytest.raises(LookHopsError, match="made by 'tu'"):
        predictor.predict(load("PROTEINS", data_dir=data_dir))


def test_features_from_pyg_are_the_same_features(predictor, tasks):
    from lookhops import Graphs

    turned = Graphs.from_pyg(tasks.to_pyg())
    expected = predictor.predict(tasks).probabilities
    assert np.allclose(predictor.predict(turned).probabilities, expected, atol=1e-6)

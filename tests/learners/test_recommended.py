"""The recommended model: by the kind and the number of graphs, in every command."""

import csv
import json
from dataclasses import replace

import pytest
import torch

from lookhops import Graphs, LookHopsRegressor
from lookhops.core.options import RECOMMENDED
from lookhops.learners import recommend
from lookhops.learners.gp import FittedProcess
from lookhops.learners.registry import MOST_ALONE, PAIRS, PLAIN
from lookhops.runs.compare import compare
from lookhops.sources.loading import load
from lookhops.tasks import task_of
from lookhops.training import Protocol

SMILES = ["C" * n + end for n in range(1, 16) for end in ("O", "N", "F")]


@pytest.fixture(scope="module")
def sets() -> dict[str, Graphs]:
    numbers = load("solubility", target="value")[:40]
    whole = numbers.whole
    temperature = torch.cat((whole.numbers, torch.zeros(40, 1)), 1)
    names = (*whole.number_names, "temperature")
    with_columns = replace(numbers, whole=replace(whole, numbers=temperature, number_names=names))
    return {
        "numbers": numbers,
        "classes": load("solubility")[:40],
        "undescribed": load("solubility", descriptors="none")[:40],
        "others": load("hops-1", size=40),
        "columns": with_columns,
    }


@pytest.mark.parametrize(
    ("kind", "count", "name", "network"),
    [
        ("numbers", MOST_ALONE, "gp", None),
        ("numbers", MOST_ALONE + 1, "blend", PLAIN),
        ("numbers", 20_001, "network", PLAIN),
        ("classes", 40, "gp", None),
        ("classes", 20_000, "blend", RECOMMENDED),
        ("classes", 20_001, "network", RECOMMENDED),
        ("undescribed", 40, "blend", RECOMMENDED),
        ("columns", 40, "blend", PLAIN),
        ("others", 40, "blend", RECOMMENDED),
        ("others", 20_001, "network", RECOMMENDED),
    ],
)
def test_the_rule(sets, kind, count, name, network):
    graphs = sets[kind]
    found = recommend(graphs, task_of(graphs), count)
    assert found.learner.name == name
    assert getattr(found.learner, "architecture", None) == network
    assert found.said.startswith(name)
    assert f"{count:,}" in found.why


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "molecules.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["smiles", "size"])
        rows.writerows([text, len(text) + 0.5] for text in SMILES)
    return path


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ([], "gp"),
        (["--model", "recommended", "--split", "random", "--seeds", "2"], "gp"),
        (["--epochs", "1"], "network"),
        (["--model", "network", "--hidden", "8", "--epochs", "1"], "network"),
        (["--hidden", "8", "--layers", "1", "--batch-size", "64", "--k", "1"], "network"),
        (["--final", "--hidden", "8", "--layers", "1", "--epochs", "1"], "network"),
    ],
)
def test_train_says_what_it_trains_unless_a_network_is_asked_for(
    lookhops, table, tmp_path, options, name
):
    given = ["--target", "size", "--task", "numbers", "--device", "cpu", "--json"]
    code, out, said = lookhops("train", table, *given, *options, "-o", tmp_path / "m")
    assert code == 0, said
    learner = json.loads(out)["learner"]
    assert learner["name"] == name
    assert ("36 training graphs" in said) == (name == "gp")
    if "--hidden" in options:
        assert learner["options"]["hidden"] == 8


def test_other_graphs_get_a_blend(lookhops, tmp_path):
    given = ["--task-size", "30", "--device", "cpu", "--json"]
    code, out, said = lookhops("train", "hops-1", *given, "-o", tmp_path / "m")
    assert code == 0, said
    config = json.loads(out)
    assert config["learner"]["name"] == "blend"
    assert config["learner"]["options"]["pool"] == RECOMMENDED.pool
    assert "blend" in said


def test_the_row_of_a_comparison_is_the_model_itself(sets, tmp_path):
    protocol, store = Protocol((1, 2), max_epochs=1), tmp_path / "s.sqlite"
    names = ["recommended", "mean", "recommended/hidden=4/layers=1"]
    found = compare(sets["numbers"], names, protocol, store=store, device="cpu")
    models = {cell.model: cell.architecture for cell in found.finished}
    assert (
        models["recommended"]
        == recommend(sets["numbers"], task_of(sets["numbers"]), 32).learner.model
    )
    assert models["recommended/hidden=4/layers=1"].hidden == 4
    name = f"gp/pairs={PAIRS}"
    again = compare(sets["numbers"], [name], protocol, store=store, device="cpu")
    assert again.scores[name] == found.scores["recommended"]


def test_estimators_fit_it_too():
    sizes = [len(text) + 0.5 for text in SMILES]
    [own] = LookHopsRegressor(device="cpu").fit(SMILES, sizes).models_
    assert isinstance(own, FittedProcess)
    quick = {"hidden": 4, "layers": 1, "max_epochs": 1, "device": "cpu"}
    for options in (quick, quick | {"model": "network"}):
        assert LookHopsRegressor(**options).fit(SMILES, sizes).model_.architecture.hidden == 4

"""Every row of `compare` can be trained, saved, asked, evaluated and reported by its name."""

import csv
import json
from contextlib import nullcontext

import numpy as np
import pytest
from safetensors.numpy import load_file

from lookhops.cli import train
from lookhops.core.options import CLASSICAL
from lookhops.learners import LEARNERS
from lookhops.training.engine import EagerEngine

NETWORKS = (
    "recommended/hidden=4/layers=1/max_epochs=2",
    "licheb+lookhops/k=1/hidden=4/layers=2/max_epochs=2",
    "fingerprint/fingerprint=2/max_epochs=2",
)
BLEND = "blend/hops=2/hidden=4/layers=1/max_epochs=2"
NAMES = (*NETWORKS, *CLASSICAL, BLEND)
SMILES = ["C" * n + end for n in range(1, 21) for end in ("O", "N", "F")]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Molecules with a class and a number."""
    path = tmp_path_factory.mktemp("table") / "molecules.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["smiles", "end", "size"])
        rows.writerows([text, text[-1], len(text) + 0.5] for text in SMILES)
    return path


def trained(lookhops, table, folder, name, target):
    options = ["--target", target, "--task", "numbers" if target == "size" else "classes"]
    code, out, said = lookhops("train", table, "-o", folder, "--model", name, "--json", *options)
    assert code == 0, said
    return json.loads(out)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_trained_asked_evaluated_and_reported_by_its_name(
    lookhops, table, tmp_path, name
):
    folder = tmp_path / "m"
    config = trained(lookhops, table, folder, name, "end")
    own = name.partition("/")[0]
    assert config["learner"]["name"] == (own if own in LEARNERS else "network")
    code, out, said = lookhops("predict", folder, table, "--json", "--device", "cpu")
    assert code == 0, said
    records = json.loads(out)
    assert len(records) == len(SMILES)
    assert all(sum(one["probabilities"].values()) == pytest.approx(1) for one in records)
    with (folder / "predictions.csv").open() as file:  # what was tested is what is answered
        for row in csv.DictReader(file):
            again = records[int(row["graph"])]["probabilities"]
            for label, p in again.items():
                assert p == pytest.approx(float(row[f"p({label})"]), abs=1e-4)
    code, out, said = lookhops("evaluate", folder, table, "--json", "--device", "cpu")
    assert code == 0, said
    assert json.loads(out)["graphs"] == len(SMILES)
    page = tmp_path / "report.html"
    code, _, said = lookhops("report", folder, "-o", page, "--data", table)
    assert code == 0, said
    assert page.stat().st_size > 10_000
    if name in NETWORKS:
        return
    for verb, suffix in (("explain", "pictures"), ("embed", "e.csv"), ("export", "m.pt2")):
        given = [folder] if verb == "export" else [folder, table]
        code, _, said = lookhops(verb, *given, "-o", tmp_path / suffix)
        if verb == "explain" and LEARNERS[own].explains:
            assert code == 0, said
            continue
        assert (code, own in said) == (2, True)


@pytest.mark.parametrize("name", [*CLASSICAL, BLEND])
def test_a_number_is_answered_in_its_units(lookhops, table, tmp_path, name):
    folder = tmp_path / "m"
    config = trained(lookhops, table, folder, name, "size")
    assert config["task"]["kind"] == "regression"
    code, out, said = lookhops("predict", folder, table, "--json")
    assert code == 0, said
    values = [one["value"] for one in json.loads(out)]
    assert 1 < min(values) <= max(values) < 25


def test_a_name_that_is_not_known_lists_the_known_ones(lookhops, table, tmp_path):
    train = ["train", table, "--target", "end", "-o", tmp_path / "m", "--model"]
    code, _, said = lookhops(*train, "wl-ao")
    assert code == 2
    assert all(name in said for name in (*CLASSICAL, "recommended", "fingerprint", "gcn"))
    for given, words in (
        (["wl", "--k", "3"], "--model"),
        (["wl", "--epochs", "3"], "wl is not trained in epochs"),
        (["wl", "--final"], "--final"),
        (["wl/members=3"], "members"),
        (["wl/hops=3"], "options"),
    ):
        code, _, said = lookhops(*train, *given)
        assert code == 2, given
        assert words in said
    assert not (tmp_path / "m").exists()


def test_morgan_fingerprints_need_molecules_to_answer(lookhops, table, tmp_path):
    folder = tmp_path / "m"
    trained(lookhops, table, folder, "morgan-ridge", "end")
    graph = {"nodes": [{"id": 0}, {"id": 1}], "links": [{"source": 0, "target": 1}]}
    (tmp_path / "graphs.jsonl").write_text(json.dumps(graph) + "\n")
    code, _, said = lookhops("predict", folder, tmp_path / "graphs.jsonl")
    assert code == 2
    assert said.count("\n") <= 2


FEW = ["hops-1", "--task-size", "60", "--batch-size", "16", "--device", "cpu", "--seeds", "2"]
SHORT = "blend/hops=2/hidden=4/layers=2/fingerprint=1/max_epochs=4"


def test_a_blend_that_is_interrupted_goes_on_to_the_same_bits(lookhops, tmp_path, monkeypatch):
    asked = ["train", *FEW, "--model", SHORT]
    assert lookhops(*asked, "-o", tmp_path / "whole")[0] == 0

    def stop(epoch):
        if epoch.runs[0].seed == 22 and len(epoch.runs[0].history) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(train, "_tensorboard", lambda given: nullcontext(stop))
        code, _, said = lookhops(*asked, "--processes", "1", "-o", tmp_path / "m")
    assert code == 130, said
    assert (tmp_path / "m" / "resume").is_dir()
    code, _, said = lookhops(*asked, "-o", tmp_path / "m", "--resume")
    assert code == 0, said
    weights, expected = (load_file(tmp_path / own / "model.safetensors") for own in ("m", "whole"))
    assert weights.keys() == expected.keys()
    assert all(np.array_equal(own, expected[name]) for name, own in weights.items())
    answers = [(tmp_path / own / "predictions.csv").read_text() for own in ("m", "whole")]
    assert answers[0] == answers[1]


def test_a_blend_whose_network_fails_answers_by_its_process(lookhops, tmp_path, monkeypatch):
    real = EagerEngine.epoch
    monkeypatch.setattr(
        EagerEngine, "epoch", lambda self, n: real(self, n) * (float("nan") if n == 3 else 1)
    )
    code, _, said = lookhops(
        "train", *FEW, "--processes", "1", "--model", SHORT, "-o", tmp_path / "m"
    )
    assert code == 2
    assert "was not a finite number in epoch 3" in said
    code, out, said = lookhops("predict", tmp_path / "m", "hops-1", "--task-size", "3", "--json")
    assert code == 0, said
    assert len(json.loads(out)) == 3

"""Every row of `compare` can be trained, saved, asked, evaluated and reported by its name."""

import csv
import json

import pytest

from lookhops.core.options import CLASSICAL
from lookhops.learners import LEARNERS

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
    for verb, more in (("explain", []), ("embed", []), ("export", [])):
        suffix = {"explain": "pictures", "embed": "e.csv", "export": "m.pt2"}[verb]
        if name in NETWORKS:
            continue
        given = [folder] if verb == "export" else [folder, table]
        code, _, said = lookhops(verb, *given, "-o", tmp_path / suffix, *more)
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

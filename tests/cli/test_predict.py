"""``lookhops predict`` by running it."""

import csv
import io
import json
import pickle
import subprocess
import sys

import pytest

TRAIN = ["--hidden", "8", "--layers", "2", "--epochs", "2", "--device", "cpu"]


@pytest.fixture
def model(lookhops, tmp_path):
    options = [*TRAIN, "--batch-size", "64", "--seeds", "2"]
    assert lookhops("train", "solubility", *options, "-o", tmp_path / "model")[0] == 0
    return tmp_path / "model"


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_csv_of_molecules(lookhops, model, tmp_path):
    (tmp_path / "mine.csv").write_text('name,smiles\nethanol,CCO\n"a, b",c1ccccc1\n')
    code, out, _ = lookhops("predict", model, tmp_path / "mine.csv")
    assert code == 0
    found = rows(out)
    assert list(found[0]) == ["id", "class", "p_low", "p_medium", "p_high", "agreement"]
    assert [row["id"] for row in found] == ["ethanol", "a, b"]
    for row in found:
        p = {name: float(row[f"p_{name}"]) for name in ("low", "medium", "high")}
        assert sum(p.values()) == pytest.approx(1, abs=2e-4)
        assert p[row["class"]] == max(p.values())
        assert float(row["agreement"]) in (0.5, 1.0)
    code, out, err = lookhops("predict", model, tmp_path / "mine.csv", "-o", tmp_path / "out.csv")
    assert (code, out) == (0, "")
    assert "out.csv: 2 graphs" in err
    assert rows((tmp_path / "out.csv").read_text()) == found


def test_json(lookhops, model, tmp_path):
    (tmp_path / "mine.smi").write_text("CCO ethanol\n")
    code, out, _ = lookhops("predict", model, tmp_path / "mine.smi", "--json")
    assert code == 0
    [record] = json.loads(out)
    assert record["id"] == "ethanol"
    assert sum(record["probabilities"].values()) == pytest.approx(1)


def test_smiles_on_standard_input(model):
    command = [sys.executable, "-m", "lookhops", "predict", str(model), "-"]
    text = "# a remark\nCCO ethanol\n\nc1ccccc1\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [row["id"] for row in rows(done.stdout)] == ["ethanol", "c1ccccc1"]
    done = subprocess.run(command, input="CCO\nC(\n", capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "standard input, line 2" in done.stderr
    skip = [*command, "--invalid", "skip"]
    done = subprocess.run(skip, input="CCO\nC(\n", capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert len(rows(done.stdout)) == 1
    assert "line 2" in done.stderr


def test_labels_are_compared(lookhops, model):
    code, out, err = lookhops("predict", model, "solubility")
    assert code == 0
    hits = [row["class"] for row in rows(out)]
    assert len(hits) == 1282
    assert "of 1,282 as labelled" in err


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("hops-2", "made by 'hop-tasks-1'; the model was trained on solubility"),
        ("nowhere.csv", "nowhere.csv: no such file"),
    ],
)
def test_input_that_does_not_fit(lookhops, model, source, what):
    code, out, err = lookhops("predict", model, source)
    assert (code, out) == (2, "")
    assert what in err


def test_a_model_folder_that_is_none(lookhops, model, tmp_path):
    code, _, err = lookhops("predict", tmp_path / "nothing", "hops-1")
    assert code == 2
    assert "no such model folder" in err
    (model / "model.safetensors").write_bytes(pickle.dumps(["malice"]))
    code, _, err = lookhops("predict", model, "solubility")
    assert code == 2
    assert "model.safetensors: not a safetensors file" in err
    (model / "model.safetensors").unlink()
    code, _, err = lookhops("predict", model, "solubility")
    assert code == 2
    assert "model.safetensors: no such file" in err


def test_an_output_that_cannot_be_written(lookhops, model, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = lookhops("predict", model, "solubility", "-o", tmp_path / "file" / "out.csv")
    assert code == 2
    assert "cannot be written" in err

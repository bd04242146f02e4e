"""Numbers and several targets, from a table to a model folder and back."""

import json

import pytest

from lookhops.models import Predictor
from molecule_sets import written

SMALL = ("--hidden", 8, "--layers", 2, "--epochs", 4, "--fingerprint", 1, "--device", "cpu")
TABLE = "smiles,size,even,kind\n" + "".join(
    f"{'C' * (i % 20 + 1)}{'O' * (i % 3)},{i % 20 + i % 3 + 0.5},{'' if i % 4 == 3 else i % 2},"
    f"{'' if i % 5 == 4 else 'abc'[i % 3]}\n"
    for i in range(60)
)


@pytest.fixture
def table(tmp_path):
    return written(tmp_path, "set.csv", TABLE)


def test_numbers_are_trained_resumed_and_kept(lookhops, table, tmp_path):
    command = ("train", table, "--target", "size", "--seeds", 2, *SMALL, "-o", tmp_path / "m")
    code, out, err = lookhops(*command, "--loss", "huber", "--split", "random")
    assert code == 0, err
    assert "size: learnt as numbers, a regression" in err
    for word in ("MAE", "of the mean", "RMSE", "R²", "Spearman"):
        assert word in out
    code, again, err = lookhops(*command, "--loss", "huber", "--split", "random", "--resume")
    assert (code, again) == (0, out)
    code, _, err = lookhops(*command, "--loss", "mae", "--split", "random", "--resume")
    assert (code, "loss 'huber' there, 'mae' here" in err) == (2, True)
    found = Predictor(tmp_path / "m", "cpu")
    assert found.task.to_dict() == {"kind": "regression", "name": "size", "loss": "huber"}
    assert [values.shape for values in found.target_scales.values()] == [(2,), (2,)]
    head = (tmp_path / "m" / "predictions.csv").read_text().splitlines()[0]
    assert head == "seed,graph,id,nodes,size,predicted size"
    assert "val_mae" in (tmp_path / "m" / "history.csv").read_text().splitlines()[0]


def test_several_targets_have_a_row_each(lookhops, table, tmp_path):
    columns = ("--target", "size,even,kind", "--split", "random")
    code, out, err = lookhops("train", table, *columns, *SMALL, "-o", tmp_path / "m")
    assert code == 0, err
    assert "even: learnt as classes (0, 1); say otherwise with --task numbers; 15 graphs" in err
    for word in ("mean of AUROC and R²", "kind (classes)", "size (numbers)", "even"):
        assert word in out
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["task"]["names"] == ["even", "kind", "size"]
    assert "size: mae" in config["metrics"]["summary"]
    assert Predictor(tmp_path / "m", "cpu").target_scales[11].shape == (2,)


def test_the_coverage_of_each_class_and_large_shares_are_printed(lookhops, table, tmp_path):
    columns = ("--target", "size,even,kind", "--split", "random", "--model", "gp", "--seeds", 2)
    code, out, err = lookhops("train", table, *columns, "-o", tmp_path / "m")
    assert code == 0, err
    metrics = json.loads((tmp_path / "m" / "config.json").read_text())["metrics"]
    for target, names in {"even": "01", "kind": "abc"}.items():
        found = metrics["targets"][target]
        for name, row, held in zip(names, found["confusion"], found["in_sets"], strict=True):
            share = f"{100 * held / max(sum(row), 1):.1f}"
            shown = [line.split()[1:-2] for line in out.splitlines() if f" {name} " in line]
            counts = [str(count) for count in (*row, sum(row))]
            assert any(cells[: 1 + len(counts)] == [name, *counts] for cells in shown)
            assert share in [cells[-1] for cells in shown if cells]
    seeds = metrics["seeds"].values()
    for name in next(iter(seeds)):
        if "share of" in name:
            mean = sum(one.get(name, 0) for one in seeds) / 2
            assert (f"{name.removeprefix('chosen_')} " in out) == (mean >= 0.05)


def test_a_blank_class_is_left_out(lookhops, table, tmp_path):
    columns = ("--target", "kind", "--split", "stratified")
    code, out, err = lookhops("train", table, *columns, *SMALL, "-o", tmp_path / "m", "--json")
    assert code == 0, err
    assert "12 graphs without it left out" in err
    config = json.loads(out)
    assert config["data"]["class_names"] == ["a", "b", "c"]
    tested = config["metrics"]["seeds"]["11"]
    assert sum(tested[f"{part}_graphs"] for part in ("train", "val", "test")) == 48
    assert tested["majority"] <= 1


def test_models_are_compared_on_numbers_and_on_several_targets(lookhops, table, tmp_path):
    """The lowest error comes first; the same table has a score for several targets."""
    models = ("--models", "mean,morgan-ridge,fingerprint", "--seeds", 2, "--epochs", 2)
    where = (*models, "--device", "cpu", "--split", "random", "-o", tmp_path / "out", "--json")
    code, out, err = lookhops("compare", table, "--target", "size", *where)
    assert code == 0, err
    assert "mean, seed 11: test MAE" in err
    found = json.loads(out)
    means = [row["mean"] for row in found["models"]]
    assert (found["metric"], means) == ("mae", sorted(means))
    assert found["models"][0]["model"] == "morgan-ridge"
    assert found["pairs"][0]["difference"] < 0
    assert "Differences of MAE (lower is better)" in (tmp_path / "out" / "pairs.md").read_text()
    page = tmp_path / "report.html"
    code, out, err = lookhops("compare", table, "--target", "size,even", *where, "--report", page)
    assert code == 0, err
    found = json.loads(out)
    means = [row["mean"] for row in found["models"]]
    assert (found["metric"], means) == ("mean_score", sorted(means, reverse=True))
    assert "mean of AUROC" in page.read_text()

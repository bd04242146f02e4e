"""``lookhops report``, and ``--report`` of the others, by running them."""

import json
import os

import pytest

from lookhops.models.config import FORMAT

SMALL = ["hops-1", "--task-size", "80", "--hidden", "8", "--layers", "3", "--epochs", "2"]
SMALL += ["--batch-size", "16", "--device", "cpu"]


def has(path, *names):
    text = path.read_text(encoding="utf-8")
    return all(f'<section id="{name}"' in text for name in names)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    from lookhops.models import train_into
    from lookhops.nn import Architecture
    from lookhops.sources.loading import load
    from lookhops.training import Protocol

    folder = tmp_path_factory.mktemp("report") / "model"
    network = Architecture(pool="lookhops", hidden=8, layers=3)
    protocol = Protocol(seeds=(11,), max_epochs=2, batch_size=16)
    train_into(folder, load("hops-1", size=80), network, protocol, device="cpu")
    return folder


def test_a_report_of_a_model(lookhops, model, tmp_path):
    page = tmp_path / "sub" / "page.html"
    code, out, err = lookhops("report", model, "-o", page)
    assert code == 0, err
    assert out == f"report: {page}\n"
    assert has(page, "data", "training", "results", "looked", "reproduce")
    assert "--data SOURCE" in page.read_text(encoding="utf-8")
    arguments = ("--data", "hops-1", "--task-size", "80", "--json")
    code, out, err = lookhops("report", model, "-o", page, *arguments)
    assert code == 0, err
    said = json.loads(out)
    assert said["bytes"] == page.stat().st_size < 6_000_000
    names = ["data", "training", "results", "shares", "looked", "reproduce"]
    assert list(said["sections"]) == names
    assert '<li class="card"' in page.read_text(encoding="utf-8")


def test_data_is_read_as_it_was_for_training(lookhops, tmp_path):
    small = ["--hidden", "4", "--layers", "2", "--epochs", "1", "--device", "cpu"]
    page, folder = tmp_path / "page.html", tmp_path / "m"
    rows = [f"{'C' * n}O.[Na+],{n},{n / 7}" for n in range(1, 31)]
    (tmp_path / "m.csv").write_text("\n".join(["smi,n,logS", *rows, *rows[:3]]) + "\n")
    read = ["--target", "logS", "--smiles-column", "smi", "--salts", "largest"]
    more = [*read, "--features", "all", "--duplicates", "merge", *small, "-o", folder]
    for source, options in ((tmp_path / "m.csv", more), ("hops-1", ["--task-size", "40", *small])):
        options = options if "-o" in options else [*options, "-o", folder, "--overwrite"]
        code, _, err = lookhops("train", source, *options)
        assert code == 0, err
        code, _, err = lookhops("report", folder, "--data", source, "-o", page)
        assert code == 0, err
        assert has(page, "shares")
    code, _, err = lookhops("report", folder, "--data", "hops-1", "--task-size", "30", "-o", page)
    assert (code, err.count("\n")) == (2, 1)
    assert "not the graphs that" in err


def test_training_can_end_with_a_report(lookhops, tmp_path):
    page = tmp_path / "page.html"
    arguments = ("--k", "auto", "-o", tmp_path / "m", "--report", page)
    code, out, err = lookhops("train", *SMALL, *arguments)
    assert code == 0, err
    assert out.endswith(f"report: {page}\n")
    assert has(page, "data", "hops", "training", "results", "looked", "reproduce")
    text = page.read_text(encoding="utf-8")
    assert '<li class="card"' in text
    assert f"lookhops train {' '.join(SMALL)} --k auto" in text
    assert (tmp_path / "m" / "information.json").exists()
    code, out, err = lookhops(
        "train", *SMALL, "-o", tmp_path / "m", "--overwrite", "--report", page, "--json"
    )
    assert code == 0, err
    assert "--overwrite" not in json.loads(out)["command"]
    assert not has(page, "hops")


def test_looking_can_end_with_a_report(lookhops, tmp_path):
    page = tmp_path / "page.html"
    arguments = ("--task-size", "80", "--max-k", "4", "--bootstrap", "0", "--report", page)
    code, out, err = lookhops("look", "hops-1", *arguments, "--json")
    assert code == 0, err
    json.loads(out)
    assert f"report: {page}" in err
    assert has(page, "data", "hops", "reproduce")


def test_a_comparison_can_end_with_a_report(lookhops, tmp_path):
    page, again = tmp_path / "page.html", tmp_path / "again.html"
    models = "gcn/hidden=4/layers=1,licheb/hidden=4/layers=1"
    arguments = ["--task-size", "60", "--models", models, "--seeds", "2", "--epochs", "1"]
    code, out, err = lookhops(
        "compare", "hops-1", *arguments, "-o", tmp_path / "out", "--report", page
    )
    assert code == 0, err
    assert out.rstrip().endswith(f"report: {page}")
    names = ("data", "comparison", "training", "reproduce")
    assert has(page, *names)
    code, out, err = lookhops("report", tmp_path / "out" / "comparison.sqlite", "-o", again)
    assert code == 0, err
    assert has(again, *names)
    assert f"lookhops compare hops-1 --task-size 60 --models {models}" in again.read_text("utf-8")


def test_the_paper_can_end_with_a_report(lookhops, tmp_path, make_record):
    from lookhops.runs.paper import ROWS
    from lookhops.runs.plan import RunKey
    from lookhops.runs.results import CellResult, Results, export
    from lookhops.training import Protocol

    runs = (make_record(11, 0.7), make_record(22, 0.8))
    cells = [
        CellResult(
            name, ROWS[slug].label, RunKey(name, ROWS[slug].architecture(name), Protocol()), runs
        )
        for slug in ("gcn", "licheb", "cheb")
        for name in ("PROTEINS", "NCI1")
    ]
    notes = {
        "NCI1": {
            "data": {"graphs": 10, "nodes": 20, "edges": 30, "features": 4, "classes": 2},
            "gain": {
                "k": [2, 3, 4],
                "gain": [1.0, 0.4, 0.1],
                "fit": {"a": 5.0, "b": 0.9, "r2": 0.99, "mse": 0.1, "b_interval": None},
                "suggested_k": 4,
            },
        }
    }
    export(Results(cells, notes), tmp_path / "runs.json")
    page = tmp_path / "page.html"
    code, out, err = lookhops(
        "paper", "--from", tmp_path / "runs.json", "-o", tmp_path / "out", "--report", page
    )
    assert code == 0, err
    assert f"report: {page}" in out
    assert has(page, "data", "hops", "claims", "comparison", "reproduce")


def test_mistakes_are_one_sentence(lookhops, model, tmp_path):
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "file.txt").write_text("x")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text(json.dumps({"format": FORMAT}))
    (tmp_path / "dir.html").mkdir()
    page = tmp_path / "page.html"
    blocked = tmp_path / "foreign" / "file.txt" / "page.html"
    cases = [
        (("report", tmp_path / "none"), "no such folder or file"),
        (("report", tmp_path / "foreign"), "no folders of models"),
        (("report", tmp_path / "broken"), "damaged"),
        (("report", tmp_path / "foreign" / "file.txt"), "neither a folder"),
        (("report", model, "--data", "hops-2", "--task-size", "40"), "not the graphs that"),
        (("report", model, "-o", tmp_path / "dir.html"), "a folder"),
        (("report", model, "-o", tmp_path / "page.pdf"), "ends in .html"),
        (("report", model, "-o", blocked), "cannot be written"),
        (("train", *SMALL, "-o", tmp_path / "m", "--report", "x.txt"), "ends in .html"),
    ]
    for arguments, words in cases:
        more = () if "-o" in arguments else ("-o", page)
        code, out, err = lookhops(*arguments, *more)
        assert (code, out) == (2, ""), arguments
        assert err.count("\n") == 1, err
        assert words in err
    assert not page.exists()
    assert not (tmp_path / "m").exists()


def test_an_interrupted_write_leaves_the_old_page(lookhops, model, tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    page.write_text("old")

    def fail(*_):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("pathlib.Path.replace", fail)
    code, _, err = lookhops("report", model, "-o", page)
    assert code == 2
    assert "cannot be written" in err
    assert page.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_a_comparison_is_about_its_own_graphs(lookhops, tmp_path):
    """Two sets of one name in one store: neither's counts or commands stand in the other's page."""
    options = ["--models", "gcn/hidden=4/layers=1", "--seeds", "5,", "--epochs", "1"]
    options += ["--store", tmp_path / "runs.sqlite", "--report", tmp_path / "page.html"]
    for size in (80, 60, 80):
        code, _, err = lookhops("compare", "hops-1", "--task-size", size, *options)
        assert code == 0, err
    page = (tmp_path / "page.html").read_text()
    assert "hops-1 has 80 graphs" in page
    assert "--task-size 60" not in page
    assert "± 0.0" not in page
    code, _, err = lookhops("report", tmp_path / "runs.sqlite", "-o", tmp_path / "both.html")
    assert code == 0, err
    both = (tmp_path / "both.html").read_text()
    assert "--task-size 60" in both
    assert "--task-size 80" in both


def test_data_is_for_models(lookhops, tmp_path):
    (tmp_path / "results.json").write_text("{}")
    command = ("report", tmp_path / "results.json", "--data", "hops-1", "--task-size", "20")
    code, _, err = lookhops(*command, "-o", tmp_path / "page.html")
    assert (code, err.count("\n")) == (2, 1)
    assert "--data is for the gallery" in err


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("facts", [1]),
        ("facts", {"sizes": None}),
        ("best_epoch", "q"),
        ("parameters", "many"),
        ("seconds_per_epoch", float("nan")),
    ],
)
def test_a_config_that_somebody_edited_is_a_sentence(lookhops, tmp_path, part, value):
    small = ["--task-size", "40", "--hidden", "4", "--layers", "2", "--epochs", "1"]
    lookhops("train", "hops-1", *small, "--device", "cpu", "-o", tmp_path / "m")
    path = tmp_path / "m" / "config.json"
    config = json.loads(path.read_text())
    (config if part == "facts" else config["metrics"]["seeds"]["11"])[part] = value
    path.write_text(json.dumps(config))
    code, _, err = lookhops("report", tmp_path / "m", "-o", tmp_path / "page.html")
    assert (code, err.count("\n")) == (2, 1), err
    assert "config.json" in err

"""``lookhops compare`` by running it."""

import json

import pytest
import torch

from lookhops.cli.compare import OF_PAIRS
from lookhops.core.paired import corrected_t
from lookhops.core.words import NONE
from lookhops.nn import Architecture, registry
from lookhops.runs.compare import compare
from lookhops.runs.store import Store
from lookhops.sources.loading import load
from lookhops.training import Protocol

MODELS = ["licheb+lookhops/hidden=4/layers=2", "cheb/hidden=4/layers=2", "gcn/hidden=4/layers=2"]
SMALL = ["hops-1", "--task-size", "60", "--epochs", "2", "--device", "cpu", "--seeds", "3"]


def test_the_table_the_pairs_and_the_files(lookhops, tmp_path):
    code, out, err = lookhops("compare", *SMALL, "--models", ",".join(MODELS), "-o", tmp_path)
    assert code == 0, err
    *lines, written = out.splitlines()
    assert written == f"written: {tmp_path}"  # a path is never broken
    assert max(map(len, lines)) <= 80
    assert "hops-1: 3 splits, stratified by class" in out
    assert "Paired differences" in out
    assert "Nadeau" in out
    assert "9 of 9 runs" in err
    names = ["models.md", "models.csv", "models.tex", "pairs.md", "ranks.svg", "ranks.png"]
    for name in (*names, "costs.svg", "costs.png", "runs.json", "runs.csv", "comparison.sqlite"):
        assert (tmp_path / name).stat().st_size
    code, out, err = lookhops(
        "compare", *SMALL, "--models", ",".join(MODELS), "-o", tmp_path, "--json"
    )
    assert code == 0
    assert "9 runs were in the store already" in err
    found = json.loads(out)
    means = [model["mean"] for model in found["models"]]
    assert means == sorted(means, reverse=True)
    assert all(model["peak_memory"] > 1e6 for model in found["models"])
    assert len(found["pairs"]) == 3
    values = {model["model"]: model["values"] for model in found["models"]}
    for pair in found["pairs"]:
        differences = [
            a - b for a, b in zip(values[pair["first"]], values[pair["second"]], strict=True)
        ]
        expected = corrected_t(differences, 6 / 48)
        low, high = expected.interval or (None, None)
        assert (pair["low"], pair["high"]) == pytest.approx((low, high))


def test_equal_differences_have_no_interval(lookhops, tmp_path):
    # Neither learns anything: they answer alike.
    names = ",".join(f"gcn/hidden=4/learning_rate={rate}" for rate in ("1e-12", "2e-12"))
    two = [*SMALL[:-1], "2", "--models", names, "-o", tmp_path]
    code, out, err = lookhops("compare", *two, "--report", tmp_path / "page.html")
    assert code == 0, err
    assert f"+0.0 {NONE} 1 1 not decidable" in " ".join(out.split())
    assert "the same on every split, Holm" in (tmp_path / "page.html").read_text()
    code, out, err = lookhops("compare", *two, "--json")
    [pair] = json.loads(out)["pairs"]
    assert (pair["low"], pair["high"], pair["p"]) == (None, None, 1)


def test_layers_of_pyg_beside_ours_and_what_they_cost(lookhops, tmp_path):
    small = "/hidden=4/layers=2"
    others = [f"pyg:GATv2Conv/heads=2{small}", f"licheb+pyg:PANPooling{small}"]
    names = ",".join((*others, f"licheb+diffpool{small}", "baseline"))
    plot = tmp_path / "costs.svg"
    store = ["--store", tmp_path / "runs.sqlite"]
    code, out, err = lookhops("compare", *SMALL, "--models", names, *store, "--plot", plot)
    assert code == 0, err
    assert f"written: {plot}" in out
    drawn = plot.read_text()
    assert all(name in drawn for name in ("parameters", "seconds a split", "baseline"))
    # What a layer is decides what is trained: the same again is all there.
    code, _, err = lookhops("compare", *SMALL, "--models", names, *store)
    assert "12 runs were in the store already" in err
    code, out, err = lookhops("compare", *SMALL, "--models", names, *store, "--plot", "costs.txt")
    assert (code, out) == (2, "")
    assert "costs.txt: a picture ends in .png, .svg, .pdf" in err


def test_more_seeds_and_models_train_only_what_is_new(lookhops, tmp_path):
    store = ["--store", tmp_path / "runs.sqlite"]
    assert lookhops("compare", *SMALL, "--models", MODELS[2], *store)[0] == 0
    more = ["--models", ",".join(MODELS[1:]), "--seeds", "4"]
    code, out, err = lookhops("compare", *SMALL, *more, *store)
    assert code == 0
    assert "3 runs were in the store already" in err
    assert "8 of 8 runs" in err
    assert "hops-1: 4 splits" in out


def test_one_seed_and_no_time(lookhops, tmp_path):
    store = ["--store", tmp_path / "runs.sqlite", "--models", ",".join(MODELS[1:])]
    code, out, _ = lookhops("compare", *SMALL, "--seeds", "1", *store)
    assert code == 0
    assert "One shared split says nothing about differences" in out
    code, _, err = lookhops("compare", *SMALL, *store, "--time-limit", "0")
    assert code == 0
    assert "4 of 6 runs are missing" in err
    nothing = ["--store", tmp_path / "new.sqlite", "--time-limit", "0"]
    code, out, err = lookhops("compare", *SMALL, *nothing)
    assert (code, out) == (2, "")
    assert "there is no such store" in err
    assert not (tmp_path / "new.sqlite").exists()


def test_only_shared_splits_are_compared(lookhops, tmp_path):
    """A model that is ahead of the others in its runs must not be averaged over more splits."""
    store = ["--store", tmp_path / "runs.sqlite", "-o", tmp_path]
    both = ["--models", ",".join(MODELS[1:])]
    assert lookhops("compare", *SMALL, *both, *store)[0] == 0
    assert {path.name for path in tmp_path.glob("[pr]a*.*")} == set(OF_PAIRS)
    (tmp_path / "pairs.xlsx").write_text("the user's own")
    assert lookhops("compare", *SMALL, "--models", MODELS[1], "--seeds", "5", *store)[0] == 0
    assert [path.name for path in tmp_path.glob("[pr]a*.*")] == ["pairs.xlsx"]
    more = [*both, "--seeds", "5", "--time-limit", "0"]
    code, out, _ = lookhops("compare", *SMALL, *more, *store)
    assert code == 0
    assert f"{MODELS[1]} (2 of 5 finished runs)" in " ".join(out.split())
    code, out, _ = lookhops("compare", *SMALL, *more, *store, "--json")
    found = json.loads(out)
    assert len(found["seeds"]) == 3
    for model in found["models"]:
        assert model["mean"] == pytest.approx(sum(model["values"]) / 3)
        assert model["seeds"] == 3


def test_models_without_a_network_are_rows_too(lookhops, tmp_path):
    models = ["--models", f"{MODELS[2]},wl,baseline", "-o", tmp_path]
    page = tmp_path / "page.html"
    code, out, err = lookhops("compare", *SMALL, *models, "--report", page)
    assert code == 0, err
    assert "9 of 9 runs" in err
    row = next(line for line in out.splitlines() if line.startswith("wl "))
    assert f" {NONE} " in row
    assert "--models" in page.read_text()
    code, out, err = lookhops("compare", *SMALL, *models, "--json")
    assert "9 runs were in the store already" in err
    found = {model["model"]: model for model in json.loads(out)["models"]}
    assert found["wl"]["parameters"] is None
    assert found["wl"]["architecture"] == {"classical": "wl"}
    assert len(found["wl"]["values"]) == 3
    code, _, err = lookhops("report", tmp_path / "comparison.sqlite", "-o", page)
    assert code == 0, err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--models", "lichep"], "Did you mean 'licheb'"),
        (["--models", "gcn,wl-ao"], "Did you mean 'wl-oa'"),
        (["--models", "gcn,morgan-forest"], "morgan-forest reads the SMILES"),
        (["--runner", "slurm"], "The runner is local or ray"),
        (["--seeds", "a,b"], "Seeds are a count"),
        (["--precision", "float8"], "precision"),
        (["--task-size", "4"], "too few"),
        (["--seeds", "³"], "Seeds are a count"),
        (["--seeds", "99999999999999999999"], "from 1 to 1,000"),
        (["--seeds", "-1,2"], "whole numbers from 0"),
        (["--epochs", "0"], "--epochs"),
        (["--epoch", "3"], "No such option"),
        (["--device", "tpu"], "There is no device 'tpu'"),
        (["--models", "gcn,gcn+none"], "the same network"),
        (["-o", "/proc/here"], "cannot be written"),
    ],
)
def test_mistakes_are_one_line(lookhops, tmp_path, options, words):
    store = ["--store", tmp_path / "runs.sqlite"]
    code, out, err = lookhops("compare", *SMALL, *store, *options)
    assert (code, out) == (2, "")
    assert words in " ".join(err.split())
    assert len(err.strip().splitlines()) == 1


def test_from_python_with_a_layer_of_ones_own(tmp_path, monkeypatch):
    from torch_geometric.nn import SAGEConv

    monkeypatch.setitem(registry.CONVOLUTIONS, "sage", lambda d, h, k: SAGEConv(d, h))
    small = {"hidden": 4, "layers": 2}
    found = compare(
        load("hops-1", size=60),
        {"mine": Architecture(conv="sage", **small), "gcn": Architecture(conv="gcn", **small)},
        Protocol(seeds=(1, 2), max_epochs=1),
        store=tmp_path / "runs.sqlite",
        device="cpu",
    )
    assert set(found.scores) == {"mine", "gcn"}
    assert len(found.pairs) == 1


def test_a_run_that_fails_is_named_and_told_by_the_exit_code(lookhops, tmp_path, monkeypatch):
    class Diverging(torch.nn.Linear):
        def forward(self, x, edge_index):
            return super().forward(x) * float("nan")

    monkeypatch.setitem(registry.CONVOLUTIONS, "diverging", lambda d, h, k: Diverging(d, h))
    models = ["--models", f"{MODELS[2]},diverging", "-o", tmp_path]
    code, out, err = lookhops("compare", *SMALL, *models)
    assert code == 1
    assert "gcn" in out
    assert "warning: hops-1, diverging, seed 11: The loss of seed 11 was not a finite" in err
    assert "are kept" not in err


def test_ctrl_c_says_how_many_runs_are_kept(lookhops, tmp_path, monkeypatch):
    from lookhops.runs import executor

    train, stop = executor.train_records, [11]

    def interrupted(cell, seeds, *rest):
        if set(stop) & set(seeds):
            raise KeyboardInterrupt
        return train(cell, seeds, *rest)

    monkeypatch.setattr(executor, "train_records", interrupted)
    words = ("compare", *SMALL, "--models", MODELS[2], "-o", tmp_path, "--processes", 1)
    code, _, err = lookhops(*words)
    assert code == 130
    assert "store" not in err
    stop[:] = [33]
    code, _, err = lookhops(*words)
    assert code == 130
    assert "2 of 3 runs are in the store; the same command goes on." in err


def test_a_layer_defined_anew_is_trained_anew(tmp_path, monkeypatch):
    from torch_geometric.nn import GraphConv, SAGEConv

    graphs, sizes = load("hops-1", size=60), []
    for kind in (SAGEConv, GraphConv, SAGEConv):
        make = lambda d, h, k, kind=kind: kind(d, h)  # noqa: E731
        monkeypatch.setitem(registry.CONVOLUTIONS, "mine", make)
        with Store(tmp_path / "runs.sqlite") as store:
            protocol = Protocol(seeds=(1,), max_epochs=1)
            compare(graphs, "mine/hidden=4/layers=2", protocol, store=store, device="cpu")
            sizes.append(sum(len(cell.runs) for cell in store.cells()))
    assert sizes == [1, 2, 2]


def test_any_split_is_paired_and_known_to_the_store(lookhops, tmp_path):
    molecules = ["CCO", "CCN", "c1ccccc1O", "c1ccccc1N", "C1CCCCC1O", "C1CCCCC1N", "CCCO", "CCCN"]
    rows = [
        f"{smiles}{'C' * (i // 8)},{'ON'[i % 2]},{i // 3}" for i, smiles in enumerate(molecules * 5)
    ]
    (tmp_path / "m.csv").write_text("smiles,class,site\n" + "\n".join(rows))
    options = ["--models", "baseline", "--store", tmp_path / "s.sqlite", "--json"]
    kinds = [["--split", "scaffold"], ["--split", "group:site"], ["--folds", "4"], []]
    for extra in kinds * 2:
        extra = [*extra, *([] if "--folds" in extra else ["--seeds", "2"])]
        code, out, err = lookhops("compare", tmp_path / "m.csv", *options, *extra)
        assert code == 0, err
        assert len(json.loads(out)["seeds"]) == (4 if "--folds" in extra else 2)
    with Store(tmp_path / "s.sqlite") as store:
        cells = store.cells()
    assert sum(len(cell.runs) for cell in cells) == 2 + 2 + 4 + 2
    assert {cell.protocol.split for cell in cells} == {"scaffold", "group:site", "stratified"}

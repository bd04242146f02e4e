"""Protocols by name: the paper's, and folds with an inner choice."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from lookhops.core.errors import LookHopsError
from lookhops.runs.compare import compare
from lookhops.runs.fair import Contest, mean_of_members, named_protocol, parse_grid
from lookhops.runs.plan import parse_models
from lookhops.runs.store import Store
from lookhops.sources.loading import load
from lookhops.sources.splits import SplitPlan
from lookhops.training import Protocol, train

QUICK = Protocol(seeds=(0, 1, 2), folds=3, split="stratified", max_epochs=2, batch_size=64)


@pytest.fixture(scope="module")
def graphs():
    return load("hops-1", size=60)


def test_names_of_protocols():
    assert named_protocol("paper", Protocol(split="auto")) == Protocol()
    fair = named_protocol("fair", Protocol(split="auto"))
    assert (fair.folds, fair.members, fair.split) == (10, 3, "auto")
    assert named_protocol("fair", Protocol(folds=5, members=2)).folds == 5
    assert named_protocol("fair", Protocol(), members=1).members == 1
    assert named_protocol(None, Protocol(), members=4).members == 4
    assert named_protocol(None, QUICK) is QUICK
    for name, given, sentence in (
        ("paper", Protocol(folds=5), "--split"),
        ("paper", Protocol(split="scaffold"), "--split"),
        ("unfair", Protocol(), "'unfair'"),
    ):
        with pytest.raises(LookHopsError, match=sentence):
            named_protocol(name, given)


def test_grids():
    assert parse_grid("hidden=64, 128/k=1,2,2") == {"hidden": ["64", "128"], "k": ["1", "2"]}
    assert parse_grid(None) == {}
    for text in ("hidden", "hidden=", "k=1/k=2", "="):
        with pytest.raises(LookHopsError, match="grid"):
            parse_grid(text)


def contest(graphs, models, grid, **changes):
    plan = SplitPlan.of(graphs, replace(QUICK, **changes))
    return Contest.of(graphs, parse_models(models), plan, parse_grid(grid), "fair")


def test_each_model_takes_the_options_that_it_has(graphs):
    found = contest(graphs, "gcn,licheb/hidden=8,baseline", "hidden=4,8/k=1,2").rows
    assert list(found["gcn"]) == ["gcn/hidden=4", "gcn/hidden=8"]  # it looks one hop
    assert list(found["licheb/hidden=8"]) == ["licheb/hidden=8/k=1", "licheb/hidden=8/k=2"]
    assert list(found["baseline"]) == ["baseline"]
    for grid, sentence in {
        "hiden=4,8": "'hidden'",
        "hidden=4,many": "'many'",
    }.items():
        with pytest.raises(LookHopsError, match=sentence):
            contest(graphs, "gcn", grid)


def test_the_choice_is_by_validation_and_the_score_a_mean_over_initialisations(graphs, tmp_path):
    """The whole of it again, in a few lines over plain trainings."""
    own = contest(graphs, "gcn/layers=1", "hidden=2,16", members=2)
    with Store(tmp_path / "s.sqlite") as store:
        results = run(own, graphs, store)
        [result] = results
        variants = {
            h: parse_models(f"gcn/layers=1/hidden={h}").popitem()[1].model for h in ["2", "16"]
        }
        for record in result.runs:
            splits = own.plan.of_seeds([record.seed])
            runs = {}
            for h, model in variants.items():
                protocol = replace(own.plan.protocol, seeds=(record.seed,))
                [runs[h]] = train(graphs, model, protocol, splits=splits, device="cpu")
            first = {h: accuracy(one.members[0], graphs, "val") for h, one in runs.items()}
            best = max(first, key=first.get)
            assert record.metrics["chosen_hidden"] == best
            each = [accuracy(member, graphs, "test") for member in runs[best].members]
            assert record.metrics["accuracy"] == pytest.approx(np.mean(each))
        before = [cell.seeds for cell in store.cells()]
        assert run(own, graphs, store) == results
        assert [cell.seeds for cell in store.cells()] == before


def run(own, graphs, store):
    from lookhops.runs.executor import Local, run_plan

    train = lambda cells: run_plan(cells, store, Local("cpu"))  # noqa: E731
    return own.run(train, store)


def accuracy(run, graphs, part):
    right = run.predictions[part].argmax(1) == graphs.y[getattr(run.split, part)]
    return right.double().mean().item()


def test_from_python(graphs, tmp_path):
    plan = SplitPlan.of(graphs, replace(QUICK, members=3))
    options = {"store": tmp_path / "s.sqlite", "device": "cpu"}
    found = compare(graphs, ["baseline"], "fair", splits=plan, **options)
    assert found.seeds == (0, 1, 2)
    assert found.about["name"] == "fair"
    assert compare(graphs, ["baseline"], QUICK, **options).scores == found.scores
    with pytest.raises(LookHopsError, match=r"grid.*fair"):
        compare(graphs, ["gcn"], QUICK, grid={"hidden": ["2", "4"]}, **options)


def test_means_of_members(make_record):
    members = [{"accuracy": 0.5, "auroc": 0.7, "epochs": 3}, {"accuracy": 1.0, "auroc": None}]
    record = make_record(1, accuracy=0.9, members=members)
    found = mean_of_members(record).metrics
    assert (found["accuracy"], found["auroc"], found["epochs"]) == (0.75, None, 2)
    assert mean_of_members(make_record(1)) == make_record(1)


def test_the_command_with_published_folds(lookhops, tmp_path, graphs):
    plan = SplitPlan.of(graphs, QUICK)
    folds = [
        {
            "test": part.test.tolist(),
            "model_selection": [{"train": part.train.tolist(), "validation": part.val.tolist()}],
        }
        for part in plan.splits.values()
    ]
    (tmp_path / "folds.json").write_text(json.dumps(folds))
    options = ["hops-1", "--task-size", "60", "--epochs", "1", "--device", "cpu"]
    options += ["--models", "gcn/hidden=4/layers=1,baseline", "--protocol", "fair"]
    given = ["--splits", tmp_path / "folds.json", "--grid", "learning_rate=0.001,0.1"]
    code, out, err = lookhops("compare", *options, *given, "-o", tmp_path / "c", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["protocol"]["name"] == "fair"
    assert "means over 3 initialisations" in found["protocol"]["said"]
    assert found["protocol"]["grid"] == {"learning_rate": ["0.001", "0.1"]}
    assert len(found["seeds"]) == 3
    assert "Errica" in (tmp_path / "c" / "models.md").read_text()
    runs = json.loads((tmp_path / "c" / "runs.json").read_text())
    assert {cell["model"] for cell in runs["cells"]} == {"gcn/hidden=4/layers=1", "baseline"}
    assert "chosen_learning_rate" in runs["cells"][0]["metrics"]
    with (tmp_path / "c" / "runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["model"], row["members"]) for row in rows} == {
        ("gcn/hidden=4/layers=1", "3"),
        ("baseline", "1"),
    }
    code, _, err = lookhops("compare", *options, "--protocol", "paper", "--folds", "3")
    assert (code, "--split" in err) == (2, True)

"""Tuning into a folder: nested, resumable, for every task; what it gained, in words."""

import json
from dataclasses import replace

import pytest
import torch

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Architecture, Protocol, SearchOptions
from lookhops.core.words import p_said
from lookhops.graphs import Target
from lookhops.models import Predictor
from lookhops.models.tuning import tune_into
from lookhops.report.build import report_on
from lookhops.runs.plan import parse_entry
from lookhops.runs.tune.tuning import SearchRecord, Tried, Tuning, read_tuning
from lookhops.training import train

pytest.importorskip("optuna")
PROTOCOL = Protocol(seeds=(11, 22), split="auto", max_epochs=2, batch_size=64)
SMALL = "hidden=4,8/layers=1/conv=licheb/pool=none/fingerprint=none,1"
OPTIONS = SearchOptions(trials=3, inner=2, stack=2, space=SMALL)


@pytest.fixture(scope="module", autouse=True)
def small_recommended():
    """These tests need not wait for the training of a large network."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lookhops.runs.tune.tuning.RECOMMENDED", Architecture(hidden=8, layers=1))
        yield


@pytest.fixture(scope="module")
def tuned(tasks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuned")
    events = []
    found = tune_into(folder, tasks, PROTOCOL, OPTIONS, on_event=events.append)
    return folder, found, events


def test_the_folder_holds_the_first_splits_choice(tuned, tasks):
    folder, found, _ = tuned
    model = Predictor(folder, "cpu")
    chosen = parse_entry(found.searches[0].chosen.name)
    assert model.architecture == chosen.model
    assert model.config["protocol"]["learning_rate"] == dict(chosen.training).get(
        "learning_rate", 1e-3
    )
    assert list(model.config["metrics"]["seeds"]) == ["11"]
    assert model.config["metrics"]["seeds"]["11"]["accuracy"] == found.tuned[0]
    assert read_tuning(folder) == found


def test_the_report_has_a_section_on_it(tuned):
    folder, found, _ = tuned
    report = report_on(folder)
    assert [one.name for one in report.sections][:2] == ["data", "tuning"]
    assert report.sections[1].lead.startswith(found.said())
    assert [tile.label for tile in report.tiles][1] == "gain by tuning"


def test_outer_scores_are_those_of_train(tuned, tasks):
    _, found, _ = tuned
    for search, score in zip(found.searches, found.tuned, strict=True):
        entry = parse_entry(search.chosen.name)
        protocol = replace(entry.protocol(PROTOCOL), seeds=(search.seed,))
        [run] = train(tasks, entry.model, protocol, device="cpu")
        right = run.predictions["test"].argmax(-1) == tasks.y[run.split.test]
        assert float(right.double().mean()) == score


def test_every_trial_and_run_is_an_event(tuned):
    _, found, events = tuned
    assert sum(event.finished for event in events) == 2 * 3 + 2 * 2
    assert found.trials == 6
    assert set(found.importance) <= {"hidden", "fingerprint", "dropout", "learning_rate"} | {
        *("k", "ratio", "readout", "weight_decay")
    }


def test_the_same_call_finds_all_of_it_and_more_trials_go_on(tuned, tasks, monkeypatch):
    folder, found, _ = tuned
    config = (folder / "config.json").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("lookhops.runs.tune.search.Judge.judge", None)
        again = tune_into(folder, tasks, PROTOCOL, OPTIONS)
    assert again == found
    assert (folder / "config.json").read_bytes() == config
    more = tune_into(folder, tasks, PROTOCOL, replace(OPTIONS, trials=4))
    assert all(a.tried[:3] == b.tried for a, b in zip(more.searches, found.searches, strict=True))
    assert more.trials == 8
    assert Predictor(folder, "cpu").architecture == parse_entry(more.searches[0].chosen.name).model


def test_other_settings_and_other_folders_are_refused(tuned, tasks, tmp_path):
    folder, *_ = tuned
    with pytest.raises(LookHopsError, match=r"\(splits, inner\)"):
        tune_into(folder, tasks, PROTOCOL, replace(OPTIONS, inner=3))
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(LookHopsError, match="--overwrite"):
        tune_into(tmp_path, tasks, PROTOCOL, OPTIONS)
    assert [one.name for one in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("asked", ["a number", "several"])
def test_numbers_and_several_targets(tasks, tmp_path, asked):
    size = tasks.nodes_per_graph.double() * 100
    size[::7] = torch.nan
    graphs = replace(tasks, y=size, targets=(Target("size"),))
    if asked == "several":
        both = torch.stack((size, tasks.y.double()), 1)
        graphs = replace(tasks, y=both, targets=(Target("size"), Target("kind", ("a", "b"))))
    protocol = replace(PROTOCOL, seeds=(11,), split="random")
    options = replace(OPTIONS, trials=2, time_limit=1000)
    found = tune_into(tmp_path / asked, graphs, protocol, options)
    best = min if not found.main.higher_is_better else max
    values = [one.value for one in found.searches[0].tried if one.value is not None]
    assert found.searches[0].chosen.value == best(values)
    assert found.gain is None
    assert "one split says nothing about a gain" in found.said()


def made(task, tuned, recommended):
    one = Tried("recommended", {}, [0.5], 0.5, 3, 1.0)
    searches = [SearchRecord(seed, [one], 0) for seed in range(len(tuned))]
    return Tuning("set", task, {}, 1, searches, {}, tuned, recommended, 0.125, "cpu")


@pytest.mark.parametrize(
    ("task", "tuned", "recommended", "said"),
    [
        (
            "classification",
            [0.8, 0.82, 0.81],
            [0.7, 0.71, 0.71],
            "raised test accuracy by 10.3 poi",
        ),
        ("classification", [0.7, 0.72, 0.71], [0.7, 0.71, 0.73], "gained nothing that can be told"),
        ("classification", [0.7, 0.71, 0.71], [0.8, 0.82, 0.81], "accuracy worse by 10.3 points"),
        ("regression", [0.5, 0.51, 0.52], [0.7, 0.71, 0.73], "lowered the test MAE by 0.203"),
        ("regression", [0.7, 0.71, 0.73], [0.5, 0.51, 0.52], "made the test MAE worse by 0.203"),
    ],
)
def test_the_gain_in_words(task, tuned, recommended, said):
    found = made(task, tuned, recommended)
    assert said in found.said()
    assert "over 3 outer splits (95% interval" in found.said()
    assert found.gain.low < found.gain.mean < found.gain.high


def test_equal_gains_have_no_interval_and_two_decide_nothing():
    found = made("classification", [0.9, 0.8], [0.9 - 1 / 3, 0.8 - 1 / 3])
    said = found.said()
    assert said.startswith("Tuning gained nothing that can be told from chance: +33.3 points")
    assert said.endswith(f"over 2 outer splits (the same on every split, {p_said(0.5)}).")
    written = json.loads(json.dumps(found.to_dict()))
    assert (written["gain"]["low"], written["gain"]["high"]) == (None, None)
    assert written["gain"]["p"] == 0.5


def test_a_damaged_record_is_a_sentence(tuned, tmp_path):
    folder, *_ = tuned
    good = json.loads((folder / "tuning.json").read_text())
    for wrong in (
        {"format": "lookhops-tuning-9"},
        {"tuned": [0.5]},
        {"searches": 3},
        {"task": "poetry"},
        {"searches": [{**one, "best": 77} for one in good["searches"]]},
    ):
        (tmp_path / "tuning.json").write_text(json.dumps({**good, **wrong}))
        with pytest.raises(LookHopsError, match=r"tuning\.json"):
            read_tuning(tmp_path)

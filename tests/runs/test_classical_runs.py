"""Models without a network as cells of a plan: the same splits, store, statistics and exports."""

import json

import pytest

from lookhops.core.errors import LookHopsError
from lookhops.core.options import Classical
from lookhops.core.words import NONE
from lookhops.learners import LEARNERS, parse_model
from lookhops.runs import executor
from lookhops.runs.compare import compare, comparison
from lookhops.runs.plan import Cell
from lookhops.runs.results import Results, export
from lookhops.sources.loading import load
from lookhops.sources.splits import split
from lookhops.tasks import task_of
from lookhops.training import Protocol

TINY = Protocol(seeds=(1, 2, 3), batch_size=64, max_epochs=2)
NAMES = ("gcn/hidden=4/layers=1", "wl", "baseline")


@pytest.fixture
def cells(graphs):
    return [Cell(graphs, name, parse_model(name), TINY) for name in NAMES]


def test_they_are_fitted_on_the_splits_of_the_networks(run, cells, graphs):
    outcome, _, found = run(cells)
    assert (outcome.trained, outcome.left, outcome.failures) == (9, 0, [])
    for cell in found[1:]:
        assert cell.seeds == TINY.seeds
        for i, seed in enumerate(cell.seeds):
            part = split(graphs, seed)
            fitted = LEARNERS[cell.model]().fit(graphs, task_of(graphs), part, seed)
            for name, of in (("accuracy", "test"), ("val_accuracy", "val")):
                own = getattr(part, of)
                right = fitted.outputs(graphs.select(own)).argmax(1) == graphs.y[own]
                assert cell.metrics[name][i] == pytest.approx(right.double().mean().item())
            chosen = {name: cell.metrics[f"chosen_{name}"][i] for name in fitted.chosen}
            assert chosen == fitted.chosen
        assert set(cell.metrics["parameters"]) == {None}
        assert set(cell.metrics["epochs"]) == set(cell.metrics["best_epoch"]) == {0}
        assert cell.device.startswith("a CPU")


def test_they_are_fitted_once_whatever_the_networks_protocol(run, cells):
    run(cells)
    longer = Protocol(seeds=(1, 2, 3), max_epochs=3)
    again = [Cell(cell.graphs, cell.model, cell.architecture, longer) for cell in cells]
    outcome, _, _ = run(again)
    assert (outcome.found, outcome.trained) == (6, 3)


def test_on_a_gpu_their_splits_are_fitted_and_stored_one_by_one(run, cells, monkeypatch):
    tasks, train_records, choose_device = [], executor.train_records, executor.choose_device

    def noted(cell, seeds, *rest):
        monkeypatch.setattr(executor, "choose_device", choose_device)
        tasks.append((cell.architecture, len(seeds)))
        return train_records(cell, seeds, *rest)

    gpu = type("Device", (), {"type": "cuda"})
    monkeypatch.setattr(executor, "train_records", noted)
    monkeypatch.setattr(executor, "choose_device", lambda device: gpu)
    run([cells[2]])
    assert tasks == [(Classical("baseline"), 1)] * 3


def test_tables_and_exports_show_them(run, cells, tmp_path):
    _, _, found = run(cells)
    results = Results(found)
    table = comparison("hops-1", found).models_table()
    shown = {row[0]: row[4] for row in table.rows}
    assert (shown["wl"], shown["baseline"]) == (NONE, NONE)
    assert shown[NAMES[0]].replace(",", "").isdecimal()
    for suffix in ("json", "csv", "md", "tex"):
        export(results, tmp_path / f"runs.{suffix}")
    back = Results.from_json(tmp_path / "runs.json")
    assert [cell.key for cell in back.cells] == [cell.key for cell in found]
    content = json.loads((tmp_path / "runs.json").read_text())
    assert content["cells"][1]["architecture"] == {"classical": "wl"}
    content["cells"][0]["metrics"]["parameters"][0] = None  # of a network they are counted
    (tmp_path / "runs.json").write_text(json.dumps(content))
    with pytest.raises(LookHopsError, match="parameters"):
        Results.from_json(tmp_path / "runs.json")


def test_graphs_that_are_not_molecules_are_one_sentence(run, cells, graphs):
    forest = Cell(graphs, "morgan-forest", Classical("morgan-forest"), TINY)
    with pytest.raises(LookHopsError, match=r"morgan-forest .*SMILES.*hops-1"):
        run([*cells, forest])
    outcome, _, _ = run(cells)
    assert outcome.found == 0  # it was said before anything was trained


def test_what_one_hop_decides_is_seen_by_all_but_the_baseline(tmp_path):
    graphs = load("hops-1", size=400)
    protocol = Protocol(seeds=(1, 2), batch_size=32, learning_rate=0.01, max_epochs=60)
    models = ["fingerprint/fingerprint=2", "wl-oa", "baseline"]
    found = compare(graphs, models, protocol, store=tmp_path / "runs.sqlite", device="cpu")
    means = {name: sum(values) / len(values) for name, values in found.scores.items()}
    assert min(means["wl-oa"], means["fingerprint/fingerprint=2"]) > 90
    assert means["baseline"] < 75
    assert len(found.pairs) == 3
    assert found.to_json()["models"][-1]["architecture"] == {"classical": "baseline"}

"""Reports on stores: the statistics of the runs, at one moment, whoever else is writing."""

import json
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lookhops.core.errors import LookHopsError
from lookhops.core.tables import Table
from lookhops.learners import parse_model
from lookhops.report.build import report_on
from lookhops.report.page import Chart, Folded
from lookhops.report.runs import grouped, read_store
from lookhops.runs.compare import comparison
from lookhops.runs.plan import Cell
from lookhops.runs.record import Machine, RunRecord
from lookhops.runs.store import Store
from lookhops.training import Protocol

PROTOCOL = Protocol(max_epochs=2)


def record(seed, accuracy):
    metrics = {
        **dict.fromkeys(("accuracy", "balanced_accuracy", "macro_f1", "auroc"), accuracy),
        **{"loss": 0.6, "val_accuracy": accuracy, "val_loss": 0.6, "epochs": 2, "best_epoch": 2},
        **{"seconds": 1.0, "seconds_per_epoch": 0.5, "parameters": 10, "seeds_at_once": 1},
        **{"train_graphs": 80, "val_graphs": 10, "test_graphs": 10},
    }
    history = [
        {"epoch": e, "train_loss": 1 / e, "val_loss": 1.1 / e, "val_accuracy": accuracy}
        for e in (1, 2)
    ]
    versions = {"lookhops": "0", "torch": "0", "numpy": "0", "python": "0"}
    return RunRecord(seed, metrics, versions, Machine("s", 1, "cpu"), history)


def fill(store, graphs, accuracies, protocol=PROTOCOL, dataset="hops-1"):
    for model, values in accuracies.items():
        key = Cell(graphs, model, parse_model(model), protocol).key
        store.add(dataset, model, key, [record(seed, value) for seed, value in values.items()])


@pytest.fixture
def path(tmp_path, tasks):
    with Store(tmp_path / "runs.sqlite") as store:
        fill(
            store,
            tasks,
            {
                "gcn": {11: 0.5, 22: 0.6, 33: 0.5},
                "licheb+lookhops": {11: 0.7, 22: 0.75, 33: 0.8},
                "gat": {44: 0.9},
            },
        )
    return tmp_path / "runs.sqlite"


def section(report, name):
    return next((s for s in report.sections if s.name == name), None)


def test_the_numbers_are_those_of_the_statistics(path):
    snapshot = read_store(path)
    cells = [cell for cell in snapshot.cells if cell.model != "gat"]
    found = comparison("hops-1", cells)
    report = report_on(path)
    [group] = grouped(snapshot)
    assert group.scores == found.scores
    assert group.pairs == found.pairs
    blocks = section(report, "comparison").blocks
    table = next(b for b in blocks if isinstance(b, Table))
    assert [row[0] for row in table.rows] == ["licheb+lookhops", "gcn"]
    assert table.rows[0][1] == "**75.0 ± 5.0**"
    assert "gat (1 finished run)" in table.note
    assert len([b for b in section(report, "training").blocks if isinstance(b, Chart)]) == 2
    assert "licheb+lookhops comes first, with a test accuracy of 75.0 ± 5.0 %" in report.summary
    assert "licheb+lookhops comes first with 75.0 %" in section(report, "comparison").lead
    assert "lookhops compare hops-1 --models" in str(section(report, "reproduce").blocks)


def test_a_folder_with_a_store_and_exported_results(path, tmp_path, lookhops):
    assert report_on(tmp_path).title == report_on(path).title
    from lookhops.runs.results import export

    export(read_store(path), tmp_path / "runs.json")
    report = report_on(tmp_path / "runs.json")
    assert section(report, "training") is None
    assert section(report, "comparison") is not None


def test_many_models_are_compared_with_the_best_and_listed(tmp_path, tasks):
    with Store(tmp_path / "runs.sqlite") as store:
        models = [f"licheb/k={k}" for k in range(1, 7)]
        fill(store, tasks, {m: {1: 0.5 + i / 50, 2: 0.6} for i, m in enumerate(models)})
        fill(store, tasks, {"gcn": {1: 0.5, 2: 0.4}}, dataset="other")
        fill(store, tasks, {"gcn": {1: 0.5, 2: 0.4}}, replace(PROTOCOL, learning_rate=0.1))
    blocks = section(report_on(tmp_path / "runs.sqlite"), "comparison").blocks
    folded = [b for b in blocks if isinstance(b, Folded)]
    assert len(folded[0].table.rows) == 7 * 6 // 2
    drawn = [b for b in blocks if isinstance(b, Chart) and b.numbers.head[0] == "pair"]
    assert len(drawn[0].numbers.rows) == 6


def test_a_store_that_is_being_written_is_seen_at_one_moment(path):
    """Another process adds pairs of runs with a fact, all or none: nobody sees a part of them."""
    writer = Path(__file__).with_name("writing.py")
    arguments = [sys.executable, str(writer), str(path)]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        counts = []
        while len(counts) < 12 or counts[-1] == counts[0]:
            assert process.poll() is None
            snapshot = read_store(path)
            cells = {cell.model: cell for cell in snapshot.cells}
            assert cells["gcn"].seeds == cells["licheb+lookhops"].seeds
            assert len(snapshot.commands) == len(cells["gcn"].seeds) - 3
            counts.append(len(cells["gcn"].seeds))
        assert counts == sorted(counts)
        assert report_on(path).sections
    finally:
        process.kill()
        process.wait()


def test_reading_changes_nothing(path):
    before = path.read_bytes()
    report_on(path)
    assert path.read_bytes() == before
    db = sqlite3.connect(path)
    assert db.execute("SELECT count(*) FROM claims").fetchone() == (0,)
    db.close()


def test_what_is_no_store_is_said(tmp_path, path):
    other = tmp_path / "other.sqlite"
    db = sqlite3.connect(other)
    db.execute("CREATE TABLE t (a)")
    db.commit()
    db.close()
    with pytest.raises(LookHopsError, match="other"):
        report_on(other)
    (tmp_path / "text.txt").write_text("hello")
    with pytest.raises(LookHopsError, match="text"):
        report_on(tmp_path / "text.txt")
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(LookHopsError, match="cut"):
        report_on(cut)
    with Store(tmp_path / "empty.sqlite"):
        pass
    with pytest.raises(LookHopsError):
        report_on(tmp_path / "empty.sqlite")
    later = shutil.copy(path, tmp_path / "later.sqlite")
    db = sqlite3.connect(later)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(LookHopsError, match="99"):
        report_on(tmp_path / "later.sqlite")
    (tmp_path / "x.json").write_text(json.dumps({"format": "x"}))
    with pytest.raises(LookHopsError, match=r"x\.json"):
        report_on(tmp_path / "x.json")

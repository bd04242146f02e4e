"""Reports on stores that are half full, named twice or quick: what is said is what is there."""

import pytest
from test_stores import PROTOCOL, fill, record, section

from lookhops.core.tables import Table
from lookhops.learners import parse_model
from lookhops.report.build import report_on
from lookhops.report.runs import read_store, runs_report
from lookhops.runs.paper import ROWS
from lookhops.runs.plan import Cell, RunKey
from lookhops.runs.results import Results
from lookhops.runs.store import Store
from lookhops.training import Protocol


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.sqlite"


def comparison_of(report):
    blocks = section(report, "comparison").blocks
    table = next(b for b in blocks if isinstance(b, Table))
    return table, table.note


def test_one_network_under_two_names_is_one_model(path, tasks):
    with Store(path) as store:
        fill(store, tasks, {"licheb": {11: 0.5, 22: 0.6}, "gcn": {11: 0.4, 22: 0.4, 33: 0.4}})
        fill(store, tasks, {"licheb+none": {33: 0.7, 44: 0.8}})
    snapshot = read_store(path)
    assert [(c.model, c.seeds) for c in snapshot.cells] == [
        ("licheb", (11, 22, 33, 44)),
        ("gcn", (11, 22, 33)),
    ]
    table, note = comparison_of(report_on(path))
    assert [row[:2] for row in table.rows] == [
        ["licheb", "**60.0 ± 10.0**"],
        ["gcn", "**40.0 ± 0.0**"],
    ]
    assert "over 3 shared seeds: licheb (1 of 4 finished runs)" in note
    some = [cell.of_seeds([11, 22]) for cell in snapshot.cells]
    part = runs_report(Results(some, commands=snapshot.commands))  # the store has more histories
    assert section(part, "training") is not None


def test_layers_of_ones_own_are_told_apart(path, tasks):
    with Store(path) as store:
        for digest, accuracy in (("aaaa", 0.5), ("bbbb", 0.6)):
            key = RunKey(tasks.fingerprint, parse_model("gcn"), PROTOCOL, digest)
            store.add("mine", "own", key, [record(seed, accuracy) for seed in (11, 22)])
    report = report_on(path)
    table, _ = comparison_of(report)
    assert [row[0] for row in table.rows] == ["own, layers bbbb", "own, layers aaaa"]
    assert section(report, "training") is not None


def test_what_is_left_out_is_named(path, tasks):
    with Store(path) as store:
        fill(store, tasks, {"gcn": {11: 0.5, 22: 0.6, 33: 0.7}, "licheb": {11: 0.9}})
        store.note("idle", "other graphs", "data", lambda: dict.fromkeys(COUNTS, 3))
    report = report_on(path)
    lead = section(report, "comparison").lead
    assert lead == (
        "Only gcn is shown: licheb has finished too few of the same splits to be compared."
    )
    table, note = comparison_of(report)
    assert [row[0] for row in table.rows] == ["gcn"]
    assert "licheb (1 finished run)" in note
    assert report.summary == (
        "2 models on 1 data set, 4 finished runs; gcn has a test accuracy of 60.0 ± 10.0 % over "
        "3 seeds."
    )
    assert section(report, "data") is None  # nothing is finished of the other set


COUNTS = ("graphs", "nodes", "edges", "features", "classes")


def test_one_seed_has_no_spread_and_no_pair_differs(path, tasks):
    with Store(path) as store:
        fill(store, tasks, {"gcn": {11: 0.5}, "licheb": {11: 0.9}})
    report = report_on(path)
    table, note = comparison_of(report)
    assert [row[1] for row in table.rows] == ["**90.0**", "**50.0**"]
    assert "±" not in str(report)
    assert "Left out" not in note
    with Store(path) as store:
        fill(store, tasks, {"gcn": {22: 0.8}, "licheb": {22: 0.4}, "gat": {11: 0.6, 22: 0.5}})
    assert "Of all 3 pairs, none differ." in section(report_on(path), "comparison").lead


def test_two_sets_of_one_name_are_two(path, tasks):
    with Store(path) as store:
        for graphs in (tasks, tasks[:60]):
            fill(store, graphs, {"gcn": {11: 0.5, 22: 0.6}})
            store.note("hops-1", graphs.fingerprint, "data", lambda: dict.fromkeys(COUNTS, 3))
    report = report_on(path)
    assert "1 model on 2 data sets" in report.summary
    assert "2 data sets" in section(report, "data").lead
    assert "lookhops compare hops-1 --models gcn" in str(section(report, "reproduce").blocks)


def test_the_quick_version_is_marked(path, tasks):
    row = ROWS["licheb"]
    cell = Cell(tasks, row.label, row.architecture("NCI1"), Protocol(max_epochs=2))
    with Store(path) as store:
        store.add("NCI1", row.label, cell.key, [record(seed, 0.5) for seed in (11, 22)])
    report = report_on(path)
    assert report.summary.endswith(
        "This is the quick version, which says nothing about the models."
    )
    assert report.title == "NCI1: LiCheb (quick version)"
    assert "lookhops paper --quick" in str(section(report, "reproduce").blocks)
    with Store(path) as store:
        fill(store, tasks[:60], {"gcn": {11: 0.5, 22: 0.6}}, dataset="NCI1")
    mixed = report_on(path)
    assert mixed.title.startswith("NCI1 (quick version) and NCI1: ")
    assert mixed.summary.endswith(" The quick version says nothing about the models.")
    with Store(path) as store:
        store.db.execute("DELETE FROM runs WHERE model = 'LiCheb'")
    assert "quick" not in str(report_on(path))

"""What the sections say: the numbers of the files, and nothing where there is none."""

import csv
import hashlib
import json
import re
import shutil
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest
import torch

from lookhops.core.errors import LookHopsError
from lookhops.core.tables import Table
from lookhops.core.words import MINUS, ahead, short
from lookhops.explain.drawing.pictures import animated
from lookhops.explain.kept import explain
from lookhops.graphs.targets import Target
from lookhops.models import Predictor
from lookhops.models.training import train_into
from lookhops.neighbourhoods import look
from lookhops.nn import Architecture
from lookhops.report.build import look_report, model_report, report_on
from lookhops.report.folders import read_folder
from lookhops.report.page import Chart, Gallery, Note, Subheading
from lookhops.report.sections.explanations import choose, steps
from lookhops.report.sections.training import training_section
from lookhops.runs.statistics import compare_pairs
from lookhops.sources.counts import graph_counts
from lookhops.sources.loading import load
from lookhops.tasks.answers import TestAnswers
from lookhops.tasks.classes import best_and_worst
from lookhops.tasks.metrics import confusion_matrix, rates
from lookhops.training import Protocol
from lookhops.training.runs import NotFinite


def section(report, name):
    return next((s for s in report.sections if s.name == name), None)


def charts(report):
    return [b for s in report.sections for b in s.blocks if isinstance(b, Chart)]


@pytest.fixture(scope="module")
def report(two_folders, molecules):
    return report_on(two_folders, molecules)


# -------------------------------------------------------------------- what training leaves


def test_predictions_are_what_the_model_answers(model_folder, molecules):
    model, predictor = read_folder(model_folder), Predictor(model_folder, "cpu")
    for seed in (11, 22):
        own = model.answers(model.task.heads[0]).of_seed(seed)
        p = predictor.answers(predictor.prepare(molecules.select(own.graph)), seed).detach().numpy()
        np.testing.assert_allclose(own.values, p, rtol=2e-4, atol=2e-6)
        true = own.truth.astype(int)
        assert true.tolist() == molecules.y[own.graph].tolist()
        found = rates(confusion_matrix(true, own.values.argmax(1), own.values.shape[1]))
        assert found["accuracy"] == model.config["metrics"]["seeds"][str(seed)]["accuracy"]


def test_facts_are_counts(molecules, tasks):
    for graphs in (molecules, tasks, replace(tasks, y=None, targets=())):
        facts = graph_counts(graphs)
        edges, counts = facts["sizes"]["edges"], np.array(facts["sizes"]["counts"])
        assert counts.sum() == len(graphs)
        assert counts.shape == (max(len(facts["class_names"]), 1), len(edges) - 1)
        assert len(edges) <= 31
        if graphs.y is not None:
            assert facts["class_counts"] == np.bincount(graphs.y).tolist() == counts.sum(1).tolist()
        assert json.loads(json.dumps(facts)) == facts


# -------------------------------------------------------------------- the page about models


def test_sections_come_in_the_order_of_reading(report, model_folder):
    names = ["data", "comparison", "training", "results", "shares", "looked", "reproduce"]
    assert [s.name for s in report.sections] == names
    alone = report_on(model_folder)
    left_out = ("comparison", "shares")  # the graphs are not at hand
    assert [s.name for s in alone.sections] == [n for n in names if n not in left_out]
    assert [type(b) for b in section(alone, "looked").blocks] == [Note]
    assert "--data" in section(alone, "looked").blocks[0].text


def test_training_graphs_stand_beside_what_they_are_like(report, molecules, tmp_path):
    """Below pictures of shares and of pooling; in a table where there are no pictures."""
    for card in section(report, "looked").blocks[0].cards:
        assert card.like.count("; similarity 0") + card.like.count("; similarity 1.00") == 3
    for picture in section(report, "shares").blocks[0].pictures:
        assert picture.lines[-1].startswith("Like ")
    named = replace(molecules, columns={**molecules.columns, "id": np.arange(150).astype(str)})
    train_into(tmp_path, named, "mean", Protocol(seeds=(11, 22)))
    alike = section(report_on(tmp_path, named), "alike").blocks[0]
    classes = dict(zip(named.ids, (molecules.class_names[y] for y in molecules.y), strict=True))
    for name, measured, like in alike.rows:
        assert measured == classes[name]
        others = [re.fullmatch(r"(\d+) \((.*); similarity .*\)", one).groups() for one in like]
        assert len(others) == 3
        assert all(other != name and said == classes[other] for other, said in others)


def test_every_chart_is_valid_plotly_with_words_and_numbers(report, tasks):
    found = look_report(look(tasks, max_k=3, per_class=True).to_dict(), graph_counts(tasks))
    every = [*charts(report), *charts(found)]
    assert len(every) >= 10
    for chart in every:
        text = re.sub(r'"var\(--[a-z]+\)"', '"#123456"', json.dumps(chart.figure))
        go.Figure(json.loads(text))
        assert len(chart.alt) > 20
        assert chart.caption
        assert all(len(row) == len(chart.numbers.head) for row in chart.numbers.rows)


def test_the_comparison_is_that_of_the_statistics(report, two_folders):
    scores = {}
    for name in ("licheb", "gcn"):
        metrics = json.loads((two_folders / name / "config.json").read_text())["metrics"]["seeds"]
        scores[name] = [100 * metrics[seed]["accuracy"] for seed in ("11", "22")]
    [pair] = compare_pairs(scores, 15 / 120)
    table = charts(report)[3].numbers
    assert table.head[0] == "pair"
    [[_, mean, interval, _, p, _]] = [list(row) for row in table.rows]
    assert mean.replace(MINUS, "-") == f"{pair.difference.mean:+.1f}"
    ends = f"{pair.difference.low:+.1f} to {pair.difference.high:+.1f}"
    assert interval.replace(MINUS, "-") == ends
    assert float(p) == pytest.approx(pair.adjusted_p, rel=0.06)


def test_intervals_are_bootstraps_of_the_metrics(model_folder):
    table = next(b for b in section(report_on(model_folder), "results").blocks)
    redrawn = ("accuracy", "balanced accuracy", "macro-F1")
    for row in (row for row in table.rows if row[0] in redrawn):
        low, high = map(float, row[2].replace(" %", "").split(" to "))
        assert low <= float(row[1].split(" ")[0]) <= high


def test_a_folder_without_its_tables_has_fewer_sections(model_folder, tmp_path, molecules):
    folder = shutil.copytree(model_folder, tmp_path / "bare")
    config = json.loads((folder / "config.json").read_text())
    for key in ("facts", "command", "config_sha256"):
        del config[key]
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "predictions.csv").unlink()
    (folder / "history.csv").unlink()
    report = report_on(folder, molecules)
    assert [s.name for s in report.sections] == ["results", "looked", "reproduce"]
    assert len([b for b in section(report, "results").blocks if isinstance(b, Chart)]) == 1


@pytest.mark.parametrize("lines", [slice(0, 2), slice(1, None), slice(0, 0)])
def test_a_history_that_somebody_edited_is_a_sentence(model_folder, tmp_path, lines):
    path = shutil.copytree(model_folder, tmp_path / "model") / "history.csv"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[lines]))
    config = json.loads((path.parent / "config.json").read_text())
    del config["config_sha256"]
    config["history_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (path.parent / "config.json").write_text(json.dumps(config))
    with pytest.raises(LookHopsError, match=path.name):
        report_on(path.parent)


def test_answers_of_another_training_are_not_mixed_in(model_folder, tmp_path):
    folder = shutil.copytree(model_folder, tmp_path / "model")
    with (folder / "predictions.csv").open("a") as file:
        file.write("11,0,x,low,1,0,0\n")
    with pytest.raises(LookHopsError, match="predictions"):
        read_folder(folder)


def test_a_network_without_pooling_has_no_gallery(tasks, tmp_path):
    protocol = Protocol(seeds=(11,), max_epochs=1, batch_size=64)
    train_into(tmp_path / "m", tasks, Architecture(hidden=8, layers=2), protocol, device="cpu")
    assert section(report_on(tmp_path / "m", tasks), "looked") is None


def test_a_pooling_of_another_library_has_no_gallery(tasks, tmp_path):
    pytest.importorskip("torch_geometric")
    protocol = Protocol(seeds=(11,), max_epochs=1, batch_size=64)
    other = Architecture("gcn", "pyg:SAGPooling", hidden=8, layers=2)
    train_into(tmp_path / "m", tasks, other, protocol, device="cpu")
    for graphs in (tasks, None):
        found = report_on(tmp_path / "m", graphs)
        assert section(found, "looked") is None
        assert section(found, "training") is not None


def test_every_member_has_its_curves(tasks, tmp_path):
    protocol = Protocol((11, 22), members=3, max_epochs=2, batch_size=16)
    train_into(tmp_path / "m", tasks, Architecture(hidden=4, layers=1), protocol, device="cpu")
    model = read_folder(tmp_path / "m")
    assert list(model.history) == [(seed, member) for seed in (11, 22) for member in range(3)]
    losses, accuracy = (block for block in training_section(model).blocks)
    lines = [one for one in losses.figure["data"] if one["mode"] == "lines"]
    assert [one["opacity"] for one in lines] == 2 * ([0.3] * 4 + [0.85] * 2)
    assert len({tuple(one["y"]) for one in lines}) == 12
    assert sum(one["showlegend"] for one in lines) == 2
    assert len(accuracy.figure["data"]) == 7
    assert "seed 22, member 3" in lines[3]["hovertemplate"]


def test_a_training_that_failed_still_has_a_report(tasks, tmp_path):
    protocol = Protocol(seeds=(11,), max_epochs=3, batch_size=16, learning_rate=1e30)
    with pytest.raises(NotFinite):
        train_into(tmp_path / "m", tasks, Architecture(hidden=8), protocol, device="cpu")
    report = report_on(tmp_path / "m")
    assert section(report, "results") is None
    assert section(report, "reproduce") is not None


# -------------------------------------------------------------------- the gallery


def test_graphs_are_chosen_by_certainty_and_by_being_wrong():
    generator = np.random.default_rng(0)
    p = generator.dirichlet((1, 1, 1), size=90)
    true = generator.integers(3, size=90)
    ids = [str(i) for i in range(90)]
    answers = TestAnswers(np.full(90, 11), np.arange(90), ids, true, p, None)
    allowed = np.arange(90) % 5 > 0
    chosen = choose(answers, allowed)
    assert len(chosen) == 18
    sure, right = p.max(1), p.argmax(1) == true
    for c in range(3):
        mine = [i for i in range(90) if true[i] == c and allowed[i]]
        best = sorted((i for i in mine if right[i]), key=lambda i: -sure[i])[:2]
        worst = sorted((i for i in mine if not right[i]), key=lambda i: -sure[i])[:2]
        least = sorted((i for i in mine if i not in (*best, *worst)), key=lambda i: sure[i])[:2]
        for group, rows in (("certain", best), ("wrong", worst), ("unsure", least)):
            assert {i for i, g in chosen.items() if g == group and true[i] == c} == set(rows)
    many = replace(answers, truth=np.arange(90) % 45, values=np.eye(45)[true])
    assert len(choose(many, np.ones(90, bool))) <= 24


@pytest.mark.parametrize("pool", ["lookhops", "edge", "asap"])
def test_pictures_say_when_each_shape_goes(tasks, tmp_path, pool):
    network = Architecture(pool=pool, hidden=8, layers=3, ratio=0.6)
    protocol = Protocol(seeds=(11,), max_epochs=1, batch_size=64)
    train_into(tmp_path / "m", tasks, network, protocol, device="cpu")
    for found in explain(Predictor(tmp_path / "m", "cpu"), tasks[:4]):
        graph = found.layered()
        gone, lost = graph.node_layer, graph.edge_layer
        for number, view in enumerate(found.layers, 1):
            alive = set(np.flatnonzero(gone > number).tolist())
            assert alive == set(view.nodes[view.kept].tolist())
            said = f"layer {number}: {len(alive)} of {found.num_nodes} nodes"
            assert said in steps(graph)[number]
        for (i, j), layer in zip(found.edges, lost, strict=True):
            assert layer <= min(gone[i], gone[j])
        svg = animated(graph, "")
        assert svg.count("<circle") == found.num_nodes
        assert svg.count("<line") == len(found.edges)
        assert svg.count('data-d="1"') == (gone == 1).sum() + (lost == 1).sum()


def test_molecules_are_drawn_once_with_their_bonds(model_folder, molecules):
    for found in explain(Predictor(model_folder, "cpu"), molecules[:5]):
        svg = animated(found.layered(), '"<>&')
        assert svg.count('class="score"') == found.num_nodes
        assert svg.count('class="bond"') >= len(found.edges)
        assert "&quot;&lt;&gt;&amp;" in svg
        assert "#000" not in svg


def test_the_gallery_shows_the_seeds_own_probabilities(report, two_folders):
    best = section(report, "looked")
    [gallery] = [b for b in best.blocks if isinstance(b, Gallery)]
    with (two_folders / best.title.split(": ")[1] / "predictions.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["seed"] == "11"]
    known = {max(float(v) for k, v in row.items() if k.startswith("p(")) for row in rows}
    assert {card.probability for card in gallery.cards} <= known
    assert all(len(card.steps) == gallery.layers + 1 for card in gallery.cards)


def test_other_graphs_are_refused(model_folder, tasks):
    with pytest.raises(LookHopsError, match=tasks.name):
        report_on(model_folder, tasks)


# -------------------------------------------------------------------- hops


def test_the_information_is_shown_as_measured(tasks, model_folder):
    found = look(tasks, max_k=4, bootstrap=20)
    report = look_report(found.to_dict(), graph_counts(tasks), [("Measure", "lookhops look x")])
    assert [s.name for s in report.sections] == ["data", "hops", "reproduce"]
    assert found.sentence() in section(report, "hops").lead
    table = charts(report)[2].numbers
    assert [row[1] for row in table.rows] == [f"{gain:.4f}" for gain in found.gain]
    without = look(tasks, max_k=3, bootstrap=0).to_dict()
    assert look_report(without, None).sections[0].name == "hops"
    with_model = model_report(replace(read_folder(model_folder), information=found.to_dict()))
    assert section(with_model, "hops") is not None
    assert any("hops" in tile.label for tile in with_model.tiles)


def test_no_decay_is_said(tasks):
    found = look(tasks, max_k=3, bootstrap=0).to_dict()
    flat = {**found, "suggested_k": None, "fit": {**found["fit"], "b": -0.1, "r2": None}}
    report = look_report(flat, None)
    assert "does not die away" in report.summary
    assert isinstance(charts(report)[1].numbers, Table)


def test_the_bundled_set_has_a_report_of_its_own():
    graphs = load("solubility")
    assert section(look_report(look(graphs, bootstrap=0).to_dict(), graph_counts(graphs)), "data")


# -------------------------------------------------------------------- words


def test_long_names_that_begin_alike_stay_two():
    names = [f"inhibitor of the transporter, {end}" for end in ("weak", "strong")]
    assert len({short(name) for name in names}) == 2
    assert all(len(short(name, width)) == width for name in names for width in (14, 28))
    assert short("weak") == "weak"


def test_nobody_is_ahead_by_nothing():
    assert ahead(0.04, "gcn") == "level with gcn"
    assert ahead(1.23, "gcn") == "1.2 points ahead of gcn"


# -------------------------------------------------------------------- numbers and several targets


@pytest.fixture(scope="module")
def several_folder(tmp_path_factory):
    """Two targets with blanks: whether a molecule dissolves, and how well."""
    graphs = load("solubility")[:120]
    value = graphs.columns["value"].astype(float)
    known = torch.from_numpy(np.stack((value > -2, value), 1).astype(float))
    known[::5, 0], known[::7, 1] = torch.nan, torch.nan
    targets = (Target("soluble", ("no", "yes")), Target("logS"))
    graphs = replace(graphs, y=known, targets=targets)
    folder = tmp_path_factory.mktemp("several") / "model"
    network = Architecture(hidden=8, layers=2)
    train_into(folder, graphs, network, Protocol((11,), max_epochs=2), device="cpu", threshold="f1")
    return folder


def test_every_target_has_its_own_table_and_charts(several_folder):
    model = read_folder(several_folder)
    results = section(report_on(several_folder), "results")
    heads = [block.text for block in results.blocks if isinstance(block, Subheading)]
    assert heads == ["soluble", "logS"]
    said = [block.caption.split(".")[0] for block in results.blocks if isinstance(block, Chart)]
    assert said[1:4] == ["ROC curve", "Precision-recall curve", "Calibration"]
    assert said[4] == "Predicted against measured"
    own = model.answers(model.task.heads[1])
    summary = model.config["metrics"]["summary"]
    error = np.abs(own.truth - own.values[:, 0]).mean()
    assert error == pytest.approx(summary["logS: mae"]["mean"], rel=1e-4)
    assert not np.isnan(own.truth).any()
    assert "It says yes from a probability of" in results.blocks[0].lead
    assert "missed logS by" in next(b.lead for b in results.blocks[1:] if isinstance(b, Subheading))


def test_the_main_metric_is_one_key_figure(tmp_path):
    graphs = load("solubility", target="value")[:60]
    train_into(tmp_path, graphs, "mean", Protocol((11, 22)))
    tiles = {tile.label: tile for tile in report_on(tmp_path).tiles}
    assert list(tiles) == ["test MAE", "RMSE", "graphs", "model"]
    assert tiles["test MAE"].note.startswith("mean of 2 seeds; 95%: ")
    assert tiles["RMSE"].note.startswith("95%: ")


def test_parts_of_tests_may_differ_in_size(molecules, tmp_path):
    train_into(tmp_path, molecules[:32], "baseline", Protocol((0, 1, 2), folds=3))
    model = read_folder(tmp_path)
    answers = model.answers(model.task.heads[0])
    assert sorted(len(answers.of_seed(seed)) for seed in model.seeds) == [10, 11, 11]
    assert sorted(answers.graph) == list(range(32))


def test_figures_of_numbers_are_plotlys(several_folder):
    for chart in charts(report_on(several_folder)):
        go.Figure(chart.figure)


def test_the_class_that_is_known_best_is_not_the_one_that_is_known_least():
    names = ["a", "b"]
    said = best_and_worst(np.array([0.5, 0.75]), names)
    assert said == " It recognises b best (75 % right) and a least (50 %)."
    assert best_and_worst(np.ones(2), names) == " It recognises all classes alike (100 % right)."

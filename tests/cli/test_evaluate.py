"""``lookhops evaluate`` by running it, and what it measures."""

import json
import shutil

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import accuracy_score, mean_absolute_error, roc_auc_score

from lookhops.core.reading import Reading
from lookhops.core.schema import read
from lookhops.core.words import NONE
from lookhops.models import Predictor, train_into
from lookhops.models.folder import Provenance
from lookhops.models.labelled import evaluate
from lookhops.nn import Architecture
from lookhops.report.evaluation import evaluation_report
from lookhops.sources.loading import load
from lookhops.sources.molecules import from_smiles
from lookhops.sources.splits import SplitPlan
from lookhops.training import Protocol

NETWORK = Architecture(hidden=8, layers=2)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Molecules with a number and two classes; some of the latter are blank."""
    graphs = load("solubility")[:150]
    rows = ["smiles,logS,soluble"]
    values = graphs.columns["value"].astype(float)
    for i, (smiles, value) in enumerate(zip(graphs.columns["smiles"], values, strict=True)):
        rows.append(f"{smiles},{value},{'' if i % 10 == 0 else 'yes' if value > -2 else 'no'}")
    path = tmp_path_factory.mktemp("tables") / "mine.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def models(table):
    """A model of each kind, trained on the first hundred molecules."""
    protocol = Protocol((11,), max_epochs=3, batch_size=32)
    for target, threshold in (("soluble", "youden"), ("logS", None), ("logS,soluble", None)):
        reading = Reading(target=target)
        graphs = load(table, reading)[:100]
        folder = table.parent / target
        options = {"device": "cpu", "threshold": threshold}
        train_into(folder, graphs, NETWORK, protocol, provenance=Provenance(reading), **options)
    return table.parent


def test_metrics_are_scikit_learns(models, table):
    graphs = load(table, target="soluble")
    found = evaluate(Predictor(models / "soluble", "cpu"), graphs, resamples=20)
    [target] = found.targets
    known = ~np.isnan(target.truth)
    y, answers = target.truth[known].astype(int), target.answers
    values = target.all.values
    assert target.all.graphs == known.sum() == 135
    assert values["accuracy"] == pytest.approx(accuracy_score(y, answers.numbers[known]))
    assert values["auroc"] == pytest.approx(roc_auc_score(y, answers.probabilities[known, 1]))
    held = answers.sets[known][np.arange(len(y)), y].mean()
    assert values["coverage"] == pytest.approx(held)
    low, high = target.all.intervals["accuracy"]
    assert low <= values["accuracy"] <= high
    assert target.new.graphs < 60


def test_a_class_of_few_graphs_has_no_certain_metrics(lookhops, models, table, tmp_path):
    graphs = load(table, target="soluble")
    predictor = Predictor(models / "soluble", "cpu")
    answers = predictor.predict(graphs).targets[0]
    right = np.flatnonzero(answers.numbers == graphs.y.numpy())
    yes, no = (right[graphs.y.numpy()[right] == number] for number in (1, 0))
    assert min(len(yes), len(no)) >= 10
    few = graphs.select(np.concatenate((yes[:3], no[:10])))
    [target] = evaluate(predictor, few, resamples=20).targets
    assert target.all.values["accuracy"] == target.all.values["balanced_accuracy"] == 1
    assert target.all.too_few == {"yes": 3}
    for name in ("balanced_accuracy", "macro_f1", "auroc", "average_precision", "f1", "mcc"):
        assert target.all.intervals[name] is None
    exact = binomtest(13, 13).proportion_ci(0.95)
    assert target.all.intervals["accuracy"] == pytest.approx([exact.low, 1.0])
    enough = graphs.select(np.concatenate((yes[:10], no[:10])))
    [target] = evaluate(predictor, enough, resamples=20).targets
    assert (target.all.too_few, target.all.intervals["mcc"]) == ({}, None)
    wrong = np.flatnonzero((answers.numbers != graphs.y.numpy()) & (graphs.y.numpy() >= 0))
    mixed = graphs.select(np.concatenate((yes[:10], no[:10], wrong[:2])))
    [target] = evaluate(predictor, mixed, resamples=20).targets
    low, high = target.all.intervals["mcc"]
    assert low < target.all.values["mcc"] < high
    lines = table.read_text().splitlines()
    picked = [lines[0], *(lines[1 + row] for row in (*yes[:3], *no[:10]))]
    (tmp_path / "few.csv").write_text("\n".join(picked) + "\n")
    code, out, err = lookhops("evaluate", models / "soluble", tmp_path / "few.csv")
    assert code == 0, err
    words = " ".join(out.replace("│", " ").split())
    assert "fewer than 10 graphs: of 'yes' (3)" in words
    assert f"balanced accuracy 100.0 % {NONE}" in words


def test_one_graph_has_no_intervals_of_its_metrics(models, table):
    graphs = load(table, target="logS,soluble")[1:2]
    found = evaluate(Predictor(models / "logS,soluble", "cpu"), graphs, resamples=20)
    for target in found.targets:
        assert target.all.graphs == 1
        known = {name for name, ends in target.all.intervals.items() if ends}
        assert all(name.startswith(("accuracy", "coverage")) for name in known)  # these count
        assert "coverage" in known


def test_graphs_are_known_by_what_they_are(models, table):
    predictor = Predictor(models / "logS", "cpu")
    graphs = load(table, target="logS")
    found = evaluate(predictor, graphs, resamples=2)
    counts = {part: found.count(part) for part in ("train", "val", "")}
    assert counts["train"] >= 80
    assert counts["val"] >= 5
    assert counts[""] >= 50
    trained = np.flatnonzero(found.part == "train")[:5]
    smiles = [graphs.columns["smiles"][i] for i in trained]
    from rdkit import Chem

    other = [Chem.MolToSmiles(Chem.MolFromSmiles(s), doRandom=True) for s in smiles]
    again = from_smiles(other, y=found.targets[0].truth[trained], ids=["x"] * 5)
    assert predictor.reference.part_of(predictor.read(again)).tolist() == ["train"] * 5


def test_numbers_and_several_targets(models, table):
    for name in ("logS", "logS,soluble"):
        graphs = load(table, target=name)
        found = evaluate(Predictor(models / name, "cpu"), graphs, resamples=10)
        by_name = {target.name: target for target in found.targets}
        assert set(by_name) == set(name.split(","))
        own = by_name["logS"]
        expected = mean_absolute_error(own.truth, own.answers.values)
        assert own.all.values["mae"] == pytest.approx(expected)
        low, high = own.answers.intervals.T
        assert own.all.values["coverage"] == ((low <= own.truth) & (own.truth <= high)).mean()
        page = evaluation_report(found, "model")
        assert len(page.sections[0].blocks) > 3


@pytest.mark.parametrize("name", ["soluble", "logS", "logS,soluble"])
def test_the_naive_answer_is_that_of_training(models, table, name):
    predictor = Predictor(models / name, "cpu")
    config = predictor.config
    graphs = load(table, target=name)[:100]
    test = SplitPlan.of(graphs, read(Protocol, config["protocol"])).splits[11].test
    found = evaluate(predictor, graphs.select(test), resamples=20)
    trained = config["metrics"]["seeds"]["11"]
    for head, target in zip(predictor.task.heads, found.targets, strict=True):
        own = {"logS": ("mean_mae", "mean_rmse"), "soluble": ("majority",)}[target.name]
        for metric in own:
            assert target.all.values[metric] == pytest.approx(trained[head.key(metric)])
            value = target.all.values[metric]
            low, high = target.all.intervals[metric] or (value, value)
            assert low <= value <= high


def test_the_naive_answer_of_several_seeds_and_of_the_final_model(table, tmp_path):
    graphs = load(table, target="logS")[:60]
    protocol = Protocol((11, 22), max_epochs=1, batch_size=32)
    y = graphs.y.double()
    for final in (False, True):
        folder = tmp_path / str(final)
        train_into(folder, graphs, NETWORK, protocol, device="cpu", final=final)
        parts = [y[split.train].mean() for split in SplitPlan.of(graphs, protocol).splits.values()]
        mean = float(y.mean() if final else sum(parts) / 2)
        [target] = evaluate(Predictor(folder, "cpu"), graphs, resamples=2).targets
        assert target.all.values["mean_mae"] == pytest.approx(float((y - mean).abs().mean()))


def test_a_folder_that_does_not_say_the_commonest_class(lookhops, models, table, tmp_path):
    shutil.copytree(models / "soluble", tmp_path / "old")
    config = json.loads((tmp_path / "old" / "config.json").read_text())
    assert config.pop("commonest") == {"class": "no"}
    del config["config_sha256"]  # as earlier folders have it
    (tmp_path / "old" / "config.json").write_text(json.dumps(config))
    code, out, err = lookhops("evaluate", tmp_path / "old", table)
    assert code == 0, err
    assert f"commonest class {NONE} {NONE} {NONE} {NONE}" in " ".join(out.split())


def test_the_command(lookhops, models, table, tmp_path):
    page = tmp_path / "page.html"
    code, out, err = lookhops("evaluate", models / "soluble", table, "-o", page)
    assert code == 0, err
    assert "MCC" in out
    assert "in the training part" in " ".join(out.split())
    assert "ROC curve" in page.read_text()
    code, out, err = lookhops("evaluate", models / "logS", table, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["graphs"] == 150
    assert found["in_training_part"] >= 80
    assert set(found["targets"]["logS"]["all"]["values"]) >= {"mae", "coverage", "interval_width"}


def test_graphs_without_the_truth(lookhops, models, tmp_path):
    (tmp_path / "new.csv").write_text("smiles,who\nCCO,ethanol\n")
    code, _, err = lookhops("evaluate", models / "logS", tmp_path / "new.csv")
    assert code == 2
    assert "no column is called 'logS'" in err
    (tmp_path / "new.smi").write_text("CCO ethanol\n")
    code, _, err = lookhops("evaluate", models / "logS", tmp_path / "new.smi")
    assert code == 2
    (tmp_path / "odd.csv").write_text("smiles,soluble\nCCO,yes\nCC,perhaps\n")
    code, _, err = lookhops("evaluate", models / "soluble", tmp_path / "odd.csv")
    assert code == 2
    assert "'perhaps' of 'soluble' is not a class" in err

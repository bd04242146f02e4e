"""Every classical model: one interface, answers by the split alone."""

from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch

from lookhops import Graphs, LookHopsError
from lookhops.core.files import pack_tensors, unpack_tensors
from lookhops.core.options import CLASSICAL
from lookhops.encoding import Encoding
from lookhops.graphs.features import Features
from lookhops.graphs.targets import pack_targets, read_target
from lookhops.learners import LEARNERS, wl
from lookhops.learners.scorers import Question
from lookhops.learners.trees import Boosting, Forest
from lookhops.sources.loading import load
from lookhops.sources.splits import Split, split
from lookhops.tasks import task_of


@pytest.fixture(scope="module")
def molecules() -> Graphs:
    return load("solubility")[:120]


MODELS = {name: LEARNERS[name]() for name in CLASSICAL}


def fit(name, graphs, parts, seed=0):
    return MODELS[name].fit(graphs, task_of(graphs), parts, seed)


def outputs(name, graphs, parts, seed=0, part="test"):
    return fit(name, graphs, parts, seed).outputs(graphs.select(getattr(parts, part)))


def test_every_name_is_a_learner():
    assert {*LEARNERS} == {"network", "blend", *CLASSICAL}


def share_right(graphs: Graphs, part: torch.Tensor, log_p: torch.Tensor) -> float:
    return (log_p.argmax(1) == graphs.y[part]).float().mean().item()


@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_log_probabilities_and_survive_saving(name, molecules):
    parts, task = split(molecules, 3), task_of(molecules)
    fitted = fit(name, molecules, parts, 5)
    new = molecules.select(parts.test)
    log_p = fitted.outputs(new)
    assert log_p.shape == (len(parts.test), molecules.num_classes)
    assert log_p.dtype == torch.float32
    assert torch.allclose(log_p.exp().sum(1), torch.ones(len(log_p)), atol=1e-5)
    assert torch.equal(outputs(name, molecules, parts, 5), log_p)
    content = pack_tensors(fitted.tensors(), {})
    tensors, _ = unpack_tensors(content, Path("model.safetensors"))
    encoding = Encoding.fit(molecules)
    again = type(fitted).from_tensors(MODELS[name], task, encoding, tensors)
    assert torch.equal(again.outputs(encoding.read(new)), log_p)
    one = torch.cat([again.outputs(encoding.read(new[i : i + 1])) for i in range(3)])
    torch.testing.assert_close(one, log_p[:3], rtol=0, atol=1e-5)  # whatever stands beside it
    tensors.popitem()
    with pytest.raises(LookHopsError):
        type(fitted).from_tensors(MODELS[name], task, encoding, tensors)


@pytest.mark.parametrize("name", MODELS)
def test_classes_of_the_test_part_are_never_looked_at(name, molecules):
    parts = split(molecules, 3)
    y = molecules.y.clone()
    y[parts.test] = 1 - y[parts.test]
    turned = outputs(name, replace(molecules, y=y), parts)
    assert torch.equal(turned, outputs(name, molecules, parts))


@pytest.mark.parametrize("name", MODELS)
def test_numbers_and_several_targets_with_blanks(name, molecules):
    """Each target is answered as it is alone, by the graphs that have it."""
    parts = split(molecules, 3)
    value = molecules.columns["value"].copy()
    value[::4] = np.nan
    columns = [
        read_target("value", value, "numbers"),
        read_target("low", [None if i % 5 == 0 else y == 0 for i, y in enumerate(molecules.y)]),
    ]
    both = outputs(name, replace(molecules, **pack_targets(columns)), parts)
    for column, place in zip(columns, (slice(2, 3), slice(0, 2)), strict=True):
        alone = outputs(name, replace(molecules, **pack_targets([column])), parts)
        torch.testing.assert_close(both[:, place], alone.double(), rtol=0, atol=1e-5)
    target = task_of(graphs := replace(molecules, **pack_targets(columns[:1])))
    error = target.evaluate(both[:, 2:], graphs.y[parts.test])["mae"]
    naive = target.naive(graphs.y[parts.train], graphs.y[parts.test])["mean_mae"]
    assert error == pytest.approx(naive) if name == "mean" else error < naive


def test_a_target_with_one_class_in_training_is_answered_by_it(molecules):
    parts = split(molecules, 3)
    once = [None] * len(molecules)
    for i in parts.train[:20].tolist():
        once[i] = "no"
    once[int(parts.test[0])] = "yes"
    columns = [read_target("rare", once), read_target("size", molecules.nodes_per_graph, "numbers")]
    graphs = replace(molecules, **pack_targets(columns))
    for name in ("wl", "baseline", "morgan-ridge"):
        assert (outputs(name, graphs, parts)[:, :2].argmax(1) == 0).all()


@pytest.mark.parametrize("name", ["wl", "wl-oa"])
def test_what_one_hop_decides_is_found(name):
    graphs = load("hops-1", size=600)
    parts = split(graphs, 1)
    assert share_right(graphs, parts.test, outputs(name, graphs, parts)) > 0.9


def test_the_baseline_cannot_see_hops_but_sees_sizes():
    graphs = load("hops-1", size=300)
    parts = split(graphs, 1)
    assert share_right(graphs, parts.test, outputs("baseline", graphs, parts)) < 0.75
    sizes = [3 + i % 20 for i in range(200)]
    paths = Graphs.from_networkx([nx.path_graph(n) for n in sizes], y=[n > 12 for n in sizes])
    parts = split(paths, 1)
    assert share_right(paths, parts.test, outputs("baseline", paths, parts)) == 1


@pytest.mark.parametrize("name", MODELS)
def test_more_classes_than_the_training_part_has(name):
    smiles = ["CCO", "CCCO", "CCN", "CCCN", "CCF", "CCCF", "CC", "CCC"]
    from lookhops.sources.molecules import from_smiles

    y = ["a", "a", "b", "b", "c", "c", "d", "d"]
    graphs = from_smiles(smiles, y)
    parts = Split(*(torch.tensor(part) for part in ([0, 1, 2, 3, 4, 5], [1, 3, 6], [0, 2, 5, 7])))
    log_p = outputs(name, graphs, parts)
    assert log_p.shape == (4, 4)
    assert log_p.isfinite().all()
    assert (log_p.argmax(1) != 3).all()


def three_classes():
    """Rows of three classes, some of them blank, and a question about them."""
    draw = np.random.default_rng(0)
    y = np.arange(240) % 3
    rows = draw.normal(size=(240, 6)) + y[:, None]
    rows[draw.random(rows.shape) < 0.05] = np.nan
    return rows, Question(y, 4, np.arange(180), np.arange(180, 240))


@pytest.mark.parametrize("classes", [0, 2, 4])
def test_trees_answer_as_those_of_scikit_learn(classes):
    from sklearn import ensemble

    rows, question = three_classes()
    y = question.y * 1.5 if classes == 0 else np.minimum(question.y, classes - 1)
    question = replace(question, y=y, classes=classes)
    kind = "Classifier" if classes else "Regressor"
    whole = rows.round(1).astype(np.float32)  # forests read single precision
    for found, make, x in (
        (Boosting.fit(question, rows, 3), f"HistGradientBoosting{kind}", rows),
        (Forest.fit(question, whole, 3, 20), f"RandomForest{kind}", whole),
    ):
        more = {"n_estimators": 20} if "Forest" in make else {}
        model = getattr(ensemble, make)(random_state=3, **more)
        model.fit(x[question.train], y[question.train])
        answers = found.answers(x[question.val], classes)
        if classes:
            expected = model.predict_proba(x[question.val])
            assert (answers[:, [c for c in range(classes) if c not in model.classes_]] == 0).all()
            answers = answers[:, model.classes_]
        else:
            expected = model.predict(x[question.val])[:, None]
        np.testing.assert_allclose(answers, expected, rtol=1e-9, atol=1e-12)


DESCRIPTORS = [name for name in CLASSICAL if name.startswith("descriptors-")]


@pytest.fixture(scope="module")
def measured() -> tuple[Graphs, torch.Tensor]:
    """Paths with two measured columns, one of them blank here and there, and what they decide."""
    draw = torch.Generator().manual_seed(0)
    count = 200
    numbers = torch.rand(count, 2, generator=draw)
    place = torch.randint(3, (count, 1), generator=draw)
    decides = numbers[:, 0] + 0.3 * place[:, 0] > 0.8
    numbers[::7, 1] = torch.nan
    whole = Features(numbers, ("dose", "age"), place, ("place",), (("a", "b", "c"),))
    paths = [nx.path_graph(2 + i % 5) for i in range(count)]
    graphs = Graphs.from_networkx(paths, y=decides.tolist())
    return replace(graphs, whole=whole), decides


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_columns_of_whole_graphs_are_read(name, measured):
    graphs, _ = measured
    parts = split(graphs, 2)
    assert share_right(graphs, parts.test, outputs(name, graphs, parts)) >= 0.9
    without = replace(graphs, whole=Features())
    assert share_right(graphs, parts.test, outputs(name, without, parts)) < 0.75
    assert share_right(graphs, parts.test, outputs("baseline", graphs, parts)) < 0.75
    fitted = fit(name, graphs, parts)
    with pytest.raises(LookHopsError, match="dose"):
        fitted.encoding.read(without)


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_a_column_that_is_blank_in_training_decides_nothing(name, measured):
    graphs, _ = measured
    parts = split(graphs, 2)
    blank, numbers = graphs.whole.numbers.clone(), graphs.whole.numbers.clone()
    blank[:, 1], numbers[:, 1] = torch.nan, 0.5
    numbers[parts.train, 1] = torch.nan
    one, other = (
        outputs(name, replace(graphs, whole=graphs.whole.with_tensors({"numbers": own})), parts)
        for own in (blank, numbers)
    )
    torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


def test_descriptors_stand_in_for_totals():
    rows = {}
    for column in ("temperature", "MolLogP"):
        paths = Graphs.from_networkx([nx.path_graph(n) for n in (2, 3, 4)])
        graphs = replace(paths, whole=Features(torch.rand(3, 1), (column,)))
        rows[column] = MODELS["descriptors-ridge"].rows(graphs, Encoding.fit(graphs))
    assert rows["MolLogP"].shape == (3, 1)
    assert rows["temperature"].shape[1] > 1


def test_trees_that_scikit_learn_keeps_otherwise_are_refused(monkeypatch):
    rows, question = three_classes()
    monkeypatch.setattr(Boosting, "answers", lambda self, rows, classes: np.eye(len(rows)))
    with pytest.raises(LookHopsError, match="scikit-learn"):
        Boosting.fit(question, rows, 0)


@pytest.mark.parametrize("classes", [2, 3])
def test_machines_answer_as_those_of_scikit_learn(classes):
    from sklearn.svm import SVC

    rows, question = three_classes()
    rows = np.nan_to_num(rows)
    y = np.minimum(question.y, classes - 1)
    question = replace(question, y=y, classes=classes)
    kernel = rows @ rows[question.train].T
    model = SVC(C=0.3, kernel="precomputed").fit(kernel[question.train], y[question.train])
    machine = wl.Machine.of(model, question, 0, len(question.train))
    scores = model.decision_function(kernel[question.val])
    scores = np.stack((-scores, scores), axis=1) if classes == 2 else scores
    expected = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    answers = machine.answers(kernel[question.val], classes)
    np.testing.assert_allclose(answers, expected, rtol=1e-9, atol=1e-9)


def test_splits_share_a_kernel_and_kinds_do_not(molecules, monkeypatch):
    computed, gram_by_hop = [], wl.gram_by_hop

    def counting(graphs, hops, kind):
        computed.append((len(graphs), kind))
        return gram_by_hop(graphs, hops, kind)

    monkeypatch.setattr(wl, "gram_by_hop", counting)
    graphs = molecules[:60]  # of its own, so that nothing is known of it
    first, second = split(graphs, 4), split(graphs, 5)
    alone = [fit("wl", molecules[:60], part) for part in (first, second)]
    computed.clear()
    shared = [fit("wl", graphs, part) for part in (first, second)]
    assert computed == [(60, "subtree")]
    for one, other in zip(alone, shared, strict=True):
        assert torch.equal(one.outputs(graphs), other.outputs(graphs))
        assert one.chosen == other.chosen
        assert set(one.chosen) == {"hops", "C"}
    other = fit("wl-oa", graphs, first)
    assert computed[1:] == [(60, "optimal-assignment")]
    assert not torch.equal(other.outputs(graphs), shared[0].outputs(graphs))


def test_more_graphs_than_a_kernel_can_hold(molecules, monkeypatch):
    monkeypatch.setattr(wl, "MOST_GRAPHS", 100)
    task = task_of(molecules)
    for name in ("wl", "wl-oa"):
        with pytest.raises(LookHopsError, match=r"100.*120.*fingerprint"):
            MODELS[name].check(molecules, task)
        MODELS[name].check(molecules[:100], task)


def test_what_cannot_be_learnt_is_refused(tasks):
    parts = split(tasks, 1)
    for name in MODELS:
        with pytest.raises(LookHopsError, match="--target"):
            fit(name, replace(tasks, y=None), parts)
    with pytest.raises(LookHopsError, match="SMILES"):
        fit("morgan-forest", tasks, parts)
    broken = replace(tasks, columns={"smiles": np.array(["C("] * len(tasks))})
    with pytest.raises(LookHopsError, match=r"Molecule 1: 'C\('"):
        fit("morgan-forest", broken, parts)

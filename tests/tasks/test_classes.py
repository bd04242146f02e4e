"""Classification: loss, metrics, calibration and labels."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    matthews_corrcoef,
    roc_auc_score,
)
from torch.nn.functional import cross_entropy

from lookhops.core.errors import LookHopsError
from lookhops.tasks import TASKS, Classification, task_from_dict, task_of
from lookhops.tasks.answers import Ensemble
from lookhops.tasks.metrics import calibration_error


def classification(classes: int = 3, class_weights: bool = False) -> Classification:
    return Classification(tuple(f"class {c}" for c in range(classes)), class_weights)


def random_outputs(seed: int, *shape: int, ties: bool = False):
    generator = torch.Generator().manual_seed(seed)
    output = torch.randn(*shape, generator=generator)
    target = torch.randint(shape[-1], shape[:-1], generator=generator)
    return output.round() if ties else output, target


# -------------------------------------------------------------------- metrics


@settings(derandomize=True, max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 5), st.booleans())
def test_same_as_scikit_learn(seed, classes, ties):
    output, target = random_outputs(seed, 60, classes, ties=ties)
    found = classification(classes).evaluate(output, target)
    y, predicted = target.numpy(), output.argmax(1).numpy()
    assert found["accuracy"] == pytest.approx(accuracy_score(y, predicted))
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, predicted))
    assert found["macro_f1"] == pytest.approx(f1_score(y, predicted, average="macro"))
    assert found["loss"] == pytest.approx(float(cross_entropy(output, target)))
    if len(np.unique(y)) == classes:
        p = output.double().softmax(1).numpy()
        score = p[:, 1] if classes == 2 else p
        assert found["auroc"] == pytest.approx(roc_auc_score(y, score, multi_class="ovr"))
        if classes == 2:
            assert found["average_precision"] == average_precision_score(y, score)
    if classes == 2:
        assert found["f1"] == pytest.approx(f1_score(y, predicted))
        assert found["mcc"] == pytest.approx(matthews_corrcoef(y, predicted))


@pytest.mark.parametrize("classes", [2, 3])
def test_every_metric_is_evaluated_and_named_once(classes):
    task = classification(classes)
    output, target = random_outputs(0, 20, classes)
    names = [metric.name for metric in task.metrics]
    assert task.main in task.metrics
    assert len(set(names)) == len(names)
    naive = set(task.naive(target, target))
    found = {*task.evaluate(output, target, {"temperature": 2.0}), *naive}
    assert found == {*names, "temperature"}
    plain = {metric.name for metric in task.metrics if not metric.about_calibration}
    assert {*task.evaluate(output, target), *naive} == plain


def test_temperature_undoes_overconfidence():
    task = classification()
    p = torch.from_numpy(np.random.default_rng(0).dirichlet(np.ones(3), size=5000))
    target = p.multinomial(1, generator=torch.Generator().manual_seed(0)).flatten()
    sharp = 3 * p.log()
    calibration = task.calibrate(sharp, target)
    assert calibration["temperature"] == pytest.approx(3, rel=0.1)
    before, after = (
        calibration_error(task.answers(sharp, each).numpy(), target.numpy())
        for each in ({}, calibration)
    )
    assert after < before / 3
    found = task.evaluate(sharp, target, calibration)
    assert (found["ece_before"], found["ece_after"]) == (before, after)


@settings(derandomize=True, max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 9), st.floats(0.1, 10))
def test_calibration_by_few_graphs_makes_their_error_no_worse(seed, graphs, scale):
    output, target = random_outputs(seed, graphs, 3)
    task = classification()
    calibration = task.calibrate(scale * output, target)
    found = task.evaluate(scale * output, target, calibration)
    assert found["ece_after"] <= found["ece_before"]


def test_conformal_sets_hold_the_class_as_often_as_they_say():
    output, target = random_outputs(1, 4000, 4)
    output[torch.arange(4000), target] += 1
    task = classification(4)
    calibration = task.calibrate(output[:2000], target[:2000])
    new, y = output[2000:], target[2000:]
    found = task.evaluate(new, y, calibration)
    assert found["coverage"] == pytest.approx(0.9, abs=0.02)
    assert 1 < found["set_size"] < 4
    scores = task.conformal_scores(output[:2000], target[:2000], calibration)
    answers = task.answers(new, calibration).numpy()
    [sets] = task.conformal_regions(answers[None], [scores], 0.9, [None])
    own = task.answer(Ensemble("", answers, answers[None], [calibration], sets))
    measured = task.measure(own, y)
    assert measured["coverage"] == found["coverage"]
    assert measured["set_size"] == found["set_size"]
    held = task.overview([new], [y], [calibration])["in_sets"]
    shares = np.array(held) / np.bincount(y)
    assert shares == pytest.approx([measured[one.name] for one in task.class_metrics])
    assert np.allclose(shares, 0.9, atol=0.04)
    few = task.calibrate(output[:5], target[:5])
    assert few["conformal_quantile"] == 1
    found = task.evaluate(output, target, few)
    assert (found["coverage"], found["set_size"]) == (1, 4)


def test_the_overview_counts_every_answer_once():
    task = classification()
    pairs = [random_outputs(seed, 10, 3) for seed in range(4)]
    outputs, targets = zip(*pairs, strict=True)
    found = np.array(task.overview(outputs, targets)["confusion"])
    assert found.sum() == 40
    assert found.sum(1).tolist() == torch.cat(targets).bincount(minlength=3).tolist()
    assert not np.any(task.overview([], [])["confusion"])


# -------------------------------------------------------------------- the loss


@pytest.mark.parametrize("class_weights", [False, True])
def test_losses_are_cross_entropy_and_padding_does_not_count(class_weights):
    task = classification(3, class_weights)
    output, target = random_outputs(1, 4, 10, 3)
    real = torch.rand(4, 10, generator=torch.Generator().manual_seed(2)) < 0.7
    fitted = torch.stack([task.fit(row) for row in target]) if class_weights else None
    losses, weight = task.losses(output, target, fitted, real)
    scores, count = task.scores(output, target, real=real)
    for i in range(4):
        own = None if fitted is None else fitted[i]
        o, y = output[i][real[i]], target[i][real[i]]
        torch.testing.assert_close(losses[i], cross_entropy(o, y, own))
        torch.testing.assert_close(task.losses(o, y, own)[0], losses[i])
        assert float(weight[i]) == pytest.approx(float(len(y) if own is None else own[y].sum()))
        assert (float(scores[i]), int(count[i])) == (
            pytest.approx(accuracy_score(y, o.argmax(1))),
            len(y),
        )


def test_a_batch_of_padding_alone_weighs_nothing():
    output, target = random_outputs(1, 2, 5, 3)
    nothing = torch.zeros(2, 5, dtype=torch.bool)
    for found in (
        classification().losses(output, target, real=nothing),
        classification().scores(output, target, real=nothing),
    ):
        assert torch.equal(torch.stack(found).double(), torch.zeros(2, 2).double())


def test_class_weights_are_those_of_scikit_learn():
    from sklearn.utils.class_weight import compute_class_weight

    y = torch.tensor([0, 0, 0, 0, 1, 2, 2])
    expected = compute_class_weight("balanced", classes=y.unique().numpy(), y=y.numpy())
    assert classification(3, True).fit(y).tolist() == pytest.approx(expected.tolist())
    assert classification(4, True).fit(y)[3] == 0
    assert classification(3).fit(y) is None


def test_a_blank_class_counts_nowhere():
    task = classification(3, class_weights=True)
    output, target = random_outputs(3, 30, 3)
    known = torch.arange(30) % 3 > 0
    target = target.double()
    blank = torch.where(known, target, torch.nan)
    assert torch.equal(task.fit(blank), task.fit(target[known]))
    fitted = task.fit(blank)
    for found, want in (
        (task.losses(output, blank, fitted), task.losses(output[known], target[known], fitted)),
        (task.scores(output, blank), task.scores(output[known], target[known])),
    ):
        torch.testing.assert_close(found, want)
    own = output[known], target[known]
    assert task.evaluate(output, blank) == task.evaluate(*own)
    assert task.calibrate(output, blank) == task.calibrate(*own)
    assert task.naive(blank, blank) == task.naive(own[1], own[1])
    assert task.overview([output], [blank]) == task.overview([own[0]], [own[1]])
    assert (task.label(torch.nan), task.label(1.0)) == ("", "class 1")


def test_the_commonest_class_is_that_of_the_training_part():
    task = classification(2)
    train, test = torch.tensor([1, 1, 0]), torch.tensor([0, 0, 0, 1])
    assert task.naive(train, test) == {"majority": 0.25}


# -------------------------------------------------------------------- what the graphs ask


def test_the_graphs_say_what_is_asked(tasks):
    task = task_of(tasks, class_weights=True)
    assert task == Classification(tasks.class_names, True)
    assert task.out_channels == tasks.num_classes
    assert torch.equal(task.targets(tasks), tasks.y.double())
    assert task.columns == ("class", *(f"p({name})" for name in tasks.class_names))
    assert task.label(1) == tasks.class_names[1]


def test_no_classes_and_one_class_are_refused(tasks):
    with pytest.raises(LookHopsError, match="--target"):
        task_of(replace(tasks, y=None))
    with pytest.raises(LookHopsError, match=tasks.name):
        task_of(tasks[(tasks.y == 0).nonzero().flatten()])


def test_a_class_that_training_lacks_is_named(tasks):
    task, zeros = task_of(tasks), (tasks.y == 0).nonzero().flatten()
    assert task.lacking(tasks.y, zeros) == f"class {tasks.class_names[1]!r} has no graph"
    assert task.lacking(tasks.y[zeros], torch.arange(len(zeros))) is None
    assert task.lacking(tasks.y, torch.arange(len(tasks))) is None


def test_json_there_and_back():
    task = Classification(("a", "b"), class_weights=True)
    assert set(TASKS) == {"classification", "regression", "counts", "several"}
    assert task_from_dict(json.loads(json.dumps(task.to_dict()))) == task


@pytest.mark.parametrize("values", [{}, {"kind": "poetry"}, {"kind": "classification", "x": 1}])
def test_a_task_that_is_not_known(values):
    with pytest.raises(LookHopsError, match="task"):
        task_from_dict(values)

"""Several targets: each is its own task on the graphs that have it."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from lookhops.graphs.targets import pack_targets, read_target
from lookhops.tasks import Classification, Regression, SeveralTargets, task_from_dict, task_of

NAN = float("nan")
THREE = Classification(("a", "b", "c"))


@pytest.fixture(scope="module")
def mixed(tasks):
    """Graphs with two assays, a number, and one class of three, all with blanks."""
    generator = np.random.default_rng(0)
    n = len(tasks)

    def with_blanks(values):
        return [None if generator.random() < 0.4 else value for value in values]

    columns = [
        read_target("weight", with_blanks(tasks.nodes_per_graph.tolist()), "numbers"),
        read_target("toxic", with_blanks(tasks.y.tolist())),
        read_target("colour", with_blanks(generator.choice(["r", "g", "b"], n))),
        read_target("active", with_blanks(1 - tasks.y.numpy())),
    ]
    return replace(tasks, **pack_targets(columns))


@pytest.mark.parametrize("class_weights", [False, True])
def test_the_loss_is_the_mean_over_all_known_labels(mixed, class_weights):
    task = task_of(mixed, class_weights, "huber")
    assert task.names == ("toxic", "active", "colour", "weight")
    assert task.out_channels == 2 + 2 + 3 + 1
    target = task.targets(mixed)
    members = torch.stack((target, target.flip(0)))
    fitted = torch.stack([task.fit(own) for own in members])
    generator = torch.Generator().manual_seed(1)
    output = torch.randn(2, len(mixed), 8, generator=generator).double().requires_grad_()
    real = torch.rand(2, len(mixed), generator=generator) < 0.8
    losses, weight = task.losses(output, members, fitted, real)
    losses.sum().backward()
    assert output.grad.isfinite().all()
    assert not output.grad[~real].any()
    for i in range(2):
        total, of = 0.0, 0.0
        for head in task.heads:
            y = members[i, :, head.column]
            known = ~y.isnan() & real[i]
            own = None if head.fitted is None else fitted[i, head.fitted]
            mean, count = head.task.losses(output[i][known][:, head.channels], y[known], own)
            total, of = total + mean * count, of + count
            assert not output.grad[i][~known][:, head.channels].any()
        torch.testing.assert_close(losses[i], total / of)
        torch.testing.assert_close(weight[i], of)


def test_each_head_is_evaluated_on_the_graphs_that_have_it(mixed):
    task, target = task_of(mixed), task_of(mixed).targets(mixed)
    fitted = task.fit(target)
    assert task.num_fitted == 2
    raw = torch.randn(len(mixed), 8, generator=torch.Generator().manual_seed(1))
    output = task.in_units(raw, fitted)
    calibration = task.calibrate(output, target)
    assert "colour: temperature" in calibration
    assert not any(name.startswith("weight: temp") for name in calibration)
    answers, found = task.answers(output, calibration), task.evaluate(output, target, calibration)
    naive, scores = task.naive(target, target), []
    for head in task.heads:
        y = target[:, head.column]
        known = ~y.isnan()
        y = y[known]
        own = head.task.in_units(raw[known][:, head.channels], fitted)
        learnt = head.task.calibrate(own, y)
        torch.testing.assert_close(answers[known][:, head.channels], head.task.answers(own, learnt))
        for name, value in head.task.evaluate(own, y, learnt).items():
            assert found[f"{head.name}: {name}"] == pytest.approx(value)
        assert (
            naive.items()
            >= {
                f"{head.name}: {name}": value for name, value in head.task.naive(y, y).items()
            }.items()
        )
        scores.append(found[f"{head.name}: {'r2' if head.name == 'weight' else 'auroc'}"])
    assert found["mean_score"] == pytest.approx(np.mean(scores))
    shown = {metric.name for metric in task.metrics}
    assert shown <= {*found, *naive, "loss"}
    assert task.overview([output], [target])["targets"].keys() == set(task.names)
    assert len(task.labels(target[0].tolist())) == 4
    assert len(task.columns) == 4 + 8


def test_a_target_without_labels_has_no_score(mixed):
    task, target = task_of(mixed), task_of(mixed).targets(mixed).clone()
    target[:, 0] = NAN
    found = task.evaluate(torch.randn(len(mixed), 8).double(), target)
    assert found["toxic: auroc"] is None
    assert found["mean_score"] is not None
    assert task.lacking(target, torch.arange(10)) == "'toxic' has no value"
    assert task.lacking(task.targets(mixed), torch.arange(len(mixed))) is None
    target[3] = NAN
    assert not task.known(target)[3]


def test_classes_alone_take_nothing_from_training_but_weights():
    task = SeveralTargets(("x", "y"), (THREE, THREE))
    target = torch.tensor([[0.0, NAN], [2.0, 1.0]]).double()
    assert (task.fit(target), task.num_fitted) == (None, 0)
    weighed = SeveralTargets(("x", "y"), (replace(THREE, class_weights=True),) * 2)
    assert weighed.fit(target).tolist() == pytest.approx([2 / 3, 0, 2 / 3, 0, 1 / 3, 0])
    assert weighed.num_fitted == 0


def test_json_there_and_back(mixed):
    task = task_of(mixed, class_weights=True, loss="mae")
    assert task_from_dict(json.loads(json.dumps(task.to_dict()))) == task


def test_the_average_answers_the_mean_of_the_answers(mixed):
    task = task_of(mixed)
    outputs = [torch.randn(5, 8, dtype=torch.float64) for _ in range(3)]
    each = torch.stack([task.answers(output, {}) for output in outputs])
    torch.testing.assert_close(task.answers(task.average(outputs), {}), each.mean(0))


@pytest.mark.parametrize(
    ("tasks", "title"),
    [
        ((THREE, THREE), "mean AUROC"),
        ((Regression("a"), Regression("b")), "mean R²"),
        ((THREE, Regression("b")), "mean of AUROC and R²"),
    ],
)
def test_the_mean_score_is_called_by_what_it_is_the_mean_of(tasks, title):
    task = SeveralTargets(("a", "b"), tasks)
    assert (task.main.name, task.main.title) == ("mean_score", title)
    assert task.metrics[0] == task.main
    assert task_from_dict(task.to_dict()).main == task.main

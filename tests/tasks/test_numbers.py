"""Regression: loss, metrics and units."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error
from torch.nn.functional import huber_loss, l1_loss, mse_loss

from lookhops.core.errors import LookHopsError
from lookhops.core.options import LOSSES
from lookhops.tasks import Classification, Regression, SeveralTargets, task_from_dict

NAN = float("nan")
PLAIN = {"mse": mse_loss, "mae": l1_loss, "huber": huber_loss}


def random_numbers(seed: int, *shape: int):
    generator = torch.Generator().manual_seed(seed)
    output = torch.randn(*shape, 1, generator=generator)
    return output, 1e6 + 5 * torch.randn(*shape, generator=generator).double()


@settings(derandomize=True, max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 40))
def test_same_as_scikit_learn(seed, count):
    output, target = random_numbers(seed, count)
    output = output.double() + 1e6
    found = Regression("logS").evaluate(output, target)
    y, answer = target.numpy(), output[:, 0].numpy()
    assert found["mae"] == pytest.approx(mean_absolute_error(y, answer))
    assert found["rmse"] == pytest.approx(root_mean_squared_error(y, answer))
    assert found["r2"] == pytest.approx(r2_score(y, answer))
    assert found["spearman"] == pytest.approx(spearmanr(y, answer).statistic)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_are_torchs_on_standardised_numbers(loss):
    """In single precision too, however far the numbers are from 0."""
    task = Regression("logS", loss)
    output, target = random_numbers(1, 4, 10)
    blank = torch.rand(4, 10, generator=torch.Generator().manual_seed(2)) < 0.3
    target[blank] = NAN
    real = torch.rand(4, 10, generator=torch.Generator().manual_seed(3)) < 0.8
    fitted = torch.stack([task.fit(row) for row in target])
    output.requires_grad_()
    losses, weight = task.losses(output, target, fitted, real)
    errors, _ = task.scores(output, target, fitted, real)
    losses.sum().backward()
    assert output.grad.isfinite().all()
    assert not output.grad[..., 0][blank | ~real].any()
    for i in range(4):
        known = real[i] & ~blank[i]
        mean, spread = fitted[i]
        own = target[i][~blank[i]]
        assert (mean, spread) == (own.mean(), own.std(correction=0))
        scaled = ((target[i][known] - mean) / spread).float()
        torch.testing.assert_close(losses[i], PLAIN[loss](output[i, :, 0][known], scaled))
        answer = task.in_units(output[i], fitted[i])[known, 0]
        torch.testing.assert_close(errors[i], (answer - target[i][known]).abs().mean())
        assert int(weight[i]) == int(known.sum())


def test_blanks_and_padding_alone_weigh_nothing():
    task, blank = Regression("logS"), torch.full((3,), NAN).double()
    output, fitted = torch.randn(3, 1), task.fit(blank)
    assert fitted.tolist() == [0, 1]
    for found in (task.losses(output, blank, fitted), task.scores(output, blank, fitted)):
        assert [float(value) for value in found] == [0, 0]
    assert set(task.evaluate(output, blank).values()) == {None}
    assert task.label(NAN) == ""


def test_every_metric_is_evaluated_beside_the_means():
    task = Regression("logS")
    output, target = random_numbers(0, 20)
    found = {**task.evaluate(output, target), **task.naive(target[:10], target[10:])}
    plain = [metric.name for metric in task.metrics if not metric.about_calibration]
    assert plain == ["mae", "mean_mae", "rmse", "mean_rmse", "r2", "spearman"]
    assert set(found) == set(plain)
    mean = target[:10].mean()
    assert found["mean_mae"] == pytest.approx(float((target[10:] - mean).abs().mean()))
    draws = task.resampled(output.double() + 1e6, target)
    known = task.evaluate(output.double() + 1e6, target)
    assert draws["mae"].min() < known["mae"] < draws["mae"].max()


def test_what_cannot_be_learnt_and_what_is_not_defined():
    task, same = Regression("logS"), torch.ones(4).double()
    assert task.lacking(same, torch.arange(4)) == "'logS' has not two different numbers"
    tiny = 1e-300 * torch.arange(4, dtype=torch.float64)
    assert "less than 1e-100" in task.lacking(tiny, torch.arange(4))
    assert task.lacking(torch.arange(4.0), torch.arange(3)) is None
    found = task.evaluate(torch.zeros(4, 1), same)
    assert (found["mae"], found["r2"], found["spearman"]) == (1, None, None)
    with pytest.raises(LookHopsError, match="'l7'"):
        Regression("logS", "l7")


def test_json_there_and_back():
    task = Regression("logS", "huber")
    assert task_from_dict(json.loads(json.dumps(task.to_dict()))) == task


def test_conformal_intervals_hold_the_number_as_often_as_they_say():
    task = Regression("logS")
    output, target = random_numbers(0, 4000)
    target[::7] = NAN
    calibration = task.calibrate(output[:2000].double(), target[:2000])
    found = task.evaluate(output[2000:].double(), target[2000:], calibration)
    assert found["coverage"] == pytest.approx(0.9, abs=0.02)
    assert found["interval_width"] == 2 * calibration["conformal_quantile"]
    assert task.calibrate(output[:5].double(), target[:5]) == {}
    found = task.evaluate(output.double(), target, {})
    assert found["coverage"] is None


def test_members_that_disagree_have_wider_intervals():
    task, generator = Regression("logS"), np.random.default_rng(0)
    doubt = generator.lognormal(0, 0.8, 4000)
    y = torch.from_numpy(generator.normal(size=4000))
    members = [y + torch.from_numpy(doubt * generator.normal(size=4000)) for _ in range(4)]
    outputs = [one[:, None] for one in members]
    mean, expected = task.average(outputs), task.deviation(outputs)
    val, test = slice(0, 2000), slice(2000, None)
    calibration = task.calibrate(mean[val], y[val], deviation=expected[val])
    found = task.evaluate(mean[test], y[test], calibration, expected[test])
    assert calibration["deviation_weight"] > 0
    assert found["coverage"] == pytest.approx(0.9, abs=0.03)
    known = [task.distances(mean[val], y[val], expected[val])]
    ends = task.regions(mean[test].numpy()[None], known, 0.9, expected[test].numpy().T)
    widths = ends[:, 1] - ends[:, 0]
    assert widths.mean() == pytest.approx(found["interval_width"])
    assert widths.max() > 3 * widths.min()
    assert task.deviation(outputs[:1]) is None


def test_variances_of_numbers_stand_beside_classes():
    task = SeveralTargets(("a", "n"), (Classification(("x", "y")), Regression("n")))
    output, variance = torch.zeros(5, 3).double(), torch.arange(15.0).view(5, 3).double()
    found = task.deviation([output], variance)
    assert torch.equal(found[:, 1], variance[:, 2].sqrt())
    assert found[:, 0].isnan().all()

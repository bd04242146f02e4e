"""Counts: loss, metrics, intervals, and the way of a table through every command."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import d2_tweedie_score, mean_absolute_error, mean_poisson_deviance
from torch.nn.functional import poisson_nll_loss

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Target
from lookhops.graphs.targets import read_target
from lookhops.models import Predictor
from lookhops.sources.loading import load
from lookhops.tasks import Counts, task_from_dict
from lookhops.tasks.counts import counts_within
from molecule_sets import written

NAN = float("nan")
SMALL = ("--hidden", 8, "--layers", 2, "--fingerprint", 1, "--device", "cpu", "--split", "random")
TABLE = "smiles,oxygens,size,even\n" + "".join(
    f"{'C' * (i % 20 + 1)}{'O' * (i % 4)},{'' if i % 9 == 8 else i % 4},{i % 20 + i % 4 + 0.5},"
    f"{'' if i % 4 == 3 else i % 2}\n"
    for i in range(80)
)


@pytest.fixture
def table(tmp_path):
    return written(tmp_path, "set.csv", TABLE)


def random_counts(seed: int, *shape: int):
    generator = torch.Generator().manual_seed(seed)
    log_rate = torch.randn(*shape, 1, generator=generator).double()
    return log_rate, torch.poisson(3 * torch.rand(*shape, generator=generator)).double()


@settings(derandomize=True, max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 40))
def test_same_as_scikit_learn(seed, count):
    output, target = random_counts(seed, count)
    target[0], target[1] = 0, 2  # not all the same
    found = Counts("rings").evaluate(output, target)
    y, rate = target.numpy(), output[:, 0].exp().numpy()
    assert found["deviance"] == pytest.approx(mean_poisson_deviance(y, rate))
    assert found["d2"] == pytest.approx(d2_tweedie_score(y, rate, power=1))
    assert found["mae"] == pytest.approx(mean_absolute_error(y, rate))


def test_the_loss_is_torchs_in_units_of_the_mean():
    """Of each member of a stack by itself, without the blanks and the padding."""
    task = Counts("rings")
    output, target = random_counts(1, 4, 12)
    output = output.float().requires_grad_()
    blank = torch.rand(4, 12, generator=torch.Generator().manual_seed(2)) < 0.3
    target[blank] = NAN
    real = torch.rand(4, 12, generator=torch.Generator().manual_seed(3)) < 0.8
    fitted = torch.stack([task.fit(row) for row in target])
    losses, weight = task.losses(output, target, fitted, real)
    deviance, _ = task.scores(output, target, fitted, real)
    losses.sum().backward()
    assert output.grad.isfinite().all()
    assert not output.grad[..., 0][blank | ~real].any()
    for i in range(4):
        known = real[i] & ~blank[i]
        assert fitted[i] == target[i][~blank[i]].mean()
        o, z = output[i, :, 0][known], (target[i][known] / fitted[i]).float()
        least = torch.xlogy(z, z) - z  # torch leaves out what does not depend on the output
        torch.testing.assert_close(losses[i], poisson_nll_loss(o, z) + least.mean())
        rate = task.answers(task.in_units(output[i], fitted[i]), {})[known, 0].detach()
        expected = mean_poisson_deviance(target[i][known].numpy(), rate.numpy())
        assert deviance[i].item() == pytest.approx(expected)
        assert int(weight[i]) == int(known.sum())


def test_networks_answer_the_mean_of_their_rates():
    task = Counts("rings")
    outputs = [random_counts(seed, 7)[0] for seed in range(3)]
    expected = torch.stack([task.answers(own, {}) for own in outputs]).mean(0)
    torch.testing.assert_close(task.answers(task.average(outputs), {}), expected)
    rates = expected.numpy()
    np.testing.assert_allclose(task.answers(torch.from_numpy(task.outputs(rates)), {}), rates)


def test_intervals_hold_new_counts_and_end_at_counts():
    """Of rates from 1 to 40: on the scale of counts themselves small ones would be held always."""
    task, generator = Counts("rings"), np.random.default_rng(0)
    rates = generator.uniform(1, 40, size=4000)
    counts = torch.from_numpy(generator.poisson(rates).astype(float))
    answers = torch.from_numpy(rates)[:, None]
    known = task.distances(answers[:2000], counts[:2000])
    low, high = task.regions(answers[2000:].numpy()[None], [known], 0.9).T
    y, new = counts[2000:].numpy(), rates[2000:]
    held = (low <= y) & (y <= high)
    for ordered in (low >= 0, low == low.round(), high == high.round()):
        assert ordered.all()
    assert ((low <= np.rint(new)) & (np.rint(new) <= high)).all()
    for part in (new < 10, new > 30):
        assert 0.87 < held[part].mean() < 0.97
    half = task.calibrate(answers[:2000].log(), counts[:2000])["conformal_quantile"]
    assert task.width(new, half) == pytest.approx((high - low).mean())
    assert task.regions(np.ones((1, 2, 1)), [known[:3]], 0.9).tolist() == [[0, np.inf]] * 2


def test_no_interval_is_empty():
    assert counts_within(np.array([[1.5, 1.6]]), np.array([2.4])).tolist() == [[2, 2]]


def test_what_is_no_count_is_refused():
    for cell in (2.5, -1, "many", "inf"):
        with pytest.raises(LookHopsError, match=rf"graph 1.*{cell}.*rings"):
            read_target("rings", [1, cell, None], "counts")
    target, values = read_target("rings", [3, "0", None], "counts")
    assert target == Target("rings", kind="counts")
    np.testing.assert_array_equal(values, [3, 0, NAN])
    with pytest.raises(LookHopsError, match="rings"):
        Target("rings", ("a", "b"), kind="counts")
    task = Counts("rings")
    assert task_from_dict(json.loads(json.dumps(task.to_dict()))) == task
    assert "rings" in str(task.lacking(torch.tensor([2.0, 2.0, 3.0]), torch.tensor([0, 1])))


def test_numbers_and_counts_are_other_data(table, tmp_path):
    """A store of runs would take the one for the other."""
    numbers = load(table, target="oxygens", task="numbers")
    counts = load(table, target="oxygens", task="counts")
    assert numbers.fingerprint != counts.fingerprint
    counts.save(tmp_path / "counts.graphs")
    again = load(tmp_path / "counts.graphs")
    assert (again.targets, again.fingerprint) == (counts.targets, counts.fingerprint)


def test_counts_go_through_every_command(lookhops, table, tmp_path):
    folder, asked = tmp_path / "model", ("--target", "oxygens", "--task", "counts")
    command = ("train", table, *asked, "--epochs", 6, *SMALL, "--members", 2, "-o", folder)
    code, out, err = lookhops(*command)
    assert code == 0, err
    assert {"deviance", "D²"} <= set(out.split())
    assert json.loads((folder / "config.json").read_text())["task"] == {
        "kind": "counts",
        "name": "oxygens",
    }
    code, out, err = lookhops("predict", folder, table)
    assert code == 0, err
    head, *rows = (line.split(",") for line in out.splitlines())
    found = [dict(zip(head, row, strict=True)) for row in rows]
    assert all(float(row["predicted"]) > 0 for row in found)
    assert all(float(row["low_90"]) <= float(row["high_90"]) for row in found)
    assert all(row["low_90"].isdecimal() for row in found)
    assert "with a count of oxygens" in err
    page = tmp_path / "page.html"
    code, out, err = lookhops("evaluate", folder, table, "-o", page, "--json")
    assert code == 0, err
    values = json.loads(out)["targets"]["oxygens"]["all"]["values"]
    assert values["deviance"] < values["mean_deviance"]
    assert {"d2", "mae", "coverage"} <= set(values)
    assert "Predicted against measured" in page.read_text()
    code, _, err = lookhops(
        "report", folder, "-o", tmp_path / "report.html", "--data", table, *asked
    )
    assert code == 0, err
    assert "oxygens" in (tmp_path / "report.html").read_text()
    assert lookhops("explain", folder, table, "-o", tmp_path / "why")[0] == 0
    why = json.loads((tmp_path / "why" / "explanations.json").read_text())["graphs"][5]
    parts = [*why["nodes"], *why["edge_shares"], *why["features"].values()]
    assert sum(parts) + why["whole"] + why["baseline"] == pytest.approx(why["value"], abs=1e-4)
    answers = Predictor(folder, "cpu").predict(load(table, target="oxygens", task="counts"))
    assert why["value"] == pytest.approx(answers.values[5], rel=1e-4)


def test_counts_are_compared_and_stand_beside_classes_and_numbers(lookhops, table, tmp_path):
    models = ("--models", "mean,gcn", "--seeds", 2, "--epochs", 2, "--device", "cpu")
    where = (*models, "--split", "random", "-o", tmp_path / "out", "--json")
    code, out, err = lookhops("compare", table, "--target", "oxygens", "--task", "counts", *where)
    assert code == 0, err
    found = json.loads(out)
    assert found["metric"] == "deviance"
    assert [row["mean"] for row in found["models"]] == sorted(r["mean"] for r in found["models"])
    mean = next(row for row in found["models"] if row["model"] == "mean")
    assert mean["mean"] < 3  # of a rate; its logarithm would be read as a rate of its own
    folder = tmp_path / "model"
    asked = ("--target", "size,oxygens,even", "--task", "oxygens=counts,size=numbers")
    code, out, err = lookhops("train", table, *asked, "--epochs", 3, *SMALL, "-o", folder)
    assert code == 0, err
    for word in ("mean of AUROC, R² and D²", "oxygens (counts)", "size (numbers)"):
        assert word in out
    config = json.loads((folder / "config.json").read_text())
    assert config["task"]["names"] == ["even", "size", "oxygens"]
    code, out, err = lookhops("predict", folder, table)
    assert code == 0, err
    assert {"oxygens_predicted", "oxygens_low_90", "even_set_90"} <= set(
        out.splitlines()[0].split(",")
    )


def test_variances_of_counts_are_those_of_their_roots():
    task, generator = Counts("rings"), np.random.default_rng(0)
    counts = generator.poisson(50, size=100_000)
    log_rate, variance = torch.tensor([[50.0]]).log(), torch.tensor([[50.0]])
    expected = task.deviation([log_rate], variance)
    assert float(expected) == pytest.approx(np.sqrt(counts).std(), rel=0.03)

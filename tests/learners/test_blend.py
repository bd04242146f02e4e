"""A blend: weights by validation, saved, asked, and the same after an interruption."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from lookhops import Graphs, LookHopsError
from lookhops.core.files import pack_tensors, unpack_tensors
from lookhops.core.options import Architecture, Classical, Protocol
from lookhops.graphs.targets import pack_targets, read_target
from lookhops.learners import learner_from_dict, learner_of, parse_model
from lookhops.learners.blend import Blend, FittedBlend, blend, weights_by_validation
from lookhops.learners.learner import fitted_of
from lookhops.learners.network import Network
from lookhops.models import Predictor, train_into
from lookhops.sources.loading import load
from lookhops.sources.splits import split
from lookhops.tasks import task_of

SMALL = learner_of("blend/hidden=8/layers=2/fingerprint=1/hops=2")
PROTOCOL = Protocol((11,), max_epochs=2, batch_size=32)


@pytest.fixture(scope="module")
def molecules() -> Graphs:
    return load("solubility")[:120]


@pytest.fixture(scope="module")
def several(molecules) -> Graphs:
    """A number and two classes, with blanks."""
    value = molecules.columns["value"].copy()
    value[::4] = np.nan
    low = [None if i % 5 == 0 else y == 0 for i, y in enumerate(molecules.y)]
    columns = [read_target("value", value, "numbers"), read_target("low", low)]
    return replace(molecules, **pack_targets(columns))


def test_options_of_both_parts_stand_in_its_name():
    model = parse_model("blend/hops=3/pool=none/hidden=64")
    assert model == Classical("blend/hops=3/pool=none/hidden=64")
    found = learner_of(model)
    assert (found.process.hops, found.architecture.pool, found.architecture.hidden) == (
        3,
        "none",
        64,
    )
    assert found.model == model
    assert found.spelled == model.classical
    assert learner_from_dict(found.to_dict()) == found
    assert parse_model("blend") == Classical("blend")
    for wrong in ("blend/hop=3", "blend/hops=x", "blend/hops=1/hops=2"):
        with pytest.raises(LookHopsError, match="blend"):
            parse_model(wrong)
    with pytest.raises(LookHopsError, match="hiden"):
        learner_from_dict({"name": "blend", "options": {"hiden": 3}})


def test_weights_of_numbers_are_least_squares_within_bounds(molecules):
    task = task_of(graphs := replace(molecules, **pack_targets([_value(molecules)])))
    y = torch.tensor([1.0, 2.0, 4.0, 8.0]).double()
    process = y[:, None] + torch.tensor([[1.0], [-1.0], [1.0], [-1.0]])
    network = y[:, None] - torch.tensor([[3.0], [-3.0], [3.0], [-3.0]])
    weight = weights_by_validation(task, y, network, process)
    assert weight.item() == pytest.approx(0.25)
    torch.testing.assert_close(blend(task, weight, network, process)[:, 0], y)
    assert weights_by_validation(task, y, process + 2, process + 1).item() == 0
    assert weights_by_validation(task, y, y[:, None], process).item() == 1
    assert weights_by_validation(task, y, process, process).item() == 0  # where they agree
    assert weights_by_validation(task, y * torch.nan, network, process).item() == 0
    assert len(graphs) == 120


def _value(molecules):
    return read_target("value", molecules.columns["value"], "numbers")


def test_weights_of_classes_are_those_of_the_lowest_log_loss(molecules):
    task, y = task_of(molecules), torch.tensor([0, 1, 2, 0])
    right = torch.nn.functional.one_hot(y, 3).double() * 0.7 + 0.1
    wrong = right.roll(1, 1)
    assert weights_by_validation(task, y, right.log(), wrong.log()).item() == 1
    assert weights_by_validation(task, y, wrong.log(), right.log()).item() == 0
    mixed = blend(task, torch.tensor([0.25]), right.log(), wrong.log()).double()
    torch.testing.assert_close(mixed.exp(), 0.25 * right + 0.75 * wrong, rtol=1e-6, atol=0)


def test_it_survives_saving_and_its_members_share_a_process(several):
    parts, task = split(several, 3), task_of(several)
    protocol = replace(PROTOCOL, members=2)
    [run] = SMALL.train(several, protocol, task=task, splits=[parts], device="cpu")
    assert {name for name in run.chosen if "weight of the network" in name} == {
        "value: weight of the network",
        "low: weight of the network",
    }
    both = fitted_of(SMALL, task, SMALL.encoding(several), run)
    assert len(both) == 2
    new = several.select(run.split.test)  # those with a target
    together = SMALL.together(both)(SMALL.prepare(new, SMALL.encoding(several)))
    torch.testing.assert_close(task.average(together), run.predictions["test"])
    for one, outputs in zip(both, together, strict=True):
        torch.testing.assert_close(one.outputs(new), outputs, rtol=0, atol=1e-6)
        torch.testing.assert_close(one.variance(new), run.variance["test"])
    tensors, _ = unpack_tensors(pack_tensors(both[0].tensors(), {}), Path("model.safetensors"))
    again = FittedBlend.from_tensors(SMALL, task, SMALL.encoding(several), tensors)
    assert torch.equal(again.outputs(new), both[0].outputs(new))
    for name in ("blend.weight", "process.codes", "mlp.0.weight"):
        less = {key: value for key, value in tensors.items() if key != name}
        with pytest.raises(LookHopsError):
            FittedBlend.from_tensors(SMALL, task, SMALL.encoding(several), less)
    strange = {**tensors, "blend.weight": torch.tensor([0.5, 2.0])}
    with pytest.raises(LookHopsError, match=r"blend\.weight"):
        FittedBlend.from_tensors(SMALL, task, SMALL.encoding(several), strange)


def test_its_network_is_the_one_that_is_trained_alone(molecules):
    parts, task = split(molecules, 3), task_of(molecules)
    [run] = SMALL.train(molecules, PROTOCOL, task=task, splits=[parts], device="cpu")
    network = Network(SMALL.architecture)
    [alone] = network.train(molecules, PROTOCOL, task=task, splits=[parts], device="cpu")
    assert run.history[0]["val_loss"] == alone.history[0]["val_loss"]
    assert all(torch.equal(value, run.weights[name]) for name, value in alone.weights.items())
    fitted = SMALL.process.fit(molecules, task, parts, 11)
    expected = blend(
        task,
        run.beside["blend.weight"],
        alone.predictions["test"],
        fitted.outputs(molecules.select(parts.test)),
    )
    torch.testing.assert_close(run.predictions["test"], expected)


def test_targets_of_the_test_part_are_never_looked_at(molecules):
    parts = split(molecules, 3)
    y = molecules.y.clone()
    y[parts.test] = 1 - y[parts.test].clamp(max=1)
    how = {"splits": [parts], "device": "cpu"}
    [run] = SMALL.train(molecules, PROTOCOL, **how)
    [turned] = SMALL.train(replace(molecules, y=y), PROTOCOL, **how)
    assert torch.equal(run.predictions["test"], turned.predictions["test"])


def test_a_training_that_is_stopped_goes_on_to_the_same_bits(several, tmp_path):
    protocol = replace(PROTOCOL, seeds=(11, 22), max_epochs=3)
    train_into(tmp_path / "whole", several, SMALL, protocol, device="cpu")

    def stop(epoch):
        if epoch.runs[0].seed == 22:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_into(tmp_path / "m", several, SMALL, protocol, device="cpu", on_epoch=stop)
    assert not (tmp_path / "m" / "config.json").exists()
    train_into(tmp_path / "m", several, SMALL, protocol, device="cpu", resume=True)
    both = tmp_path / "m", tmp_path / "whole"
    first, second = ((folder / "predictions.csv").read_bytes() for folder in both)
    assert first == second
    # The header of a file lists the checksum of all tensors and its note in either order.
    paths = [folder / "model.safetensors" for folder in both]
    first, second = (unpack_tensors(path.read_bytes(), path)[1] for path in paths)
    assert first == second
    assert first["sha256"]
    found = Predictor(tmp_path / "m", device="cpu").predict(several[:3])
    assert len(found.ids) == 3


def test_edges_may_be_ignored_by_both_parts(molecules, tmp_path):
    learner = Blend(replace(SMALL.architecture, edges="ignore"), SMALL.process)
    train_into(tmp_path / "m", molecules, learner, PROTOCOL, device="cpu")
    predictor = Predictor(tmp_path / "m", device="cpu")
    answers = [
        predictor.predict(graphs).targets[0].output
        for graphs in (molecules[:9], molecules[:9].without_edge_features())
    ]
    np.testing.assert_array_equal(*answers)


def test_what_it_cannot_do_is_refused_by_name(molecules, tmp_path):
    numbers = replace(molecules, **pack_targets([_value(molecules)]))
    with pytest.raises(LookHopsError, match="gp"):
        SMALL.check(numbers, task_of(numbers, loss="mae"))
    with pytest.raises(LookHopsError, match="--final"):
        train_into(tmp_path / "m", molecules, SMALL, PROTOCOL, device="cpu", final=True)
    with pytest.raises(LookHopsError, match=r"blend.*--model"):
        _ = SMALL.network_architecture
    with pytest.raises(LookHopsError):
        Blend(Architecture(conv="licheb", pool="strange"), SMALL.process).check(
            molecules, task_of(molecules)
        )

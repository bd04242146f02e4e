"""The record of a run: what is written comes back, what is damaged is named."""

import json

import pytest

from lookhops.core.errors import LookHopsError
from lookhops.nn import Architecture
from lookhops.runs.record import Machine, RunRecord, record_run, seconds_per_epoch
from lookhops.tasks import task_of
from lookhops.training import Protocol, train
from lookhops.training.device import choose_device
from lookhops.training.runs import Run


def test_a_record_survives_json(make_record):
    record = make_record(3)
    found = RunRecord.from_dict(json.loads(json.dumps(record.to_dict())))
    assert found.to_dict() == record.to_dict()
    assert (found.machine, found.history) == (Machine("test", 1, "cpu"), ())
    assert str(found.machine) == "a CPU (1 cores)"


@pytest.mark.parametrize(
    ("part", "changes", "sentence"),
    [
        ("metrics", {"accuracy": 1.5}, r"runs\[0\]\.metrics\.accuracy"),
        ("metrics", {"epochs": -1}, r"metrics\.epochs"),
        ("metrics", {"parameters": None}, r"metrics\.parameters"),
        ("machine", {"device": 3}, r"runs\[0\]\.machine\.device"),
        ("versions", {"torch": 2}, r"runs\[0\]\.versions\.torch"),
    ],
)
def test_a_damaged_record_is_named(make_record, part, changes, sentence):
    values = make_record(3).to_dict()
    values[part] = {**values[part], **changes}
    with pytest.raises(LookHopsError, match=sentence):
        RunRecord.from_dict(values, "runs[0]")


def test_a_metric_that_is_not_defined_is_allowed(make_record):
    assert RunRecord.from_dict(make_record(3, auroc=None).to_dict()).metrics["auroc"] is None


def test_what_a_run_leaves(tasks):
    protocol = Protocol(seeds=(11,), max_epochs=2, batch_size=16)
    [run] = train(tasks, Architecture(hidden=4, layers=1), protocol, device="cpu")
    task, device = task_of(tasks), choose_device("cpu")
    record = record_run(run, tasks, task, device, 2.0)
    assert RunRecord.from_dict(record.to_dict()).seed == 11
    assert record.metrics["val_loss"] == pytest.approx(run.best_loss, rel=1e-5)
    assert "temperature" not in record.metrics
    calibrated = record_run(run, tasks, task, device, 2.0, calibrated=True).metrics
    assert calibrated["temperature"] > 0
    assert calibrated["accuracy"] == record.metrics["accuracy"]


def test_seconds_per_epoch_leave_out_the_first_and_the_last():
    def run_of(seconds):
        return Run(1, None, [{"seconds": s} for s in seconds])

    assert seconds_per_epoch(run_of([100] + [1] * 15 + [3] * 14 + [50] * 99)) == 1
    assert seconds_per_epoch(run_of([7])) == 7

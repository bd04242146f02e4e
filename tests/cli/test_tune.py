"""`lookhops tune`."""

import json
import sys

import pytest

from lookhops.core.options import Architecture

pytest.importorskip("optuna")
SMALL = ("--task-size", 80, "--epochs", 2, "--seeds", 2, "--trials", 2, "--stack", 2, "--inner", 1)
SPACE = ("--space", "hidden=4/layers=1/conv=licheb/pool=none/fingerprint=none/k=1,2")


@pytest.fixture(autouse=True)
def small_recommended(monkeypatch):
    """These tests need not wait for the training of a large network."""
    monkeypatch.setattr("lookhops.runs.tune.tuning.RECOMMENDED", Architecture(hidden=8, layers=1))


def test_what_is_printed(lookhops, tmp_path):
    folder = tmp_path / "tuned"
    arguments = ("tune", "hops-1", "-o", folder, *SMALL, *SPACE)
    code, printed, told = lookhops(*arguments)
    assert code == 0
    assert "hops-1: 4 configurations in" in printed
    assert "over 2 outer splits (" in printed
    assert "seed 11: 2 of 2 configurations, best validation accuracy" in told
    code, printed, told = lookhops(*arguments, "--json")
    found = json.loads(printed)
    assert code == 0
    same = found["gain"]["variance"] == 0
    assert ("(the same on every split, p" if same else "(95% interval") in found["said"]
    assert (found["gain"]["low"] is None) == (found["gain"]["high"] is None) == same
    assert "seed 11: 2 configurations tried already" in told
    assert found["gain"]["n"] == len(found["searches"]) == 2
    assert lookhops("predict", folder, "hops-1", "--task-size", 3)[0] == 0


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--space", "hidden"), "A space is options with their values"),
        (("--trials", 0), "--trials"),
        (("--device", "tpu9"), "no device"),
    ],
)
def test_what_cannot_be_is_a_sentence(lookhops, tmp_path, options, what):
    code, _, told = lookhops("tune", "hops-1", "-o", tmp_path / "t", *SMALL, *options)
    assert code == 2
    assert what in told
    assert not (tmp_path / "t").exists()


def test_without_optuna(lookhops, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    code, _, told = lookhops("tune", "hops-1", "-o", tmp_path / "t")
    assert code == 2
    assert "pip install 'lookhops[tune]'" in told


def test_ctrl_c_keeps_what_is_finished(lookhops, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt(2)

    arguments = ("tune", "hops-1", "-o", tmp_path / "t", *SMALL, *SPACE)
    with monkeypatch.context() as patch:
        patch.setattr("lookhops.training.trainer.Trainer._epoch", stop)
        code, _, told = lookhops(*arguments)
    assert code == 130
    assert "interrupted; go on with: lookhops tune hops-1" in told
    assert lookhops(*arguments)[0] == 0

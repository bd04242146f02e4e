"""The benchmark explains networks that have learnt their task, and no others."""

from dataclasses import replace

import pytest

import accuracy as benchmark
from lookhops import LookHopsError
from lookhops.core.options import RECOMMENDED, Protocol


def test_only_networks_that_have_learnt_the_task_are_explained(tmp_path, monkeypatch, capsys):
    parts = {"split": "stratified", "fractions": (0.4, 0.1, 0.5)}
    options = {
        "architecture": replace(RECOMMENDED, hidden=4, layers=1, fingerprint=1),
        "protocol": Protocol(seeds=(1, 2), batch_size=32, max_epochs=1, **parts),
        "size": 40,
        "device": "cpu",
    }
    with pytest.raises(LookHopsError, match=r"hops-1: .*95%"):
        benchmark.run(["hops-1"], ["degree"], tmp_path, **options)
    accuracy = {1: 0.9, 2: 1.0}
    monkeypatch.setattr(benchmark, "_accuracies", lambda predictor: accuracy)
    [row] = benchmark.run(["hops-1"], ["degree"], tmp_path, **options)
    assert (row.seeds, row.accuracy) == (1, 1.0)
    assert "| hops-1 | degree | 1 | 100.0% |" in capsys.readouterr().out

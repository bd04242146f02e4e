"""Two processes that train together, against one."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine_cases import WHOLE, asking, exactly, noisy, told  # noqa: F401  the cases' graphs
from lookhops.core.errors import LookHopsError
from lookhops.training import workers
from lookhops.training.trainer import train

SCRIPT = Path(__file__).parent / "two_workers.py"


def test_the_same_answer_as_one_process_with_the_same_batch(told, noisy, tmp_path):  # noqa: F811
    blanks = asking(noisy, "numbers and classes")
    network = replace(WHOLE, layers=2)
    protocol = exactly(seeds=(11, 22), max_epochs=2, class_weights=True, batch_size=63)
    cases = [
        (told, replace(network, edges="use"), protocol, False),
        (told, replace(network, edges="use", pool="diffpool"), protocol, True),
        (blanks, network, replace(protocol, batch_nodes=600, stream=True), True),
        (blanks, network, replace(protocol, members=2, seeds=(11,)), False),
    ]
    torch.save(cases, tmp_path / "cases.pt")
    command = [sys.executable, SCRIPT, tmp_path]
    both = [subprocess.Popen([*command, str(rank)]) for rank in (0, 1)]
    assert [one.wait(timeout=1800) for one in both] == [0, 0]
    first, second = (torch.load(tmp_path / f"found-{rank}.pt") for rank in (0, 1))
    # What only the first can meet is raised at all workers, and said by the first.
    assert first.pop() == ["LookHopsError", "The folder is full."]
    assert second.pop() == ["SaidByFirst", "The folder is full."]
    for case, one, two in zip(cases, first, second, strict=True):
        graphs, architecture, training, stacked = case
        alone = train(graphs, architecture, training, device="cpu", stacked=stacked)
        for want, (history, weights, predictions), (_, same, _) in zip(
            alone, one, two, strict=True
        ):
            for row, other in zip(history, want.history, strict=True):
                row, other = ({**own, "seconds": 0} for own in (row, other))
                assert row == pytest.approx(other, abs=1e-9)
            for name, value in want.weights.items():
                torch.testing.assert_close(weights[name], value, rtol=1e-7, atol=1e-8)
                assert torch.equal(weights[name], same[name])
            for part, value in want.predictions.items():
                torch.testing.assert_close(predictions[part], value, rtol=1e-6, atol=1e-7)


def test_alone_nothing_is_told_or_shared():
    one = torch.arange(3.0)
    workers.ALONE.add(one)
    assert torch.equal(one, torch.arange(3.0))
    assert workers.ALONE.share(one) is one
    assert workers.ALONE.from_first(lambda: 7) == 7
    assert not workers.ALONE.any(False)


def test_an_error_of_the_connection_is_a_sentence():
    with pytest.raises(LookHopsError, match="--resume"), workers._others():
        raise RuntimeError("Connection closed by peer")


def test_more_workers_than_gpus_is_a_sentence(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    for name, value in {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(LookHopsError, match="--nproc-per-node"), workers.joining():
        pass

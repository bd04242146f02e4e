"""Graphs that do not live on the device."""

from dataclasses import replace

import pytest
import torch

from engine_cases import WHOLE, exactly, noisy, told  # noqa: F401  the cases' graphs
from lookhops.core.options import Architecture, Protocol
from lookhops.graphs import Graphs
from lookhops.training import windows
from lookhops.training.trainer import train


@pytest.mark.parametrize("stacked", [False, True])
def test_from_a_mapped_file_the_numbers_are_the_same(told, stacked, tmp_path):  # noqa: F811
    told.save(tmp_path / "told.graphs")
    mapped = Graphs.load(tmp_path / "told.graphs")
    protocol = exactly(seeds=(11, 22), max_epochs=2, stream=True)
    network, options = replace(WHOLE, edges="use", layers=2), {"device": "cpu", "stacked": stacked}
    streamed = train(mapped, network, protocol, **options)
    resident = train(told, network, replace(protocol, stream=False), **options)
    for found, want in zip(streamed, resident, strict=True):
        assert found.best_loss == want.best_loss
        assert all(torch.equal(found.weights[name], want.weights[name]) for name in want.weights)
        assert torch.equal(found.predictions["test"], want.predictions["test"])


def test_a_large_training_part_is_learnt_from_in_part(noisy, monkeypatch):  # noqa: F811
    protocol = exactly(seeds=(11,), max_epochs=1, stream=True)
    [all_of_it] = train(noisy, WHOLE, protocol, device="cpu")
    monkeypatch.setattr(windows, "LEARN_FROM", noisy.num_nodes // 4)
    [some] = train(noisy, WHOLE, protocol, device="cpu")
    assert 0 < some.preprocessing.num_neighbourhoods < all_of_it.preprocessing.num_neighbourhoods


def test_graphs_stay_where_they_are_when_the_device_has_no_room(noisy, monkeypatch):  # noqa: F811
    cpu, network = torch.device("cpu"), Architecture(fingerprint=5)

    def streams(free, protocol, networks=1):
        monkeypatch.setattr(windows, "_free_memory", lambda device: free)
        return windows.should_stream(noisy, network, protocol, networks, cpu)

    plain, large = Protocol(), 10**10
    assert streams(1000, plain)
    assert not streams(large, plain)
    assert streams(large, plain, networks=10**6)  # each has neighbourhoods of its own
    assert not streams(None, plain)
    assert streams(large, replace(plain, stream=True))
    assert not streams(1000, replace(plain, stream=False))


def test_this_machine_says_what_is_free():
    free = windows._free_memory(torch.device("cpu"))
    assert free is None or free > 0

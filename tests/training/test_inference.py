"""Several networks asked together: as each alone, whatever the threads and the batches."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine_cases import noisy, told  # noqa: F401  the cases' graphs
from inference_cases import CASES, InferenceCases, trained
from lookhops.encoding.preprocessing import PreparedGraphs
from lookhops.training.inference import Ensemble, batches_by_nodes


class TestOnCpu(InferenceCases):
    device = torch.device("cpu")


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_change_no_bit_and_leave_no_trace(told, threads, monkeypatch):  # noqa: F811
    monkeypatch.setattr("lookhops.training.inference.MOST_NUMBERS", 2048)
    architecture = CASES["all that the recommended model reads"]
    networks, preprocessing, encoding = trained(told, architecture, "cpu")
    whole = PreparedGraphs.of(told, architecture, encoding)
    before = torch.get_num_threads()
    want = Ensemble(networks, preprocessing, encoding).outputs(whole)
    torch.set_num_threads(threads)
    try:
        found = Ensemble(networks, preprocessing, encoding).outputs(whole)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    for one, other in zip(found, want, strict=True):
        assert torch.equal(one, other)


def test_no_graphs(noisy):  # noqa: F811
    architecture = CASES["no pooling"]
    networks, preprocessing, encoding = trained(noisy, architecture, "cpu", 2)
    none = PreparedGraphs.of(noisy[:0], architecture, encoding)
    assert [tuple(o.shape) for o in Ensemble(networks, preprocessing, encoding).outputs(none)] == [
        (0, 3),
        (0, 3),
    ]
    assert Ensemble(networks, preprocessing, encoding).readout(none).shape == (0, 32)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=60), st.integers(1, 50), st.integers(1, 9))
def test_batches_hold_every_graph_once_in_order(nodes, most_nodes, most_graphs):
    nodes = np.array(nodes)
    batches = batches_by_nodes(nodes, most_nodes, most_graphs)
    assert batches[batches >= 0].tolist() == list(range(len(nodes)))
    for batch in batches:
        held = batch[batch >= 0]
        assert 1 <= len(held) <= most_graphs
        assert nodes[held].sum() <= most_nodes or len(held) == 1

"""Threads by the work: one for little, and what was set before comes back."""

import pytest
import torch

from lookhops.core.options import Protocol
from lookhops.nn import Architecture
from lookhops.sources.hop_tasks import hop_task
from lookhops.training.device import limited_threads, threads_of
from lookhops.training.trainer import train


@pytest.fixture
def four_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("nodes", "threads"), [(10, 1), (256 * 13, 1), (256 * 40, 2), (256 * 284, 4), (10**7, 4)]
)
def test_more_work_more_threads_up_to_those_that_there_are(four_threads, nodes, threads):
    class OneGraph(list):
        num_nodes = nodes

    protocol = Protocol(batch_size=1)
    assert threads_of(OneGraph([0]), Architecture(hidden=128), protocol) == threads


def test_a_small_training_takes_one_thread_and_leaves_no_trace(four_threads):
    seen = []
    train(
        hop_task(1, size=40),
        Architecture(hidden=8, layers=1),
        Protocol((11,), max_epochs=1),
        device="cpu",
        on_epoch=lambda _: seen.append(torch.get_num_threads()),
    )
    assert seen == [1]
    assert torch.get_num_threads() == 4
    with pytest.raises(ZeroDivisionError), limited_threads(2):
        _ = 1 / 0
    assert torch.get_num_threads() == 4

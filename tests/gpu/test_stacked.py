"""The fast engine against the plain one."""

from dataclasses import replace

import pytest
import torch

from lookhops.datasets.hop_tasks import hop_task
from lookhops.datasets.splits import split
from lookhops.nn import Architecture
from lookhops.nn.registry import CONVOLUTIONS, POOLINGS
from lookhops.options import Protocol
from lookhops.tasks import task_of
from lookhops.training.eager import EagerEngine
from lookhops.training.stacked import CapturedEngine

DEVICE = torch.device("cuda")


@pytest.fixture(scope="module")
def graphs():
    """Random features: where two nodes are alike, rounding would decide which one is kept."""
    task = hop_task(2, size=300, seed=1)
    noise = torch.randn(task.num_nodes, 6, generator=torch.Generator().manual_seed(0))
    return replace(task, attributes=noise, labels=None, label_sizes=())


def engines(graphs, architecture, protocol, seeds):
    splits = [split(graphs, seed) for seed in seeds]
    stack = CapturedEngine(graphs, task_of(graphs), splits, seeds, architecture, protocol, DEVICE)
    alone = [
        EagerEngine(graphs, task_of(graphs), s, seed, architecture, protocol, torch.device("cpu"))
        for s, seed in zip(splits, seeds, strict=True)
    ]
    return stack, alone


@pytest.mark.parametrize("conv", list(CONVOLUTIONS))
@pytest.mark.parametrize("pool", list(POOLINGS))
def test_stack_on_gpu_is_each_seed_on_cpu(graphs, conv, pool):
    architecture = Architecture(conv=conv, pool=pool, hidden=16, layers=3, ratio=0.7)
    protocol = Protocol(seeds=(11, 22, 33), batch_size=64)
    stack, alone = engines(graphs, architecture, protocol, protocol.seeds)
    for part in ("val", "test"):
        expected = [engine.predict(part)[0] for engine in alone]
        for found, want in zip(stack.predict(part), expected, strict=True):
            torch.testing.assert_close(found, want, rtol=1e-3, atol=1e-4)
    for epoch in range(1, 4):
        found = stack.epoch(epoch)
        want = torch.cat([engine.epoch(epoch) for engine in alone])
        torch.testing.assert_close(found.float(), want, rtol=0, atol=2e-3)
    loss, accuracy = stack.validate()
    want_loss = torch.cat([engine.validate()[0] for engine in alone])
    torch.testing.assert_close(loss.float(), want_loss, rtol=0, atol=5e-3)
    assert ((accuracy >= 0) & (accuracy <= 1)).all()


@pytest.mark.parametrize("pool", ["none", "lookhops"])
def test_alone_or_in_a_stack_of_ten_the_losses_are_the_same(graphs, pool):
    architecture = Architecture(pool=pool, hidden=32, layers=3)
    protocol = Protocol(batch_size=48)
    splits = [split(graphs, seed) for seed in protocol.seeds]
    stack = CapturedEngine(
        graphs, task_of(graphs), splits, protocol.seeds, architecture, protocol, DEVICE
    )
    losses = torch.stack([stack.epoch(epoch) for epoch in range(1, 5)])  # 5 steps an epoch
    for i in (0, 7):
        seed = protocol.seeds[i]
        one = CapturedEngine(
            graphs, task_of(graphs), [splits[i]], [seed], architecture, protocol, DEVICE
        )
        alone = torch.stack([one.epoch(epoch) for epoch in range(1, 5)])
        torch.testing.assert_close(losses[:, i], alone[:, 0], rtol=0, atol=1e-4)


def test_a_batch_that_outgrows_its_buffers_is_still_right(graphs):
    architecture = Architecture(hidden=16, layers=2)
    protocol = Protocol(seeds=(11, 22), batch_size=64)
    stack, alone = engines(graphs, architecture, protocol, protocol.seeds)
    stack.epoch(1)
    small = stack.capacity
    stack.capacity = type(small)(small.nodes // 2, small.edges // 2)
    stack.recorder.forget()
    for engine in alone:
        engine.epoch(1)
    found = stack.epoch(2)
    assert stack.capacity.holds(type(small)(small.nodes // 2, small.edges // 2))
    want = torch.cat([engine.epoch(2) for engine in alone])
    torch.testing.assert_close(found.float(), want, rtol=0, atol=2e-3)


def test_seeds_that_stopped_leave_and_a_state_goes_on(graphs):
    architecture = Architecture(pool="lookhops", hidden=16, layers=2)
    protocol = Protocol(seeds=(11, 22, 33, 44), batch_size=64)
    splits = [split(graphs, seed) for seed in protocol.seeds]

    def engine():
        return CapturedEngine(
            graphs, task_of(graphs), splits, protocol.seeds, architecture, protocol, DEVICE
        )

    first = engine()
    first.epoch(1)
    first.remember(torch.tensor([True] * 4))
    first.retire(torch.tensor([True, False, True, True]))
    assert first.rows == [1]
    second = engine()
    second.restore(first.state())
    assert second.rows == [1]
    for a, b in zip(first.weights(), second.weights(), strict=True):
        assert all(torch.equal(a[key], b[key]) for key in a)
    torch.testing.assert_close(first.epoch(2), second.epoch(2), equal_nan=True, rtol=0, atol=1e-5)
    assert [len(p) for p in first.predict("test")] == [len(s.test) for s in splits]

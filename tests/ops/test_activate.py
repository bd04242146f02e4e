"""The activation and readout of a layer in one function, against its plain twin."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from batches import make_batch
from lookhops.nn import GraphBatch
from lookhops.ops.activate import _ActivateOnCPU, activate, plain, readout
from lookhops.ops.gate import gate

SIZES = st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any)


def inputs(sizes: list[int], seed: int, channels: int = 4):
    """z with rows of zeros and rows that are alike, scores, and where each graph begins."""
    generator = torch.Generator().manual_seed(seed)
    count = torch.tensor(sizes)
    nodes = int(count.sum())
    z = torch.randn(nodes, channels, generator=generator, dtype=torch.float64)
    score = torch.rand(nodes, generator=generator, dtype=torch.float64) + 0.1
    if seed % 2:
        z[::3] = 0
        z[1::2], score[1::2] = z[-1].clone(), score[-1].clone()
    graph = torch.repeat_interleave(torch.arange(len(sizes)), count)
    return z.requires_grad_(), score.requires_grad_(), graph, count, count.cumsum(0) - count


@given(SIZES, st.integers(0, 50), st.booleans(), st.booleans())
def test_equals_its_plain_twin(sizes, seed, of_x, of_read):
    z, score, graph, count, start = inputs(sizes, seed)
    found, expected = (
        _ActivateOnCPU.apply(z, score, graph, count, start),
        plain(z, score, graph, count),
    )
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs)
    generator = torch.Generator().manual_seed(seed)
    grads = [torch.randn(y.shape, generator=generator, dtype=y.dtype) for y in expected]
    wanted = [number for number, asked in enumerate((of_x, of_read)) if asked]
    if not wanted:
        return
    gradients = [
        torch.autograd.grad([outputs[i] for i in wanted], (z, score), [grads[i] for i in wanted])
        for outputs in (found, expected)
    ]
    for mine, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_gradients():
    z, score, *rest = inputs([3, 1, 0, 4], seed=0)
    assert gradcheck(lambda z, score: _ActivateOnCPU.apply(z, score, *rest), (z, score))
    assert gradgradcheck(lambda z, score: _ActivateOnCPU.apply(z, score, *rest), (z, score))


def test_a_row_of_zeros_stays_zero_and_has_a_gradient():
    z, score, *rest = inputs([4], seed=0)
    with torch.no_grad():
        z[1], z[2] = 0, 1e-14
    x, read = _ActivateOnCPU.apply(z, score, *rest)
    torch.testing.assert_close(x, plain(z, score, *rest[:2])[0])
    assert not x[1].any()
    read.sum().backward()
    assert torch.isfinite(z.grad).all()
    assert torch.isfinite(score.grad).all()


@given(SIZES, st.integers(0, 50), st.booleans())
def test_a_level_with_dead_nodes_reads_the_living(sizes, seed, masked):
    batch = make_batch(seed, sizes=sizes)
    level = batch.level()
    generator = torch.Generator().manual_seed(seed)
    score = torch.rand(len(batch.x), generator=generator)
    alive = torch.rand(len(batch.x), generator=generator) < 0.7 if masked else None
    level = GraphBatch(level.x, level.adjacency, level.graph, level.num_graphs, alive)
    after, read = activate(level, score, normalize=True)
    expected = torch.relu(gate(level.x, score if alive is None else score * alive, True))
    torch.testing.assert_close(after.x, expected)
    torch.testing.assert_close(read, readout(level.with_x(expected)))
    torch.testing.assert_close(after.bounds, level.bounds)


def test_the_same_twice():
    z, score, *rest = inputs([30, 20, 50], seed=3, channels=128)

    def gradients():
        x, read = _ActivateOnCPU.apply(z, score, *rest)
        return torch.autograd.grad(x.sin().sum() + read.cos().sum(), (z, score))

    for first, second in zip(gradients(), gradients(), strict=True):
        assert torch.equal(first, second)


def test_second_derivatives_of_features_that_are_not_contiguous():
    batch = make_batch(1, sizes=(3, 2), dtype=torch.float64)
    level = batch.level()

    def function(turned):
        after, read = activate(level.with_x(turned.mT), None, normalize=True)
        return after.x, read

    assert gradgradcheck(function, (batch.x.mT.contiguous().requires_grad_(),))


def test_a_gradient_that_comes_turned_around():
    z, score, graph, count, start = inputs([2, 3], 2)
    factor = torch.randn(4, 5, dtype=torch.float64)
    mine = torch.autograd.grad(
        (_ActivateOnCPU.apply(z, score, graph, count, start)[0].mT * factor).sum(), (z, score)
    )
    theirs = torch.autograd.grad((plain(z, score, graph, count)[0].mT * factor).sum(), (z, score))
    torch.testing.assert_close(mine, theirs)


def test_a_nan_stays_in_its_graph():
    z, score, graph, count, start = (x.detach() for x in inputs([2, 2], 2))
    z[0], z[2] = torch.nan, 0.0
    x, read = _ActivateOnCPU.apply(z, score, graph, count, start)
    assert x[0].isnan().all()
    assert x[1:].isfinite().all()
    assert read[1].isfinite().all()

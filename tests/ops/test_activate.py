"""The activation and readout of a layer."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from batches import make_batch
from lookhops.nn import GraphBatch
from lookhops.ops import Adjacency
from lookhops.ops.activate import activate, readout
from lookhops.ops.gate import gate

SIZES = st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any)


def inputs(sizes: list[int], seed: int, channels: int = 4):
    """z with rows of zeros and rows that are alike, scores, and their graphs."""
    generator = torch.Generator().manual_seed(seed)
    count = torch.tensor(sizes)
    nodes = int(count.sum())
    z = torch.randn(nodes, channels, generator=generator, dtype=torch.float64)
    score = torch.rand(nodes, generator=generator, dtype=torch.float64) + 0.1
    if seed % 2:
        z[::3] = 0
        z[1::2], score[1::2] = z[-1].clone(), score[-1].clone()
    graph = torch.repeat_interleave(torch.arange(len(sizes)), count)
    none = Adjacency.of(torch.zeros(2, 0, dtype=torch.long), nodes)
    batch = GraphBatch(z, none, graph, len(sizes))
    return z.requires_grad_(), score.requires_grad_(), batch


def activated(z, score, batch):
    """x and the readout."""
    after, read = activate(batch.with_x(z), score, normalize=True)
    return after.x, read


def plain(z, score, batch):
    """The same by PyTorch's operators."""
    norm = z.norm(dim=1, keepdim=True)
    x = torch.relu(z * (score[:, None] / torch.where(norm > 1e-12, norm, torch.ones_like(norm))))
    zeros = x.new_zeros(batch.num_graphs, x.shape[1])
    index = batch.graph[:, None].expand_as(x)
    highest = zeros.scatter_reduce(0, index, x, "amax", include_self=False)
    mean = zeros.index_add(0, batch.graph, x) / batch.sizes.clamp(min=1)[:, None]
    return x, torch.cat((highest, mean), dim=1)


@given(SIZES, st.integers(0, 50), st.sampled_from([[0], [1], [0, 1]]))
def test_equals_plain_operators(sizes, seed, wanted):
    z, score, batch = inputs(sizes, seed)
    found, expected = activated(z, score, batch), plain(z, score, batch)
    torch.testing.assert_close(found, expected)
    generator = torch.Generator().manual_seed(seed)
    grads = [torch.randn(y.shape, generator=generator, dtype=y.dtype) for y in expected]
    gradients = [
        torch.autograd.grad([outputs[i] for i in wanted], (z, score), [grads[i] for i in wanted])
        for outputs in (found, expected)
    ]
    torch.testing.assert_close(*gradients)


def test_gradients():
    z, score, batch = inputs([3, 1, 0, 4], seed=0)
    assert gradcheck(lambda z, score: activated(z, score, batch), (z, score))
    assert gradgradcheck(lambda z, score: activated(z, score, batch), (z, score))


def test_a_row_of_zeros_stays_zero_and_has_a_gradient():
    z, score, batch = inputs([4], seed=0)
    with torch.no_grad():
        z[1], z[2] = 0, 1e-14
    x, read = activated(z, score, batch)
    torch.testing.assert_close(x, plain(z, score, batch)[0])
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


def test_the_same_twice():
    z, score, batch = inputs([30, 20, 50], seed=3, channels=128)

    def gradients():
        x, read = activated(z, score, batch)
        return torch.autograd.grad(x.sin().sum() + read.cos().sum(), (z, score))

    for first, second in zip(gradients(), gradients(), strict=True):
        assert torch.equal(first, second)


def test_second_derivatives_of_features_that_are_not_contiguous():
    z, _, batch = inputs([3, 2], seed=2)
    turned = z.detach().mT.contiguous().requires_grad_()
    assert gradgradcheck(lambda turned: activated(turned.mT, None, batch), (turned,))


def test_a_gradient_that_comes_turned_around():
    z, score, batch = inputs([2, 3], 2)
    factor = torch.randn(4, 5, dtype=torch.float64)
    gradients = [
        torch.autograd.grad((by(z, score, batch)[0].mT * factor).sum(), (z, score))
        for by in (activated, plain)
    ]
    torch.testing.assert_close(*gradients)


def test_a_nan_stays_in_its_graph():
    z, score, batch = inputs([2, 2], 2)
    with torch.no_grad():
        z[0], z[2] = torch.nan, 0.0
        x, read = activated(z, score, batch)
    assert x[0].isnan().all()
    assert x[1:].isfinite().all()
    assert read[1].isfinite().all()

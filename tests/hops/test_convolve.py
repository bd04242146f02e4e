"""A light convolution in one function, and hops before the projection, against plain lines."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from batches import batches, make_batch
from lookhops.hops import Adjacency, Anchors, SparseMatrix, chebyshev, light, powers
from lookhops.hops.early import EarlyAnchors
from lookhops.nn import LiChebConv, LiMixHopConv

each_recurrence = pytest.mark.parametrize("recurrence", [chebyshev, powers])
RECURRENCES = st.sampled_from([chebyshev, powers])


def operator(batch) -> SparseMatrix:
    adjacency = Adjacency.of(batch.edge_index, len(batch.x), batch.edge_weight)
    return adjacency.chebyshev(batch.x.dtype)


def parameters(k: int, channels: int = 4, out: int = 3) -> list[torch.Tensor]:
    """Projection, offset, merge weights and bias."""
    generator = torch.Generator().manual_seed(k)
    shapes = ((out, channels), (out,), (k + 1, out), (out,))
    made = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    return [tensor.requires_grad_() for tensor in made]


def grads_of(outputs, inputs):
    generator = torch.Generator().manual_seed(0)
    grads = [torch.randn(y.shape, generator=generator, dtype=y.dtype) for y in outputs]
    return torch.autograd.grad(outputs, inputs, grads)


@given(batches(), RECURRENCES, st.integers(0, light.MOST_HOPS), st.booleans())
def test_convolve_equals_its_plain_twin(batch, recurrence, k, with_z):
    x, given_parameters = batch.x.clone().requires_grad_(), parameters(k)
    arguments = (recurrence, operator(batch), x, *given_parameters)
    found, expected = light.convolve(*arguments), light.plain(*arguments)
    used = 2 if with_z else 1  # whether anybody reads the anchors
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs)
    inputs = (x, *given_parameters)
    for mine, theirs in zip(
        grads_of(found[:used], inputs), grads_of(expected[:used], inputs), strict=True
    ):
        torch.testing.assert_close(mine, theirs)


@each_recurrence
@pytest.mark.parametrize("directed", [False, True])
def test_gradients_of_convolve(recurrence, directed):
    batch = make_batch(1, sizes=(3, 1, 4), directed=directed, dtype=torch.float64)
    matrix = operator(batch)

    def function(*tensors):
        return light.convolve(recurrence, matrix, *tensors)

    tensors = (batch.x.clone().requires_grad_(), *parameters(2))
    assert gradcheck(function, tensors)
    assert gradgradcheck(function, tensors)


@given(batches(), RECURRENCES, st.integers(0, 8))
def test_early_hops_give_the_same_anchors(batch, recurrence, k):
    projection, offset, weight, bias = parameters(k)
    theta = torch.randn(k + 1, 3, dtype=torch.float64, requires_grad=True)
    matrix = operator(batch)
    z = torch.nn.functional.linear(batch.x, projection, offset)
    expected = Anchors(recurrence, matrix, z, k)
    found = EarlyAnchors(recurrence, matrix, batch.x, k, projection, offset)
    assert found.shape == expected.shape
    torch.testing.assert_close(found.start, expected.start)
    torch.testing.assert_close(found.stack(), expected.stack())
    inputs = (projection, offset, weight, bias, theta)
    both = [(a.merge(weight, bias), a.merge(weight), a.score(theta)) for a in (found, expected)]
    for mine, theirs in zip(*both, strict=True):
        torch.testing.assert_close(mine, theirs)
    for mine, theirs in zip(*(grads_of(readings, inputs) for readings in both), strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("layer", [LiChebConv, LiMixHopConv])
def test_a_layer_gives_the_same_whether_or_not_its_input_has_a_gradient(layer):
    batch = make_batch(2, dtype=torch.float64)
    conv = layer(4, 32, k=2).double()
    results = []
    for x in (batch.x, batch.x.clone().requires_grad_()):
        assert EarlyAnchors.fit(x, 2, conv.project.weight) != x.requires_grad
        merged, anchors = conv(x, batch.edge_index, return_anchors=True)
        score = anchors.score(conv.weight)
        grads = grads_of((merged, score), tuple(conv.parameters()))
        results.append((merged, score, anchors.stack(), *grads))
    for early, late in zip(*results, strict=True):
        torch.testing.assert_close(early, late)


def test_learnt_edge_weights_get_their_gradient():
    batch = make_batch(3, weighted=True, dtype=torch.float64)
    conv = LiChebConv(4, 32, k=2).double()
    weight = batch.edge_weight.clone().requires_grad_()
    conv(batch.x, batch.edge_index, weight).sin().sum().backward()
    assert weight.grad.abs().sum() > 0


@given(batches(), RECURRENCES, st.integers(0, light.MOST_HOPS))
def test_score_equals_that_of_the_anchors(batch, recurrence, k):
    matrix, z = operator(batch), batch.x.clone().requires_grad_()
    theta = torch.randn(k + 1, 4, dtype=torch.float64, requires_grad=True)
    found = light.score(recurrence, matrix, z, theta)
    expected = (Anchors(recurrence, matrix, z, k).stack() * theta).sum((1, 2))
    torch.testing.assert_close(found, expected)
    both = (grads_of((raw,), (z, theta)) for raw in (found, expected))
    for mine, theirs in zip(*both, strict=True):
        torch.testing.assert_close(mine, theirs)


@each_recurrence
@pytest.mark.parametrize("directed", [False, True])
def test_gradients_of_score(recurrence, directed):
    batch = make_batch(1, sizes=(3, 1, 4), directed=directed, dtype=torch.float64)
    matrix = operator(batch)
    tensors = (
        batch.x.clone().requires_grad_(),
        torch.randn(3, 4, dtype=torch.float64, requires_grad=True),
    )
    assert gradcheck(lambda z, theta: light.score(recurrence, matrix, z, theta), tensors)
    assert gradgradcheck(lambda z, theta: light.score(recurrence, matrix, z, theta), tensors)


@pytest.mark.parametrize("k", [2, 7])
def test_second_derivatives_through_a_layer(k):
    batch = make_batch(0, (3, 4), channels=3, dtype=torch.float64)
    layer = LiChebConv(3, 2, k).double()
    x = batch.x.requires_grad_()

    def penalty(projection):
        weights = {"project.weight": projection}
        y = torch.func.functional_call(layer, weights, (x, batch.edge_index))
        (grad,) = torch.autograd.grad(y.pow(2).sum(), layer.weight, create_graph=True)
        return grad.pow(2).mean() / 100

    assert gradcheck(penalty, (layer.project.weight,))


def test_forward_mode_is_refused_rather_than_wrong():
    layer, batch = LiChebConv(2, 8, 2), make_batch(0, (3, 4), channels=2)
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.func.jvp(lambda x: layer(x, batch.edge_index), (batch.x,), (batch.x,))

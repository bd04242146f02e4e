"""The recurrences and the two readings of the anchors, against dense matrices."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from batches import batches, chebyshev_hops, dense_chebyshev, make_batch, power_hops
from lookhops.nn import LiChebConv
from lookhops.ops import Adjacency, Anchors, SparseMatrix, chebyshev, powers
from lookhops.ops.merge import merge_hops
from lookhops.ops.recurrences import in_powers, polynomial_sum

NAIVE = {chebyshev: chebyshev_hops, powers: power_hops}
each_recurrence = pytest.mark.parametrize("recurrence", [chebyshev, powers])


def operator(batch, learnt: bool = False) -> SparseMatrix:
    weight = batch.edge_weight
    if learnt:
        weight = weight.clone().requires_grad_()
    return Adjacency.of(batch.edge_index, len(batch.x), weight).chebyshev(batch.x.dtype)


@given(batches(), st.sampled_from([chebyshev, powers]), st.integers(0, 8))
def test_recurrences_merge_and_score_are_the_formulas(batch, recurrence, k):
    hops = NAIVE[recurrence](dense_chebyshev(batch), batch.x, k)
    anchors = Anchors(recurrence, operator(batch), batch.x, k)
    stack = torch.stack(hops, dim=1)
    torch.testing.assert_close(anchors.stack(), stack)
    assert anchors.shape == stack.shape
    generator = torch.Generator().manual_seed(k)
    weight, theta = torch.randn(2, k + 1, 4, generator=generator, dtype=torch.float64)
    bias = torch.randn(4, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(anchors.merge(weight), (stack * weight).sum(1))
    torch.testing.assert_close(anchors.merge(weight, bias), (stack * weight).sum(1) + bias)
    torch.testing.assert_close(anchors.score(theta)[0], (stack * theta).sum((1, 2)))


@given(st.sampled_from([chebyshev, powers]), st.integers(0, 9))
def test_any_recurrence_is_a_polynomial(recurrence, k):
    matrix = torch.randn(5, 5, dtype=torch.float64) / 4
    weight = torch.randn(k + 1, 3, dtype=torch.float64)
    z = torch.randn(5, 3, dtype=torch.float64)
    hops = NAIVE[recurrence](matrix, z, k)
    expected = sum(w * hop for w, hop in zip(weight, hops, strict=True))
    again = power_hops(matrix, z, k)
    found = sum(v * hop for v, hop in zip(in_powers(recurrence, weight), again, strict=True))
    torch.testing.assert_close(found, expected)
    terms = [w * z for w in weight]
    torch.testing.assert_close(polynomial_sum(recurrence, lambda x: matrix @ x, terms), expected)


@pytest.mark.parametrize("k", [2, 5, 6, 8, 30])
def test_single_precision_is_near_double_at_any_k(k):
    batch = make_batch(0, sizes=[40, 30], edges_per_node=2)
    weight = torch.randn(k + 1, 4, generator=torch.Generator().manual_seed(0))
    exact = batch.to(torch.float64)
    expected = Anchors(chebyshev, operator(exact), exact.x, k).merge(weight.double())
    found = Anchors(chebyshev, operator(batch), batch.x, k).merge(weight)
    assert (found - expected).abs().max() < 2e-5 * expected.abs().max()


@each_recurrence
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("k", [0, 1, 2, 3, 7])
def test_gradients(recurrence, directed, k):
    batch = make_batch(2, sizes=[4, 1, 3], channels=2, directed=directed, dtype=torch.float64)
    matrix = operator(batch)
    z = batch.x.clone().requires_grad_()
    weight = torch.randn(k + 1, 2, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(2, dtype=torch.float64, requires_grad=True)

    def merge(z, weight, bias):
        return Anchors(recurrence, matrix, z, k).merge(weight, bias)

    assert gradcheck(merge, (z, weight, bias))
    assert gradcheck(
        lambda z, theta: Anchors(recurrence, matrix, z, k).score(theta)[0], (z, weight)
    )
    assert gradcheck(lambda z: Anchors(recurrence, matrix, z, k).stack(), (z,))
    if k == 2:
        assert gradgradcheck(merge, (z, weight, bias))
        assert gradgradcheck(
            lambda z, theta: Anchors(recurrence, matrix, z, k).score(theta)[0], (z, weight)
        )


@each_recurrence
def test_gradients_of_learnt_edge_weights(recurrence):
    batch = make_batch(2, sizes=[4, 3], channels=2, weighted=True, dtype=torch.float64)
    weight = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(2, dtype=torch.float64, requires_grad=True)

    def readings(edge_weight, z, weight, bias):
        matrix = Adjacency.of(batch.edge_index, 7, edge_weight).chebyshev(z.dtype)
        anchors = Anchors(recurrence, matrix, z, 2)
        return anchors.merge(weight, bias), anchors.score(weight)[0]

    edge_weight = batch.edge_weight.clone().requires_grad_()
    inputs = (edge_weight, batch.x.clone().requires_grad_(), weight, bias)
    assert gradcheck(readings, inputs)
    assert gradgradcheck(readings, inputs)
    fixed = readings(batch.edge_weight, batch.x, weight, bias)
    for learnt, plain in zip(readings(edge_weight, batch.x, weight, bias), fixed, strict=True):
        torch.testing.assert_close(learnt, plain)


@each_recurrence
@pytest.mark.parametrize("k", [1, 2, 3, 4, 7])
def test_gradients_of_the_values_of_the_matrix(recurrence, k):
    """Entry by entry, as autograd has them through a dense matrix."""
    batch = make_batch(3, sizes=[5, 1, 4], channels=3, directed=True, dtype=torch.float64)
    matrix = operator(batch)
    row, column = matrix.pattern.row.long(), matrix.pattern.column.long()
    weight, grad = torch.randn(k + 1, 3).double(), torch.randn(10, 3).double()
    value = torch.randn(len(row)).double()
    mine, plain = value.clone().requires_grad_(), value.clone().requires_grad_()
    learnt = SparseMatrix(matrix.pattern, mine)
    Anchors(recurrence, learnt, batch.x, k).merge(weight).backward(grad)
    full = torch.zeros(10, 10).double().index_put((row, column), plain, accumulate=True)
    hops = NAIVE[recurrence](full, batch.x, k)
    sum(w * hop for w, hop in zip(weight, hops, strict=True)).backward(grad)
    torch.testing.assert_close(mine.grad, plain.grad)


@each_recurrence
@pytest.mark.parametrize("stacked_weights", [False, True])
def test_leading_axes_are_so_many_single_runs(recurrence, stacked_weights):
    batch = make_batch(5, channels=3, dtype=torch.float64)
    z = torch.randn(2, len(batch.x), 3, dtype=torch.float64, requires_grad=True)
    lead = (2,) if stacked_weights else ()
    weight = torch.randn(*lead, 3, 3, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(*lead, 3, dtype=torch.float64, requires_grad=True)
    matrix = operator(batch)
    anchors = Anchors(recurrence, matrix, z, 2)
    merged, score, stack = anchors.merge(weight, bias), anchors.score(weight)[0], anchors.stack()
    assert stack.shape == anchors.shape == (2, 17, 3, 3)
    for seed in range(2):
        own = weight[seed] if stacked_weights else weight
        own_bias = bias[seed] if stacked_weights else bias
        single = Anchors(recurrence, matrix, z[seed], 2)
        torch.testing.assert_close(merged[seed], single.merge(own, own_bias))
        torch.testing.assert_close(score[seed], single.score(own)[0])
        torch.testing.assert_close(stack[seed], single.stack())
    assert gradcheck(
        lambda z, w, b: Anchors(recurrence, matrix, z, 2).merge(w, b), (z, weight, bias)
    )
    assert gradcheck(lambda z, w: Anchors(recurrence, matrix, z, 2).score(w)[0], (z, weight))


@each_recurrence
def test_an_offset_is_added_to_every_row(recurrence):
    batch = make_batch(5, channels=3, loops=True, dtype=torch.float64)
    offset = torch.randn(3, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(3, 3, dtype=torch.float64)
    matrix = operator(batch)
    found = Anchors(recurrence, matrix, batch.x, 2, offset)
    expected = Anchors(recurrence, matrix, batch.x + offset, 2)
    torch.testing.assert_close(found.stack(), expected.stack())
    torch.testing.assert_close(found.merge(weight), expected.merge(weight))
    torch.testing.assert_close(found.score(weight)[0], expected.score(weight)[0])

    def readings(offset):
        anchors = Anchors(recurrence, matrix, batch.x, 2, offset)
        return anchors.merge(weight), anchors.score(weight)[0]

    assert gradcheck(readings, (offset,))


def test_the_merge_keeps_only_z():
    """However many hops there are, what is saved for the gradient stays the same."""
    batch = make_batch(0, sizes=[300], channels=32)
    matrix = operator(batch)
    z = batch.x.clone().requires_grad_()

    def saved_bytes(k: int) -> int:
        weight = torch.randn(k + 1, 32, requires_grad=True)
        sizes: dict[int, int] = {}

        def note(tensor: torch.Tensor) -> torch.Tensor:
            sizes[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            Anchors(chebyshev, matrix, z, k).merge(weight)
        return sum(sizes.values())

    stack = z.numel() * 4
    assert saved_bytes(8) - saved_bytes(1) < stack / 4
    assert saved_bytes(8) < 2 * stack


@each_recurrence
def test_merging_hops_gives_the_sums_of_the_backward_pass(recurrence):
    batch = make_batch(1, sizes=[9], channels=3)
    matrix = operator(batch)
    weight, other = torch.randn(4, 3), torch.randn(9, 3)
    entries = (matrix.pattern.row_ptr, matrix.pattern.column, matrix.value)
    total, sums, _ = merge_hops(recurrence, entries, batch.x, weight, other=other)
    hops = NAIVE[recurrence](matrix @ torch.eye(9), batch.x, 3)
    torch.testing.assert_close(
        total, sum(w * hop for w, hop in zip(weight, hops, strict=True)), rtol=1e-4, atol=1e-5
    )
    expected = batch.x.sum(0), torch.stack([(hop * other).sum(0) for hop in hops])
    torch.testing.assert_close(sums[:2], expected, rtol=1e-4, atol=1e-5)
    # With an offset, the sum of the result too: the gradient of what is added to every row.
    offset = torch.randn(3)
    total, sums, _ = merge_hops(recurrence, entries, batch.x, weight, other=other, offset=offset)
    expected = torch.stack([(hop * (other + offset)).sum(0) for hop in hops]), total.sum(0)
    torch.testing.assert_close(sums[1:], expected, rtol=1e-4, atol=1e-5)


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

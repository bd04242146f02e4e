"""The sparse product against dense matrices, with gradients and leading axes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from lookhops import LookHopsError
from lookhops.ops import Pattern, SparseMatrix
from lookhops.ops.pattern import group
from lookhops.ops.product import entry_products, multiply, sum_into


def random_matrix(
    seed: int, size: int, entries: int, dtype: torch.dtype = torch.float64
) -> tuple[Pattern, torch.Tensor]:
    """A random CSR pattern, entries in any order within a row and maybe repeated, and values."""
    generator = torch.Generator().manual_seed(seed)
    row = (
        torch.randint(0, max(size, 1), (entries if size else 0,), generator=generator).sort().values
    )
    column = torch.randint(0, max(size, 1), (row.numel(),), generator=generator).int()
    row_ptr = torch.searchsorted(row, torch.arange(size + 1), out_int32=True)
    value = torch.randn(row.numel(), generator=generator, dtype=torch.float64).to(dtype)
    return Pattern(row_ptr, column), value


def dense(pattern: Pattern, value: torch.Tensor | None) -> torch.Tensor:
    """The same matrix with all its zeros."""
    value = torch.ones(pattern.column.numel(), dtype=torch.float64) if value is None else value
    full = torch.zeros(pattern.size, pattern.size, dtype=value.dtype)
    place = (pattern.row.long(), pattern.column.long())
    return full.index_put(place, value, accumulate=True)


sizes = st.tuples(st.integers(0, 2**16), st.integers(0, 9), st.integers(0, 30))


@given(sizes, st.integers(1, 5), st.booleans())
def test_product_is_the_dense_product(matrix, channels, with_values):
    pattern, value = random_matrix(*matrix)
    value = value if with_values else None
    x = torch.randn(pattern.size, channels, dtype=torch.float64)
    product = SparseMatrix(pattern, value) @ x
    torch.testing.assert_close(product, dense(pattern, value) @ x)


@given(sizes)
def test_pattern_knows_its_rows_and_its_transpose(matrix):
    pattern, value = random_matrix(*matrix)
    turned = SparseMatrix(pattern.transpose, value[pattern.transpose_order])
    full = dense(pattern, value)
    torch.testing.assert_close(dense(turned.pattern, turned.value), full.mT)
    assert pattern.transpose.row_ptr.dtype == pattern.row_ptr.dtype
    assert pattern.row.tolist() == [
        row
        for row in range(pattern.size)
        for _ in range(int(pattern.row_ptr[row + 1] - pattern.row_ptr[row]))
    ]


@given(st.lists(st.integers(0, 5), max_size=20))
def test_group_is_a_stable_sort(values):
    index = torch.tensor(values, dtype=torch.int32)
    row_ptr, order = group(index, 6)
    assert order.tolist() == sorted(range(len(values)), key=values.__getitem__)
    assert row_ptr.tolist() == [sum(v < bound for v in values) for bound in range(7)]
    assert row_ptr.dtype == order.dtype == torch.int32


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_group_of_many_is_the_same(monkeypatch, dtype):
    index = torch.randint(0, 50, (9000,), generator=torch.Generator().manual_seed(0)).to(dtype)
    counted = group(index, 60)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    for a, b in zip(counted, group(index, 60), strict=True):
        assert torch.equal(a, b)
        assert a.dtype == b.dtype


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("with_values", [False, True])
def test_gradients(symmetric, with_values):
    pattern, value = random_matrix(0, 6, 14)
    if symmetric:  # A + A^T: the caller may then promise that no transpose is needed
        row, column = pattern.row.long(), pattern.column.long()
        both = torch.cat((row, column)) * 6 + torch.cat((column, row))
        both = both.sort().values
        row_ptr = torch.searchsorted(both // 6, torch.arange(7), out_int32=True)
        pattern = Pattern(row_ptr, (both % 6).int())
        value = torch.cos((both // 6 - both % 6).double())
    x = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    if not with_values:
        assert gradcheck(lambda x: SparseMatrix(pattern, None, symmetric) @ x, (x,))
        return
    if symmetric:
        assert gradcheck(lambda x: SparseMatrix(pattern, value, symmetric) @ x, (x,))
        return
    value.requires_grad_()
    assert gradcheck(lambda x, v: SparseMatrix(pattern, v) @ x, (x, value))
    assert gradcheck(lambda v: SparseMatrix(pattern, v) @ x.detach(), (value,))


def test_second_derivatives():
    pattern, value = random_matrix(0, 5, 9)
    x = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    matrix = SparseMatrix(pattern, value)
    assert torch.autograd.gradgradcheck(lambda x: (matrix @ x) ** 3, (x,))


@pytest.mark.parametrize("lead", [(2,), (2, 3), (1,)])
@pytest.mark.parametrize("diagonal", [False, True], ids=["shared", "block-diagonal"])
def test_leading_axes(lead, diagonal):
    slices = torch.Size(lead).numel()
    pattern, value = random_matrix(1, 5 * slices if diagonal else 5, 20)
    if diagonal:  # keep the entries of the diagonal blocks
        inside = pattern.row // 5 == pattern.column // 5
        row = pattern.row[inside]
        row_ptr = torch.searchsorted(
            row, torch.arange(5 * slices + 1, dtype=torch.int32), out_int32=True
        )
        pattern, value = Pattern(row_ptr, pattern.column[inside]), value[inside]
    full = dense(pattern, value)
    x = torch.randn(*lead, 5, 3, dtype=torch.float64, requires_grad=True)
    product = SparseMatrix(pattern, value) @ x
    assert product.shape == x.shape
    for number, index in enumerate(torch.cartesian_prod(*map(torch.arange, lead)).view(slices, -1)):
        block = slice(5 * number, 5 * number + 5) if diagonal else slice(0, 5)
        torch.testing.assert_close(product[tuple(index)], full[block, block] @ x[tuple(index)])
    assert gradcheck(lambda x: SparseMatrix(pattern, value) @ x, (x,))


def test_product_refuses_another_number_of_rows():
    pattern, value = random_matrix(0, 6, 10)
    for rows in (5, 7, 12):
        with pytest.raises(LookHopsError, match=f"6 nodes.*{rows}"):
            SparseMatrix(pattern, value) @ torch.randn(rows, 2, dtype=torch.float64)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_products_of_entries(dtype):
    pattern, _ = random_matrix(3, 7, 20)
    g, x = (torch.randn(7, 4, dtype=torch.float64).to(dtype) for _ in range(2))
    found = entry_products(pattern.row_ptr, pattern.column, g, x)
    expected = (g.double() @ x.double().mT)[pattern.row.long(), pattern.column.long()]
    tolerance = 5e-2 if dtype == torch.bfloat16 else 1e-5
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_precisions(dtype):
    pattern, value = random_matrix(2, 8, 25)
    x = torch.randn(8, 16, dtype=torch.float64)
    product = multiply(pattern.row_ptr, pattern.column, value.to(dtype), x.to(dtype))
    assert product.dtype == dtype
    tolerance = {torch.bfloat16: 1e-1, torch.float16: 1e-2}.get(dtype, 1e-5)
    expected = dense(pattern, value) @ x
    torch.testing.assert_close(product.double(), expected, rtol=tolerance, atol=tolerance)


def test_what_inference_computed_serves_training():
    pattern, value = random_matrix(0, 6, 14)
    x = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    matrix = SparseMatrix(pattern, value)
    with torch.inference_mode():
        assert (matrix @ x).is_inference()
        assert pattern.row.numel() == pattern.transpose.row.numel() == 14
    (matrix @ x).sum().backward()
    torch.testing.assert_close(x.grad, dense(pattern, value).sum(0)[:, None].expand(-1, 2))


def test_entries_past_the_last_row_are_its_padding():
    pattern = Pattern(torch.tensor([0, 1, 3]).int(), torch.tensor([1, 0, 1, 1, 1]).int())
    assert pattern.row.tolist() == [0, 1, 1, 1, 1]
    assert Pattern(torch.zeros(1).int(), torch.zeros(0).int()).row.tolist() == []


@given(st.lists(st.integers(-1, 4), max_size=12))
def test_sums_of_those_that_share_an_index(index):
    index, values = torch.tensor(index).long(), torch.rand(len(index), 2).double().requires_grad_()
    expected = torch.zeros(5, 2).double()
    for place, value in zip(index.tolist(), values.detach(), strict=True):
        if place >= 0:
            expected[place] += value
    torch.testing.assert_close(sum_into(values, index, 5), expected)
    assert gradcheck(lambda v: sum_into(v, index, 5), values)
    assert sum_into(index, index, 5)[1] == int((index == 1).sum())

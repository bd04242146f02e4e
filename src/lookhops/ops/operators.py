# mypy: allow-untyped-defs, allow-incomplete-defs
"""The normalised operators of one hop over an adjacency, as sparse matrices.

The kernels find the values of the Chebyshev operator of undirected edges in two launches in place
of fifteen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lookhops.ops.gpu import can_run_on, tl, triton
from lookhops.ops.product import SparseMatrix

if TYPE_CHECKING:
    from lookhops.ops.adjacency import Adjacency

BLOCK = 128  # rows, or entries, that a program takes


def chebyshev(adjacency: Adjacency, dtype: torch.dtype) -> SparseMatrix:
    r"""The scaled Laplacian :math:`-D^{-1/2} A D^{-1/2}`, without loops."""
    pattern, weight, symmetric = adjacency.pattern, adjacency.weight, adjacency.symmetric
    source, target = adjacency.source, adjacency.target
    if symmetric and _kernels_fit(source, weight, dtype):
        value = chebyshev_by_kernels(pattern.row_ptr, source, target, weight)
        return SparseMatrix(pattern, value, symmetric=True)
    weight = adjacency.weights(dtype).masked_fill(adjacency.is_loop, 0)
    scale = _inverse_sqrt(sum_by(weight, source, adjacency.num_nodes))
    value = -scale.index_select(0, source) * weight * scale.index_select(0, target)
    return SparseMatrix(pattern, value, symmetric=symmetric)


def mixhop(adjacency: Adjacency, dtype: torch.dtype) -> SparseMatrix:
    r"""The operator :math:`\hat D^{-1/2} (A + I) \hat D^{-1/2}`."""
    pattern = adjacency.with_loops
    value = adjacency.weight_with_loops(dtype)
    scale = _inverse_sqrt(sum_by(value, pattern.row, adjacency.num_nodes))
    value = scale.index_select(0, pattern.column) * value * scale.index_select(0, pattern.row)
    return SparseMatrix(pattern, value, symmetric=adjacency.symmetric)


def random_walk(adjacency: Adjacency, dtype: torch.dtype) -> SparseMatrix:
    r"""The transitions :math:`D^{-1} A`, times the edges' factors."""
    weight, target = adjacency.weights(dtype), adjacency.target
    degree = sum_by(weight, target, adjacency.num_nodes)
    degree = torch.where(degree != 0, degree, 1)
    value = weight / degree.index_select(0, target)
    value = value if adjacency.factor is None else value * adjacency.factor.to(dtype)
    return SparseMatrix(adjacency.pattern, value)


def sum_by(value: Tensor, index: Tensor, size: int) -> Tensor:
    """Sum the values that share an index."""
    return value.new_zeros(size).index_add(0, index, value)


def _inverse_sqrt(degree: Tensor) -> Tensor:
    """degree^(-1/2), and zero for a degree of zero."""
    safe = torch.where(degree > 0, degree, torch.ones_like(degree))
    return torch.where(degree > 0, safe.rsqrt(), torch.zeros_like(degree))


def _kernels_fit(column: Tensor, weight: Tensor | None, dtype: torch.dtype) -> bool:
    """Whether the kernels can take these edges: weights that learn need a gradient."""
    learns = weight is not None and weight.requires_grad and torch.is_grad_enabled()
    return can_run_on(column) and dtype == torch.float32 and not learns


def chebyshev_by_kernels(
    row_ptr: Tensor, column: Tensor, row: Tensor, weight: Tensor | None
) -> Tensor:
    """The values of -D^(-1/2) A D^(-1/2), for edges that go both ways; loops have zero."""
    rows, entries = row_ptr.numel() - 1, column.numel()
    scale = torch.empty(rows, dtype=torch.float32, device=column.device)
    value = torch.empty(entries, dtype=torch.float32, device=column.device)
    sizes = {"BLOCK": BLOCK, "num_warps": 4}
    _scale_kernel[(triton.cdiv(rows, BLOCK),)](row_ptr, column, weight, scale, rows, **sizes)
    grid = (triton.cdiv(entries, BLOCK),)
    _value_kernel[grid](column, row, weight, scale, value, entries, **sizes)
    return value


if triton is not None:

    @triton.jit
    def _scale_kernel(row_ptr, column, weight, scale, rows, BLOCK: tl.constexpr):
        """1 / sqrt(d_i), where d_i counts the edges into each row that are no loops."""
        row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        live = row < rows
        start = tl.load(row_ptr + row, mask=live, other=0)
        end = tl.load(row_ptr + row + 1, mask=live, other=0)
        degree = tl.zeros((BLOCK,), tl.float32)
        for j in range(0, tl.max((end - start).to(tl.int32), axis=0)):
            entry = start + j
            here = entry < end
            here = here & (tl.load(column + entry, mask=here, other=0) != row)
            if weight is None:
                degree += here.to(tl.float32)
            else:
                degree += tl.load(weight + entry, mask=here, other=0.0).to(tl.float32)
        found = 1.0 / tl.sqrt_rn(tl.where(degree > 0, degree, 1.0))
        tl.store(scale + row, tl.where(degree > 0, found, 0.0), mask=live)

    @triton.jit
    def _value_kernel(column, row, weight, scale, value, entries, BLOCK: tl.constexpr):
        """-s_i w_ij s_j, and zero for loops, which padding is too."""
        entry = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = entry < entries
        source = tl.load(column + entry, mask=inside, other=0)
        target = tl.load(row + entry, mask=inside, other=0)
        here = inside & (source != target)
        found = -tl.load(scale + source, mask=here, other=0.0)
        if weight is not None:
            found *= tl.load(weight + entry, mask=here, other=0.0).to(tl.float32)
        found *= tl.load(scale + target, mask=here, other=0.0)
        tl.store(value + entry, tl.where(here, found, 0.0), mask=inside)

# mypy: allow-untyped-defs, allow-incomplete-defs
"""Triton kernels for the values of the Chebyshev operator: two launches in place of fifteen.

:func:`chebyshev` stands for what :meth:`lookhops.ops.Adjacency.chebyshev` computes of undirected
edges, which tests hold it to.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.ops.kernels import available, tl, triton

BLOCK = 128  # rows, or entries, that a program takes


def fits(column: Tensor, weight: Tensor | None, dtype: torch.dtype) -> bool:
    """Whether :func:`chebyshev` can take these edges: weights that learn need a gradient."""
    learns = weight is not None and weight.requires_grad and torch.is_grad_enabled()
    single = dtype == torch.float32
    return column.is_cuda and available() and single and not learns and column.numel() > 0


def chebyshev(row_ptr: Tensor, column: Tensor, row: Tensor, weight: Tensor | None) -> Tensor:
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

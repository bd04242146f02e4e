# mypy: allow-untyped-defs, allow-incomplete-defs
"""One-hot labels of the nodes of a batch: one launch on a GPU, where operators take five."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lookhops.graphs.features import feature_columns
from lookhops.ops.gpu import available, tl, triton

ELEMENTS = 2048  # of the result that a program writes
MOST_COLUMNS, MOST_LABELS = 1024, 16


def one_hot(labels: Tensor, node: Tensor, sizes: Sequence[int], dtype: torch.dtype) -> Tensor:
    """The one-hot labels of these nodes, shape (m, the sum of the sizes).

    Args:
        labels: Of all nodes, shape (n, labels).
        node: Numbers of some, shape (m).
        sizes: How many values each label has.
        dtype: Type of the result.
    """
    few = 0 < len(sizes) <= MOST_LABELS and sum(sizes) <= MOST_COLUMNS
    if few and labels.is_cuda and available():
        return one_hot_by_kernel(labels, node, sizes, dtype)
    return feature_columns(None, labels.index_select(0, node), sizes, dtype)


def one_hot_by_kernel(
    labels: Tensor, node: Tensor, sizes: Sequence[int], dtype: torch.dtype
) -> Tensor:
    """:func:`one_hot` in one launch."""
    rows, columns = node.numel(), sum(sizes)
    out = torch.empty(rows, columns, dtype=dtype, device=node.device)
    block = triton.next_power_of_2(columns)
    each = max(ELEMENTS // block, 1)
    starts = tuple(sum(sizes[:i]) for i in range(len(sizes)))
    if rows:
        given = (labels.contiguous(), node, out, starts, rows, columns)
        _one_hot_kernel[(triton.cdiv(rows, each),)](*given, len(sizes), each, block)
    return out


if triton is not None:

    @triton.jit
    def _one_hot_kernel(
        labels,
        node,
        out,
        starts,
        rows,
        columns,
        COUNT: tl.constexpr,
        ROWS: tl.constexpr,
        COLUMNS: tl.constexpr,
    ):
        """One where a column is that of a row's label, else zero."""
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        column = tl.arange(0, COLUMNS)
        live = row < rows
        number = tl.load(node + row, mask=live, other=0).to(tl.int64)
        hit = tl.zeros((ROWS, COLUMNS), tl.float32)
        for i in tl.static_range(COUNT):
            label = tl.load(labels + number * COUNT + i, mask=live, other=0).to(tl.int32)
            hit += (column[None, :] == (starts[i] + label)[:, None]).to(tl.float32)
        place = row.to(tl.int64)[:, None] * columns + column[None, :]
        here = live[:, None] & (column < columns)[None, :]
        tl.store(out + place, hit.to(out.dtype.element_ty), mask=here)

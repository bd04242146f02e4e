"""A sparse matrix times a dense one, with its gradient: what every convolution here rests on."""

import warnings
from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from lookhops.core.errors import LookHopsError
from lookhops.graphs.indexing import segment_of
from lookhops.ops.gpu import MOST_CHANNELS, blocks_of, can_run_on, tl, triton
from lookhops.ops.pattern import Pattern, group

#: Entries to gather at once where their rows of features are wanted.
ENTRIES_AT_ONCE = {"cpu": 1 << 16, "cuda": 1 << 22}
#: Offsets of a matrix's rows, the column of each entry, and its value; none means one everywhere.
CSR = tuple[Tensor, Tensor, Tensor | None]


class SparseMatrix:
    """A square sparse matrix: a pattern and the value of each entry.

    Args:
        pattern: Where the entries are.
        value: What they are, shape :math:`(e)`; none means one everywhere.
        symmetric: Whether the caller knows that the matrix equals its transpose, values included:
            the gradient then needs no transpose.
    """

    def __init__(
        self, pattern: Pattern, value: Tensor | None = None, symmetric: bool = False
    ) -> None:
        self.pattern = pattern
        self.value = value
        self.symmetric = symmetric

    def __call__(self, x: Tensor) -> Tensor:
        r"""The product :math:`A x`, differentiable in :math:`x` and in the values.

        Args:
            x: Shape :math:`(\ldots, n, d)`. With leading axes either every slice meets this matrix,
                or the matrix has as many rows as all slices together, one diagonal block a slice.
        """
        value = None if self.value is None else self.value.to(x.dtype)
        flat, restore = as_matrix(x, self.pattern.size)
        differentiate = torch.is_grad_enabled() and (
            x.requires_grad or (value is not None and value.requires_grad)
        )
        if not differentiate:
            return restore(multiply(self.pattern.row_ptr, self.pattern.column, value, flat))
        return restore(_Product.apply(flat, value, *self.entries()))

    def __matmul__(self, x: Tensor) -> Tensor:
        """As a call, which can be compiled; an operator of our own cannot."""
        return self(x)

    def entries(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
        """CSR of the matrix, CSR of its transpose, and the entry at each place of the latter."""
        ends = self.pattern.row_ptr, self.pattern.column
        if self.symmetric:
            return *ends, *ends, None
        transpose = self.pattern.transpose
        return *ends, transpose.row_ptr, transpose.column, self.pattern.transpose_order


def transposed_values(value: Tensor | None, order: Tensor | None) -> Tensor | None:
    """The values in the order of the transpose, which :meth:`SparseMatrix.entries` gives."""
    return value if value is None or order is None else value.index_select(0, order)


def multiply(row_ptr: Tensor, column: Tensor, value: Tensor | None, x: Tensor) -> Tensor:
    r"""The bare product of a CSR matrix with :math:`x` of shape :math:`(n, d)`, no gradient.

    PyTorch's embedding bags are the fastest product it has for matrices as sparse as graphs.
    """
    if torch.compiler.is_exporting():  # what every runtime has
        messages = x.index_select(0, column)
        messages = messages if value is None else messages * value[:, None]
        row = segment_of(row_ptr, column.numel()).long()
        return x.new_zeros(row_ptr.numel() - 1, x.shape[1]).index_add(0, row, messages)
    if column.numel() == 0 or x.numel() == 0:
        return x.new_zeros(row_ptr.numel() - 1, x.shape[1])
    if can_run_on(x):
        out = x.new_empty(row_ptr.numel() - 1, x.shape[1])
        launch_hop((row_ptr.int(), column.int(), value), x.contiguous(), None, out)
        return out
    if torch.is_grad_enabled():
        return embedding_bag(
            column, x, row_ptr, mode="sum", per_sample_weights=value, include_last_offset=True
        )
    # Bare of what asks for a gradient, else the kernel prepares for one.
    x, value = x.detach(), None if value is None else value.detach()
    return torch.embedding_bag(x, column, row_ptr, False, 0, False, value, True)[0]


def csr_product(x: Tensor, value: Tensor | None, *entries: Tensor | None) -> Tensor:
    """The product with a CSR matrix of any shape, differentiable in both.

    ``entries`` are offsets and columns, those of the transpose, and the entry at each place of it.
    """
    return _Product.apply(x, value, *entries)


class _Product(torch.autograd.Function):
    """A x, whose gradients are A^T g for x and, entry by entry, g_i . x_j for the values."""

    @staticmethod
    def forward(ctx, x, value, *entries):
        needs_x = value is not None and value.requires_grad
        ctx.save_for_backward(x if needs_x else None, value, *entries)
        return multiply(entries[0], entries[1], value, x)

    @staticmethod
    def backward(ctx, grad):
        x, value, row_ptr, column, row_ptr_t, column_t, order = ctx.saved_tensors
        grad_x = grad_value = None
        if ctx.needs_input_grad[0]:
            csr = row_ptr_t, column_t, transposed_values(value, order)
            grad_x = multiply(*csr, grad.contiguous())
        if value is not None and ctx.needs_input_grad[1]:
            grad_value = entry_products(row_ptr, column, grad.contiguous(), x)
        return grad_x, grad_value, None, None, None, None, None


def as_matrix(x: Tensor, size: int):
    """``x`` as a matrix of ``size`` rows, and how to give the product its leading axes back."""
    shape = x.shape
    every = prod(shape[:-1])  # Size.numel() would fix the shape of an exported model
    if size not in (shape[-2], every):
        raise LookHopsError(f"The edges join {size} nodes, but x has shape {tuple(shape)}.")
    if x.dim() == 2:
        return x.contiguous(), lambda y: y
    if size == every:
        return x.reshape(size, shape[-1]), lambda y: y.view(shape)
    wide = x.movedim(-2, 0)
    return wide.reshape(size, -1), lambda y: y.view(wide.shape).movedim(0, -2)


def sum_into(values: Tensor, index: Tensor, size: int) -> Tensor:
    """The sums of the values that share an index, 64-bit, shape (size, ...); -1 counts nowhere."""
    return _SumInto.apply(values, index, size)


class _SumInto(torch.autograd.Function):
    """On a GPU without atomic additions: all padding would meet at one place."""

    @staticmethod
    def forward(ctx, values, index, size):
        place = torch.where(index < 0, size, index)
        ctx.save_for_backward(place)
        if can_run_on(values) and values.is_floating_point() and size > 0:
            row_ptr, order = group(place, size + 1)
            sums = multiply(row_ptr[:-1], order, None, values.reshape(len(values), -1))
            return sums.view(size, *values.shape[1:])
        return values.new_zeros(size + 1, *values.shape[1:]).index_add(0, place, values)[:size]

    @staticmethod
    def backward(ctx, grad):
        (place,) = ctx.saved_tensors
        none = grad.new_zeros(1, *grad.shape[1:])
        return torch.cat((grad, none)).index_select(0, place), None, None


def row_sums(table: Tensor, index: Tensor, offsets: Tensor, row: Tensor, scale: Tensor) -> Tensor:
    """Weighted sums of rows of a table, shape (g, d), differentiable in the table.

    The gradient is the same bits each time, which adding by index on a GPU is not.

    Args:
        table: Shape (n, d).
        index, row, scale: The row of the table, the sum and the weight of each entry, shape (e).
        offsets: First entry of each sum, and the end, shape (g + 1); entries after it are padding.
    """
    csr = offsets.int(), index.int()
    if not (torch.is_grad_enabled() and table.requires_grad):
        return multiply(*csr, scale, table)
    # Padding goes to a row after the last, which is left out.
    entry = torch.arange(index.numel(), device=index.device)
    starts, order = group(torch.where(entry < offsets[-1], index, len(table)).int(), len(table) + 1)
    turned = starts[:-1], row.index_select(0, order).int(), order
    return csr_product(table, scale, *csr, *turned)


def launch_hop(
    csr: CSR,
    x: Tensor,
    before: Tensor | None,
    out: Tensor,
    offset: Tensor | None = None,
    before_offset: Tensor | None = None,
    slices: int = 1,
) -> None:
    """Write A x, or 2 A x - before, to ``out``; an offset is added to rows of x, or of before."""
    rows, channels = out.shape
    grid, sizes = blocks_of(rows, channels, slices)
    given = (*csr, x, before, offset, before_offset)
    _hop_kernel[grid](*given, out, rows, rows // slices, channels, **sizes)


def entry_products(row_ptr: Tensor, column: Tensor, g: Tensor, x: Tensor) -> Tensor:
    r"""The products :math:`g_i \cdot x_j` for every entry :math:`(i, j)`, shape (e).

    Never needs the (e, d) tensors that gathering both sides would make, unless a second derivative
    is wanted. Entries past the last row's end are padding, and get zero.
    """
    second = torch.is_grad_enabled() and (g.requires_grad or x.requires_grad)
    if can_run_on(x) and g.numel() > 0 and not second:
        out = torch.zeros(column.numel(), dtype=torch.float32, device=x.device)
        given = row_ptr.int(), column.int(), [g.contiguous()], x.contiguous(), None, None, out
        for first in range(0, x.shape[1], MOST_CHANNELS):
            launch_entries(*given, first=first)
        return out.to(x.dtype)
    on_cpu = g.device.type == "cpu" and g.dtype in (torch.float32, torch.float64) and not second
    fits = 0 < column.numel() <= g.shape[0] * x.shape[0] and g.numel() > 0  # of the CSR kernel
    if on_cpu and fits and not torch.compiler.is_compiling():
        size = (g.shape[0], x.shape[0])
        zeros = g.new_zeros(column.numel())
        with warnings.catch_warnings():  # PyTorch announces that its CSR tensors are in beta
            warnings.filterwarnings("ignore", message="Sparse ")
            at = torch.sparse_csr_tensor(row_ptr, column, zeros, size, check_invariants=False)
        return torch.sparse.sampled_addmm(at, g, x.mT).values()
    row = Pattern(row_ptr, column).row
    most = ENTRIES_AT_ONCE[g.device.type]
    blocks = zip(row.split(most), column.split(most), strict=True)
    found = torch.cat([(g[i] * x[j]).sum(-1) for i, j in blocks])
    return found * (torch.arange(column.numel(), device=g.device) < row_ptr[-1])


def launch_entries(
    row_ptr: Tensor,
    column: Tensor,
    left: Sequence[Tensor],
    x: Tensor,
    weight: Tensor | None,
    offset: Tensor | None,
    out: Tensor,
    order: float = 1.0,
    after: int = 0,
    first: int = 0,
) -> None:
    """Add to ``out``: the sum of ``left``, each times its weight, at rows, times ``x`` at columns.

    The hops ``left[a]`` have the weights of a merge, shape (..., k + 1, d), of ``a + after + 1``
    hops, or none where there is one; ``order`` is 2 where they are those of Chebyshev polynomials.
    ``first`` is the channel to begin with.
    """
    rows, width = row_ptr.numel() - 1, x.shape[-1]
    slices = 1 if weight is None else weight.shape[:-2].numel()
    (programs, _), sizes = blocks_of(rows, width - first, slices)
    hops = torch.stack(list(left[1:])) if len(left) > 2 else left[-1]
    offset = None if offset is None else offset.contiguous()
    given = (row_ptr, column, left[0], hops, x, weight, offset)
    count = 0 if weight is None else weight.shape[-2]
    terms = {"LEFT": len(left), "AFTER": after, "COUNT": count, "DOUBLE": order}
    _entry_kernel[(programs,)](*given, out, rows, rows // slices, width, first, **terms, **sizes)


if triton is not None:
    from lookhops.ops.gpu import gather_rows, load_rows, load_shift

    @triton.jit
    def _hop_kernel(
        row_ptr,
        column,
        value,
        x,
        before,
        offset,
        before_offset,
        out,
        rows,
        rows_a_slice,
        width,
        ROWS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """out = A x, or 2 A x - before; an offset stands for a bias that x, or before, lacks."""
        block = tl.program_id(0)
        row = block * ROWS + tl.arange(0, ROWS)
        channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
        live = row < rows
        inside = channel < width
        part = (block * ROWS) // rows_a_slice  # which slice this block belongs to
        shift = load_shift(offset, part, channel, inside, width)
        total = gather_rows(row_ptr, column, value, x, row, live, channel, inside, width, shift)
        place = row.to(tl.int64)[:, None] * width + channel[None, :]
        mask = live[:, None] & inside[None, :]
        if before is not None:
            earlier = tl.load(before + place, mask=mask, other=0.0).to(tl.float32)
            if before_offset is not None:
                earlier += load_shift(before_offset, part, channel, inside, width)[None, :]
            total = 2 * total - earlier
        tl.store(out + place, total.to(out.dtype.element_ty), mask=mask)

    @triton.jit
    def _meet(column, x, own, shift, entry, end, channel, inside, width):
        """The product of each row with that of x in an entry's column."""
        here = entry < end
        source = tl.load(column + entry, mask=here, other=0).to(tl.int64)
        met = load_rows(x, source, here, channel, inside, width)
        return tl.sum(own * (met + shift[None, :]), axis=1)

    @triton.jit
    def _add_to(out, entry, end, found):
        """Add to an entry of each row."""
        here = entry < end
        tl.store(out + entry, tl.load(out + entry, mask=here, other=0.0) + found, mask=here)

    @triton.jit
    def _entry_kernel(
        row_ptr,
        column,
        left,
        hops,
        x,
        weight,
        offset,
        out,
        rows,
        rows_a_slice,
        width,
        first,
        LEFT: tl.constexpr,
        AFTER: tl.constexpr,
        COUNT: tl.constexpr,
        DOUBLE: tl.constexpr,
        ROWS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """out[e] += (sum_a w_a left_a)[row of e] . (x + offset)[column of e]."""
        block = tl.program_id(0)
        row = block * ROWS + tl.arange(0, ROWS)
        channel = first + tl.arange(0, CHANNELS)
        live = row < rows
        inside = channel < width
        place = row.to(tl.int64)[:, None] * width + channel[None, :]
        mask = live[:, None] & inside[None, :]
        size = tl.zeros((), tl.int64) + rows * width
        part = (block * ROWS) // rows_a_slice  # which slice of the weights this block belongs to
        own = tl.zeros((ROWS, CHANNELS), dtype=tl.float32)
        for a in tl.static_range(0, LEFT):
            if a == 0:
                value = tl.load(left + place, mask=mask, other=0.0).to(tl.float32)
            else:
                value = tl.load(hops + (a - 1) * size + place, mask=mask, other=0.0).to(tl.float32)
            if weight is not None:
                there = weight + (part * COUNT + a + AFTER + 1) * width + channel
                factor = tl.load(there, mask=inside, other=0.0).to(tl.float32)
                if a > 0:
                    factor *= DOUBLE
                if AFTER > 0:
                    factor *= DOUBLE
                value *= factor[None, :]
            own += value
        shift = load_shift(offset, part, channel, inside, width)
        start = tl.load(row_ptr + row, mask=live, other=0)
        end = tl.load(row_ptr + row + 1, mask=live, other=0)
        for j in range(0, tl.max((end - start).to(tl.int32), axis=0), 4):
            # All four are asked for before anything is written, for which they would wait.
            entry = start + j
            one = _meet(column, x, own, shift, entry, end, channel, inside, width)
            two = _meet(column, x, own, shift, entry + 1, end, channel, inside, width)
            three = _meet(column, x, own, shift, entry + 2, end, channel, inside, width)
            four = _meet(column, x, own, shift, entry + 3, end, channel, inside, width)
            _add_to(out, entry, end, one)
            _add_to(out, entry + 1, end, two)
            _add_to(out, entry + 2, end, three)
            _add_to(out, entry + 3, end, four)

"""The merge of the anchors, which keeps none of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lookhops.ops.gpu import ROWS as HOP_ROWS
from lookhops.ops.gpu import can_run_on, tl, triton
from lookhops.ops.product import (
    CSR,
    SparseMatrix,
    as_matrix,
    entry_products,
    launch_entries,
    launch_hop,
    multiply,
    transposed_values,
)
from lookhops.ops.recurrences import (
    Recurrence,
    alternate_sums,
    chebyshev,
    entry_factors,
    in_powers,
    powers,
)

#: The gradient of a layer norm; a plain sum stands for it where PyTorch has it no more.
LAYER_NORM: Any = getattr(torch.ops.aten, "native_layer_norm_backward", None)
#: The most hops that are merged as powers of the operator: Chebyshev's coefficients sum to 41 at
#: k = 5, so that float32 still has five digits; they more than double with every further hop.
MOST_HOPS = 5
# One warp holds all rows of a block, so that their sums need no exchange; few rows, so that many
# warps wait for memory at the same time.
ROWS, GRADIENT_ROWS = 1, 2  # rows of a block
WARPS = 1
PROGRAMS = 4096  # about: two of the gradient for each place that an H200 has for one
MOST_BLOCKS = 4  # that a program takes: neighbours that lie close are then asked for once
FEWEST_SUMS, MOST_SUMS = 3, 16  # blocks whose sums a program of the gradient adds up
PARTS, PART_CHANNELS = 256, 32  # of the programs' sums that are added up at once


class Merged(NamedTuple):
    """What a merge gives, and what a backward pass wants beside it."""

    total: Tensor  # the sum over j of w^j T_j x, plus b
    #: Over nodes, of x (..., d'), of every T_j x times another tensor (..., k + 1, d'), of total.
    sums: tuple[Tensor, Tensor, Tensor] | None
    hops: Sequence[Tensor]  # T_1 x to T_(k - 1) x


def merge(
    recurrence: Recurrence,
    matrix: SparseMatrix,
    z: Tensor,
    weight: Tensor,
    bias: Tensor,
    offset: Tensor | None = None,
) -> Tensor:
    r""":math:`\sum_j T_j (z + c) \odot w^j + b`, differentiable in all, the matrix's values too.

    Args:
        recurrence: What yields the :math:`T_j z`.
        matrix: The operator of one hop.
        z: Shape :math:`(\ldots, n, d')`.
        weight: The :math:`w^j`, shape :math:`(\ldots, k + 1, d')`.
        bias: The :math:`b`, shape :math:`(\ldots, d')`.
        offset: The :math:`c`, shape :math:`(\ldots, d')`; none means zero.
    """
    exact = weight.dtype in (torch.float32, torch.float64)  # bfloat16 has no digit to spare
    few = weight.shape[-2] <= MOST_HOPS + 1
    if recurrence is not powers and exact and few and weight.device.type == "cpu":
        recurrence, weight = powers, in_powers(recurrence, weight)  # a pass over memory less a hop
    if offset is not None and not merge_fits(z, weight):
        z, offset = z + offset.to(z.dtype).unsqueeze(-2), None
    value = None if matrix.value is None else matrix.value.to(z.dtype)
    if not torch.is_grad_enabled() and not torch.compiler.is_compiling():
        csr = matrix.pattern.row_ptr, matrix.pattern.column, value
        return merge_hops(recurrence, csr, z, weight, bias, offset=offset).total
    return _Merge.apply(z, weight, bias, offset, value, recurrence, *matrix.entries())


class _Merge(torch.autograd.Function):
    r"""The merge, keeping only z: its gradient runs the same recurrence over the transpose.

    Where the values of the matrix learn too it keeps the hops :math:`T_1 z, \ldots, T_{k-1} z`.
    """

    @staticmethod
    def forward(ctx, z, weight, bias, offset, value, recurrence, *entries):
        csr, keep = (*entries[:2], value), ctx.needs_input_grad[4]
        merged = merge_hops(recurrence, csr, z, weight, bias, offset=offset, keep=keep)
        hops = merged.hops if keep else ()
        ctx.save_for_backward(z, weight, offset, value, *entries, *hops)
        ctx.recurrence = recurrence
        return merged.total

    @staticmethod
    def backward(ctx, grad):
        z, weight, offset, value, *entries = ctx.saved_tensors
        (row_ptr, column, row_ptr_t, column_t, order), hops = entries[:5], entries[5:]
        recurrence, learns = ctx.recurrence, ctx.needs_input_grad[4]
        if learns and torch.is_grad_enabled():  # a second derivative is wanted: through them too
            csr = row_ptr, column, value
            hops = merge_hops(recurrence, csr, z, weight, offset=offset, keep=True).hops
        value_t = transposed_values(value, order)
        csr, grad = (row_ptr_t, column_t, value_t), grad.contiguous()
        total, sums, grad_hops = merge_hops(
            recurrence, csr, grad, weight, other=z, offset=offset, keep=learns
        )
        grad_value = None
        if learns:
            left, right = (grad, *grad_hops), (z, *hops)
            grad_value = merge_entries(recurrence, row_ptr, column, left, right, weight, offset)
        assert sums is not None
        grad_bias, grad_weight, grad_offset = (one.to(weight.dtype) for one in sums)
        vector = (*weight.shape[:-2], weight.shape[-1])
        return (
            total,
            grad_weight.sum_to_size(weight.shape),
            grad_bias.sum_to_size(vector),
            None if offset is None else grad_offset.sum_to_size(vector),
            grad_value,
            *[None] * 6,
        )


def merge_hops(
    recurrence: Recurrence,
    csr: CSR,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    other: Tensor | None = None,
    offset: Tensor | None = None,
    keep: bool = False,
) -> Merged:
    """Run a recurrence from ``x`` and merge it on the way, without gradient.

    Never more than two hops are alive, unless ``keep`` wants them. The sums are taken where
    ``other`` is given; ``offset`` is added to its rows, else to those of ``x``.
    """
    if merge_fits(x, weight):
        return merge_by_kernel(recurrence, csr, x, weight, bias, other, offset)
    if offset is not None and other is not None:
        other = other + offset.unsqueeze(-2)
    elif offset is not None:
        x = x + offset.unsqueeze(-2)
    total: Tensor | None = None
    sums: list[Tensor] = []
    hops: list[Tensor] = []

    def step(x: Tensor) -> Tensor:
        flat, restore = as_matrix(x, csr[0].numel() - 1)
        return restore(multiply(*csr, flat))

    for part, hop in zip(weight.unbind(-2), recurrence(step, x, weight.shape[-2] - 1), strict=True):
        part = part.unsqueeze(-2)
        if keep:
            hops.append(hop)
        if other is not None:
            sums += _node_sums(hop, other, with_own=total is None)
        if total is not None and torch.compiler.is_compiling():
            # PyTorch 2.11 loses the gradient of what a compiled forward changes in place.
            total = torch.addcmul(total, part, hop)
        elif total is not None:
            total.addcmul_(part, hop)
        elif bias is not None:
            total = torch.addcmul(bias.unsqueeze(-2), part, hop)
        else:
            total = part * hop
    assert total is not None
    if other is None:
        return Merged(total, None, hops[1:-1])
    of_x, *products = sums
    # Without an offset the sum of the result is not needed.
    of_total = torch.zeros_like(of_x) if offset is None else total.sum(-2)
    return Merged(total, (of_x, torch.stack(products, dim=-2), of_total), hops[1:-1])


def merge_entries(
    recurrence: Recurrence,
    row_ptr: Tensor,
    column: Tensor,
    left: Sequence[Tensor],
    right: Sequence[Tensor],
    weight: Tensor,
    offset: Tensor | None = None,
) -> Tensor:
    r"""The gradient of a merge in the values of its matrix, shape (e), no gradient.

    .. math::
        \frac{\partial}{\partial A_{ij}} = \sum_{a + b < k}
        \bigl(m^{ab} \odot T_a(A^\top) g\bigr)_i \cdot \bigl(T_b(A)\,(z + c)\bigr)_j

    with the factors :math:`m^{ab}` of :func:`~lookhops.ops.recurrences.entry_factors`; the hops of
    the gradient :math:`g` are ``left``, those of :math:`z` ``right``, without the offset :math:`c`.
    """
    k = weight.shape[-2] - 1
    if k == 0:
        return weight.new_zeros(column.numel())
    if merge_fits(right[0], weight):
        out = torch.zeros(column.numel(), dtype=torch.float32, device=weight.device)
        parts = alternate_sums(recurrence, weight).contiguous()
        order = 2.0 if recurrence is chebyshev else 1.0
        for b in range(k):
            shift = offset if b == 0 else None
            given = (row_ptr, column, left[: k - b], right[b], parts, shift, out)
            launch_entries(*given, order=order, after=b)
        return out.to(weight.dtype)
    if offset is not None:
        right = (right[0] + offset.to(right[0].dtype).unsqueeze(-2), *right[1:])
    factors, size = entry_factors(recurrence, weight), row_ptr.numel() - 1
    total = weight.new_zeros(column.numel())
    for b in range(k):
        rows = torch.stack([factors[a, b].unsqueeze(-2) * left[a] for a in range(k - b)]).sum(0)
        flat = (as_matrix(side, size)[0] for side in (rows, right[b]))
        total = total + entry_products(row_ptr, column, *flat)
    return total


def _node_sums(x: Tensor, other: Tensor, with_own: bool) -> list[Tensor]:
    """The sums over nodes of x, where that is wanted, and of x times ``other``.

    They are the gradients of a layer norm's bias and weight with mean zero and deviation one, for
    which there is a kernel that reads x once.
    """
    on_cpu = x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64)
    second = torch.is_grad_enabled()  # a second derivative is wanted, which the kernel has not
    fits = LAYER_NORM is not None and on_cpu and x.dim() == 2 and x.shape == other.shape
    if second or torch.compiler.is_compiling() or not fits:
        return [*([x.sum(-2)] if with_own else []), (x * other).sum(-2)]
    mean, one, weight = x.new_zeros(len(x), 1), x.new_ones(len(x), 1), x.new_ones(x.shape[1])
    _, products, of_x = LAYER_NORM(
        x, other, x.shape[1:], mean, one, weight, weight, [False, True, with_own]
    )
    return [of_x, products] if with_own else [products]


def merge_fits(x: Tensor, weight: Tensor) -> bool:
    """Whether the kernel can take these tensors: one slice of weights for each block of rows."""
    if not can_run_on(x):  # before sizes are read, which would become constants of an export
        return False
    slices, rows = weight.shape[:-2].numel(), x.shape[:-1].numel()
    return (
        2 <= weight.shape[-2] <= 9
        and x.shape[-1] <= 256
        and x.dtype in (torch.float32, torch.bfloat16)
        and x.shape[:-2].numel() == slices
        and (slices == 1 or (rows // slices) % HOP_ROWS == 0)
    )


def merge_by_kernel(
    recurrence: Recurrence,
    csr: CSR,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    other: Tensor | None,
    offset: Tensor | None,
) -> Merged:
    """:func:`merge_hops` in a launch a hop."""
    shape, (count, channels) = x.shape, weight.shape[-2:]
    flat = x.reshape(-1, channels)
    rows, slices = flat.shape[0], weight.shape[:-2].numel()
    shift = offset if other is None else None
    hops = _hops_but_the_last(recurrence, csr, flat, count - 2, shift, slices)
    total = torch.empty_like(flat)
    # Sums over nodes are taken a program: those of several blocks of rows leave less to add up.
    block, fewest, most = ROWS, 1, MOST_BLOCKS
    if other is not None:
        block, fewest, most = GRADIENT_ROWS, FEWEST_SUMS, MOST_SUMS
    blocks = min(max(rows // (block * PROGRAMS), fewest), most)
    programs = triton.cdiv(rows // slices, block * blocks)  # of one slice
    parts = None
    if other is not None:
        parts = x.new_empty(slices * programs, count + 2, channels, dtype=torch.float32)
    given = (None if t is None else t.contiguous() for t in (weight, bias, other, offset))
    counts = rows, rows // slices, programs, blocks, channels
    sizes = {"ROWS": block, "CHANNELS": triton.next_power_of_2(channels), "num_warps": WARPS}
    hop = {"K": count - 1, "CHEBYSHEV": recurrence is chebyshev}
    tensors = (*csr, flat, hops if count > 2 else None, *given, total, parts)
    _merge_kernel[(slices * programs,)](*tensors, *counts, **hop, **sizes, num_stages=1)
    sums = None if parts is None else add_up(parts, weight)
    return Merged(total.view(shape), sums, hops.view(-1, *shape).unbind(0))


def add_up(parts: Tensor, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What the programs of each slice found, added up: of x, of products, of the total."""
    stack, (count, channels) = weight.shape[:-2], weight.shape[-2:]
    slices = stack.numel()
    shapes = (*stack, channels), (*stack, count, channels), (*stack, channels)
    of_x, products, of_total = (parts.new_empty(shape) for shape in shapes)
    counts = len(parts) // slices, count, channels
    sizes = {"PARTS": PARTS, "CHANNELS": PART_CHANNELS, "num_warps": 8}
    _add_up_kernel[slices, count + 2, triton.cdiv(channels, PART_CHANNELS)](
        parts, of_x, products, of_total, *counts, **sizes
    )
    return of_x, products, of_total


def _hops_but_the_last(
    recurrence: Recurrence, csr: CSR, x: Tensor, count: int, offset: Tensor | None, slices: int
) -> Tensor:
    """T_1 x to T_count x, written out; the hop after them is merged where it is computed."""
    hops = x.new_empty(max(count, 0), *x.shape)
    for j in range(count):  # hops[j] = T_{j+1} x
        last = x if j == 0 else hops[j - 1]
        before = None
        if recurrence is chebyshev and j > 0:
            before = x if j == 1 else hops[j - 2]
        shifts = offset if j == 0 else None, offset if j == 1 else None
        launch_hop(csr, last, before, hops[j], *shifts, slices)
    return hops


if triton is not None:
    from lookhops.ops.gpu import gather_rows, load_shift

    @triton.jit
    def _merge_kernel(
        row_ptr,
        column,
        value,
        x,
        hops,
        weight,
        bias,
        other,
        offset,
        total,
        parts,
        rows,
        rows_a_slice,
        programs_a_slice,
        blocks,
        width,
        K: tl.constexpr,
        CHEBYSHEV: tl.constexpr,
        ROWS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """total = sum_j w_j T_j x + b, the last hop computed here; sums of T_j x times other.

        An offset stands for a bias that x lacks, or other where there is one. A program takes
        some blocks of rows of one slice of the weights, and adds up their sums.
        """
        program = tl.program_id(0)
        part = program // programs_a_slice  # which slice of the weights it belongs to
        first = part * rows_a_slice + (program % programs_a_slice) * (ROWS * blocks)
        end = (part + 1) * rows_a_slice
        channel = tl.arange(0, CHANNELS)
        inside = channel < width
        size = tl.zeros((), tl.int64) + rows * width
        weight += part * (K + 1) * width + channel
        shift = load_shift(offset, part, channel, inside, width)
        hop_shift = shift if other is None else shift * 0
        own = load_shift(bias, part, channel, inside, width)
        found = (tl.zeros((CHANNELS,), tl.float32),) * (K + 3)

        for block in range(blocks):
            row = first + block * ROWS + tl.arange(0, ROWS)
            live = row < end
            place = row.to(tl.int64)[:, None] * width + channel[None, :]
            mask = live[:, None] & inside[None, :]
            hop = tl.load(x + place, mask=mask, other=0.0).to(tl.float32)
            if other is not None:
                with_other = tl.load(other + place, mask=mask, other=0.0).to(tl.float32)
                with_other = tl.where(mask, with_other + shift[None, :], 0.0)
                found = (found[0] + tl.sum(hop, axis=0),) + found[1:]
            hop = tl.where(mask, hop + hop_shift[None, :], 0.0)
            before = hop
            merged = tl.zeros((ROWS, CHANNELS), dtype=tl.float32) + own[None, :]
            for j in tl.static_range(0, K + 1):
                if j > 0:
                    if j < K:  # written out before
                        there = hops + (j - 1) * size + place
                        now = tl.load(there, mask=mask, other=0.0).to(tl.float32)
                    else:
                        if K == 1:
                            last, by = x, hop_shift
                        else:
                            last, by = hops + (K - 2) * size, hop_shift * 0
                        now = gather_rows(
                            row_ptr, column, value, last, row, live, channel, inside, width, by
                        )
                        if CHEBYSHEV and K > 1:
                            now = 2 * now - before
                    before = hop
                    hop = now
                factor = tl.load(weight + j * width, mask=inside, other=0.0).to(tl.float32)
                merged += hop * factor[None, :]
                if other is not None:
                    products = found[j + 1] + tl.sum(hop * with_other, axis=0)
                    found = found[: j + 1] + (products,) + found[j + 2 :]
            if other is not None:
                merged = tl.where(mask, merged, 0.0)
                found = found[: K + 2] + (found[K + 2] + tl.sum(merged, axis=0),)
            tl.store(total + place, merged.to(total.dtype.element_ty), mask=mask)
        if other is not None:
            parts += program * (K + 3) * width + channel
            for j in tl.static_range(0, K + 3):
                tl.store(parts + j * width, found[j], mask=inside)

    @triton.jit
    def _add_up_kernel(
        parts,
        own,
        products,
        of_total,
        programs,
        count,
        width,
        PARTS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """The sums of one slice over its programs, each to where its parameter's gradient is."""
        part = tl.program_id(0)
        number = tl.program_id(1)
        channel = tl.program_id(2) * CHANNELS + tl.arange(0, CHANNELS)
        inside = channel < width
        found = tl.zeros((PARTS, CHANNELS), tl.float32)
        for first in range(0, programs, PARTS):
            program = first + tl.arange(0, PARTS)
            row = (part * programs + program).to(tl.int64) * (count + 2) + number
            here = (program < programs)[:, None] & inside[None, :]
            found += tl.load(parts + row[:, None] * width + channel[None, :], mask=here, other=0.0)
        total = tl.sum(found, axis=0)
        if number == 0:
            tl.store(own + part * width + channel, total, mask=inside)
        elif number == count + 1:
            tl.store(of_total + part * width + channel, total, mask=inside)
        else:
            row = part * count + number - 1
            tl.store(products + row * width + channel, total, mask=inside)

"""The maximum over the neighbours of every node, with its gradient."""

from itertools import pairwise

import torch
from torch import Tensor

from lookhops.ops.gpu import available, blocks_of, tl, triton
from lookhops.ops.pattern import Pattern
from lookhops.ops.product import multiply

#: Entries whose rows of features are gathered at once: few enough to stay in the cache.
BLOCK = 1 << 13


def neighbour_max(pattern: Pattern, x: Tensor) -> tuple[Tensor, Tensor]:
    r""":math:`\max_j x_j` over the entries of each row and each channel, shape (n, d); and x again.

    Neighbours that share a maximum share its gradient; of a maximum of zero one share is lost, as
    in PyTorch's own, which counts the zero it starts from. The maximum of no entry is zero. Works
    through the entries block by block: there may be far more than fit with all their features. What
    is computed from the x that it gives has its gradient added here, not in a pass of its own.

    Args:
        pattern: Row :math:`i` lists the neighbours of node i.
        x: Node features, shape :math:`(n, d)`.
    """
    return _NeighbourMax.apply(x, pattern)


class _NeighbourMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, pattern):
        ctx.set_materialize_grads(False)
        ctx.pattern, part = pattern, None
        if fits(x):
            x = x.contiguous()
            highest = torch.empty_like(x)
            # The part of the gradient that each of the largest gets.
            part = torch.empty_like(x, dtype=torch.promote_types(x.dtype, torch.float32))
            given = pattern.row_ptr.int(), pattern.column.int(), x, highest, part
            grid, sizes = _sizes_of(x)
            _highest_kernel[grid](*given, *x.shape, **sizes)
        else:
            begin = torch.where(pattern.row_ptr.diff() > 0, -torch.inf, 0).to(x.dtype)
            highest = begin[:, None].expand_as(x).contiguous()
            blocks = zip(pattern.row.split(BLOCK), pattern.column.split(BLOCK), strict=True)
            for row, column in blocks:
                index = row.long()[:, None].expand(-1, x.shape[1])
                highest.scatter_reduce_(0, index, x.index_select(0, column), "amax")
        ctx.save_for_backward(x, highest, part)
        return highest, x

    @staticmethod
    def backward(ctx, grad, added):
        (x, highest, part), pattern = ctx.saved_tensors, ctx.pattern
        if grad is None:
            return added, None
        grad_x = torch.empty_like(x)
        if part is not None:
            added = None if added is None else added.contiguous()
            turned = pattern.transpose.row_ptr.int(), pattern.transpose.column.int()
            given = *turned, x, highest, part, grad.contiguous(), added, grad_x
            grid, sizes = _sizes_of(x)
            _share_kernel[grid](*given, *x.shape, **sizes)
            return grad_x, None
        share = torch.empty_like(grad)
        for rows, row, column, total in _blocks(pattern):
            hit = x.index_select(0, column).eq_(highest.index_select(0, row))  # 0.0 or 1.0
            ties = total(hit).add_(highest[rows] == 0)
            torch.div(grad[rows], ties, out=share[rows])
        for rows, row, column, total in _blocks(pattern.transpose):
            hit = x.index_select(0, row).eq_(highest.index_select(0, column))
            found = total(hit.mul_(share.index_select(0, column)))
            grad_x[rows] = found if added is None else found.add_(added[rows])
        return grad_x, None


def _blocks(pattern: Pattern):
    """Runs of whole rows: which, their entries' rows and columns, and how to sum over each row.

    On a GPU, which is not to be asked where rows end, all of them are one run.
    """
    row_ptr, size, device = pattern.row_ptr, pattern.size, pattern.column.device
    cuts = [0, size]
    if device.type == "cpu" and pattern.column.numel() > BLOCK:
        wanted = torch.arange(0, pattern.column.numel(), BLOCK).to(row_ptr)
        cuts = sorted({*torch.searchsorted(row_ptr, wanted).clamp(max=size).tolist(), size})
    for first, last in pairwise(cuts):
        start, end = (0, None) if len(cuts) == 2 else row_ptr[[first, last]].tolist()
        column = pattern.column[start:end]
        offsets = row_ptr[first : last + 1] - start
        entry = torch.arange(column.numel(), dtype=column.dtype, device=device)

        def total(x: Tensor, offsets: Tensor = offsets, entry: Tensor = entry) -> Tensor:
            return multiply(offsets, entry, None, x)

        yield slice(first, last), pattern.row[start:end], column, total


def fits(x: Tensor) -> bool:
    """Whether the kernels can take these features, which may be of double precision."""
    return x.is_cuda and available() and x.numel() > 0


def _sizes_of(x):
    """The grid and the sizes of programs that each take a block of rows, and their precision."""
    grid, sizes = blocks_of(*x.shape)
    return grid, {"WIDE": tl.float64 if x.dtype == torch.float64 else tl.float32, **sizes}


if triton is not None:
    from lookhops.ops.gpu import ENTRIES

    @triton.jit
    def _block_of(row_ptr, rows, width, ROWS: tl.constexpr, CHANNELS: tl.constexpr):
        """Channels of this program, its elements' places, and the first and last of their entries.

        Beside them which channels and which elements exist, and the most entries of a row.
        """
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        channel = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
        live = row < rows
        inside = channel < width
        place = row.to(tl.int64)[:, None] * width + channel[None, :]
        start = tl.load(row_ptr + row, mask=live, other=0)
        end = tl.load(row_ptr + row + 1, mask=live, other=0)
        longest = tl.max(end - start, axis=0)
        return channel, inside, place, live[:, None] & inside[None, :], start, end, longest

    @triton.jit
    def _highest_kernel(
        row_ptr,
        column,
        x,
        highest,
        part,
        rows,
        width,
        WIDE: tl.constexpr,
        ROWS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """The maximum over a row's entries, and one over the number of those that share it."""
        channel, inside, place, mask, start, end, longest = _block_of(
            row_ptr, rows, width, ROWS, CHANNELS
        )
        found = tl.full((ROWS, CHANNELS), float("-inf"), WIDE)
        ties = tl.zeros((ROWS, CHANNELS), WIDE)
        for first in range(0, longest, ENTRIES):
            for j in tl.static_range(ENTRIES):
                entry = start + first + j
                here = entry < end
                source = tl.load(column + entry, mask=here, other=0).to(tl.int64)
                both = here[:, None] & inside[None, :]
                there = source[:, None] * width + channel[None, :]
                value = tl.load(x + there, mask=both, other=float("-inf")).to(WIDE)
                ties = tl.where(value > found, 1.0, ties + (both & (value == found)).to(WIDE))
                found = tl.maximum(found, value)
        found = tl.where((end > start)[:, None], found, 0.0)
        ties = tl.maximum(ties, 1.0) + (found == 0).to(WIDE)
        tl.store(highest + place, found.to(highest.dtype.element_ty), mask=mask)
        tl.store(part + place, (1.0 / ties).to(part.dtype.element_ty), mask=mask)

    @triton.jit
    def _share_kernel(
        row_ptr,
        column,
        x,
        highest,
        part,
        grad,
        added,
        out,
        rows,
        width,
        WIDE: tl.constexpr,
        ROWS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """Over a row's entries the sum of their parts of the gradient, where x is the maximum.

        What is added to it comes from elsewhere.
        """
        channel, inside, place, mask, start, end, longest = _block_of(
            row_ptr, rows, width, ROWS, CHANNELS
        )
        own = tl.load(x + place, mask=mask, other=0.0)
        if added is None:
            total = tl.zeros((ROWS, CHANNELS), WIDE)
        else:
            total = tl.load(added + place, mask=mask, other=0.0).to(WIDE)
        for first in range(0, longest, ENTRIES):
            for j in tl.static_range(ENTRIES):
                entry = start + first + j
                here = entry < end
                source = tl.load(column + entry, mask=here, other=0).to(tl.int64)
                there = source[:, None] * width + channel[None, :]
                both = here[:, None] & inside[None, :]
                hit = both & (tl.load(highest + there, mask=both, other=0.0) == own)
                given = tl.load(grad + there, mask=hit, other=0.0).to(WIDE)
                total += given * tl.load(part + there, mask=hit, other=0.0).to(WIDE)
        tl.store(out + place, total.to(out.dtype.element_ty), mask=mask)

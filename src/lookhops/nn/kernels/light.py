# mypy: allow-untyped-defs, allow-incomplete-defs
"""A light layer in one kernel: hops, merge, activation and readout of one graph.

A program takes a graph from one hop to the next, and waits for itself in between. What it has
written it reads again at once, while it still lies in the cache. It stands for
:func:`lookhops.hops.merge.merge` and then :func:`lookhops.nn.activate.activate`, which tests hold
it to.
"""

from __future__ import annotations

import torch

from lookhops.hops.kernels import tl, triton
from lookhops.hops.merge import merge_hops
from lookhops.hops.recurrences import chebyshev
from lookhops.nn.kernels.layer import activation_gradient

#: Nodes of the largest graph that one program takes: it has one multiprocessor to itself.
LARGEST = 512
ROWS, WARPS = 8, 4  # rows of a graph that a program takes at once, and its warps
PADDING_ROWS = 512  # a program for every so many rows of a slice takes its share of the padding


class LightLayer(torch.autograd.Function):
    r"""x = relu(score z' / |z'|) of the kept nodes; z' = sum_j T_j (z + c) w^j + b of all.

    Gives x and each graph's maximum and mean of it. Of the entries the first three are the
    operator's offsets, columns and values, the others those of its transpose. The gradient is that
    of the activation and then that of the merge, each over rows: these are many, and graphs are
    few.
    """

    @staticmethod
    def forward(ctx, z, weight, bias, offset, score, recurrence, normalize, graphs, *entries):
        """One kernel; of the graphs: nodes alive, those kept, graph of each, first and last."""
        z, (alive, kept, graph, start, end) = z.contiguous(), graphs
        width, k, count = z.shape[-1], weight.shape[-2] - 1, start.numel()
        merged, x = torch.empty_like(z), torch.empty_like(z)
        hops = z.new_empty(k - 1, *z.shape)
        like = {"dtype": torch.float32, "device": z.device}
        scale, read = torch.empty(z.shape[:-1], **like), z.new_empty(count, 2 * width)
        ties, nodes = torch.empty(count, width, **like), torch.empty(count, **like)
        given = (*entries[:3], z, weight, bias, offset, score, alive, kept, start, end)
        into = (merged, x, hops, scale, read, ties, nodes)
        grid, counts, sizes = _programs(z, weight, count)
        _light_kernel[grid](
            *given, *into, *counts, CHEBYSHEV=recurrence is chebyshev, NORMALIZE=normalize, **sizes
        )
        saved = (z, weight, offset, score, kept, graph, merged, scale, read, ties, nodes)
        ctx.save_for_backward(*saved, *entries[3:])
        ctx.recurrence, ctx.normalize = recurrence, normalize
        ctx.set_materialize_grads(False)  # nobody reads the last layer's x
        return x, read

    @staticmethod
    def backward(ctx, grad_x, grad_read):
        """The gradient of the activation, then that of the merge."""
        z, weight, offset, score, kept, graph, merged, scale, read, *rest = ctx.saved_tensors
        of_read = (read, torch.zeros_like(read) if grad_read is None else grad_read, *rest[:2])
        grad, grad_score = activation_gradient(
            merged, score, kept, graph, scale, of_read, grad_x, ctx.normalize, relu=True
        )
        row_ptr, column, value = rest[2:]
        found = merge_hops(
            ctx.recurrence, row_ptr, column, value, grad, weight, other=z, offset=offset
        )
        assert found.sums is not None
        of_bias, of_weight, of_offset = (one.to(weight.dtype) for one in found.sums)
        grads = (found.total, of_weight, of_bias, None if offset is None else of_offset, grad_score)
        return *grads, *[None] * 9


def _programs(z, weight, graphs):
    """The grid, the counts and the sizes of programs that take a graph, or padding, each."""
    rows, slices, width = z.shape[:-1].numel(), weight.shape[:-2].numel(), z.shape[-1]
    padding = triton.cdiv(rows // slices, PADDING_ROWS)
    counts = (graphs, graphs // slices, rows // slices, padding, rows * width, width)
    sizes = {"K": weight.shape[-2] - 1, "ROWS": ROWS, "CHANNELS": triton.next_power_of_2(width)}
    return (graphs + slices * padding,), counts, {**sizes, "num_warps": WARPS, "num_stages": 1}


if triton is not None:
    ENTRIES = tl.constexpr(4)  # of each row whose features are asked for at once
    FEW = tl.constexpr(8)  # entries of a row, up to which all rows of a graph are taken alike

    # What is said of channels has two axes from the start, so that in loops over rows it does not
    # change its place in registers. A matrix is (offsets, columns, values, most entries of a row
    # of this graph).

    @triton.jit
    def _padding_rows(program, end, graphs_a_slice, rows_a_slice, padding):
        """First and last row of the padding that a program past the graphs' fills."""
        part = program // padding
        first = tl.load(end + (part + 1) * graphs_a_slice - 1)
        last = (part + 1) * rows_a_slice + first * 0
        each = (last - first + padding - 1) // padding
        first += (program % padding) * each
        return first, tl.minimum(last, first + each)

    @triton.jit
    def _most_entries(row_ptr, alive, first, last):
        """The most entries of a row of a graph; then offsets and masks lie in the cache."""
        most = tl.zeros((128,), tl.int32)
        for begin in range(first, last, 128):
            row = begin + tl.arange(0, 128)
            exists = row < last
            count = tl.load(row_ptr + row + 1, mask=exists, other=0)
            count -= tl.load(row_ptr + row, mask=exists, other=0)
            if alive is not None:
                exists = exists & (tl.load(alive + row, mask=exists, other=0) != 0)
            most = tl.maximum(most, tl.where(exists, count, 0).to(tl.int32))
        return tl.max(most, axis=0)

    @triton.jit
    def _rows(begin, last, alive, width, ROWS: tl.constexpr, CHANNELS: tl.constexpr):
        """Rows, which exist, which of them are alive, and the places of their elements."""
        row = begin + tl.arange(0, ROWS)
        exists = row < last
        lives = exists
        if alive is not None:
            lives = exists & (tl.load(alive + row, mask=exists, other=0) != 0)
        place = row.to(tl.int64)[:, None] * width + tl.arange(0, CHANNELS)[None, :]
        return row, exists, lives, place

    @triton.jit
    def _load_vector(pointer, inside, CHANNELS: tl.constexpr):
        """A row of channels in single precision."""
        pointer += tl.arange(0, CHANNELS)[None, :]
        return tl.load(pointer, mask=inside, other=0.0).to(tl.float32)

    @triton.jit
    def _load_weights(weight, inside, width, K: tl.constexpr, CHANNELS: tl.constexpr):
        """The weights of all hops."""
        found = (tl.zeros((1, CHANNELS), tl.float32),) * (K + 1)
        for j in tl.static_range(0, K + 1):
            own = _load_vector(weight + j * width, inside, CHANNELS)
            found = found[:j] + (own,) + found[j + 1 :]
        return found

    @triton.jit
    def _gather(matrix, x, shift, row, lives, inside, width):
        """The sums over neighbours of (shifted) rows of x, for some rows."""
        row_ptr, column, value, most = matrix
        channel = tl.arange(0, inside.shape[1])[None, :]
        start = tl.load(row_ptr + row, mask=lives, other=0)
        end = tl.load(row_ptr + row + 1, mask=lives, other=0)
        if most > FEW:  # else no warp waits for the others
            most = tl.max((end - start).to(tl.int32), axis=0)
        total = tl.zeros((row.shape[0], inside.shape[1]), tl.float32)
        for first in range(0, most, ENTRIES):
            for one in tl.static_range(ENTRIES):
                entry = start + first + one
                here = entry < end
                source = tl.load(column + entry, mask=here, other=0).to(tl.int64)
                factor = tl.load(value + entry, mask=here, other=0.0).to(tl.float32)
                asked = (factor != 0)[:, None] & inside  # not what masks have taken out
                part = tl.load(x + source[:, None] * width + channel, mask=asked, other=0.0)
                total += (part.to(tl.float32) + shift) * factor[:, None]
        return total

    @triton.jit
    def _merge_from(
        matrix,
        z,
        hops,
        size,
        factors,
        shift,
        at,
        j: tl.constexpr,
        K: tl.constexpr,
        CHEBYSHEV: tl.constexpr,
    ):
        """b_j of some rows, by Clenshaw's rule or Horner's: the merge is b_0.

        b_j = w_j z + 2 A b_(j + 1) - b_(j + 2), where the last has only one A, and with powers
        b_j = w_j z + A b_(j + 1). Those from 1 to K - 1 stand in hops; b_K = w_K z stands nowhere.
        """
        row, lives, place, inside, width = at
        mask = lives[:, None] & inside
        own = tl.load(z + place, mask=mask, other=0.0).to(tl.float32) + shift
        if j == K - 1:
            around = factors[K] * _gather(matrix, z, shift, row, lives, inside, width)
        else:
            around = _gather(matrix, hops + j * size, shift * 0, row, lives, inside, width)
        if CHEBYSHEV and j > 0:
            around *= 2
        total = own * factors[j] + around
        if CHEBYSHEV and j + 2 == K:
            total -= own * factors[K]
        elif CHEBYSHEV and j + 2 < K:
            there = hops + (j + 1) * size + place
            total -= tl.load(there, mask=mask, other=0.0).to(tl.float32)
        return tl.where(mask, total, 0.0)

    @triton.jit
    def _light_kernel(
        row_ptr,
        column,
        value,
        z,
        weight,
        bias,
        offset,
        score,
        alive,
        kept,
        start,
        end,
        merged,
        x,
        hops,
        scale,
        read,
        ties,
        nodes,
        graphs,
        graphs_a_slice,
        rows_a_slice,
        padding,
        size,
        width,
        K: tl.constexpr,
        CHEBYSHEV: tl.constexpr,
        NORMALIZE: tl.constexpr,
        ROWS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """The layer of one graph; all hops but the last are written to hops on the way."""
        program = tl.program_id(0)
        inside = tl.arange(0, CHANNELS)[None, :] < width
        if program >= graphs:
            beyond = program - graphs
            first, last = _padding_rows(beyond, end, graphs_a_slice, rows_a_slice, padding)
            for begin in range(first, last, ROWS):
                row, exists, lives, place = _rows(begin, last, None, width, ROWS, CHANNELS)
                zeros = tl.zeros((ROWS, CHANNELS), x.dtype.element_ty)
                tl.store(x + place, zeros, mask=exists[:, None] & inside)
            return
        first = tl.load(start + program)
        last = tl.load(end + program)
        part = program // graphs_a_slice  # which slice of the weights it belongs to
        shift = tl.zeros((1, CHANNELS), tl.float32)
        if offset is not None:
            shift = _load_vector(offset + part * width, inside, CHANNELS)
        own = _load_vector(bias + part * width, inside, CHANNELS)
        factors = _load_weights(weight + part * (K + 1) * width, inside, width, K, CHANNELS)
        matrix = (row_ptr, column, value, _most_entries(row_ptr, alive, first, last))
        for step in tl.static_range(1, K):
            for begin in range(first, last, ROWS):
                row, exists, lives, place = _rows(begin, last, alive, width, ROWS, CHANNELS)
                at = (row, lives, place, inside, width)
                total = _merge_from(
                    matrix, z, hops, size, factors, shift, at, K - step, K, CHEBYSHEV
                )
                into = hops + (K - step - 1) * size + place
                tl.store(into, total.to(hops.dtype.element_ty), mask=exists[:, None] & inside)
            tl.debug_barrier()

        highest = tl.full((ROWS, CHANNELS), float("-inf"), tl.float32)
        shared = tl.zeros((ROWS, CHANNELS), tl.float32)
        summed = tl.zeros((ROWS, CHANNELS), tl.float32)
        living = tl.zeros((ROWS,), tl.float32)
        for begin in range(first, last, ROWS):
            row, exists, lives, place = _rows(begin, last, kept, width, ROWS, CHANNELS)
            mask = lives[:, None] & inside
            at = (row, lives, place, inside, width)
            total = _merge_from(matrix, z, hops, size, factors, shift, at, 0, K, CHEBYSHEV)
            total = tl.where(mask, total + own, 0.0).to(merged.dtype.element_ty)
            tl.store(merged + place, total, mask=mask)
            total = total.to(tl.float32)
            factor = tl.full((ROWS,), 1.0, tl.float32)
            if NORMALIZE:
                norm = tl.sqrt(tl.sum(total * total, axis=1))
                factor = 1.0 / tl.where(norm > 1e-12, norm, 1.0)
            tl.store(scale + row, factor, mask=lives)
            if score is not None:
                factor *= tl.load(score + row, mask=lives, other=0.0).to(tl.float32)
            found = tl.maximum(total * factor[:, None], 0.0).to(x.dtype.element_ty)
            tl.store(x + place, found, mask=exists[:, None] & inside)
            found = found.to(tl.float32)
            living += lives.to(tl.float32)
            summed += found
            found = tl.where(mask, found, float("-inf"))
            again = tl.where(mask & (found == highest), shared + 1.0, shared)
            shared = tl.where(found > highest, 1.0, again)
            highest = tl.maximum(highest, found)
        channel = tl.arange(0, CHANNELS)[None, :]
        most = tl.max(highest, axis=0, keep_dims=True)
        count = tl.sum(living, axis=0)
        tl.store(nodes + program, count)
        sharing = tl.sum(tl.where(highest == most, shared, 0.0), axis=0, keep_dims=True)
        tl.store(ties + program * width + channel, sharing, mask=inside)
        read += program * 2 * width + channel
        most = tl.where(count > 0, most, 0.0)  # the maximum of no node is zero
        tl.store(read, most.to(read.dtype.element_ty), mask=inside)
        mean = tl.sum(summed, axis=0, keep_dims=True) / tl.maximum(count, 1.0)
        tl.store(read + width, mean.to(read.dtype.element_ty), mask=inside)

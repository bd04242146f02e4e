# mypy: allow-untyped-defs, allow-incomplete-defs
"""A light layer in one kernel each way: hops, merge, activation and readout of one graph.

A program takes a graph from one hop to the next, and waits for itself in between. What it has
written it reads again at once, while it still lies in the cache: the hops never travel to memory
and back. It stands for :func:`lookhops.hops.merge.merge` and then
:func:`lookhops.nn.activate.activate`, which tests hold it to.
"""

from __future__ import annotations

import torch

from lookhops.hops.kernels import tl, triton
from lookhops.hops.merge_kernels import add_up

#: Nodes of the largest graph that one program takes: it has one multiprocessor to itself.
LARGEST = 512
FORWARD, BACKWARD = (8, 4), (8, 4)  # rows of a graph that a program takes at once, and its warps
PADDING_ROWS = 512  # a program for every so many rows of a slice takes its share of the padding


class LightLayer(torch.autograd.Function):
    r"""x = relu(score z' / |z'|) of the living nodes for z' = sum_j T_j (z + c) w^j + b.

    Gives x and each graph's maximum and mean of it. Of the entries the first three are the
    operator's offsets, columns and values, the others those of its transpose.
    """

    @staticmethod
    def forward(ctx, z, weight, bias, offset, score, order, normalize, graphs, *entries):
        """One kernel over graphs; ``graphs`` are their first nodes, last ones, and the living."""
        z, (start, end, alive) = z.contiguous(), graphs
        width, rows = z.shape[-1], z.shape[:-1].numel()
        k, count = weight.shape[-2] - 1, start.numel()
        merged, x = torch.empty_like(z), torch.empty_like(z)
        hops = z.new_empty(max(k - 2, 0), rows, width)  # the first stands where x goes
        like = {"dtype": torch.float32, "device": z.device}
        scale, nodes = torch.empty(rows, **like), torch.empty(count, **like)
        read, ties = z.new_empty(count, 2 * width), torch.empty(count, width, **like)
        given = (*entries[:3], z, weight, bias, offset, score, alive, start, end)
        into = (merged, x, hops if k > 2 else None, scale, read, ties, nodes)
        grid, counts, sizes = _programs(z, weight, count, *FORWARD)
        _forward_kernel[grid](
            *given, *into, *counts, CHEBYSHEV=order == 2, NORMALIZE=normalize, **sizes
        )
        ctx.save_for_backward(z, weight, offset, score, merged, scale, read, ties, nodes)
        ctx.graphs, ctx.entries = graphs, entries
        ctx.order, ctx.normalize = order, normalize
        ctx.set_materialize_grads(False)  # nobody reads the last layer's x
        return x, read

    @staticmethod
    def backward(ctx, grad_x, grad_read):
        """One kernel over graphs, and one that adds up what they found."""
        z, weight, offset, score, merged, scale, read, ties, nodes = ctx.saved_tensors
        start, end, alive = ctx.graphs
        grad_read = torch.zeros_like(read) if grad_read is None else grad_read.contiguous()
        grad_x = None if grad_x is None else grad_x.contiguous()
        grad_z, k = torch.empty_like(z), weight.shape[-2] - 1
        hops = z.new_empty(max(k - 1, 1), *z.shape)
        grad_score = None if score is None else torch.empty_like(score)
        parts = z.new_empty(start.numel(), k + 3, z.shape[-1], dtype=torch.float32)
        given = (*ctx.entries[3:], z, weight, offset, score, alive, start, end, merged, scale)
        given = (*given, read, grad_read, ties, nodes, grad_x)
        grid, counts, sizes = _programs(z, weight, start.numel(), *BACKWARD)
        _backward_kernel[grid](
            *given,
            *(grad_z, hops, grad_score, parts),
            *counts,
            CHEBYSHEV=ctx.order == 2,
            NORMALIZE=ctx.normalize,
            **sizes,
        )
        of_bias, of_weight, of_offset = (one.to(weight.dtype) for one in add_up(parts, weight))
        grads = (grad_z, of_weight, of_bias, None if offset is None else of_offset, grad_score)
        return *grads, *[None] * 9


def _programs(z, weight, graphs, block, warps):
    """The grid, the counts and the sizes of programs that take a graph, or padding, each."""
    rows, slices, width = z.shape[:-1].numel(), weight.shape[:-2].numel(), z.shape[-1]
    padding = triton.cdiv(rows // slices, PADDING_ROWS)
    counts = (graphs, graphs // slices, rows // slices, padding, rows * width, width)
    sizes = {"K": weight.shape[-2] - 1, "ROWS": block, "CHANNELS": triton.next_power_of_2(width)}
    return (graphs + slices * padding,), counts, {**sizes, "num_warps": warps, "num_stages": 1}


if triton is not None:
    from lookhops.hops.kernels import gather_rows, load_shift

    # In these functions a matrix is (offsets, columns, values), and hops are (where T_0 stands,
    # where T_1 does, where the further ones do, the elements of each).

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
    def _block(begin, last, alive, width, ROWS: tl.constexpr, CHANNELS: tl.constexpr):
        """Rows, which are alive, their elements' places, and masks of those alive and of all."""
        row = begin + tl.arange(0, ROWS)
        channel = tl.arange(0, CHANNELS)
        exists = row < last
        lives = exists
        if alive is not None:
            lives = exists & (tl.load(alive + row, mask=exists, other=0) != 0)
        place = row.to(tl.int64)[:, None] * width + channel[None, :]
        inside = (channel < width)[None, :]
        return row, lives, place, lives[:, None] & inside, exists[:, None] & inside

    @triton.jit
    def _hop_at(hops, j: tl.constexpr):
        """Where T_j stands."""
        zero, one, more, size = hops
        if j == 0:
            there = zero
        elif j == 1:
            there = one
        else:
            there = more + (j - 2) * size
        return there

    @triton.jit
    def _load_hop(hops, shift, place, mask, j: tl.constexpr):
        """T_j of some rows; to T_0 the shift is still to be added."""
        hop = tl.load(_hop_at(hops, j) + place, mask=mask, other=0.0).to(tl.float32)
        if j == 0:
            hop = tl.where(mask, hop + shift[None, :], 0.0)
        return hop

    @triton.jit
    def _next_hop(
        matrix,
        hops,
        shift,
        row,
        lives,
        place,
        mask,
        width,
        j: tl.constexpr,
        CHEBYSHEV: tl.constexpr,
    ):
        """T_j of some rows from T_(j - 1) of all, and with Chebyshev T_(j - 2) of these."""
        row_ptr, column, value = matrix
        by = shift if j == 1 else shift * 0
        channel = tl.arange(0, shift.shape[0])
        inside = channel < width
        last = _hop_at(hops, j - 1)
        now = gather_rows(row_ptr, column, value, last, row, lives, channel, inside, width, by)
        if CHEBYSHEV and j > 1:
            now = 2 * now - _load_hop(hops, shift, place, mask, j - 2)
        return now

    @triton.jit
    def _write_hops(
        matrix,
        hops,
        shift,
        alive,
        first,
        last,
        width,
        K: tl.constexpr,
        CHEBYSHEV: tl.constexpr,
        ROWS: tl.constexpr,
    ):
        """T_1 to T_(K - 1) of a graph, one after the other; dead nodes get zero."""
        for j in tl.static_range(1, K):
            for begin in range(first, last, ROWS):
                row, lives, place, mask, all_of_them = _block(
                    begin, last, alive, width, ROWS, shift.shape[0]
                )
                now = _next_hop(matrix, hops, shift, row, lives, place, mask, width, j, CHEBYSHEV)
                into = _hop_at(hops, j)
                tl.store(into + place, now.to(into.dtype.element_ty), mask=all_of_them)
            tl.debug_barrier()

    @triton.jit
    def _forward_kernel(
        row_ptr,
        column,
        value,
        z,
        weight,
        bias,
        offset,
        score,
        alive,
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
        """The layer of one graph; T_1 z stands where x goes, further hops but the last in hops."""
        program = tl.program_id(0)
        channel = tl.arange(0, CHANNELS)
        inside = channel < width
        if program >= graphs:
            beyond = program - graphs
            first, last = _padding_rows(beyond, end, graphs_a_slice, rows_a_slice, padding)
            for begin in range(first, last, ROWS):
                row, lives, place, mask, there = _block(begin, last, None, width, ROWS, CHANNELS)
                tl.store(x + place, tl.zeros((ROWS, CHANNELS), x.dtype.element_ty), mask=there)
            return
        first = tl.load(start + program)
        last = tl.load(end + program)
        part = program // graphs_a_slice  # which slice of the weights it belongs to
        shift = load_shift(offset, part, channel, inside, width)
        own = load_shift(bias, part, channel, inside, width)
        weight += part * (K + 1) * width + channel
        matrix = (row_ptr, column, value)
        anchors = (z, x, hops, size)
        _write_hops(matrix, anchors, shift, alive, first, last, width, K, CHEBYSHEV, ROWS)

        for begin in range(first, last, ROWS):
            row, lives, place, mask, there = _block(begin, last, alive, width, ROWS, CHANNELS)
            total = tl.zeros((ROWS, CHANNELS), tl.float32) + own[None, :]
            for j in tl.static_range(0, K + 1):
                if j < K:
                    hop = _load_hop(anchors, shift, place, mask, j)
                else:
                    hop = _next_hop(
                        matrix, anchors, shift, row, lives, place, mask, width, j, CHEBYSHEV
                    )
                total += hop * tl.load(weight + j * width, mask=inside, other=0.0)[None, :]
            tl.store(merged + place, total.to(merged.dtype.element_ty), mask=mask)
        tl.debug_barrier()  # only now is T_1 no longer needed

        highest = tl.full((ROWS, CHANNELS), float("-inf"), tl.float32)
        shared = tl.zeros((ROWS, CHANNELS), tl.float32)
        summed = tl.zeros((ROWS, CHANNELS), tl.float32)
        living = tl.zeros((ROWS,), tl.float32)
        for begin in range(first, last, ROWS):
            row, lives, place, mask, there = _block(begin, last, alive, width, ROWS, CHANNELS)
            found = tl.load(merged + place, mask=mask, other=0.0).to(tl.float32)
            factor = tl.full((ROWS,), 1.0, tl.float32)
            if NORMALIZE:
                norm = tl.sqrt(tl.sum(found * found, axis=1))
                factor = 1.0 / tl.where(norm > 1e-12, norm, 1.0)
                tl.store(scale + row, factor, mask=lives)
            if score is not None:
                factor *= tl.load(score + row, mask=lives, other=0.0).to(tl.float32)
            found = tl.maximum(found * factor[:, None], 0.0).to(x.dtype.element_ty)
            tl.store(x + place, found, mask=there)
            found = found.to(tl.float32)
            living += lives.to(tl.float32)
            summed += found
            found = tl.where(mask, found, float("-inf"))
            again = tl.where(mask & (found == highest), shared + 1.0, shared)
            shared = tl.where(found > highest, 1.0, again)
            highest = tl.maximum(highest, found)
        most = tl.max(highest, axis=0)
        count = tl.sum(living, axis=0)
        tl.store(nodes + program, count)
        sharing = tl.sum(tl.where(highest == most[None, :], shared, 0.0), axis=0)
        tl.store(ties + program * width + channel, sharing, mask=inside)
        read += program * 2 * width + channel
        most = tl.where(count > 0, most, 0.0)  # the maximum of no node is zero
        tl.store(read, most.to(read.dtype.element_ty), mask=inside)
        mean = tl.sum(summed, axis=0) / tl.maximum(count, 1.0)
        tl.store(read + width, mean.to(read.dtype.element_ty), mask=inside)

    @triton.jit
    def _activation_gradient(
        merged,
        scale,
        score,
        grad_x,
        grad_score,
        of_read,
        row,
        exists,
        lives,
        place,
        mask,
        NORMALIZE: tl.constexpr,
    ):
        """The gradient of z' of some rows, zero for dead ones; that of their scores is written.

        ``of_read`` is the maximum of the graph, its gradient for each node, and that of the mean.
        """
        highest, of_maximum, of_mean = of_read
        found = tl.load(merged + place, mask=mask, other=0.0).to(tl.float32)
        unit = tl.full((row.shape[0],), 1.0, tl.float32)
        if NORMALIZE:
            unit = tl.load(scale + row, mask=lives, other=0.0)
        factor = unit
        if score is not None:
            factor = unit * tl.load(score + row, mask=lives, other=0.0).to(tl.float32)
        x = tl.maximum(found * factor[:, None], 0.0)
        x = x.to(merged.dtype.element_ty).to(tl.float32)  # as it was when the maximum was taken
        grad = of_mean[None, :] + tl.where(x == highest[None, :], of_maximum[None, :], 0.0)
        if grad_x is not None:
            grad += tl.load(grad_x + place, mask=mask, other=0.0).to(tl.float32)
        grad = tl.where(mask & (x > 0), grad, 0.0)
        direction = found * unit[:, None]
        slope = tl.sum(grad * direction, axis=1)
        if score is not None:
            tl.store(grad_score + row, slope.to(grad_score.dtype.element_ty), mask=exists)
        if NORMALIZE:
            grad = grad - direction * slope[:, None]
        return grad * factor[:, None]

    @triton.jit
    def _backward_kernel(
        row_ptr,
        column,
        value,
        z,
        weight,
        offset,
        score,
        alive,
        start,
        end,
        merged,
        scale,
        read,
        grad_read,
        ties,
        nodes,
        grad_x,
        grad_z,
        hops,
        grad_score,
        parts,
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
        """The gradient of z of one graph, and its part of those of weight, bias and offset.

        The gradient g of z' stands where that of z goes, T_1 g and further hops in hops. With one
        hop all rows of g are read until the end, so there g stands in hops.
        """
        program = tl.program_id(0)
        channel = tl.arange(0, CHANNELS)
        inside = channel < width
        if program >= graphs:
            beyond = program - graphs
            first, last = _padding_rows(beyond, end, graphs_a_slice, rows_a_slice, padding)
            for begin in range(first, last, ROWS):
                row, lives, place, mask, there = _block(begin, last, None, width, ROWS, CHANNELS)
                zeros = tl.zeros((ROWS, CHANNELS), grad_z.dtype.element_ty)
                tl.store(grad_z + place, zeros, mask=there)
                if score is not None:
                    tl.store(grad_score + row, tl.sum(zeros, axis=1), mask=lives)
            return
        first = tl.load(start + program)
        last = tl.load(end + program)
        part = program // graphs_a_slice
        shift = load_shift(offset, part, channel, inside, width)
        none = shift * 0
        weight += part * (K + 1) * width + channel
        matrix = (row_ptr, column, value)
        g = hops if K == 1 else grad_z
        anchors = (g, hops, hops + size, size)

        highest = tl.load(read + program * 2 * width + channel, mask=inside, other=0.0)
        sharing = tl.load(ties + program * width + channel, mask=inside, other=1.0)
        grad_read += program * 2 * width + channel
        of_maximum = tl.load(grad_read, mask=inside, other=0.0).to(tl.float32)
        of_maximum = of_maximum / tl.maximum(sharing, 1.0)
        of_mean = tl.load(grad_read + width, mask=inside, other=0.0).to(tl.float32)
        of_mean = of_mean / tl.maximum(tl.load(nodes + program), 1.0)
        of_read = (highest.to(tl.float32), of_maximum, of_mean)
        for begin in range(first, last, ROWS):
            row, lives, place, mask, there = _block(begin, last, alive, width, ROWS, CHANNELS)
            grad = _activation_gradient(
                merged,
                scale,
                score,
                grad_x,
                grad_score,
                of_read,
                row,
                row < last,
                lives,
                place,
                mask,
                NORMALIZE,
            )
            tl.store(g + place, grad.to(g.dtype.element_ty), mask=there)
        tl.debug_barrier()
        _write_hops(matrix, anchors, none, alive, first, last, width, K, CHEBYSHEV, ROWS)

        sums = (tl.zeros((ROWS, CHANNELS), tl.float32),) * (K + 3)
        for begin in range(first, last, ROWS):
            row, lives, place, mask, there = _block(begin, last, alive, width, ROWS, CHANNELS)
            own = tl.load(z + place, mask=mask, other=0.0).to(tl.float32) + shift[None, :]
            total = tl.zeros((ROWS, CHANNELS), tl.float32)
            for j in tl.static_range(0, K + 1):
                if j == 0:
                    hop = _load_hop(anchors, none, place, mask, j)
                    sums = (sums[0] + hop,) + sums[1:]
                elif j < K:
                    hop = _load_hop(anchors, none, place, mask, j)
                else:
                    hop = _next_hop(
                        matrix, anchors, none, row, lives, place, mask, width, j, CHEBYSHEV
                    )
                total += hop * tl.load(weight + j * width, mask=inside, other=0.0)[None, :]
                sums = sums[: j + 1] + (sums[j + 1] + hop * own,) + sums[j + 2 :]
            tl.store(grad_z + place, total.to(grad_z.dtype.element_ty), mask=there)
            sums = sums[: K + 2] + (sums[K + 2] + total,)
        parts += program * (K + 3) * width + channel
        for j in tl.static_range(0, K + 3):
            tl.store(parts + j * width, tl.sum(sums[j], axis=0), mask=inside)

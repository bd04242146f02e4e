"""A light layer in one kernel each way: hops, merge, activation and readout of one graph.

A program takes a graph from one hop to the next, and waits for itself in between. What it has
written it reads again at once, while it still lies in the cache. It stands for
:func:`lookhops.ops.merge.merge` and then :func:`lookhops.ops.activate.activate`, which tests hold
it to.
"""

import torch
from torch import Tensor

from lookhops.ops.activate import activate
from lookhops.ops.anchors import Anchors
from lookhops.ops.batch import GraphBatch
from lookhops.ops.gpu import can_run_on, tl, triton
from lookhops.ops.merge import add_up
from lookhops.ops.product import transposed_values
from lookhops.ops.recurrences import chebyshev

#: Nodes of the largest graph that one program takes, and the fewest graphs that fill a GPU.
LARGEST, FEWEST = 512, 1024
ROWS, WARPS = 4, 4  # rows of a graph that a program takes at once, and its warps
PADDING_ROWS = 512  # a program for every so many rows of a slice takes its share of the padding


class Merging:
    r"""Merge, activation and readout of anchors: on a GPU, for many small graphs, by one kernel.

    Args:
        anchors: The anchors of all nodes.
        weight: The :math:`w^j` that merge them, shape :math:`(\ldots, k + 1, d)`.
        bias: What is added, shape :math:`(\ldots, d)`.
        batch: The batch over whose edges the hops are taken.
        late: Whether the merge may wait for the activation.
    """

    def __init__(
        self, anchors: Anchors, weight: Tensor, bias: Tensor, batch: GraphBatch, late: bool
    ) -> None:
        self.weight, self.bias, self.alive = weight, bias, batch.alive
        z, value = anchors.z, anchors.matrix.value
        small = 0 < batch.largest <= LARGEST and batch.num_graphs >= FEWEST
        narrow = z.shape[-1] <= 256 and 1 <= anchors.k <= 8
        fixed = value is not None and not value.requires_grad
        self.waits = late and small and narrow and can_run_on(z) and fixed and not batch.near_ties
        #: The merged anchors, or while the merge waits what they are made from.
        self.x = anchors.z if self.waits else anchors.merge(weight, bias)

    def activate(
        self, batch: GraphBatch, score: Tensor | None, normalize: bool, anchors: object
    ) -> tuple[GraphBatch, Tensor]:
        """As :func:`~lookhops.ops.activate.activate` of the merged anchors.

        The batch may have dropped nodes since; the anchors are as they are after the score.
        """
        if not self.waits:
            return activate(batch, score, normalize)
        assert isinstance(anchors, Anchors)
        z, matrix, graphs = anchors.z, anchors.matrix, (self.alive, batch.alive, *batch.bounds)
        value = None if matrix.value is None else matrix.value.to(z.dtype)
        row_ptr, column, row_ptr_t, column_t, order = matrix.entries()
        value_t = transposed_values(value, order)
        entries = (row_ptr, column, value, row_ptr_t, column_t, value_t)
        weight, bias = self.weight.to(z.dtype), self.bias.to(z.dtype)
        flat = None if score is None else score.flatten()
        how = 2 if anchors.recurrence is chebyshev else 1, normalize, graphs
        x, read = _LightLayer.apply(z, weight, bias, anchors.offset, flat, *how, *entries)
        return batch.with_x(x), read.view(*z.shape[:-2], -1, 2 * z.shape[-1])


class _LightLayer(torch.autograd.Function):
    r"""x = relu(score z' / |z'|) of the kept nodes; z' = sum_j T_j (z + c) w^j + b of all.

    Gives x and each graph's maximum and mean of it. Of the graphs it takes the nodes alive, those
    kept, first nodes and last ones; of the operator and its transpose offsets, columns and values.
    """

    @staticmethod
    def forward(ctx, z, weight, bias, offset, score, order, normalize, graphs, *entries):
        z, (alive, kept, start, end) = z.contiguous(), graphs
        width, k, count = z.shape[-1], weight.shape[-2] - 1, start.numel()
        merged, x = torch.empty_like(z), torch.empty_like(z)
        hops = z.new_empty(k - 1, *z.shape)
        like = {"dtype": torch.float32, "device": z.device}
        read = z.new_empty(count, 2 * width)
        ties, nodes = torch.empty(count, width, **like), torch.empty(count, **like)
        given = (*entries[:3], z, weight, bias, offset, score, alive, kept, start, end)
        into = (merged, x, hops, read, ties, nodes)
        grid, counts, sizes = _programs(z, weight, count)
        _light_kernel[grid](
            *given, *into, *counts, CHEBYSHEV=order == 2, NORMALIZE=normalize, **sizes
        )
        ctx.save_for_backward(z, weight, offset, score, merged, read, ties, nodes)
        ctx.graphs, ctx.entries = graphs, entries
        ctx.order, ctx.normalize = order, normalize
        ctx.set_materialize_grads(False)  # the x of the last layer has none
        return x, read

    @staticmethod
    def backward(ctx, grad_x, grad_read):
        z, weight, offset, score, merged, read, ties, nodes = ctx.saved_tensors
        alive, kept, start, end = ctx.graphs
        grad_read = torch.zeros_like(read) if grad_read is None else grad_read.contiguous()
        grad_x = None if grad_x is None else grad_x.contiguous()
        grad_z, k = torch.empty_like(z), weight.shape[-2] - 1
        hops = z.new_empty(max(k - 1, 1), *z.shape)
        grad_score = None if score is None else torch.empty_like(score)
        parts = z.new_empty(start.numel(), k + 3, z.shape[-1], dtype=torch.float32)
        given = (*ctx.entries[3:], z, weight, offset, score, alive, kept, start, end)
        given = (*given, merged, read, grad_read, ties, nodes, grad_x)
        into = (grad_z, hops, grad_score, parts)
        grid, counts, sizes = _programs(z, weight, start.numel())
        light_backward_kernel[grid](
            *given, *into, *counts, CHEBYSHEV=ctx.order == 2, NORMALIZE=ctx.normalize, **sizes
        )
        of_bias, of_weight, of_offset = (one.to(weight.dtype) for one in add_up(parts, weight))
        grads = (grad_z, of_weight, of_bias, None if offset is None else of_offset, grad_score)
        return *grads, *[None] * 9


def _programs(z, weight, graphs):
    """The grid, the counts and the sizes of programs that take a graph, or padding, each."""
    rows, slices, width = z.shape[:-1].numel(), weight.shape[:-2].numel(), z.shape[-1]
    padding = triton.cdiv(rows // slices, PADDING_ROWS)
    counts = (graphs, graphs // slices, rows // slices, padding, rows * width, width)
    sizes = {"K": weight.shape[-2] - 1, "ROWS": ROWS, "CHANNELS": triton.next_power_of_2(width)}
    return (graphs + slices * padding,), counts, {**sizes, "num_warps": WARPS, "num_stages": 1}


if triton is not None:
    from lookhops.ops.graph_hops import (
        gather_hop,
        load_hop,
        load_vector,
        load_weights,
        most_entries,
        padding_rows,
        scale_factors,
        some_rows,
        write_hops,
    )

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
            first, last = padding_rows(beyond, end, graphs_a_slice, rows_a_slice, padding)
            for begin in range(first, last, ROWS):
                row, exists, lives, place = some_rows(begin, last, None, width, ROWS, CHANNELS)
                zeros = tl.zeros((ROWS, CHANNELS), x.dtype.element_ty)
                tl.store(x + place, zeros, mask=exists[:, None] & inside)
            return
        first = tl.load(start + program)
        last = tl.load(end + program)
        part = program // graphs_a_slice  # which slice of the weights it belongs to
        shift = tl.zeros((1, CHANNELS), tl.float32)
        if offset is not None:
            shift = load_vector(offset + part * width, inside, CHANNELS)
        own = load_vector(bias + part * width, inside, CHANNELS)
        factors = load_weights(weight + part * (K + 1) * width, inside, width, K, CHANNELS)
        matrix = (row_ptr, column, value, most_entries(row_ptr, alive, first, last))
        anchors = (z, hops, hops + size, size)
        write_hops(
            matrix, anchors, shift, alive, first, last, inside, width, K, CHEBYSHEV, ROWS, CHANNELS
        )

        highest = tl.full((ROWS, CHANNELS), float("-inf"), tl.float32)
        shared = tl.zeros((ROWS, CHANNELS), tl.float32)
        summed = tl.zeros((ROWS, CHANNELS), tl.float32)
        living = tl.zeros((ROWS,), tl.float32)
        for begin in range(first, last, ROWS):
            row, exists, lives, place = some_rows(begin, last, kept, width, ROWS, CHANNELS)
            mask = lives[:, None] & inside
            hop = load_hop(anchors, shift, place, mask, 0)
            before = hop
            total = own + hop * factors[0]
            for j in tl.static_range(1, K + 1):
                if j < K:
                    now = load_hop(anchors, shift, place, mask, j)
                else:
                    now = gather_hop(matrix, anchors, shift, row, lives, inside, width, K - 1)
                    if CHEBYSHEV and K > 1:
                        now = 2 * now - before
                before = hop
                hop = now
                total += hop * factors[j]
            total = tl.where(mask, total, 0.0).to(merged.dtype.element_ty)
            tl.store(merged + place, total, mask=mask)
            total = total.to(tl.float32)
            _, factor = scale_factors(total, score, row, lives, NORMALIZE)
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

    @triton.jit
    def _activation_gradient(
        merged,
        score,
        grad_x,
        grad_score,
        of_read,
        row,
        exists,
        lives,
        place,
        inside,
        width,
        NORMALIZE: tl.constexpr,
    ):
        """The gradient of z' of some rows, zero for dead ones; that of their scores is written.

        ``of_read`` is the maximum of the graph, its gradient for each node, and that of the mean.
        """
        highest, of_maximum, of_mean = of_read
        mask = lives[:, None] & inside
        found = tl.load(merged + place, mask=mask, other=0.0).to(tl.float32)
        unit, factor = scale_factors(found, score, row, lives, NORMALIZE)
        x = tl.maximum(found * factor[:, None], 0.0)
        x = x.to(merged.dtype.element_ty).to(tl.float32)  # as it was when the maximum was taken
        grad = of_mean + tl.where(x == highest, of_maximum, 0.0)
        if grad_x is not None:
            grad += tl.load(grad_x + place, mask=mask, other=0.0).to(tl.float32)
        grad = tl.where(mask & (x > 0), grad, 0.0)
        direction = found * unit[:, None]
        slope = tl.sum(grad * direction, axis=1)
        if score is not None:  # by the thread that has the first channel
            first = place == row.to(tl.int64)[:, None] * width
            into = tl.broadcast_to(grad_score + row[:, None], place.shape)
            told = tl.broadcast_to(slope[:, None], place.shape).to(grad_score.dtype.element_ty)
            tl.store(into, told, mask=exists[:, None] & first)
        if NORMALIZE:
            grad = grad - direction * slope[:, None]
        return grad * factor[:, None]

    @triton.jit
    def light_backward_kernel(
        row_ptr,
        column,
        value,
        z,
        weight,
        offset,
        score,
        alive,
        kept,
        start,
        end,
        merged,
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
        channel = tl.arange(0, CHANNELS)[None, :]
        inside = channel < width
        if program >= graphs:
            beyond = program - graphs
            first, last = padding_rows(beyond, end, graphs_a_slice, rows_a_slice, padding)
            for begin in range(first, last, ROWS):
                row, exists, lives, place = some_rows(begin, last, None, width, ROWS, CHANNELS)
                zeros = tl.zeros((ROWS, CHANNELS), grad_z.dtype.element_ty)
                tl.store(grad_z + place, zeros, mask=exists[:, None] & inside)
                if score is not None:
                    none = tl.zeros((ROWS,), grad_score.dtype.element_ty)
                    tl.store(grad_score + row, none, mask=exists)
            return
        first = tl.load(start + program)
        last = tl.load(end + program)
        part = program // graphs_a_slice
        none = tl.zeros((1, CHANNELS), tl.float32)
        g = hops if K == 1 else grad_z
        anchors = (g, hops, hops + size, size)

        highest = load_vector(read + program * 2 * width, inside, CHANNELS)
        sharing = load_vector(ties + program * width, inside, CHANNELS)
        of_maximum = load_vector(grad_read + program * 2 * width, inside, CHANNELS)
        of_maximum = of_maximum / tl.maximum(sharing, 1.0)
        of_mean = load_vector(grad_read + program * 2 * width + width, inside, CHANNELS)
        of_mean = of_mean / tl.maximum(tl.load(nodes + program), 1.0)
        of_read = (highest, of_maximum, of_mean)
        for begin in range(first, last, ROWS):
            row, exists, lives, place = some_rows(begin, last, kept, width, ROWS, CHANNELS)
            grad = _activation_gradient(
                merged,
                score,
                grad_x,
                grad_score,
                of_read,
                row,
                exists,
                lives,
                place,
                inside,
                width,
                NORMALIZE,
            )
            tl.store(g + place, grad.to(g.dtype.element_ty), mask=exists[:, None] & inside)
        matrix = (row_ptr, column, value, most_entries(row_ptr, alive, first, last))
        tl.debug_barrier()
        write_hops(
            matrix, anchors, none, alive, first, last, inside, width, K, CHEBYSHEV, ROWS, CHANNELS
        )

        factors = load_weights(weight + part * (K + 1) * width, inside, width, K, CHANNELS)
        shift = none
        if offset is not None:
            shift = load_vector(offset + part * width, inside, CHANNELS)
        sums = (tl.zeros((ROWS, CHANNELS), tl.float32),) * (K + 3)
        for begin in range(first, last, ROWS):
            row, exists, lives, place = some_rows(begin, last, alive, width, ROWS, CHANNELS)
            mask = lives[:, None] & inside
            own = tl.load(z + place, mask=mask, other=0.0).to(tl.float32) + shift
            hop = load_hop(anchors, none, place, mask, 0)
            before = hop
            total = hop * factors[0]
            sums = (sums[0] + hop, sums[1] + hop * own) + sums[2:]
            for j in tl.static_range(1, K + 1):
                if j < K:
                    now = load_hop(anchors, none, place, mask, j)
                else:
                    now = gather_hop(matrix, anchors, none, row, lives, inside, width, K - 1)
                    if CHEBYSHEV and K > 1:
                        now = 2 * now - before
                before = hop
                hop = now
                total += hop * factors[j]
                sums = sums[: j + 1] + (sums[j + 1] + hop * own,) + sums[j + 2 :]
            tl.store(
                grad_z + place, total.to(grad_z.dtype.element_ty), mask=exists[:, None] & inside
            )
            sums = sums[: K + 2] + (sums[K + 2] + total,)
        parts += program * (K + 3) * width + channel
        for j in tl.static_range(0, K + 3):
            found = tl.sum(sums[j], axis=0, keep_dims=True)
            tl.store(parts + j * width, found, mask=inside)

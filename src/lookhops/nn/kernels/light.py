# mypy: allow-untyped-defs, allow-incomplete-defs
"""A light layer in one kernel each way: hops, merge, activation and readout of one graph.

A program takes a graph from one hop to the next, and waits for itself in between. What it has
written it reads again at once, while it still lies in the cache. It stands for
:func:`lookhops.ops.merge.merge` and then :func:`lookhops.nn.activate.activate`, which tests hold
it to.
"""

from __future__ import annotations

import torch

from lookhops.ops.kernels import tl, triton
from lookhops.ops.merge_kernels import add_up

#: Nodes of the largest graph that one program takes, and the fewest graphs that fill a GPU.
LARGEST, FEWEST = 512, 1024
ROWS, WARPS = 4, 4  # rows of a graph that a program takes at once, and its warps
PADDING_ROWS = 512  # a program for every so many rows of a slice takes its share of the padding


class LightLayer(torch.autograd.Function):
    r"""x = relu(score z' / |z'|) of the kept nodes; z' = sum_j T_j (z + c) w^j + b of all.

    Gives x and each graph's maximum and mean of it. Of the entries the first three are the
    operator's offsets, columns and values, the others those of its transpose.
    """

    @staticmethod
    def forward(ctx, z, weight, bias, offset, score, order, normalize, graphs, *entries):
        """One kernel; of the graphs: nodes alive, those kept of them, first nodes and last ones."""
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
        ctx.set_materialize_grads(False)  # nobody reads the last layer's x
        return x, read

    @staticmethod
    def backward(ctx, grad_x, grad_read):
        """One kernel over graphs, and one that adds up what they found."""
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
        grid, counts, sizes = _programs(z, weight, start.numel())
        light_backward_kernel[grid](
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


def _programs(z, weight, graphs):
    """The grid, the counts and the sizes of programs that take a graph, or padding, each."""
    rows, slices, width = z.shape[:-1].numel(), weight.shape[:-2].numel(), z.shape[-1]
    padding = triton.cdiv(rows // slices, PADDING_ROWS)
    counts = (graphs, graphs // slices, rows // slices, padding, rows * width, width)
    sizes = {"K": weight.shape[-2] - 1, "ROWS": ROWS, "CHANNELS": triton.next_power_of_2(width)}
    return (graphs + slices * padding,), counts, {**sizes, "num_warps": WARPS, "num_stages": 1}


if triton is not None:
    from lookhops.nn.kernels.graph_hops import (
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
    from lookhops.nn.kernels.light_gradient import light_backward_kernel

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

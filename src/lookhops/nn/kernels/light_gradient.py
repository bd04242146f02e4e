# mypy: allow-untyped-defs, allow-incomplete-defs
"""The gradient of a light layer in one kernel: of the readout, the activation, the merge, the hops.

It belongs to :class:`~lookhops.nn.kernels.light.LightLayer`, and takes a graph as that does.
"""

from __future__ import annotations

from lookhops.ops.kernels import tl, triton

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

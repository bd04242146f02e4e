# mypy: allow-untyped-defs, allow-incomplete-defs
"""The activation and the readout of a layer, with gradients."""

from __future__ import annotations

import torch

from lookhops.hops.kernels import tl, triton

ROWS = 8  # rows a program takes
ROWS_A_PART = 64  # rows of a graph that are read one after the other, about


class Activate(torch.autograd.Function):
    """x = relu(score z / |z|) of the living nodes, and each graph's maximum and mean of x."""

    @staticmethod
    def forward(ctx, z, score, graph, start, end, alive, normalize):
        """Two kernels: rows, then graphs."""
        rows, width = z.shape
        z = z.contiguous()
        x = torch.empty_like(z)
        scale = torch.empty(rows, dtype=torch.float32, device=z.device)
        grid, sizes = _blocks_of(rows, width)
        _activate_kernel[grid](z, score, alive, x, scale, rows, width, NORMALIZE=normalize, **sizes)
        read, ties, count = _readout(x, alive, start, end)
        ctx.save_for_backward(z, score, graph, alive, scale, read, ties, count)
        ctx.normalize = normalize
        return x, read

    @staticmethod
    def backward(ctx, grad_x, grad_read):
        """One kernel over rows."""
        z, score, graph, alive, scale, read, ties, count = ctx.saved_tensors
        share = _shares(grad_read, ties, count)
        grad_z, grad_score = _backward(
            z, score, alive, graph, scale, read, share, grad_x, ctx.normalize, relu=True
        )
        return grad_z, grad_score, None, None, None, None, None


class Readout(torch.autograd.Function):
    """Each graph's maximum and mean of x over the living nodes."""

    @staticmethod
    def forward(ctx, x, graph, start, end, alive):
        """One kernel over graphs."""
        x = x.contiguous()
        read, ties, count = _readout(x, alive, start, end)
        ctx.save_for_backward(x, graph, alive, read, ties, count)
        return read

    @staticmethod
    def backward(ctx, grad_read):
        """One kernel over rows."""
        x, graph, alive, read, ties, count = ctx.saved_tensors
        share = _shares(grad_read, ties, count)
        grad_x, _ = _backward(x, None, alive, graph, None, read, share, None, False, relu=False)
        return grad_x, None, None, None, None


def _readout(x, alive, start, end):
    """Each graph's maximum and mean, how many nodes share the maximum, and how many there are.

    Large graphs are cut into parts that are read side by side and then put together.
    """
    graphs, (rows, width) = start.numel(), x.shape
    parts = min(triton.next_power_of_2(max(rows // max(graphs * ROWS_A_PART, 1), 1)), 64)
    found = torch.empty(graphs, parts, 3, width, dtype=torch.float32, device=x.device)
    count = torch.empty(graphs, parts, dtype=torch.float32, device=x.device)
    sizes = {"ROWS": ROWS, "CHANNELS": triton.next_power_of_2(width), "num_warps": 1}
    given = (x, alive, start, end)
    _readout_kernel[graphs, parts](*given, found, count, width, parts, WHOLE=parts == 1, **sizes)
    if parts == 1:
        read = found[:, 0, :2].flatten(1).to(x.dtype).contiguous()
        return read, found[:, 0, 2], count[:, 0]
    highest, summed, shared = found.unbind(2)
    most = highest.amax(1)
    ties = (shared * (highest == most[:, None])).sum(1)
    count = count.sum(1)
    mean = summed.sum(1) / count.clamp(min=1)[:, None]
    most = torch.where(count[:, None] > 0, most, 0)
    return torch.cat((most, mean), dim=1).to(x.dtype), ties, count


def _shares(grad_read, ties, count):
    """What each graph gives to a node that holds its maximum, and to every node."""
    of_maximum, of_mean = grad_read.float().chunk(2, dim=1)
    return torch.cat((of_maximum / ties.clamp(min=1), of_mean / count.clamp(min=1)[:, None]), dim=1)


def _backward(z, score, alive, graph, scale, read, share, grad_x, normalize, relu):
    """Gradients of z and score."""
    rows, width = z.shape
    grad_z = torch.empty_like(z)
    grad_score = None if score is None else torch.empty_like(score)
    grad_x = None if grad_x is None else grad_x.contiguous()
    given = (z, score, alive, graph, scale, read, share, grad_x)
    grid, sizes = _blocks_of(rows, width)
    _activate_backward_kernel[grid](
        *given, grad_z, grad_score, rows, width, NORMALIZE=normalize, RELU=relu, **sizes
    )
    return grad_z, grad_score


def _blocks_of(rows, width):
    """The grid and the sizes of programs that each take whole rows."""
    sizes = {"ROWS": ROWS, "CHANNELS": triton.next_power_of_2(width), "num_warps": 4}
    return (triton.cdiv(rows, ROWS),), sizes


if triton is not None:

    @triton.jit
    def _load_block(z, rows, width, ROWS: tl.constexpr, CHANNELS: tl.constexpr):
        """Rows and channels of this program, which exist, their elements' places and values."""
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        channel = tl.arange(0, CHANNELS)
        live, inside = row < rows, channel < width
        place = row.to(tl.int64)[:, None] * width + channel[None, :]
        mask = live[:, None] & inside[None, :]
        value = tl.load(z + place, mask=mask, other=0.0).to(tl.float32)
        return row, live, channel, inside, place, mask, value

    @triton.jit
    def _activate_kernel(
        z,
        score,
        alive,
        x,
        scale,
        rows,
        width,
        NORMALIZE: tl.constexpr,
        ROWS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """x = relu(score z / |z|), zero for dead nodes; scale = 1 / |z|."""
        row, live, _, _, place, mask, value = _load_block(z, rows, width, ROWS, CHANNELS)
        factor = tl.full((ROWS,), 1.0, tl.float32)
        if NORMALIZE:
            norm = tl.sqrt(tl.sum(value * value, axis=1))
            factor = 1.0 / tl.where(norm > 1e-12, norm, 1.0)
        tl.store(scale + row, factor, mask=live)
        if score is not None:
            factor *= tl.load(score + row, mask=live, other=0.0).to(tl.float32)
        value = tl.maximum(value * factor[:, None], 0.0)
        if alive is not None:
            value = tl.where(tl.load(alive + row, mask=live, other=0)[:, None] != 0, value, 0.0)
        tl.store(x + place, value.to(x.dtype.element_ty), mask=mask)

    @triton.jit
    def _readout_kernel(
        x,
        alive,
        start,
        end,
        total,
        count,
        width,
        parts,
        WHOLE: tl.constexpr,
        ROWS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """Maximum, sum, and how many nodes share the maximum, of every part of a graph.

        Rows are taken one by one, several in flight: no thread waits for another.
        """
        graph = tl.program_id(0)
        part = tl.program_id(1)
        first = tl.load(start + graph)
        last = tl.load(end + graph)
        each = (last - first + parts - 1) // parts
        first += part * each
        last = tl.minimum(last, first + each)
        channel = tl.arange(0, CHANNELS)
        inside = channel < width
        highest = tl.full((CHANNELS,), float("-inf"), tl.float32)
        shared = tl.zeros((CHANNELS,), tl.float32)
        summed = tl.zeros((CHANNELS,), tl.float32)
        nodes = 0.0
        for begin in range(first, last, ROWS):
            for i in tl.static_range(ROWS):
                row = begin + i
                live = row < last
                if alive is not None:
                    live = live & (tl.load(alive + row, mask=live, other=0) != 0)
                here = channel < tl.where(live, width, 0)
                place = x + row.to(tl.int64) * width + channel
                value = tl.load(place, mask=here, other=0.0).to(tl.float32)
                summed += value
                nodes += tl.where(live, 1.0, 0.0)
                value = tl.where(here, value, float("-inf"))
                shared = tl.where(value > highest, 0.0, shared)
                highest = tl.maximum(highest, value)
                shared += tl.where(here & (value == highest), 1.0, 0.0)
        if WHOLE:  # nothing to put together: the maximum of no node is zero, the sum is a mean
            highest = tl.where(nodes > 0, highest, 0.0)
            summed = summed / tl.maximum(nodes, 1.0)
        place = graph * parts + part
        out = total + place * 3 * width + channel
        tl.store(out, highest, mask=inside)
        tl.store(out + width, summed, mask=inside)
        tl.store(out + 2 * width, shared, mask=inside)
        tl.store(count + place, nodes)

    @triton.jit
    def _activate_backward_kernel(
        z,
        score,
        alive,
        graph,
        scale,
        read,
        share,
        grad_x,
        grad_z,
        grad_score,
        rows,
        width,
        NORMALIZE: tl.constexpr,
        RELU: tl.constexpr,
        ROWS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """Gradients of z and score from those of x and of the readout."""
        block = _load_block(z, rows, width, ROWS, CHANNELS)
        row, live, channel, inside, place, mask, value = block
        unit = tl.full((ROWS,), 1.0, tl.float32)
        if scale is not None:
            unit = tl.load(scale + row, mask=live, other=0.0)
        weight = tl.full((ROWS,), 1.0, tl.float32)
        if score is not None:
            weight = tl.load(score + row, mask=live, other=0.0).to(tl.float32)
        direction = value * unit[:, None]
        x = value * (unit * weight)[:, None]
        if RELU:
            x = tl.maximum(x, 0.0)
        x = x.to(read.dtype.element_ty).to(tl.float32)  # as it was when the maximum was taken
        counts = live
        if alive is not None:
            counts = live & (tl.load(alive + row, mask=live, other=0) != 0)
        where = tl.load(graph + row, mask=counts, other=0).to(tl.int64)
        place_read = where[:, None] * (2 * width) + channel[None, :]
        here = counts[:, None] & inside[None, :]
        grad = tl.load(share + place_read + width, mask=here, other=0.0)
        highest = tl.load(read + place_read, mask=here, other=0.0).to(tl.float32)
        of_maximum = tl.load(share + place_read, mask=here, other=0.0)
        grad += tl.where(x == highest, of_maximum, 0.0)
        if grad_x is not None:
            grad += tl.load(grad_x + place, mask=mask, other=0.0).to(tl.float32)
        if RELU:
            grad = tl.where(x > 0, grad, 0.0)
        grad = tl.where(here, grad, 0.0)
        slope = tl.sum(grad * direction, axis=1)
        if score is not None:
            tl.store(grad_score + row, slope.to(grad_score.dtype.element_ty), mask=live)
        if NORMALIZE:
            grad = grad - direction * slope[:, None]
        grad = grad * (unit * weight)[:, None]
        tl.store(grad_z + place, grad.to(grad_z.dtype.element_ty), mask=mask)

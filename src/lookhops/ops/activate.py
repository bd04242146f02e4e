"""What follows a convolution: score, sphere, ReLU, and the readout, one vector for each graph."""

import torch
from torch import Tensor

from lookhops.graphs.indexing import counts_of, to_offsets
from lookhops.ops.batch import GraphBatch
from lookhops.ops.gate import gate
from lookhops.ops.gpu import can_run_on, tl, triton
from lookhops.ops.product import multiply

ROWS = 8  # rows a program takes
READ_ROWS, READ_WARPS = 8, 4  # rows of a graph that are read at once, and the warps that read them
FEW = 1024  # programs that leave room for twice as many rows and warps each
ROWS_A_PART = 64  # rows of a graph that a program reads, about
PADDING_ROWS = 512  # a program for every so many rows of a slice takes its share of the padding


def readout(batch: GraphBatch) -> Tensor:
    r"""The maximum and the mean of each graph's nodes, side by side, shape (..., graphs, 2 d).

    A graph without nodes reads zero. Where several nodes share a maximum they share its gradient.
    """
    x = batch.x
    if _fits(batch):
        read = _Activate.apply(x, None, batch.graph, *batch.bounds, batch.alive, None)[1]
    else:
        graphs = batch.graph.long(), batch.num_graphs, batch.alive
        read = _ReadoutOnCPU.apply(x.flatten(0, -2), *graphs, batch.tolerance)
    return read.view(*x.shape[:-2], -1, 2 * x.shape[-1])


def _fits(batch: GraphBatch) -> bool:
    return can_run_on(batch.x) and batch.x.shape[-1] <= 256 and not batch.near_ties


def activate(batch: GraphBatch, score: Tensor | None, normalize: bool) -> tuple[GraphBatch, Tensor]:
    r"""The batch with :math:`x_i = \mathrm{ReLU}(w_i\, z_i / \|z_i\|)`, and its readout.

    Args:
        batch: A batch whose ``x`` is the convolution's output :math:`z`.
        score: The score :math:`w` of each node, shape (..., n); none means one.
        normalize: Whether to divide by the norm (NF).
    """
    z = batch.x
    if _fits(batch):
        flat = None if score is None else score.flatten()
        x, read = _Activate.apply(z, flat, batch.graph, *batch.bounds, batch.alive, normalize)
        return batch.with_x(x), read.view(*z.shape[:-2], -1, 2 * z.shape[-1])
    if batch.alive is not None:
        alive = batch.alive.view(z.shape[:-1]).to(z.dtype)
        score = alive if score is None else score * alive
    if normalize and score is None:
        score = z.new_ones(z.shape[:-1])
    gated = z if score is None else gate(z, score, normalize)
    # In place only where autograd will not copy: not on a view, not on what others keep.
    x = gated.relu_() if gated is not z and z.dim() == 2 else torch.relu(gated)
    batch = batch.with_x(x)
    return batch, readout(batch)


class _ReadoutOnCPU(torch.autograd.Function):
    """Segment max and mean; written out because PyTorch's own gradient of the max is slow."""

    @staticmethod
    def forward(ctx, x, graph, num_graphs, alive, tolerance):
        size = (num_graphs, x.shape[1])
        shown = x if alive is None else x.masked_fill(~alive[:, None], -torch.inf)
        index = graph[:, None].expand_as(x)
        highest = x.new_full(size, -torch.inf).scatter_reduce_(0, index, shown, "amax")
        counted = torch.ones_like(graph) if alive is None else alive.long()
        count = graph.new_zeros(num_graphs).index_add(0, graph, counted)
        empty = (count == 0)[:, None]
        highest = highest.masked_fill(empty, 0)
        weight = counted.to(x.dtype) / count.clamp(min=1).index_select(0, graph)
        mean = multiply(*_membership(graph, num_graphs), weight, x)
        ctx.save_for_backward(x, graph, alive, highest, weight)
        ctx.tolerance = tolerance
        return torch.cat((highest, mean), dim=1)

    @staticmethod
    def backward(ctx, grad):
        x, graph, alive, highest, weight = ctx.saved_tensors
        grad_max, grad_mean = grad.chunk(2, dim=1)
        hit = at_maximum(x, highest, graph, ctx.tolerance)
        if alive is not None:
            hit *= alive[:, None]
        ties = multiply(*_membership(graph, highest.shape[0]), None, hit).clamp(min=1)
        grad_x = hit.mul_((grad_max / ties).index_select(0, graph))
        grad_mean = grad_mean.index_select(0, graph)
        return grad_x.addcmul_(grad_mean, weight[:, None]), None, None, None, None


def at_maximum(x: Tensor, highest: Tensor, graph: Tensor, tolerance: float) -> Tensor:
    """Which nodes hold the maximum of their graph, ``highest`` (graphs, d), 1 or 0, shape (n, d).

    With a ``tolerance`` a node that is below it by less than that share of it counts too, the less
    the lower it is: rounding then moves its part a little, and never all of it.
    """
    top = highest.index_select(0, graph)  # far faster than highest[graph]
    if not tolerance:
        return top.le_(x)
    reach = (tolerance * top.abs()).clamp_(min=torch.finfo(x.dtype).tiny)
    return (1 - (top - x) / reach).clamp_(0, 1)


def _membership(graph: Tensor, num_graphs: int) -> tuple[Tensor, Tensor]:
    """The 0/1 matrix of graphs by nodes, as CSR."""
    if torch.compiler.is_exporting():
        offsets = to_offsets(counts_of(graph, num_graphs))
    else:
        offsets = torch.searchsorted(graph, torch.arange(num_graphs + 1, device=graph.device))
    return offsets, torch.arange(graph.numel(), device=graph.device)


class _Activate(torch.autograd.Function):
    """x = relu(score z / |z|) of the living nodes, and each graph's maximum and mean of x.

    Without ``normalize`` there is no x, and z itself is read.
    """

    @staticmethod
    def forward(ctx, z, score, graph, start, end, alive, normalize):
        z, x, scale = z.contiguous(), None, None  # leading axes where slices end with padding
        if normalize is not None:
            x, scale = torch.empty_like(z), z.new_empty(z.shape[:-1], dtype=torch.float32)
        read, ties, count = _read(z, score, x, scale, alive, start, end, bool(normalize))
        ctx.save_for_backward(z, score, graph, alive, scale, read, ties, count)
        ctx.set_materialize_grads(False)  # the x of the last layer has none
        ctx.normalize = normalize
        return x, read

    @staticmethod
    def backward(ctx, grad_x, grad_read):
        z, score, graph, alive, scale, read, ties, count = ctx.saved_tensors
        grad_read = torch.zeros_like(read) if grad_read is None else grad_read.contiguous()
        grad_x = None if grad_x is None else grad_x.contiguous()
        grad_z, grad_score = torch.empty_like(z), None if score is None else torch.empty_like(score)
        rows, width = z.shape[:-1].numel(), z.shape[-1]
        activation = (z, score, alive, graph, scale)
        given = (*activation, read, grad_read, ties, count, grad_x, grad_z, grad_score, rows, width)
        how = {"NORMALIZE": bool(ctx.normalize), "RELU": ctx.normalize is not None}
        sizes = {"ROWS": ROWS, "CHANNELS": triton.next_power_of_2(width), "num_warps": 4}
        _activate_backward_kernel[(triton.cdiv(rows, ROWS),)](*given, **how, **sizes)
        return grad_z, grad_score, *[None] * 5


def _read(z, score, x, scale, alive, start, end, normalize):
    """Each graph's maximum and mean, how many nodes share the maximum, and how many there are.

    Large graphs are cut into parts that are read side by side and then put together.
    """
    graphs, width = start.numel(), z.shape[-1]
    slices, rows = z.shape[:-2].numel(), z.shape[:-1].numel()
    parts = min(triton.next_power_of_2(max(rows // max(graphs * ROWS_A_PART, 1), 1)), 64)
    read = z.new_empty(graphs, 2 * width) if parts == 1 else None
    found = z.new_empty(graphs, parts, 1 if parts == 1 else 3, width, dtype=torch.float32)
    count = z.new_empty(graphs, parts, dtype=torch.float32)
    padding = 0 if x is None else triton.cdiv(rows // slices, PADDING_ROWS)
    given = (z, score, x, scale, alive, start, end, read, found, count)
    counts = (graphs, parts, graphs // slices, rows // slices, max(padding, 1), width)
    many = 1 if graphs * parts >= FEW else 2
    sizes = {"ROWS": many * READ_ROWS, "num_warps": many * READ_WARPS}
    sizes["CHANNELS"] = triton.next_power_of_2(width)
    programs = graphs * parts + slices * padding
    _readout_kernel[(programs,)](*given, *counts, NORMALIZE=normalize, **sizes)
    if read is not None:
        return read, found.view(graphs, width), count.view(graphs)
    highest, summed, shared = found.unbind(2)
    most = highest.amax(1)
    ties = (shared * (highest == most[:, None])).sum(1)
    count = count.sum(1)
    mean = summed.sum(1) / count.clamp(min=1)[:, None]
    most = torch.where(count[:, None] > 0, most, 0)
    return torch.cat((most, mean), dim=1).to(z.dtype), ties, count


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
    def _readout_kernel(
        z,
        score,
        x,
        scale,
        alive,
        start,
        end,
        read,
        found,
        count,
        graphs,
        parts,
        graphs_a_slice,
        rows_a_slice,
        padding,
        width,
        NORMALIZE: tl.constexpr,
        ROWS: tl.constexpr,
        CHANNELS: tl.constexpr,
    ):
        """Maximum, sum, and how many nodes share the maximum, of every part of a graph.

        Where a part is a whole graph, its maximum and mean go to read, and the ties alone to found.
        Where x is wanted, it is relu(score z / |z|), zero for dead nodes, and what is read is x;
        scale = 1 / |z|. The programs past the graphs' take the padding of a slice, ``padding`` of
        them for each. Every thread keeps what its rows say; only at the end do threads wait for
        each other.
        """
        program = tl.program_id(0)
        graph = program // parts
        part = program % parts
        if graph < graphs:
            first = tl.load(start + graph)
            last = tl.load(end + graph)
            each = (last - first + parts - 1) // parts
        else:
            beyond = program - graphs * parts
            part = beyond % padding
            first = tl.load(end + (beyond // padding + 1) * graphs_a_slice - 1)
            last = (beyond // padding + 1) * rows_a_slice + first * 0
            each = (last - first + padding - 1) // padding
        first += part * each
        last = tl.minimum(last, first + each)
        channel = tl.arange(0, CHANNELS)
        inside = channel < width
        highest = tl.full((ROWS, CHANNELS), float("-inf"), tl.float32)
        shared = tl.zeros((ROWS, CHANNELS), tl.float32)
        summed = tl.zeros((ROWS, CHANNELS), tl.float32)
        nodes = tl.zeros((ROWS,), tl.float32)
        for begin in range(first, last, ROWS):
            row = begin + tl.arange(0, ROWS)
            exists = row < last
            counts = exists
            place = row.to(tl.int64)[:, None] * width + channel[None, :]
            mask = exists[:, None] & inside[None, :]
            value = tl.load(z + place, mask=mask, other=0.0).to(tl.float32)
            if alive is not None:  # asked for at the same time as z
                counts = exists & (tl.load(alive + row, mask=exists, other=0) != 0)
            here = counts[:, None] & inside[None, :]
            if x is not None:
                factor = tl.full((ROWS,), 1.0, tl.float32)
                if NORMALIZE:
                    norm = tl.sqrt(tl.sum(value * value, axis=1))
                    factor = 1.0 / tl.where(norm > 1e-12, norm, 1.0)
                tl.store(scale + row, factor, mask=exists)
                if score is not None:
                    factor *= tl.load(score + row, mask=exists, other=0.0).to(tl.float32)
                value = tl.maximum(value * factor[:, None], 0.0)
                value = tl.where(here, value, 0.0).to(x.dtype.element_ty)
                tl.store(x + place, value, mask=mask)
                value = value.to(tl.float32)
            nodes += counts.to(tl.float32)
            summed += tl.where(here, value, 0.0)
            value = tl.where(here, value, float("-inf"))
            again = tl.where(here & (value == highest), shared + 1.0, shared)
            shared = tl.where(value > highest, 1.0, again)
            highest = tl.maximum(highest, value)
        most = tl.max(highest, axis=0)
        ties = tl.sum(tl.where(highest == most[None, :], shared, 0.0), axis=0)
        total = tl.sum(summed, axis=0)
        living = tl.sum(nodes, axis=0)
        if graph >= graphs:  # padding is not read
            return
        tl.store(count + program, living)
        if read is None:
            found += program * 3 * width + channel
            tl.store(found, most, mask=inside)
            tl.store(found + width, total, mask=inside)
            tl.store(found + 2 * width, ties, mask=inside)
        else:  # the maximum of no node is zero
            tl.store(found + graph * width + channel, ties, mask=inside)
            most = tl.where(living > 0, most, 0.0).to(read.dtype.element_ty)
            mean = (total / tl.maximum(living, 1.0)).to(read.dtype.element_ty)
            read += graph * 2 * width + channel
            tl.store(read, most, mask=inside)
            tl.store(read + width, mean, mask=inside)

    @triton.jit
    def _activate_backward_kernel(
        z,
        score,
        alive,
        graph,
        scale,
        read,
        grad_read,
        ties,
        nodes,
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
        highest = tl.load(read + place_read, mask=here, other=0.0).to(tl.float32)
        of_maximum = tl.load(grad_read + place_read, mask=here, other=0.0).to(tl.float32)
        of_mean = tl.load(grad_read + place_read + width, mask=here, other=0.0).to(tl.float32)
        place_ties = where[:, None] * width + channel[None, :]
        shared = tl.load(ties + place_ties, mask=here, other=1.0)
        size = tl.load(nodes + where, mask=counts, other=1.0)
        grad = of_mean * (1.0 / tl.maximum(size, 1.0))[:, None]
        grad += tl.where(x == highest, of_maximum / tl.maximum(shared, 1.0), 0.0)
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

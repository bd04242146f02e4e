"""The readout: one vector for each graph."""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.graphs.indexing import counts_of, to_offsets
from lookhops.nn import kernels
from lookhops.nn.level import Level
from lookhops.ops.kernels import can_run_on
from lookhops.ops.product import multiply


def readout(level: Level) -> Tensor:
    r"""The maximum and the mean of each graph's nodes, side by side, shape (..., graphs, 2 d).

    A graph without nodes reads zero. Where several nodes share a maximum they share its gradient.
    """
    x = level.x
    if can_run_on(x) and x.shape[-1] <= 256 and not level.near_ties:
        start, end = level.bounds
        read = kernels.Readout.apply(x.flatten(0, -2), level.graph, start, end, level.alive)
        return read.view(*x.shape[:-2], -1, 2 * x.shape[-1])
    graphs = level.graph.long(), level.num_graphs, level.alive
    both = _Readout.apply(x.flatten(0, -2), *graphs, level.slack)
    return both.view(*x.shape[:-2], -1, 2 * x.shape[-1])


class _Readout(torch.autograd.Function):
    """Segment max and mean; written out because PyTorch's own gradient of the max is slow."""

    @staticmethod
    def forward(ctx, x, graph, num_graphs, alive, slack):  # type: ignore[no-untyped-def]
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
        ctx.slack = slack
        return torch.cat((highest, mean), dim=1)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        x, graph, alive, highest, weight = ctx.saved_tensors
        grad_max, grad_mean = grad.chunk(2, dim=1)
        hit = at_maximum(x, highest, graph, ctx.slack)
        if alive is not None:
            hit *= alive[:, None]
        ties = multiply(*_membership(graph, highest.shape[0]), None, hit).clamp(min=1)
        grad_x = hit.mul_((grad_max / ties).index_select(0, graph))
        grad_mean = grad_mean.index_select(0, graph)
        return grad_x.addcmul_(grad_mean, weight[:, None]), None, None, None, None


def at_maximum(x: Tensor, highest: Tensor, graph: Tensor, slack: float) -> Tensor:
    """Which nodes hold the maximum of their graph, 1 or 0, shape (n, d).

    With ``slack`` a node that is below it by less than that share of it counts too, the less the
    lower it is: rounding then moves its part a little, and never all of it.

    Args:
        x: Node features, shape (n, d).
        highest: The maxima, shape (graphs, d).
        graph: Graph of each node, shape (n).
        slack: What is near a maximum, as a share of it; 0 counts what is equal alone.
    """
    top = highest.index_select(0, graph)  # far faster than highest[graph]
    if not slack:
        return top.le_(x)
    reach = (slack * top.abs()).clamp_(min=torch.finfo(x.dtype).tiny)
    return (1 - (top - x) / reach).clamp_(0, 1)


def _membership(graph: Tensor, num_graphs: int) -> tuple[Tensor, Tensor]:
    """The 0/1 matrix of graphs by nodes, as CSR."""
    if torch.compiler.is_exporting():
        offsets = to_offsets(counts_of(graph, num_graphs))
    else:
        offsets = torch.searchsorted(graph, torch.arange(num_graphs + 1, device=graph.device))
    return offsets, torch.arange(graph.numel(), device=graph.device)

"""Cutting an order of graphs into batches, by number of graphs or by a budget of nodes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lookhops.core.options import Protocol


def number_of_batches(part: Tensor, nodes: Tensor, protocol: Protocol) -> int:
    """Into how many batches a part is cut: the same whatever its order.

    Args:
        part: Numbers of graphs.
        nodes: Nodes of every graph of the set, in main memory.
        protocol: Graphs in a batch, and nodes where they have a budget.
    """
    if protocol.batch_nodes is None:
        return -(-len(part) // protocol.batch_size)
    return int(_shares(part, nodes, protocol).sum().ceil())


def batches(order: Tensor, nodes: Tensor, protocol: Protocol) -> list[Tensor]:
    r"""The graphs of each batch, in their order.

    With a budget of nodes a graph takes the share :math:`\max(n / \mathrm{budget}, 1 /
    \mathrm{size})` of a batch, at most all of it. The shares of all graphs say how many batches
    there are, and the order is cut where equal shares of their sum end. So a batch has at most
    one graph more than fits, and the number of batches does not depend on the order: networks
    that are trained together take equally many steps.

    Args:
        order: Numbers of graphs.
        nodes: Nodes of every graph of the set, in main memory.
        protocol: Graphs in a batch, and nodes where they have a budget.
    """
    if protocol.batch_nodes is None:
        return list(order.split(protocol.batch_size))
    shares = _shares(order, nodes, protocol)
    total, place = shares.sum(), torch.arange(len(order))
    count = int(total.ceil())
    batch = ((shares.cumsum(0) - shares) * (count / total)).long()
    # A graph as large as a batch may step over one: no batch is left out, and none at the end.
    batch = place + (batch - place).cummin(0).values
    batch = batch.maximum(place - (len(order) - count)).clamp(max=count - 1)
    return list(order.split(batch.bincount(minlength=count).tolist()))


def plan_of(parts: Sequence[Sequence[Tensor]], protocol: Protocol) -> Tensor:
    """Each member's batches side by side, shape (members, batches, size), -1 for no graph.

    Args:
        parts: The :func:`batches` of each member.
        protocol: Graphs in a batch.
    """
    # With a budget of nodes a batch may have one graph more.
    size = protocol.batch_size + (protocol.batch_nodes is not None)
    count = max(1, *(len(own) for own in parts))
    plan = torch.full((len(parts), count, size), -1)
    for row, own in zip(plan, parts, strict=True):
        if own:
            lengths = torch.tensor([len(batch) for batch in own])
            row[: len(own)][torch.arange(size) < lengths[:, None]] = torch.cat(list(own))
    return plan


def _shares(part: Tensor, nodes: Tensor, protocol: Protocol) -> Tensor:
    """What share of a batch each graph takes, float64."""
    assert protocol.batch_nodes is not None
    own = nodes[part].double() / protocol.batch_nodes
    return own.clamp(min=1 / protocol.batch_size, max=1)

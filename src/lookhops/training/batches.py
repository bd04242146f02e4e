"""Batches: cutting an order of graphs, and the capacity of batches of fixed shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np
import torch
from torch import Tensor

from lookhops.core.options import Protocol
from lookhops.nn import GraphNetwork
from lookhops.ops.batch import Extent


def number_of_batches(part: Tensor, nodes: Tensor, protocol: Protocol) -> int:
    """Into how many :func:`batches` a part is cut: the same whatever its order."""
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
    total, position = shares.sum(), torch.arange(len(order))
    count = int(total.ceil())
    batch = ((shares.cumsum(0) - shares) * (count / total)).long()
    # A graph as large as a batch may step over one: no batch is left out, and none at the end.
    batch = position + (batch - position).cummin(0).values
    batch = batch.maximum(position - (len(order) - count)).clamp(max=count - 1)
    return list(order.split(batch.bincount(minlength=count).tolist()))


def plan_of(parts: Sequence[Sequence[Tensor]], protocol: Protocol) -> Tensor:
    """Each member's :func:`batches` side by side, (members, batches, size), -1 for no graph."""
    # With a budget of nodes a batch may have one graph more.
    size = protocol.batch_size + (protocol.batch_nodes is not None)
    plan = torch.full((len(parts), max(1, *map(len, parts)), size), -1)
    for row, part in zip(plan, parts, strict=True):
        if part:
            lengths = torch.tensor([len(batch) for batch in part])
            row[: len(part)][torch.arange(size) < lengths[:, None]] = torch.cat(list(part))
    return plan


def _shares(part: Tensor, nodes: Tensor, protocol: Protocol) -> Tensor:
    assert protocol.batch_nodes is not None
    shares = nodes[part].double() / protocol.batch_nodes
    return shares.clamp(min=1 / protocol.batch_size, max=1)


NODE_STEP = 256  # capacities are multiples of this: dense layers and kernels take whole blocks
EDGE_STEP = 1024
PIECE = 1024  # batches of a plan that are looked at together
#: Nodes of all members times the nodes of the largest graph: where there are more, links are not
#: laid out for all pairs of nodes of a graph.
MOST_PAIRS = 1 << 28


def makes_links(model: GraphNetwork) -> bool:
    """Whether a pooling of the network makes links between any two nodes of a graph."""
    return any(getattr(pool, "makes_links", False) for pool in model.pools)


def keeps_shapes(model: GraphNetwork, capacity: Capacity, members: int) -> bool:
    """Whether the shapes of a step of the network do not depend on the data."""
    fixed = all(getattr(pool, "fixed_shapes", True) for pool in model.pools)
    return fixed and (not makes_links(model) or capacity.extent(members, 1) is not None)


@dataclass(frozen=True)
class Capacity:
    """How much a batch may hold."""

    nodes: int  # of each member
    edges: int  # of all members
    entries: int = 0  # of sparse rows, of all members
    own_edges: int = 0  # of each member, where edges have features
    largest: int = 0  # nodes of one graph
    squares: int = 0  # sum of the squared numbers of nodes of all graphs, where links are made

    def holds(self, needed: Capacity) -> bool:
        """Whether a batch fits, with one node more, which padding edges join."""
        pairs = zip(astuple(self)[1:], astuple(needed)[1:], strict=True)
        return self.nodes > needed.nodes and all(here >= other for here, other in pairs)

    def grown(self, needed: Capacity) -> Capacity:
        """The next capacity that holds both."""
        steps = (NODE_STEP, EDGE_STEP, EDGE_STEP, EDGE_STEP, 1, EDGE_STEP)
        wanted = astuple(replace(needed, nodes=needed.nodes + 1))
        most = map(max, astuple(self), wanted)
        return Capacity(*(-(-size // step) * step for size, step in zip(most, steps, strict=True)))

    def extent(self, members: int, graphs: int) -> Extent | None:
        """How large so many graphs of all members can be; none where links find no room."""
        nodes, largest = members * self.nodes, max(self.largest, 1)
        if nodes * largest > MOST_PAIRS:
            return None
        return Extent(graphs, nodes, self.squares, largest)


class GraphSizes:
    """Sizes of a set of graphs, which say what capacity their batches need."""

    def __init__(self, model: GraphNetwork, nodes: np.ndarray, edge_ptr: Tensor) -> None:
        self.nodes, self.edges = nodes, edge_ptr.diff().cpu().numpy()
        self.reads_edges = model.edge_channels > 0
        self.squares = nodes.astype(np.int64) ** 2 if makes_links(model) else None

    def needs(self, plan: np.ndarray, entries: np.ndarray | None) -> Capacity:
        """The capacity that a plan needs, (members, batches, size), -1 for no graph.

        ``entries`` are those of each graph's sparse row, shape (members, graphs).
        """
        if plan.shape[1] > PIECE:  # of long plans what is held at a time is bounded
            pieces = np.array_split(plan, -(-plan.shape[1] // PIECE), axis=1)
            found = [astuple(self.needs(piece, entries)) for piece in pieces]
            return Capacity(*(max(each) for each in zip(*found, strict=True)))

        def most(values: np.ndarray, axes: int | tuple[int, ...]) -> int:
            return int(np.where(plan >= 0, values, 0).sum(axes).max(initial=0))

        of_plan = 0
        if entries is not None:
            flat = np.take_along_axis(entries, plan.reshape(len(plan), -1), 1)
            of_plan = most(flat.reshape(plan.shape), (0, 2))
        return Capacity(
            nodes=most(self.nodes[plan], 2),
            edges=most(self.edges[plan], (0, 2)),
            entries=of_plan,
            own_edges=most(self.edges[plan], 2) if self.reads_edges else 0,
            largest=int(self.nodes.max(initial=0)),
            squares=0 if self.squares is None else most(self.squares[plan], (0, 2)),
        )

    def likely(self, members: int, size: int, entries: np.ndarray | None) -> Capacity:
        """What shuffled batches seldom outgrow: four standard deviations above the mean."""

        def above(values: np.ndarray | None, count: int) -> int:
            if values is None:
                return 0
            count = min(count, values.size * max(count // size, 1))
            return int(count * values.mean() + 4 * np.sqrt(count) * values.std())

        return Capacity(
            nodes=above(self.nodes, size),
            edges=above(self.edges, members * size),
            entries=above(entries, members * size),
            own_edges=above(self.edges, size) if self.reads_edges else 0,
            squares=above(self.squares, members * size),
        )

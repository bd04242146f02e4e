"""Shares of one network's answer: gradients along paths from an average graph to the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from lookhops.explanations.quadrature import gauss_legendre
from lookhops.graphs import Graphs
from lookhops.hashing import mix
from lookhops.neighbourhoods import identities
from lookhops.nn import GraphNetwork, Level

#: Steps in which edges appear, and points on each step; the same of edges that carry something.
EDGE_STEPS, TOLD_EDGE_STEPS = (1, 4), (8, 2)
#: Points on the way of each half of the nodes, and of what is told of whole graphs.
NODE_POINTS, WHOLE_POINTS = 2, 64
#: How often nodes are divided into halves.
DIVISIONS = 2
#: How far nodes are told apart when they are divided into halves.
HOPS = 3
#: What the size of a share is at least when something is spread by size.
FAINTEST = 1e-9


@dataclass(frozen=True, eq=False)
class PathShares:
    r"""What the inputs of a batch have of the number :math:`u` of each graph; all in float64.

    Args:
        node: Of the features of each node, shape (n).
        edge: Of each edge: that it is there, and what it carries, shape (e).
        totals: Of each total, shape (g, q); no columns where none are read.
        slope: The mean of :math:`\partial u / \partial o` along the path, shape (g, outputs): what
            is added to the outputs has this many times itself.
        fingerprint: What exact neighbourhoods add to the outputs, shape (g, outputs).
        start: The number of the average graph, shape (g).
        end: The number of the graph, shape (g).
    """

    node: Tensor
    edge: Tensor
    totals: Tensor
    slope: Tensor
    fingerprint: Tensor
    start: Tensor
    end: Tensor

    def missing(self, graph: Tensor, edge_graph: Tensor) -> Tensor:
        """What the shares of each graph lack to add up to ``end - start``, shape (g).

        Args:
            graph: Graph of each node.
            edge_graph: Graph of each edge.
        """
        found = self.totals.sum(1) + (self.slope * self.fingerprint).sum(1)
        found = found.index_add(0, graph, self.node).index_add(0, edge_graph, self.edge)
        return self.end - self.start - found

    @classmethod
    def join(cls, parts: Sequence[PathShares]) -> PathShares:
        """Those of all graphs of several batches."""
        names = (own.name for own in fields(cls))
        return cls(*(torch.cat([getattr(part, name) for part in parts]) for name in names))


def halves(graphs: Graphs) -> Tensor:
    """Divisions of the nodes of each graph into two halves, shape (n, divisions), booleans.

    As good as at random, but by what lies within three hops of a node: however nodes are numbered
    and whatever stands beside the graph, the halves are the same, and nodes that cannot be told
    apart are in the same one.
    """
    drawn = mix(identities(graphs, HOPS)[:, -1])
    return torch.stack([(drawn >> bit) & 1 == 1 for bit in range(DIVISIONS)], 1)


class Path:
    r"""Shares by gradients along paths from an average graph to the graph.

    The average graph has as many nodes, each with the average of what training nodes carry, no
    edges, average totals and no neighbourhood that is known. It becomes the graph in steps:

    1. The edges appear, in some steps: their factors grow from 0 to 1, and what they carry becomes
       what it is.
    2. The nodes get their features: all at once, or one half of them (:func:`halves`) before the
       other, or after it; the mean over all these orders is taken. So a node is judged in poor
       company, on the way, and in rich company.
    3. Totals and exact neighbourhoods become what they are.

    What a step changes is known: the difference :math:`\Delta` of the number before and after. It
    is shared among what changes by integrated gradients (Sundararajan et al., 2017),

    .. math::
        \phi_j = \int \frac{\partial u}{\partial z_j} \, dz_j,

    by few points; what they lack, :math:`\Delta - \sum_j \phi_j`, is spread in proportion to
    :math:`|\phi_j|`. So shares add up to :math:`u(z) - u(z^0)` whatever the layers do: a pooling
    may choose other nodes, or merge others, at every point.

    Args:
        model: The network.
        level: The graphs as it is told of them, in compacted form.
        node: What is told of an average node, shape (d).
        edge: What is told of an average edge, shape (f), or none.
        units: The number that is explained, as a function of the outputs: (g, outputs) to (g).
    """

    def __init__(
        self,
        model: GraphNetwork,
        level: Level,
        node: Tensor,
        edge: Tensor | None,
        units: Callable[[Tensor], Tensor],
    ) -> None:
        self.model, self.level, self.units = model, level, units
        self.average = node.to(level.x).expand_as(level.x)
        self.change = level.x - self.average
        self.columns: tuple[Tensor, Tensor] | None = None
        if level.edges is not None and edge is not None:
            average = edge.to(level.edges.columns).expand_as(level.edges.columns)
            self.columns = average, level.edges.columns - average
        self.graph = level.graph
        self.edge_graph = level.graph[level.adjacency.target.long()]
        whole, outputs = level.whole, level.x.new_zeros(level.num_graphs, model.out_channels)
        self.totals = outputs[:, :0]
        self.fingerprint = self.usual = outputs
        with torch.no_grad():
            if "totals" in model.readings:
                assert whole is not None
                assert whole.totals is not None
                self.totals = whole.totals
                self.usual = self._of_totals(torch.zeros_like(self.totals))
            if "fingerprint" in model.readings:
                self.fingerprint = model.readings["fingerprint"](whole, None)

    def integrate(self, divisions: Tensor) -> PathShares:
        """The shares.

        Args:
            divisions: Which nodes are of the first half of their graph, shape (n, divisions).
        """
        none, every = torch.zeros_like(divisions[:, 0]), torch.ones_like(divisions[:, 0])
        start = self._number(none, edges=0.0)
        edge, bare = self._edges(start)
        node = torch.zeros_like(none, dtype=torch.float64)
        pairs = [pair for one in divisions.unbind(1) for pair in ((one, ~one), (~one, one))]
        orders = [(every,), *pairs] if self.change.any() else []
        for order in orders:
            told, before = none, bare
            for group in order:
                after = self._number(told | group)
                node += self._nodes(group, told, after - before) / len(orders)
                told, before = told | group, after
        return self._readings(node, edge, start)

    def _network(self, x: Tensor, factor: Tensor, columns: Tensor | None) -> Tensor:
        """The outputs of the layers, shape (g, outputs); zeros of a network without any."""
        adjacency = self.level.adjacency.times(factor, self.level.adjacency.symmetric)
        level = replace(self.level, x=x, adjacency=adjacency)
        if columns is not None:
            assert level.edges is not None
            level = replace(level, edges=replace(level.edges, columns=columns))
        _, read, _ = self.model.look(level)
        found = torch.zeros_like(self.usual) if read is None else self.model.mlp(read)
        assert isinstance(found, Tensor)
        return found

    def _features(self, told: Tensor) -> Tensor:
        """What is told of nodes where each has so much of its own features, shape (n, d)."""
        return self.average + told.to(self.change)[:, None] * self.change

    def _told_edges(self, share: float) -> tuple[Tensor, Tensor | None]:
        """Factors of the edges, and what they carry, where they are there to this share."""
        ones = self.change.new_ones(self.level.adjacency.num_edges)
        columns = None if self.columns is None else self.columns[0] + share * self.columns[1]
        return share * ones, columns

    @torch.no_grad()
    def _number(self, told: Tensor, edges: float = 1.0) -> Tensor:
        """The number of each graph where these nodes have their own features, shape (g)."""
        outputs = self._network(self._features(told), *self._told_edges(edges))
        return self.units(outputs + self.usual)

    def _edges(self, start: Tensor) -> tuple[Tensor, Tensor]:
        """Shares of the edges, shape (e), and the number of each graph once they are there.

        They appear in steps, each of which changes the number by what is known: an answer turns in
        a small part of the way, which few points on the whole of it would miss.

        Args:
            start: The number of each graph without edges.
        """
        found = torch.zeros_like(self.edge_graph, dtype=torch.float64)
        none = torch.zeros_like(self.graph, dtype=torch.bool)
        steps, points = TOLD_EDGE_STEPS if self.columns else EDGE_STEPS
        before = start
        for step in range(steps):
            low, high = step / steps, (step + 1) / steps
            after = self._number(none, edges=high)
            found += self._edge_step(low, high, points, after - before)
            before = after
        return found, before

    @torch.enable_grad()
    def _edge_step(self, low: float, high: float, points: int, change: Tensor) -> Tensor:
        """Shares of the edges on a part of their way, that add up to the change of each graph."""
        found = torch.zeros_like(self.edge_graph, dtype=torch.float64)
        for point, weight in gauss_legendre(points):
            factor, columns = self._told_edges(low + (high - low) * point)
            inputs = [one.requires_grad_() for one in (factor, columns) if one is not None]
            outputs = self._network(self.average, factor, columns) + self.usual
            of_factor, *of_columns = self._gradients(outputs, inputs)
            found += (high - low) * weight * of_factor
            if of_columns and self.columns is not None:
                found += (high - low) * weight * self._of_edges(of_columns[0] * self.columns[1])
        return _completed(found, torch.ones_like(found), self.edge_graph, change)

    @torch.enable_grad()
    def _nodes(self, group: Tensor, told: Tensor, change: Tensor) -> Tensor:
        """Shares of a group of nodes, shape (n), that add up to the change of each graph.

        Args:
            group: The nodes that get their features.
            told: Those that have them already.
            change: What that changes, shape (g).
        """
        found = torch.zeros_like(group, dtype=torch.float64)
        for share, weight in gauss_legendre(NODE_POINTS):
            x = self._features(told + share * group).requires_grad_()
            outputs = self._network(x, *self._told_edges(1.0)) + self.usual
            (slope,) = self._gradients(outputs, [x])
            found += weight * (slope * self.change).sum(1)
        return _completed(found * group, group.double(), self.graph, change)

    @torch.enable_grad()
    def _readings(self, node: Tensor, edge: Tensor, start: Tensor) -> PathShares:
        """All shares, those of totals and of exact neighbourhoods with them."""
        with torch.no_grad():
            network = self._network(self.level.x, *self._told_edges(1.0))
            known = network + self._of_totals(self.totals) + self.fingerprint
            end = self.units(known)
        totals = torch.zeros_like(self.totals, dtype=torch.float64)
        slope = torch.zeros_like(network, dtype=torch.float64)
        for share, weight in gauss_legendre(WHOLE_POINTS) if self.model.readings else ():
            told = (share * self.totals).requires_grad_()
            outputs = network + self._of_totals(told) + share * self.fingerprint
            if not outputs.requires_grad:  # there are no totals
                outputs.requires_grad_()
            of_totals, own = self._gradients(outputs, [told, outputs])
            totals += weight * of_totals * self.totals.double()
            slope += weight * own
        return PathShares(node, edge, totals, slope, self.fingerprint.double(), start, end)

    def _of_totals(self, totals: Tensor) -> Tensor:
        """What the reading of totals adds to the outputs, shape (g, outputs)."""
        if "totals" not in self.model.readings:
            return torch.zeros_like(self.usual)
        assert self.level.whole is not None
        found = self.model.readings["totals"](replace(self.level.whole, totals=totals), None)
        assert isinstance(found, Tensor)
        return found

    def _gradients(self, outputs: Tensor, inputs: list[Tensor]) -> list[Tensor]:
        """Gradients of the number with respect to these, in float64; zeros where it reads none."""
        total = self.units(outputs).sum()
        if not total.requires_grad:
            return [torch.zeros_like(one, dtype=torch.float64) for one in inputs]
        found = torch.autograd.grad(total, inputs, allow_unused=True, materialize_grads=True)
        return [grad.double() for grad in found]

    def _of_edges(self, columns: Tensor) -> Tensor:
        """Sums over the columns of edges, in the order of the adjacency."""
        assert self.level.edges is not None
        each, place = columns.flatten(0, -2).sum(1), self.level.edges.place
        return each if place is None else each.index_select(0, place)


def _completed(shares: Tensor, inside: Tensor, graph: Tensor, change: Tensor) -> Tensor:
    """Shares that add up to the change of each graph: what they lack goes to them by their size.

    Args:
        shares: Of parts, shape (m).
        inside: One for parts that may have any, else zero; where all of a graph have none, they
            get equal ones.
        graph: Graph of each part.
        change: What those of each graph should add up to, shape (g).
    """
    size = shares.abs() + FAINTEST * inside
    lacking = change.index_add(0, graph, -shares)
    total = torch.zeros_like(change).index_add(0, graph, size)
    return shares + (lacking / total.clamp(min=FAINTEST))[graph] * size

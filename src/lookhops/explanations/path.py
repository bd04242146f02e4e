"""Shares of one network's answer: integrated gradients from an average graph to the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from lookhops.explanations.quadrature import gauss_legendre
from lookhops.nn import GraphNetwork, Level


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

    def put(self, place: dict[str, Tensor], other: PathShares) -> PathShares:
        """The same with those of some graphs from elsewhere.

        Args:
            place: Numbers of their ``node``, ``edge`` and ``graph``.
            other: Their shares.
        """
        found = {}
        for own in fields(self):
            kind = own.name if own.name in place else "graph"
            found[own.name] = getattr(self, own.name).index_copy(
                0, place[kind], getattr(other, own.name)
            )
        return PathShares(**found)


class Path:
    r"""Integrated gradients (Sundararajan et al., 2017) over all that a network reads of graphs.

    .. math::
        \phi_j = \int \frac{\partial u}{\partial z_j} \, dz_j

    along a path in two straight pieces. It starts at an average graph: as many nodes, each with the
    average of what training nodes carry, no edges, average totals, no neighbourhood that is known.
    On the first piece the edges appear (their factors grow from 0 to 1): the bare structure. On the
    second one everything else becomes what it is in the graph: features of nodes and of edges,
    totals, exact neighbourhoods. Structure first: a feature is then judged where it stands, which
    points at deciding nodes far better than letting edges and features appear together.

    What node poolings drop is held at what they drop of the graph itself, so that the answer is
    continuous along the path and shares add up to :math:`u(z) - u(z^0)`. Poolings that merge nodes
    decide anew at every point; their shares add up as far as their jumps allow.

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
        self.first: list[Tensor] = [node.to(level.x).expand_as(level.x)]
        self.last: list[Tensor] = [level.x]
        if level.edges is not None and edge is not None:
            self.first.append(edge.to(level.edges.columns).expand_as(level.edges.columns))
            self.last.append(level.edges.columns)
        self.has_edges = len(self.first) > 1
        if level.whole is not None and level.whole.totals is not None:
            self.first.append(torch.zeros_like(level.whole.totals))
            self.last.append(level.whole.totals)
        self.ones = level.x.new_ones(level.adjacency.num_edges)
        with torch.no_grad():
            outputs, self.decided = model.classify(level)
            self.fingerprint = torch.zeros_like(outputs)
            if "fingerprint" in model.readings:
                self.fingerprint = model.readings["fingerprint"](level.whole, None)

    def outputs(self, factor: Tensor, told: Sequence[Tensor], a: float) -> Tensor:
        """The network's outputs.

        Args:
            factor: Of each edge, shape (e).
            told: What is told of nodes, of edges and of totals, those that are.
            a: How much exact neighbourhoods count.
        """
        x, *rest = told
        adjacency = self.level.adjacency.times(factor, self.level.adjacency.symmetric)
        level = replace(self.level, x=x, adjacency=adjacency)
        if self.has_edges:
            assert level.edges is not None
            level = replace(level, edges=replace(level.edges, columns=rest.pop(0)))
        if rest:
            assert level.whole is not None
            level = replace(level, whole=replace(level.whole, totals=rest.pop(0)))
        outputs, _ = self.model.classify(level, decided=self.decided)
        return outputs - (1 - a) * self.fingerprint

    @torch.enable_grad()
    def integrate(self, edge_points: int, points: int) -> PathShares:
        """The shares, by so many points on the first and on the second piece of the path."""
        structure = torch.zeros_like(self.ones, dtype=torch.float64)
        changes = [last - first for first, last in zip(self.first, self.last, strict=True)]
        sums = [torch.zeros_like(change, dtype=torch.float64) for change in changes]
        slope = torch.zeros_like(self.fingerprint, dtype=torch.float64)
        for a, weight in gauss_legendre(edge_points):
            factor = (a * self.ones).requires_grad_()
            (grad,) = self._gradients(self.outputs(factor, self.first, 0.0), [factor])
            structure += weight * grad
        for a, weight in gauss_legendre(points):
            pairs = zip(self.first, changes, strict=True)
            told = [(first + a * change).requires_grad_() for first, change in pairs]
            outputs = self.outputs(self.ones, told, a)
            if not outputs.requires_grad:  # no layer reads anything
                outputs.requires_grad_()
            *grads, own = self._gradients(outputs, [*told, outputs])
            for total, grad, change in zip(sums, grads, changes, strict=True):
                total += weight * grad * change.double()
            slope += weight * own
        with torch.no_grad():
            start = self.units(self.outputs(0 * self.ones, self.first, 0.0))
            end = self.units(self.outputs(self.ones, self.last, 1.0))
        node, *rest = sums
        edge = structure + self._of_edges(rest.pop(0)) if self.has_edges else structure
        totals = rest.pop(0) if rest else slope.new_zeros(len(slope), 0)
        return PathShares(node.sum(1), edge, totals, slope, self.fingerprint.double(), start, end)

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

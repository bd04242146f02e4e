"""Shares of networks' answers: gradients along paths from an average graph to the graph."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lookhops.core.arrays import gauss_legendre
from lookhops.core.hashing import mix
from lookhops.explain.points import Points
from lookhops.explain.shares import Shares
from lookhops.graphs import Graphs
from lookhops.neighbourhoods import identities

#: Steps in which edges appear, and points on each step; the same of edges that carry something.
EDGE_STEPS, TOLD_EDGE_STEPS = (1, 4), (8, 2)
#: Points on the way of each half of the nodes, and of what is read of whole graphs.
NODE_POINTS, WHOLE_POINTS = 2, 64
#: How often nodes are divided into halves.
DIVISIONS = 2
#: Hops within which nodes may differ when they are divided into halves.
HOPS = 3
#: What the size of a share is at least when something is spread by size.
FAINTEST = 1e-9


@dataclass(frozen=True, eq=False)
class PathShares(Shares):
    r"""The shares of the layers' inputs along a path, and of what is read of graphs as wholes.

    Args:
        totals: Of each total, shape (networks, g, q); no columns where none are read.
        slope: The mean of :math:`\partial u / \partial o` along the path, shape
            (networks, g, outputs): what is added to the outputs has this many times itself.
    """

    totals: Tensor
    slope: Tensor


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
       other, or after it; the mean over all these orders is taken. So a node is judged with
       none, some and all of the others.
    3. Totals and exact neighbourhoods become what they are.

    What a step changes is known: the difference :math:`\Delta` of the number before and after. It
    is shared among what changes by integrated gradients (Sundararajan et al., 2017),

    .. math::
        \phi_j = \int \frac{\partial u}{\partial z_j} \, dz_j,

    by few points; what they lack, :math:`\Delta - \sum_j \phi_j`, is spread in proportion to
    :math:`|\phi_j|`. So shares add up to :math:`u(z) - u(z^0)` whatever the layers do: a pooling
    may choose other nodes, or merge others, at every point.

    Args:
        points: The graphs of a batch on their way.
    """

    def __init__(self, points: Points) -> None:
        self.points = points

    def integrate(self, divisions: Tensor) -> PathShares:
        """The shares.

        Args:
            divisions: Which nodes are of the first half of their graph, shape (n, divisions).
        """
        if not bool(self.points.change.any()):
            divisions = divisions[:, :0]
        steps, points = TOLD_EDGE_STEPS if self.points.columns else EDGE_STEPS
        # Which nodes have their features: none, all, then each half.
        states = [torch.zeros_like(self.points.graph), torch.ones_like(self.points.graph)]
        for one in divisions.T.long():
            states += [one, 1 - one]
        state = torch.stack(states).to(self.points.change)
        appearing = torch.arange(steps).to(self.points.change) / steps
        outputs = self.points.outputs(
            torch.cat((torch.zeros_like(state[:1]).expand(steps, -1), state)),
            torch.cat((appearing, torch.ones_like(state[:, 0]))),
        )
        number = self.points.numbers(outputs + self.points.usual[:, None])
        edge = self._edges(appearing, points, number[:, : steps + 1].diff(dim=1))
        node = self._nodes(state, number[:, steps:])
        return self._readings(node, edge, number[:, 0], outputs[:, steps + 1])

    def _nodes(self, state: Tensor, number: Tensor) -> Tensor:
        """Shares of the nodes, shape (networks, n), the mean over the orders.

        Args:
            state: Which nodes have their features: none, all, each half, shape (states, n).
            number: The number of each graph then, shape (networks, states, g).
        """
        before, after = [0], [1]  # the states of every step of every order
        for half in range(2, len(state)):
            before, after = [*before, 0, half], [*after, half, 1]
        group = state[after] - state[before]
        rule = gauss_legendre(NODE_POINTS)
        present = torch.stack([state[before] + point * group for point, _ in rule], 1)
        slope = self.points.of_nodes(present.flatten(0, 1)).unflatten(1, (len(group), len(rule)))
        found = sum(weight * slope[:, :, place] for place, (_, weight) in enumerate(rule)) * group
        change = number[:, after] - number[:, before]
        return _completed(found, group, self.points.graph, change).sum(1) / (len(state) - 1)

    def _edges(self, appearing: Tensor, points: int, change: Tensor) -> Tensor:
        """Shares of the edges, shape (networks, e).

        They appear in steps, each of which changes the number by what is known: an answer turns in
        a small part of the way, which few points on the whole of it would miss.

        Args:
            appearing: To which share they are there when a step begins, shape (steps).
            points: On each step.
            change: What each changes, shape (networks, steps, g).
        """
        steps, rule = len(appearing), gauss_legendre(points)
        share = torch.stack([appearing + point / steps for point, _ in rule], 1)
        slope = self.points.of_edges(share.flatten()).unflatten(1, share.shape)
        found = sum(weight * slope[:, :, place] for place, (_, weight) in enumerate(rule)) / steps
        return _completed(found, torch.ones_like(found), self.points.edge_graph, change).sum(1)

    @torch.enable_grad()
    def _readings(self, node: Tensor, edge: Tensor, start: Tensor, network: Tensor) -> PathShares:
        """All shares, those of totals and of exact neighbourhoods with them.

        Args:
            node, edge: Shares.
            start: The number of each average graph.
            network: What the layers give for the graphs, shape (networks, g, outputs).
        """
        with torch.no_grad():
            known = network + self.points.of_totals(self.points.totals) + self.points.fingerprint
            end = self.points.numbers(known[:, None])[:, 0]
        totals = torch.zeros_like(self.points.totals, dtype=torch.float64)
        slope = torch.zeros_like(network, dtype=torch.float64)
        if self.points.model.readings:
            rule = torch.tensor(gauss_legendre(WHOLE_POINTS), dtype=torch.float64)
            share, weight = rule.to(start)[:, :, None, None].unbind(1)
            totals_then = (share.to(network) * self.points.totals[:, None]).requires_grad_()
            outputs = network[:, None] + self.points.of_totals(totals_then.flatten(1, 2)).view(
                self.points.networks, -1, *network.shape[1:]
            )
            outputs = outputs + share.to(network) * self.points.fingerprint[:, None]
            if not outputs.requires_grad:  # there are no totals
                outputs.requires_grad_()
            of_totals, of_outputs = self.points.gradients(outputs, [totals_then, outputs])
            totals = (weight * of_totals).sum(1) * self.points.totals.double()
            slope = (weight * of_outputs).sum(1)
        return PathShares(node, edge, start, end, totals, slope)


def _completed(shares: Tensor, inside: Tensor, graph: Tensor, change: Tensor) -> Tensor:
    """Shares that add up to the change of each graph: what they lack goes to them by their size.

    Args:
        shares: Of parts, shape (..., m).
        inside: One for parts that may have any, else zero; where all of a graph have none, they
            get equal ones.
        graph: Graph of each part, shape (m).
        change: What those of each graph should add up to, shape (..., g).
    """
    size = shares.abs() + FAINTEST * inside
    lacking = change.index_add(-1, graph, -shares)
    total = torch.zeros_like(change).index_add(-1, graph, size)
    return shares + (lacking / total.clamp(min=FAINTEST))[..., graph] * size

"""Shares of networks' answers: gradients along paths from an average graph to the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lookhops.core.arrays import gauss_legendre
from lookhops.core.hashing import mix
from lookhops.explain.question import Shares
from lookhops.graphs import Graphs
from lookhops.neighbourhoods import identities
from lookhops.nn import GraphBatch, GraphNetwork
from lookhops.ops import Adjacency, Pattern
from lookhops.training.batches import NODE_STEP

#: Steps in which edges appear, and points on each step; the same of edges that have features.
EDGE_STEPS, FEATURE_STEPS = (1, 4), (8, 2)
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
    r"""The shares of the layers' inputs along a path, and of what is read of whole graphs.

    What is added to the outputs :math:`o` has the mean slope :math:`\partial u / \partial o` along
    the path times itself.
    """

    totals: Tensor  # of each total, (networks, g, q); no columns where none are read
    slope: Tensor  # (networks, g, outputs)


def halves(graphs: Graphs) -> Tensor:
    """Divisions of the nodes of each graph into two halves, shape (n, divisions), booleans.

    As good as at random, but by what lies within three hops of a node: they do not depend on how
    nodes are numbered or on other graphs, and nodes that cannot be told apart are in the same half.
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
    may choose other nodes, or merge others, at every point. Points of the path are further graphs
    of a batch; networks of a stack are its leading axis.

    Args:
        model: The network, or several as one whose weights have a leading axis.
        batch: The graphs as it reads them, in compacted form; of several networks features,
            of nodes and of edges, and totals have a leading axis.
        node: The inputs of an average node, shape (networks, d).
        edge: The inputs of an average edge, shape (networks, f), or none.
        units: The number that is explained, as a function of the outputs of graphs that stand in
            the batch's order, once or several times: (networks, m, outputs) to (networks, m).
        most_nodes: Nodes of all networks and points that are computed together.
    """

    def __init__(
        self,
        model: GraphNetwork,
        batch: GraphBatch,
        node: Tensor,
        edge: Tensor | None,
        units: Callable[[Tensor], Tensor],
        most_nodes: int,
    ) -> None:
        self.model, self.batch, self.units = model, batch, units
        self.lead, self.networks = batch.x.shape[:-2], len(node)
        x = batch.x.view(self.networks, *batch.x.shape[-2:])
        self.average = node.to(x)[:, None].expand_as(x)
        self.change = x - self.average
        self.columns: tuple[Tensor, Tensor] | None = None
        if batch.edges is not None and edge is not None:
            columns = batch.edges.columns.view(self.networks, -1, edge.shape[1])
            average = edge.to(columns)[:, None].expand_as(columns)
            self.columns = average, columns - average
        self.graph = batch.graph.long()
        self.edge_graph = self.graph[batch.adjacency.target.long()]
        self.at_once = max(most_nodes // max(self.networks * x.shape[1], 1), 1)
        self._copies: dict[int, GraphBatch] = {}
        with torch.no_grad():
            self._read_whole_graphs()

    def _read_whole_graphs(self) -> None:
        """What is read of whole graphs, all shapes (networks, g, ...)."""
        shape = self.networks, self.batch.num_graphs
        outputs = self.average.new_zeros(*shape, self.model.out_channels)
        self.totals, self.fingerprint, self.usual = outputs[..., :0], outputs, outputs
        inputs, readings = self.batch.whole, self.model.readings
        if "totals" in readings:
            assert inputs is not None
            assert inputs.totals is not None
            self.totals = inputs.totals.view(*shape, -1)
            self.usual = self._of_totals(torch.zeros_like(self.totals))
        if "fingerprint" in readings:
            self.fingerprint = readings["fingerprint"](inputs, None).view_as(outputs)

    def integrate(self, divisions: Tensor) -> PathShares:
        """The shares, with :func:`halves` of the nodes."""
        if not bool(self.change.any()):
            divisions = divisions[:, :0]
        steps, points = FEATURE_STEPS if self.columns else EDGE_STEPS
        # Which nodes have their features: none, all, then each half.
        states = [torch.zeros_like(self.graph), torch.ones_like(self.graph)]
        for one in divisions.T.long():
            states += [one, 1 - one]
        state = torch.stack(states).to(self.change)
        appearing = torch.arange(steps).to(self.change) / steps
        outputs = self._outputs(
            torch.cat((torch.zeros_like(state[:1]).expand(steps, -1), state)),
            torch.cat((appearing, torch.ones_like(state[:, 0]))),
        )
        number = self._numbers(outputs + self.usual[:, None])
        # Edges appear in steps: an answer turns in a small part of the way, which few points on all
        # of it would miss.
        of_edges = self._along(appearing, 1 / steps, points, of_edges=True)
        change = number[:, : steps + 1].diff(dim=1)
        edge = _completed(of_edges, torch.ones_like(of_edges), self.edge_graph, change).sum(1)
        node = self._nodes(state, number[:, steps:])
        return self._readings(node, edge, number[:, 0], outputs[:, steps + 1])

    # ---------------------------------------------------------------- steps

    def _nodes(self, state: Tensor, number: Tensor) -> Tensor:
        """Shares of the nodes, shape (networks, n), the mean over the orders.

        Each ``state`` (states, n) says which nodes have their features: none, all, each half; the
        ``number`` of each graph then is of shape (networks, states, g).
        """
        before, after = [0], [1]  # the states of every step of every order
        for half in range(2, len(state)):
            before, after = [*before, 0, half], [*after, half, 1]
        group = state[after] - state[before]
        found = self._along(state[before], group, NODE_POINTS, of_edges=False)
        change = number[:, after] - number[:, before]
        return _completed(found, group, self.graph, change).sum(1) / (len(state) - 1)

    def _along(self, begin: Tensor, step: Tensor | float, points: int, of_edges: bool) -> Tensor:
        """Integrals of the slopes on each step, along the features of each node, which has so much
        of its own (steps, n), or as all edges appear (steps); shape (networks, steps, n or e)."""
        rule = gauss_legendre(points)
        then = torch.stack([begin + point * step for point, _ in rule], 1)
        at = then.flatten(0, 1)
        none, every = at.new_zeros(len(at), len(self.graph)), at.new_ones(len(at))
        slope = self._slopes(none, at, True) if of_edges else self._slopes(at, every, False)
        slope = slope.unflatten(1, then.shape[:2])
        return sum(weight * slope[:, :, place] for place, (_, weight) in enumerate(rule)) * step

    @torch.enable_grad()
    def _readings(self, node: Tensor, edge: Tensor, start: Tensor, network: Tensor) -> PathShares:
        """All shares, those of totals and of exact neighbourhoods with them; ``network`` are the
        outputs of the layers for the graphs, shape (networks, g, outputs)."""
        with torch.no_grad():
            outputs = network + self._of_totals(self.totals) + self.fingerprint
            end = self._numbers(outputs[:, None])[:, 0]
        totals = torch.zeros_like(self.totals, dtype=torch.float64)
        slope = torch.zeros_like(network, dtype=torch.float64)
        if self.model.readings:
            rule = torch.tensor(gauss_legendre(WHOLE_POINTS), dtype=torch.float64)
            share, weight = rule.to(start)[:, :, None, None].unbind(1)
            totals_then = (share.to(network) * self.totals[:, None]).requires_grad_()
            outputs = network[:, None] + self._of_totals(totals_then.flatten(1, 2)).view(
                self.networks, -1, *network.shape[1:]
            )
            outputs = outputs + share.to(network) * self.fingerprint[:, None]
            if not outputs.requires_grad:  # there are no totals
                outputs.requires_grad_()
            of_totals, of_outputs = self._gradients(outputs, [totals_then, outputs])
            totals = (weight * of_totals).sum(1) * self.totals.double()
            slope = (weight * of_outputs).sum(1)
        return PathShares(node, edge, start, end, totals, slope)

    # ---------------------------------------------------------------- points

    @torch.enable_grad()
    def _slopes(self, present: Tensor, share: Tensor, of_edges: bool) -> Tensor:
        """Slopes of the number at points, shape (networks, points, n or e)."""
        found = []
        for x, factor, columns in self._inputs(present, share):
            wanted = [factor, columns] if of_edges else [x]
            inputs = [one.requires_grad_() for one in wanted if one is not None]
            outputs = self._layers(x, factor, columns) + self.usual[:, None]
            slope, *of_columns = self._gradients(outputs, inputs)
            if not of_edges:
                slope = (slope * self.change[:, None]).sum(-1)
            elif of_columns and self.columns is not None:
                slope += (of_columns[0] * self.columns[1][:, None]).sum(-1)
            found.append(slope)
        return torch.cat(found, 1)

    @torch.no_grad()
    def _outputs(self, present: Tensor, share: Tensor) -> Tensor:
        """Outputs of the layers, shape (networks, points, g, outputs)."""
        return torch.cat([self._layers(*one) for one in self._inputs(present, share)], 1)

    def _inputs(
        self, present: Tensor, share: Tensor
    ) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
        """Features of nodes (networks, points, n, d), factors of edges (networks, points, e) and
        what they carry (networks, points, e, f), of some points at a time: where each node has so
        much of its features (points, n), and edges are there to such a share (points)."""
        size, columns = len(self.edge_graph), None
        for have, there in zip(present.split(self.at_once), share.split(self.at_once), strict=True):
            x = self.average[:, None] + have[:, :, None] * self.change[:, None]
            factor = there[:, None].expand(self.networks, -1, size).contiguous()
            if self.columns is not None:
                average, change = self.columns
                columns = average[:, None] + there[:, None, None] * change[:, None]
            yield x, factor, columns

    def _layers(self, x: Tensor, factor: Tensor, columns: Tensor | None) -> Tensor:
        """Outputs of the layers for what :meth:`_inputs` gives; zeros where there are none."""
        points = x.shape[1]
        if points not in self._copies:
            networks = self.networks if self.lead else None
            self._copies[points] = copies(self.batch, points, networks)
        batch = self._copies[points]
        adjacency = batch.adjacency.times(factor.flatten(), batch.adjacency.symmetric)
        padding = len(batch.graph) // self.networks - x[0, ..., 0].numel()
        flat = torch.nn.functional.pad(x.flatten(1, 2), (0, 0, 0, padding))
        batch = replace(batch, x=flat.view(*self.lead, *flat.shape[1:]), adjacency=adjacency)
        if columns is not None:
            assert batch.edges is not None
            wide = columns.flatten(1, 2).view(*self.lead, -1, columns.shape[-1])
            batch = replace(batch, edges=replace(batch.edges, columns=wide))
        _, read, _ = self.model.look(batch, masked=bool(self.lead))
        shape = self.networks, points, *self.usual.shape[1:]
        found = x.new_zeros(shape) if read is None else self.model.mlp(read)
        assert isinstance(found, Tensor)
        return found.view(shape)

    def _of_totals(self, totals: Tensor) -> Tensor:
        """What the reading of totals adds to the outputs, shape (networks, m, outputs)."""
        shape = *totals.shape[:-1], self.model.out_channels
        if "totals" not in self.model.readings:
            return totals.new_zeros(shape)
        assert self.batch.whole is not None
        inputs = replace(self.batch.whole, totals=totals.view(*self.lead, *totals.shape[1:]))
        found = self.model.readings["totals"](inputs, None)
        assert isinstance(found, Tensor)
        return found.view(shape)

    def _numbers(self, outputs: Tensor) -> Tensor:
        """The numbers of outputs (networks, points, g, outputs), shape (networks, points, g)."""
        return self.units(outputs.flatten(1, 2)).view(outputs.shape[:-1])

    def _gradients(self, outputs: Tensor, inputs: list[Tensor]) -> list[Tensor]:
        """Gradients of the number with respect to these, in float64; zeros where it reads none."""
        total = self._numbers(outputs).sum()
        if not total.requires_grad:
            return [torch.zeros_like(one, dtype=torch.float64) for one in inputs]
        found = torch.autograd.grad(total, inputs, allow_unused=True, materialize_grads=True)
        return [grad.double() for grad in found]


def _completed(shares: Tensor, inside: Tensor, graph: Tensor, change: Tensor) -> Tensor:
    """Shares (..., m) that add up to the ``change`` of each ``graph`` (..., g): what they lack goes
    to them by their size, to parts that are ``inside`` in equal parts where all have none."""
    size = shares.abs() + FAINTEST * inside
    lacking = change.index_add(-1, graph, -shares)
    total = torch.zeros_like(change).index_add(-1, graph, size)
    return shares + (lacking / total.clamp(min=FAINTEST))[..., graph] * size


def copies(batch: GraphBatch, points: int, networks: int | None = None) -> GraphBatch:
    """The graphs of a compacted batch several times, one copy after the other, with new numbers.

    Features, of nodes and of edges, are left as they are: the caller has those of the copies. Each
    of several ``networks`` has so many copies, and then as many nodes that do not count as kernels
    take whole blocks. Poolings keep all shapes.
    """
    edges, stack, size = batch.adjacency, networks or 1, points * batch.adjacency.num_nodes
    assert edges.order is None
    pad = 0 if networks is None else -size % NODE_STEP

    def numbered(values: Tensor, step: int, more: int = 0) -> Tensor:
        """Numbers of each network's copies, (..., networks, m), in each higher by ``step``."""
        first = step * torch.arange(stack * points, dtype=values.dtype, device=values.device)
        first = first.view(stack, points) + more * torch.arange(stack).to(first)[:, None]
        return (values[..., None, None, :] + first[..., None]).flatten(-2)

    def padded(values: Tensor) -> Tensor:
        """Values of nodes; those that do not count have the last one's."""
        return torch.cat((values, values[:, -1:].expand(-1, pad)), 1).flatten()

    ends = edges.pattern.row_ptr
    row_ptr = torch.cat((ends[:1], padded(numbered(ends[1:], edges.num_edges))))
    pattern = Pattern(row_ptr, numbered(edges.source, edges.num_nodes, pad).flatten())
    weight = None if edges.weight is None else edges.weight.repeat(stack * points)
    alive = None
    if networks is not None:
        place = torch.arange(size + pad, device=ends.device)
        alive = (place < size).repeat(networks)
    return replace(
        batch,
        adjacency=Adjacency(pattern, weight, symmetric=edges.symmetric),
        graph=padded(numbered(batch.graph, batch.num_graphs)),
        num_graphs=stack * points * batch.num_graphs,
        alive=alive,
        segments=numbered(batch.bounds, edges.num_nodes, pad).flatten(1),
        place=None,  # nothing is drawn
        whole=None,
        near_ties=True,  # with average features many nodes are equal but for rounding
        edges=None if batch.edges is None else replace(batch.edges, place=None),
    )

"""Networks at points on the way from an average graph to the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from lookhops.nn import GraphBatch, GraphNetwork
from lookhops.ops import Adjacency, Pattern
from lookhops.training.batches import NODE_STEP


def copies(batch: GraphBatch, points: int, networks: int | None = None) -> GraphBatch:
    """The graphs of a batch several times, one copy after the other, with new numbers.

    Features, of nodes and of edges, are left as they are: the caller has those of the copies.

    Args:
        batch: The batch, in compacted form.
        points: How many copies.
        networks: Of a stack of networks: each has so many copies, and then as many nodes that do
            not count as kernels take whole blocks. Poolings keep all shapes.
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


#: What layers read at points of a path: features of nodes, factors of edges, what these carry.
Inputs = tuple[Tensor, Tensor, Tensor | None]


class Points:
    """Outputs and slopes of networks where nodes and edges of a batch have part of what they carry.

    Points are further graphs of a batch, and networks of a stack are its leading axis:
    :func:`~.copies.copies` of the batch.

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
        own = batch.x.view(self.networks, *batch.x.shape[-2:])
        self.average = node.to(own)[:, None].expand_as(own)
        self.change = own - self.average
        self.columns: tuple[Tensor, Tensor] | None = None
        if batch.edges is not None and edge is not None:
            known = batch.edges.columns.view(self.networks, -1, edge.shape[1])
            average = edge.to(known)[:, None].expand_as(known)
            self.columns = average, known - average
        self.graph = batch.graph.long()
        self.edge_graph = self.graph[batch.adjacency.target.long()]
        self.at_once = max(most_nodes // max(self.networks * own.shape[1], 1), 1)
        self._copies: dict[int, GraphBatch] = {}
        self._read_wholes()

    @torch.no_grad()
    def _read_wholes(self) -> None:
        """What is read of whole graphs, all shapes (networks, g, ...)."""
        shape = self.networks, self.batch.num_graphs
        outputs = self.average.new_zeros(*shape, self.model.out_channels)
        self.totals, self.fingerprint, self.usual = outputs[..., :0], outputs, outputs
        whole, readings = self.batch.whole, self.model.readings
        if "totals" in readings:
            assert whole is not None
            assert whole.totals is not None
            self.totals = whole.totals.view(*shape, -1)
            self.usual = self.of_totals(torch.zeros_like(self.totals))
        if "fingerprint" in readings:
            self.fingerprint = readings["fingerprint"](whole, None).view_as(outputs)

    def of_nodes(self, present: Tensor) -> Tensor:
        """Slopes of the number along the features of each node, shape (networks, points, n)."""
        ones = torch.ones_like(present[:, 0])
        with torch.enable_grad():
            found = []
            for x, factor, columns in self._inputs(present, ones):
                outputs = self._network(x.requires_grad_(), factor, columns) + self.usual[:, None]
                (slope,) = self.gradients(outputs, [x])
                found.append((slope * self.change[:, None]).sum(-1))
        return torch.cat(found, 1)

    def of_edges(self, share: Tensor) -> Tensor:
        """Slopes of the number as each edge appears, shape (networks, points, e)."""
        none = self.change.new_zeros(len(share), len(self.graph))
        with torch.enable_grad():
            found = []
            for x, factor, columns in self._inputs(none, share):
                inputs = [one.requires_grad_() for one in (factor, columns) if one is not None]
                outputs = self._network(x, factor, columns) + self.usual[:, None]
                of_factor, *of_columns = self.gradients(outputs, inputs)
                if of_columns and self.columns is not None:
                    of_factor += (of_columns[0] * self.columns[1][:, None]).sum(-1)
                found.append(of_factor)
        return torch.cat(found, 1)

    @torch.no_grad()
    def outputs(self, present: Tensor, share: Tensor) -> Tensor:
        """Outputs of the layers, shape (networks, points, g, outputs).

        Args:
            present: How much each node has of its own features, shape (points, n).
            share: To which share edges are there, shape (points).
        """
        return torch.cat([self._network(*one) for one in self._inputs(present, share)], 1)

    def _inputs(
        self, present: Tensor, share: Tensor
    ) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
        """Features of nodes (networks, points, n, d), factors of edges (networks, points, e) and
        what they carry (networks, points, e, f), of some points at a time."""
        size, columns = len(self.edge_graph), None
        for own, there in zip(present.split(self.at_once), share.split(self.at_once), strict=True):
            x = self.average[:, None] + own[:, :, None] * self.change[:, None]
            factor = there[:, None].expand(self.networks, -1, size).contiguous()
            if self.columns is not None:
                average, change = self.columns
                columns = average[:, None] + there[:, None, None] * change[:, None]
            yield x, factor, columns

    def _network(self, x: Tensor, factor: Tensor, columns: Tensor | None) -> Tensor:
        """Outputs of the layers, shape (networks, points, g, outputs); zeros where there are none.

        Args:
            x, factor, columns: As :meth:`_inputs` gives them.
        """
        batch = self._batch(x.shape[1])
        adjacency = batch.adjacency.times(factor.flatten(), batch.adjacency.symmetric)
        padding = len(batch.graph) // self.networks - x[0, ..., 0].numel()
        flat = torch.nn.functional.pad(x.flatten(1, 2), (0, 0, 0, padding))
        batch = replace(batch, x=flat.view(*self.lead, *flat.shape[1:]), adjacency=adjacency)
        if columns is not None:
            assert batch.edges is not None
            wide = columns.flatten(1, 2).view(*self.lead, -1, columns.shape[-1])
            batch = replace(batch, edges=replace(batch.edges, columns=wide))
        _, read, _ = self.model.look(batch, masked=bool(self.lead))
        shape = self.networks, x.shape[1], *self.usual.shape[1:]
        found = x.new_zeros(shape) if read is None else self.model.mlp(read)
        assert isinstance(found, Tensor)
        return found.view(shape)

    def _batch(self, points: int) -> GraphBatch:
        """The graphs of all networks, so many times each."""
        if points not in self._copies:
            networks = self.networks if self.lead else None
            self._copies[points] = copies(self.batch, points, networks)
        return self._copies[points]

    def of_totals(self, totals: Tensor) -> Tensor:
        """What the reading of totals adds to the outputs, shape (networks, m, outputs)."""
        shape = *totals.shape[:-1], self.model.out_channels
        if "totals" not in self.model.readings:
            return totals.new_zeros(shape)
        whole = self.batch.whole
        assert whole is not None
        inputs = replace(whole, totals=totals.view(*self.lead, *totals.shape[1:]))
        found = self.model.readings["totals"](inputs, None)
        assert isinstance(found, Tensor)
        return found.view(shape)

    def numbers(self, outputs: Tensor) -> Tensor:
        """The numbers of outputs (networks, points, g, outputs), shape (networks, points, g)."""
        return self.units(outputs.flatten(1, 2)).view(outputs.shape[:-1])

    def gradients(self, outputs: Tensor, inputs: list[Tensor]) -> list[Tensor]:
        """Gradients of the number with respect to these, in float64; zeros where it reads none."""
        total = self.numbers(outputs).sum()
        if not total.requires_grad:
            return [torch.zeros_like(one, dtype=torch.float64) for one in inputs]
        found = torch.autograd.grad(total, inputs, allow_unused=True, materialize_grads=True)
        return [grad.double() for grad in found]

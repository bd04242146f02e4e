"""The shares of each network of a model: one network after another, or all of them at once."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor

from lookhops.encoding import Encoding
from lookhops.encoding.preprocessing import PreparedGraphs, Preprocessing
from lookhops.explain.path import Path, PathShares, halves
from lookhops.explain.question import Part, PartShares, Question
from lookhops.explain.spreading import (
    Spreading,
    alike,
    means_of_kinds,
    neighbourhood_shares,
    over_neighbourhoods,
)
from lookhops.graphs.choosing import gather
from lookhops.learners import FittedNetwork
from lookhops.neighbourhoods.totals import DEGREES
from lookhops.nn import GraphBatch, GraphNetwork
from lookhops.training.inference import batches_by_nodes, side_by_side
from lookhops.training.inputs import MemberInputs, WholeGatherer
from lookhops.training.member_weights import padded_stack
from lookhops.training.stacked import stackable

# Totals begin with two sizes, and counts and shares of each degree.
_FIRST_LABEL = 2 + 2 * DEGREES
#: Most graphs of a batch, and most nodes, those of all its networks and points of their paths
#: together: with all that is kept for gradients some 25 kB a node. On the CPU, and on a GPU.
MOST_GRAPHS = {"cpu": 256, "cuda": 4096}
MOST_NODES = {"cpu": 10_000, "cuda": 131_072}


def average_node(encoding: Encoding, preprocessing: Preprocessing) -> Tensor:
    """The inputs of an average training node, shape (d).

    Numbers have their mean, labels the mean share of each value among the nodes of a
    graph (zero where the model reads no totals and so does not know it), blanks none. A network
    that reads no features reads a one.
    """
    nodes = encoding.nodes
    if not nodes.width:
        return torch.ones(1, dtype=torch.float64)
    scale = preprocessing.scales.nodes
    numbers = _zeros(len(nodes.numbers)) if scale is None else scale.fill.double().flatten()
    labels = _label_shares(nodes.sizes, preprocessing.mean, _FIRST_LABEL)
    return torch.cat((numbers, _zeros(len(nodes.blanks)), labels))


def average_edge(encoding: Encoding, preprocessing: Preprocessing) -> Tensor:
    """The same of an average edge, shape (f)."""
    edges = encoding.edges
    assert edges is not None
    scale, columns = preprocessing.scales.edges, edges.encoded
    numbers = _zeros(len(columns)) if scale is None else scale.fill.double().flatten()[columns]
    first = _FIRST_LABEL + 2 * sum(encoding.nodes.sizes) + len(encoding.nodes.numbers)
    labels = _label_shares(edges.sizes, preprocessing.mean, first)
    return torch.cat((numbers, _zeros(len(edges.blanks)), labels))


def _label_shares(sizes: Sequence[int], mean: Tensor | None, at: int) -> Tensor:
    """The mean shares of labels, of each of which totals have the counts and then the shares."""
    parts = [_zeros(0)]
    for size in sizes:
        parts.append(_zeros(size) if mean is None else mean[at + size : at + 2 * size].double())
        at += 2 * size
    return torch.cat(parts)


def _zeros(size: int) -> Tensor:
    return torch.zeros(size, dtype=torch.float64)


def explain_networks(
    parts: Sequence[Part],
    graphs: PreparedGraphs,
    spreading: Spreading,
    question: Question,
    stacked: bool | None = None,
) -> PartShares:
    """The shares of networks, which are ``stacked`` where their layers allow it."""
    device = graphs.graphs.device.type
    stacked = device == "cuda" if stacked is None else stacked
    size = 1
    if stacked and stackable(cast(FittedNetwork, parts[0].fitted).network):
        largest = int(graphs.graphs.nodes_per_graph.max())
        size = max(MOST_NODES[device] // max(largest, 1), 1)
    chunks = (parts[start : start + size] for start in range(0, len(parts), size))
    return PartShares.join([Stack(one, graphs).explain(question, spreading) for one in chunks], 0)


class Stack:
    """Networks of one architecture that are explained at once, or a single one.

    Args:
        parts: The networks; of several the layers take a leading axis.
        graphs: The graphs.
    """

    def __init__(self, parts: Sequence[Part], graphs: PreparedGraphs) -> None:
        each = [cast(FittedNetwork, part.fitted) for part in parts]
        networks, self.parts = [one.network for one in each], parts
        self.graphs, self.encoding = graphs, each[0].encoding
        self.model = networks[0] if len(networks) == 1 else stacked_network(networks)
        self.model.requires_grad_(False)  # gradients are wanted of inputs alone
        seeds = [part.seed for part in parts]  # whose members share their preprocessing
        fitted = {part.seed: one.preprocessing for part, one in zip(parts, each, strict=True)}
        inputs = {seed: MemberInputs(graphs, self.encoding, one) for seed, one in fitted.items()}
        self.preprocessing: list[Preprocessing] = [fitted[seed] for seed in seeds]
        self.inputs: list[MemberInputs] = [inputs[seed] for seed in seeds]
        self.gather_whole = self.inputs[0].gather_whole
        if len(networks) > 1:
            columns = {seed: one.columns(graphs) for seed, one in fitted.items()}
            sizes = [one.num_neighbourhoods for one in self.preprocessing]
            self.gather_whole = WholeGatherer.of([columns[seed] for seed in seeds], sizes)

    def explain(self, question: Question, spreading: Spreading) -> PartShares:
        """The shares of all graphs."""
        graphs, found, seen = self.graphs.graphs, self._integrate(question), self.model.architecture
        kinds = alike(graphs, seen.k * seen.layers)
        node, edge = map(means_of_kinds, (found.node, found.edge), kinds)
        each = zip(found.totals, self.preprocessing, strict=True)
        handed_on = [self._spread(totals, one, spreading) for totals, one in each]
        of_nodes, of_edges, left, features = map(torch.stack, zip(*handed_on, strict=True))
        node, edge = node + of_nodes, edge + of_edges
        if "fingerprint" in self.model.readings:
            node = node + over_neighbourhoods(graphs, self._neighbourhoods(found.slope))
        return PartShares(node, edge, found.start, found.end, left, features)

    def _spread(
        self, totals: Tensor, preprocessing: Preprocessing, spreading: Spreading
    ) -> tuple[Tensor, ...]:
        """One network's shares of totals (g, q), handed on: what nodes (n), edges (e), graphs (g)
        and features of graphs (g, f) have of them; encoded features are the last totals."""
        graphs, mean, columns = spreading.graphs, preprocessing.mean, self.encoding.whole
        node, edge = totals.new_zeros(graphs.num_nodes), totals.new_zeros(graphs.num_edges)
        left = totals.new_zeros(len(graphs))
        features = totals.new_zeros(len(graphs), len(spreading.names))
        if not totals.shape[-1]:
            return node, edge, left, features
        assert mean is not None
        mean = mean.to(totals)
        owners = () if columns is None else columns.owners
        count = totals.shape[-1] - len(owners)
        node, edge, left = spreading.of_totals(totals[:, :count], mean[:count])
        if columns is not None and owners:
            index = torch.tensor(owners, device=totals.device)
            features = features.index_add(-1, index, totals[:, count:])
            of_features = mean.new_zeros(len(columns.features))  # 0 of labels
            of_features[: len(columns.numbers)] = mean[count:][: len(columns.numbers)]
            of_atoms, features, of_graphs = spreading.of_features(features, of_features)
            node, left = node + of_atoms, left + of_graphs
        return node, edge, left, features

    def _integrate(self, question: Question) -> PathShares:
        """The shares of what the networks read."""
        graphs, count = self.graphs.graphs, len(self.preprocessing)
        node = torch.stack([average_node(self.encoding, one) for one in self.preprocessing])
        edge = None
        if self.model.edge_channels:
            edge = torch.stack([average_edge(self.encoding, one) for one in self.preprocessing])
        first, ptr = halves(graphs), graphs.node_ptr.tolist()
        kind = graphs.device.type
        nodes = graphs.nodes_per_graph.cpu().numpy()
        plan = batches_by_nodes(nodes, MOST_NODES[kind] // count, MOST_GRAPHS[kind])

        def shares(index: Tensor) -> PathShares:
            units = question.select(index).of_networks(self.parts)
            path = Path(self.model, self.batch(index), node, edge, units, MOST_NODES[kind])
            return path.integrate(first[ptr[int(index[0])] : ptr[int(index[-1]) + 1]])

        _ = graphs.is_undirected  # found out once, not by every thread
        batches = [torch.from_numpy(one[one >= 0]).to(graphs.device) for one in plan]
        return PathShares.join(list(side_by_side(shares, batches)), 1)

    def batch(self, index: Tensor) -> GraphBatch:
        """The graphs with these numbers as the networks see them; see :class:`~.path.Path`."""
        chosen = gather(self.graphs.graphs, index)
        batch = self.inputs[0].batch(self.model, index, chosen)
        if len(self.inputs) == 1:
            return batch
        each = [inputs.batch(self.model, index, chosen) for inputs in self.inputs]
        counts = self.gather_whole.counts
        capacity = 0 if counts is None else int(counts[:, index.cpu().numpy()].sum())
        edges = batch.edges
        if edges is not None:
            columns = [one.edges.columns for one in each if one.edges is not None]
            edges = replace(edges, columns=torch.stack(columns))
        x, wide = torch.stack([one.x for one in each]), index.expand(len(each), -1)
        return replace(batch, x=x, edges=edges, whole=self.gather_whole(wide, capacity))

    def _neighbourhoods(self, slope: Tensor) -> Tensor:
        """Shares of the neighbourhoods of each node, shape (networks, n, h + 1)."""
        table = self.model.readings["fingerprint"].get_parameter("weight").detach()
        tables = table.view(len(self.preprocessing), *table.shape[-2:])
        every = zip(tables, self.preprocessing, slope, strict=True)
        return torch.stack(
            [neighbourhood_shares(rows, self.graphs, one, s) for rows, one, s in every]
        )


def stacked_network(networks: Sequence[GraphNetwork]) -> GraphNetwork:
    """Several networks as one whose weights have a leading axis, as its layers take them."""
    model = copy.deepcopy(networks[0])
    each = [dict(network.named_parameters()) for network in networks]
    for name, weight in model.named_parameters():
        weight.data = padded_stack([weights[name].detach() for weights in each])
    return model

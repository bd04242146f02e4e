"""The shares of each network of a model: one network after another, or all of them at once."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor

from lookhops.encoding import Encoding
from lookhops.encoding.graph_encoding import PreparedGraphs, Preprocessing
from lookhops.explain.path import Path, PathShares, halves
from lookhops.explain.points import Points
from lookhops.explain.question import Part, Question
from lookhops.explain.shares import PartShares
from lookhops.explain.spreading import (
    AtomSpreading,
    alike,
    means_of_kinds,
    neighbourhood_shares,
    over_neighbourhoods,
)
from lookhops.graphs.choosing import gather
from lookhops.learners import FittedNetwork
from lookhops.neighbourhoods.totals import DEGREES, spread_totals
from lookhops.nn import GraphBatch, GraphNetwork
from lookhops.training.inference import batches_by_nodes, side_by_side
from lookhops.training.inputs import MemberInputs, WholeGatherer
from lookhops.training.member_weights import padded_stack
from lookhops.training.stacked import stackable

# Totals begin with two sizes, and counts and shares of each degree.
_FIRST_LABEL = 2 + 2 * DEGREES


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
    labels = _label_shares(nodes.sizes, preprocessing.graphs.mean, _FIRST_LABEL)
    return torch.cat((numbers, _zeros(len(nodes.blanks)), labels))


def average_edge(encoding: Encoding, preprocessing: Preprocessing) -> Tensor:
    """The same of an average edge, shape (f)."""
    edges = encoding.edges
    assert edges is not None
    scale, columns = preprocessing.scales.edges, edges.encoded
    numbers = _zeros(len(columns)) if scale is None else scale.fill.double().flatten()[columns]
    first = _FIRST_LABEL + 2 * sum(encoding.nodes.sizes) + len(encoding.nodes.numbers)
    labels = _label_shares(edges.sizes, preprocessing.graphs.mean, first)
    return torch.cat((numbers, _zeros(len(edges.blanks)), labels))


def _label_shares(sizes: Sequence[int], mean: Tensor | None, at: int) -> Tensor:
    """The mean shares of labels, of each of which totals have the counts and then the shares."""
    parts = []
    for size in sizes:
        parts.append(_zeros(size) if mean is None else mean[at + size : at + 2 * size].double())
        at += 2 * size
    return torch.cat(parts) if parts else _zeros(0)


def _zeros(size: int) -> Tensor:
    return torch.zeros(size, dtype=torch.float64)


#: Most graphs of a batch, and most nodes, those of all its networks and points of their paths
#: together: with all that is kept for gradients some 25 kB a node. On the CPU, and on a GPU.
MOST_GRAPHS = {"cpu": 256, "cuda": 4096}
MOST_NODES = {"cpu": 10_000, "cuda": 131_072}


def explain_networks(
    parts: Sequence[Part],
    whole: PreparedGraphs,
    atoms: AtomSpreading,
    question: Question,
    stacked: bool | None = None,
) -> PartShares:
    """The shares of networks.

    Args:
        parts: The networks.
        whole: The graphs.
        atoms: Hands shares of descriptors on to their atoms.
        question: What is explained.
        stacked: Whether networks are explained together, where their layers allow it; by default on
            a GPU.
    """
    device = whole.graphs.device.type
    stacked = device == "cuda" if stacked is None else stacked
    size = 1
    if stacked and stackable(cast(FittedNetwork, parts[0].fitted).network):
        largest = int(whole.graphs.nodes_per_graph.max())
        size = max(MOST_NODES[device] // max(largest, 1), 1)
    chunks = (parts[start : start + size] for start in range(0, len(parts), size))
    return PartShares.join([Stack(chunk, whole).explain(question, atoms) for chunk in chunks], 0)


class Stack:
    """Networks of one architecture that are explained at once, or a single one.

    Args:
        parts: The networks; of several the layers take a leading axis.
        whole: The graphs.
    """

    def __init__(self, parts: Sequence[Part], whole: PreparedGraphs) -> None:
        each = [cast(FittedNetwork, part.fitted) for part in parts]
        networks, self.parts = [one.network for one in each], parts
        self.whole, self.encoding = whole, each[0].encoding
        self.model = networks[0] if len(networks) == 1 else stacked_network(networks)
        self.model.requires_grad_(False)  # gradients are wanted of inputs alone
        seeds = [part.seed for part in parts]  # whose members share their preprocessing
        fitted = {part.seed: one.preprocessing for part, one in zip(parts, each, strict=True)}
        known = {seed: MemberInputs(whole, self.encoding, own) for seed, own in fitted.items()}
        self.preprocessing: list[Preprocessing] = [fitted[seed] for seed in seeds]
        self.inputs: list[MemberInputs] = [known[seed] for seed in seeds]
        self.gather_whole = self.inputs[0].gather_whole
        if len(networks) > 1:
            columns = {seed: own.graphs.columns(whole) for seed, own in fitted.items()}
            sizes = [one.graphs.num_neighbourhoods for one in self.preprocessing]
            self.gather_whole = WholeGatherer.of([columns[seed] for seed in seeds], sizes)

    def explain(self, question: Question, atoms: AtomSpreading) -> PartShares:
        """The shares of all graphs."""
        found, seen = self._integrate(question), self.model.architecture
        kinds = alike(self.whole.graphs, seen.k * seen.layers)
        node, edge = map(means_of_kinds, (found.node, found.edge), kinds)
        left, features = torch.zeros_like(found.start), found.totals[..., :0]
        if found.totals.shape[-1]:
            totals, features = self._features(found.totals)
            every = map(self._spread_totals, totals, self.preprocessing)
            of_nodes, of_edges, left = map(torch.stack, zip(*every, strict=True))
            node, edge = node + of_nodes, edge + of_edges
        if features.shape[-1]:
            handed = map(atoms, features, map(self._means_of_features, self.preprocessing))
            of_atoms, features = map(torch.stack, zip(*handed, strict=True))
            node = node + of_atoms
        else:  # what another part of the answer may read
            features = left.new_zeros(*left.shape, len(atoms.names))
        if "fingerprint" in self.model.readings:
            node = node + over_neighbourhoods(self.whole.graphs, self._neighbourhoods(found.slope))
        return PartShares(node, edge, found.start, found.end, left, features)

    def _integrate(self, question: Question) -> PathShares:
        """The shares of what the networks read."""
        graphs, count = self.whole.graphs, len(self.preprocessing)
        node = torch.stack([average_node(self.encoding, one) for one in self.preprocessing])
        edge = None
        if self.model.edge_channels:
            edge = torch.stack([average_edge(self.encoding, one) for one in self.preprocessing])
        first, ptr = halves(graphs), graphs.node_ptr.tolist()
        kind = graphs.device.type
        nodes = graphs.nodes_per_graph.cpu().numpy()
        plan = batches_by_nodes(nodes, MOST_NODES[kind] // count, MOST_GRAPHS[kind])

        def shares(part: Tensor) -> PathShares:
            units = question.select(part).of_networks(self.parts)
            points = Points(self.model, self.batch(part), node, edge, units, MOST_NODES[kind])
            return Path(points).integrate(first[ptr[int(part[0])] : ptr[int(part[-1]) + 1]])

        _ = graphs.is_undirected  # found out once, not by every thread
        batches = [torch.from_numpy(one[one >= 0]).to(graphs.device) for one in plan]
        return PathShares.join(list(side_by_side(shares, batches)), 1)

    def batch(self, index: Tensor) -> GraphBatch:
        """The graphs with these numbers as the networks see them; see :class:`~.points.Points`."""
        chosen = gather(self.whole.graphs, index)
        batch = self.inputs[0].batch(self.model, index, chosen)
        if len(self.inputs) == 1:
            return batch
        each = [own.batch(self.model, index, chosen) for own in self.inputs]
        wide = index.expand(len(each), -1)
        counts = self.gather_whole.counts
        room = 0 if counts is None else int(counts[:, index.cpu().numpy()].sum())
        edges = batch.edges
        if edges is not None:
            columns = [one.edges.columns for one in each if one.edges is not None]
            edges = replace(edges, columns=torch.stack(columns))
        x = torch.stack([one.x for one in each])
        return replace(batch, x=x, edges=edges, whole=self.gather_whole(wide, room))

    def _features(self, totals: Tensor) -> tuple[Tensor, Tensor]:
        """Shares of totals apart from those of features of whole graphs, which follow them."""
        columns = self.encoding.whole
        if columns is None:
            return totals, totals[..., :0]
        owners = torch.tensor(columns.owners, device=totals.device)
        totals, encoded = totals.split([totals.shape[-1] - len(owners), len(owners)], -1)
        count = len(columns.numbers) + len(columns.labels)
        found = encoded.new_zeros(*encoded.shape[:-1], count)
        return totals, found.index_add(-1, owners, encoded)

    def _means_of_features(self, preprocessing: Preprocessing) -> Tensor:
        """The mean of each feature of whole graphs in a training part, 0 of labels, shape (f)."""
        assert self.encoding.whole is not None
        assert preprocessing.graphs.mean is not None
        columns = self.encoding.whole
        mean = preprocessing.graphs.mean[-len(columns.owners) :]
        found = mean.new_zeros(len(columns.features))
        found[: len(columns.numbers)] = mean[: len(columns.numbers)]
        return found.to(self.whole.graphs.device)

    def _spread_totals(
        self, totals: Tensor, preprocessing: Preprocessing
    ) -> tuple[Tensor, Tensor, Tensor]:
        """One network's shares of totals, handed on to nodes, edges and whole graphs."""
        assert preprocessing.graphs.mean is not None
        edges = None if self.encoding.edges is None else self.encoding.edges.sizes
        mean = preprocessing.graphs.mean[: totals.shape[-1]].to(totals)
        return spread_totals(self.whole.graphs, totals, mean, self.encoding.nodes.sizes, edges)

    def _neighbourhoods(self, slope: Tensor) -> Tensor:
        """Shares of the neighbourhoods of each node, shape (networks, n, h + 1)."""
        table = self.model.readings["fingerprint"].get_parameter("weight").detach()
        tables = table.view(len(self.preprocessing), *table.shape[-2:])
        every = zip(tables, self.preprocessing, slope, strict=True)
        return torch.stack(
            [neighbourhood_shares(own, self.whole, one.graphs, s) for own, one, s in every]
        )


def stacked_network(networks: Sequence[GraphNetwork]) -> GraphNetwork:
    """Several networks as one whose weights have a leading axis, as its layers take them."""
    model = copy.deepcopy(networks[0])
    each = [dict(network.named_parameters()) for network in networks]
    for name, weight in model.named_parameters():
        weight.data = padded_stack([weights[name].detach() for weights in each])
    return model

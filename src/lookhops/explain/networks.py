"""The shares of each network of a model: one network after another, or all of them at once."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import torch
from torch import Tensor

from lookhops.encoding.columns import Columns
from lookhops.encoding.preprocessing import PreparedGraphs, Preprocessing
from lookhops.encoding.scale import Scale
from lookhops.explain.path import Path, PathShares, halves
from lookhops.explain.question import Part, PartShares, Question
from lookhops.explain.spreading import (
    Spreading,
    alike,
    explain_sum,
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


def average_inputs(columns: Columns, scale: Scale | None, mean: Tensor | None, at: int) -> Tensor:
    """The inputs of an average training node, or edge, shape (d).

    Numbers have their mean, blanks none, labels the mean share of each value among the nodes of a
    graph (zero where the model reads no totals); it stands in the mean totals from ``at`` on.
    """
    zeros = partial(torch.zeros, dtype=torch.float64)
    numbers = zeros(len(columns.numbers)) if scale is None else scale.fill.double().flatten()
    parts = [numbers[columns.encoded], zeros(len(columns.blanks))]
    for size in columns.sizes:  # totals have the counts of a label and then the shares
        parts.append(zeros(size) if mean is None else mean[at + size : at + 2 * size].double())
        at += 2 * size
    return torch.cat(parts)


def explain_parts(
    parts: Sequence[Part],
    target: int,
    graphs: PreparedGraphs,
    spreading: Spreading,
    question: Question,
    stacked: bool | None = None,
) -> PartShares:
    """The shares of each part, networks ``stacked`` where their layers allow it."""
    networks = [part for part in parts if not part.fitted.is_sum]
    sums = [part for part in parts if part.fitted.is_sum]
    device, size = graphs.graphs.device.type, 1
    stacked = device == "cuda" if stacked is None else stacked
    if stacked and networks and stackable(cast(FittedNetwork, networks[0].fitted).network):
        largest = int(graphs.graphs.nodes_per_graph.max())
        size = max(MOST_NODES[device] // max(largest, 1), 1)
    chunks = [networks[start : start + size] for start in range(0, len(networks), size)]
    each = [explain_sum(part, target, spreading, question) for part in sums]
    each += [Stack(chunk, graphs).explain(question, spreading) for chunk in chunks]
    order = [[*sums, *networks].index(part) for part in parts]
    found = PartShares.join(each, 0)
    return PartShares(*(tensor[order] for tensor in vars(found).values()))


class Stack:
    """Networks of one architecture that are explained at once, or a single one.

    Of several the layers take a leading axis.
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
        """One network's shares of totals (g, q), handed on; encoded features are the last."""
        columns, mean, count = self.encoding.whole, preprocessing.mean, totals.shape[-1]
        features = totals.new_zeros(len(totals), len(spreading.names))
        mean_features = totals.new_zeros(len(spreading.names))  # 0 of labels
        if mean is None or not count:
            return spreading.hand_on(None, None, features, mean_features)
        mean = mean.to(totals)
        if columns is not None:
            owners = torch.tensor(columns.owners, dtype=torch.long, device=totals.device)
            count -= len(owners)
            features = features.index_add(-1, owners, totals[:, count:])
            numbers = len(columns.numbers)
            mean_features[:numbers] = mean[count : count + numbers]
        return spreading.hand_on(totals[:, :count], mean[:count], features, mean_features)

    def _integrate(self, question: Question) -> PathShares:
        """The shares of what the networks read."""
        graphs, count = self.graphs.graphs, len(self.preprocessing)
        nodes, edges, edge = self.encoding.nodes, self.encoding.edges, None
        node = torch.ones(count, 1, dtype=torch.float64)  # what is read where there are no features
        every = [(one.scales, one.mean) for one in self.preprocessing]
        if nodes.width:
            each = (average_inputs(nodes, s.nodes, mean, _FIRST_LABEL) for s, mean in every)
            node = torch.stack([*each])
        if self.model.edge_channels and edges is not None:
            at = _FIRST_LABEL + 2 * sum(nodes.sizes) + len(nodes.numbers)
            each = (average_inputs(edges, s.edges, mean, at) for s, mean in every)
            edge = torch.stack([*each])
        first, ptr = halves(graphs), graphs.node_ptr.tolist()
        kind = graphs.device.type
        sizes = graphs.nodes_per_graph.cpu().numpy()
        plan = batches_by_nodes(sizes, MOST_NODES[kind] // count, MOST_GRAPHS[kind])

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
    """Several networks as one whose weights have a leading axis."""
    model = copy.deepcopy(networks[0])
    each = [dict(network.named_parameters()) for network in networks]
    for name, weight in model.named_parameters():
        weight.data = padded_stack([weights[name].detach() for weights in each])
    return model

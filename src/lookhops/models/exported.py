"""A trained model, from arrays to answers, as one module that can be exported; its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lookhops.core.arrays import Array
from lookhops.encoding import Encoding
from lookhops.encoding.columns import NOT_SEEN, Columns
from lookhops.encoding.preprocessing import PreparedGraphs
from lookhops.encoding.scale import Scale
from lookhops.graphs import Graphs
from lookhops.graphs.features import Features
from lookhops.graphs.indexing import counts_of, running_sum, segment_of, stable_argsort
from lookhops.models.predictor import Predictor
from lookhops.nn import EdgeInputs, GraphBatch, GraphNetwork
from lookhops.ops import Adjacency
from lookhops.ops.batch import WholeInputs
from lookhops.ops.pattern import Pattern

Maybe = Tensor | None


@dataclass(frozen=True)
class Inputs:
    r"""The inputs of an exported model: :math:`g` graphs, :math:`n` nodes, :math:`e` edges.

    Nodes are numbered through all graphs, graph after graph; an undirected edge is there in both
    directions.

    ========== ================ =======================================================
    input      shape            what
    ========== ================ =======================================================
    graph_sizes (g), int64      number of nodes of each graph
    edge_index (2, e), int64    source and target of each edge, in any order
    node_labels (n, l), int64   number of each label's value; any other is "not seen"
    node_numbers (n, a), float  the numbers, NaN where blank
    edge_labels (e, m), int64   of edges, as for nodes
    edge_numbers (e, b), float  of edges, as for nodes
    graph_labels (g, k), int64  of whole graphs, as for nodes
    graph_numbers (g, c), float of whole graphs, as for nodes
    ========== ================ =======================================================

    The last five are there where the model reads such columns; ``node_labels``, which say how many
    nodes there are, always, with no columns where the model reads none.

    Args:
        sides: The columns of nodes, edges and graphs, by how the names of their inputs begin.
    """

    sides: Mapping[str, Columns]

    @classmethod
    def of(cls, encoding: Encoding) -> Inputs:
        """The inputs of a model with this encoding."""
        edges, whole = encoding.edges or Columns(), encoding.whole or Columns()
        return cls({"node": encoding.nodes, "edge": edges, "graph": whole})

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs that there are, in order."""
        found = ["graph_sizes", "edge_index"]
        for side, columns in self.sides.items():
            if columns.labels or side == "node":
                found.append(f"{side}_labels")
            if columns.numbers:
                found.append(f"{side}_numbers")
        return tuple(found)

    def arrays(self, graphs: Graphs) -> dict[str, Array]:
        """Graphs that the model's encoding has read, as these inputs."""
        found = {
            "graph_sizes": graphs.nodes_per_graph.long(),
            "edge_index": graphs.edge_index,
            "node_labels": torch.zeros(graphs.num_nodes, 0).long(),
        }
        each = (graphs.nodes, graphs.edges, graphs.whole)
        for side, features in zip(self.sides, each, strict=True):
            if features.labels is not None:
                found[f"{side}_labels"] = features.labels.long()
            if features.numbers is not None:
                found[f"{side}_numbers"] = features.numbers
        return {name: np.asarray(found[name]) for name in self.names if name in found}

    def graphs(self, given: dict[str, Tensor]) -> Graphs:
        """The graphs of such inputs, without reading any value."""
        node_ptr, edge_index = running_sum(given["graph_sizes"]), given["edge_index"]
        nodes = given["node_labels"].shape[0]
        source, target = edge_index.unbind(0)
        order = stable_argsort(target)
        target = target.index_select(0, order)
        row_ptr = running_sum(counts_of(target, nodes))
        of_nodes, of_edges, of_whole = (
            _features(columns, given.get(f"{side}_numbers"), given.get(f"{side}_labels"))
            for side, columns in self.sides.items()
        )
        graphs = Graphs(
            node_ptr,
            row_ptr,
            source.index_select(0, order),
            nodes=of_nodes,
            edges=of_edges.take(order),
            whole=of_whole,
        )
        graphs.__dict__["target"] = target  # known already
        graphs.__dict__["batch"] = segment_of(node_ptr, nodes)
        return graphs

    def about(self) -> dict[str, Any]:
        """What the inputs' columns and numbers mean, as JSON can hold it."""
        said: dict[str, Any] = {}
        for side, columns in self.sides.items():
            values = dict(zip(columns.labels, map(list, columns.values), strict=True))
            said |= {f"{side}_labels": values, f"{side}_numbers": list(columns.numbers)}
        return said


def _features(columns: Columns, numbers: Tensor | None, labels: Tensor | None) -> Features:
    """Features whose unknown labels are one more than the largest that is known."""
    if labels is None or not columns.labels:
        return columns.holding(numbers, None)
    sizes = torch.tensor(columns.sizes, device=labels.device)
    known = torch.where((labels >= 0) & (labels < sizes), labels, sizes)
    return columns.holding(numbers, known)


class ExportedModel(nn.Module):
    """All networks of a model folder that answer, from the arrays of :class:`Inputs`.

    The same lines compute it that train and predict, with the network in masked form: all shapes
    follow from those of the inputs.
    """

    def __init__(self, predictor: Predictor) -> None:
        super().__init__()
        self.predictor = predictor
        self.inputs = Inputs.of(predictor.encoding)
        _ = predictor.architecture  # a blend has none
        each = (predictor.members[seed] for seed in predictor.answering)
        self.networks = nn.ModuleList(chain.from_iterable(each))

    def forward(
        self,
        graph_sizes: Tensor,
        edge_index: Tensor,
        node_labels: Tensor,
        node_numbers: Maybe = None,
        edge_labels: Maybe = None,
        edge_numbers: Maybe = None,
        graph_labels: Maybe = None,
        graph_numbers: Maybe = None,
    ) -> Tensor:
        """The calibrated answers, float32, shape (g, channels): probabilities or numbers."""
        given = {
            "graph_sizes": graph_sizes,
            "edge_index": edge_index,
            "node_labels": node_labels,
            "node_numbers": node_numbers,
            "edge_labels": edge_labels,
            "edge_numbers": edge_numbers,
            "graph_labels": graph_labels,
            "graph_numbers": graph_numbers,
        }
        graphs = self.inputs.graphs({name: x for name, x in given.items() if x is not None})
        prepared = self._prepared(graphs)
        each = [self._answers(prepared, seed) for seed in self.predictor.answering]
        return torch.stack(each).mean(0).float()

    def _prepared(self, graphs: Graphs) -> PreparedGraphs:
        """As ``PreparedGraphs.of``, without the checks that read values."""
        encoding, totals = self.predictor.encoding, None
        if self.predictor.architecture.totals:
            totals = encoding.totals(graphs)
            if (columns := encoding.encode_whole(graphs)) is not None:
                totals = torch.cat((totals, columns), 1)
        return PreparedGraphs(graphs, self.predictor.architecture.fingerprint, totals)

    def _answers(self, prepared: PreparedGraphs, seed: int) -> Tensor:
        """One seed's calibrated answers, shape (g, channels)."""
        task, fitted = self.predictor.task, self.predictor.target_scales.get(seed)
        graph_inputs, outputs = self._graph_inputs(prepared, seed), []
        for network in self.predictor.members[seed]:
            batch = self._batch(prepared.graphs, network, graph_inputs, seed)
            outputs.append(task.in_units(network.classify(batch, masked=True)[0], fitted))
        together = outputs[0] if len(outputs) == 1 else task.average(outputs)
        return task.answers(together, self.predictor.calibration(seed))

    def _graph_inputs(self, prepared: PreparedGraphs, seed: int) -> WholeInputs:
        columns = self.predictor.preprocessing(seed).columns(prepared)
        number = torch.arange(_count(prepared.graphs), device=prepared.graphs.device)
        if columns.rows is None:
            return WholeInputs(number, columns.totals)
        indices, offsets = columns.rows.indices, columns.rows.offsets
        row = segment_of(offsets, indices.shape[0])
        return WholeInputs(number, columns.totals, indices, offsets, row)

    def _batch(
        self, graphs: Graphs, network: GraphNetwork, graph_inputs: WholeInputs, seed: int
    ) -> GraphBatch:
        """The graphs as the first layer of a network sees them."""
        encoding = self.predictor.encoding
        scales, dtype = self.predictor.preprocessing(seed).scales, next(network.parameters()).dtype
        pattern = Pattern(graphs.row_ptr, graphs.source, row=graphs.target)
        weight = edges = None
        if network.uses_edges and encoding.edges is not None:
            weight = encoding.edges.weights(graphs.edges, dtype=dtype)
            if network.edge_channels:
                columns = encoding.edges.encode(graphs.edges, dtype=dtype, scale=scales.edges)
                edges = EdgeInputs(columns, symmetric=True)
        return GraphBatch(
            encoding.encode_nodes(graphs, dtype=dtype, scale=scales.nodes),
            Adjacency(pattern, weight, symmetric=True),  # nobody asks for a gradient
            graphs.batch,
            _count(graphs),
            segments=torch.stack((graphs.node_ptr[:-1], graphs.node_ptr[1:])),
            whole=graph_inputs,
            edges=edges,
        )


def _count(graphs: Graphs) -> int:
    """Number of graphs; Python's ``len`` would make it a constant of the export."""
    return graphs.node_ptr.shape[0] - 1


# -------------------------------------------------------------------- made-up graphs

#: Most nodes of a graph that is made up.
MOST_NODES = 100


def made_up(predictor: Predictor, count: int, seed: int = 0) -> Graphs:
    """Graphs in a model's columns, of the sizes that it was trained on, all else at random.

    Some values of labels are not seen by the model, some numbers are blank, some nodes alone.
    """
    generator = np.random.default_rng(seed)
    low, high = predictor.config.get("facts", {}).get("nodes_range", (1, MOST_NODES))
    low = min(max(low, 1), MOST_NODES)
    sizes = generator.integers(low, min(max(high, low), MOST_NODES) + 1, size=count)
    first = np.cumsum(sizes) - sizes
    node = np.arange(sizes.sum())
    start = np.repeat(first, sizes)
    # A tree on most nodes, and a few edges more.
    before = start + (generator.random(len(node)) * (node - start)).astype(int)
    linked = (node > start) & (generator.random(len(node)) < 0.95)
    more = start + (generator.random(len(node)) * np.repeat(sizes, sizes)).astype(int)
    extra = (more != node) & (generator.random(len(node)) < 0.1)
    ends = np.stack(
        (np.concatenate((node[linked], node[extra])), np.concatenate((before[linked], more[extra])))
    )
    pairs = np.unique(np.sort(ends, axis=0), axis=1)
    source, target = (torch.from_numpy(np.concatenate(both)) for both in (pairs, pairs[::-1]))
    encoding, scales = predictor.encoding, predictor.preprocessing(predictor.answering[0]).scales
    return Graphs.from_edges(
        source,
        target,
        torch.from_numpy(sizes),
        nodes=_drawn_features(encoding.nodes, encoding.by_name, scales.nodes, len(node), generator),
        edges=_drawn_features(
            encoding.edges or Columns(), encoding.by_name, scales.edges, pairs.shape[1], generator
        ).map(lambda columns: columns.repeat(2, 1)),
        whole=_drawn_features(encoding.whole or Columns(), True, None, count, generator),
        name="made-up graphs",
        featuriser=encoding.featuriser,
    )


def _drawn_features(
    columns: Columns,
    not_seen: bool,
    scale: Scale | None,
    rows: int,
    generator: np.random.Generator,
) -> Features:
    """Labels, and numbers about as large as the training part's; weights are not below zero."""
    values = tuple((*known, NOT_SEEN) if not_seen else known for known in columns.values)
    labels = [generator.integers(0, len(known), size=rows) for known in values]
    numbers = generator.standard_normal((rows, len(columns.numbers)))
    if scale is not None:
        numbers = numbers / np.asarray(scale.factor) + np.asarray(scale.shift)
    if columns.weight is not None:
        weight = columns.numbers.index(columns.weight)
        numbers[:, weight] = np.abs(numbers[:, weight])
    for column, name in enumerate(columns.numbers):
        if name in columns.blanks:
            numbers[generator.random(rows) < 0.1, column] = np.nan
    return Features(
        torch.from_numpy(numbers).float(),
        columns.numbers,
        torch.from_numpy(np.stack(labels, 1)) if labels else None,
        columns.labels,
        values if labels else (),
    )

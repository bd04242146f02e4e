"""A trained model, from arrays to answers, as one module that can be exported."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lookhops.encoding.graph_encoding import PreparedGraphs
from lookhops.graphs import Graphs
from lookhops.graphs.indexing import segment_of
from lookhops.models.checkpoint import Checkpoint
from lookhops.models.export.inputs import Inputs
from lookhops.neighbourhoods.totals import graph_totals
from lookhops.nn import EdgeInputs, GraphBatch, GraphNetwork
from lookhops.ops import Adjacency
from lookhops.ops.batch import WholeInputs
from lookhops.ops.pattern import Pattern


class ExportedModel(nn.Module):
    """All networks of a model folder that answer, with what they are told and how they are read.

    The same lines compute it that train and predict: what graphs become as columns, neighbourhoods
    and totals, the network in masked form (all shapes follow from those of the inputs), the average
    over members, the calibration, the mean over seeds.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__()
        self.checkpoint = checkpoint
        self.inputs = Inputs.of(checkpoint.encoding)
        self.members = {
            seed: [one.network for one in checkpoint.networks(seed)]
            for seed in checkpoint.answering
        }
        self.networks = nn.ModuleList(one for own in self.members.values() for one in own)

    def forward(
        self,
        graph_sizes: Tensor,
        edge_index: Tensor,
        node_labels: Tensor,
        node_numbers: Tensor | None = None,
        edge_labels: Tensor | None = None,
        edge_numbers: Tensor | None = None,
        graph_labels: Tensor | None = None,
        graph_numbers: Tensor | None = None,
    ) -> Tensor:
        """The calibrated answers, float32, shape (g, channels): probabilities or numbers.

        The arguments are described in :class:`~lookhops.models.export.inputs.Inputs`.
        """
        given = {"graph_sizes": graph_sizes, "edge_index": edge_index, "node_labels": node_labels}
        rest = {"node_numbers": node_numbers, "edge_labels": edge_labels}
        rest |= {"edge_numbers": edge_numbers, "graph_labels": graph_labels}
        rest["graph_numbers"] = graph_numbers
        given |= {name: value for name, value in rest.items() if value is not None}
        whole = self._whole(self.inputs.graphs(given))
        each = [self._answers(whole, seed) for seed in self.checkpoint.answering]
        return torch.stack(each).mean(0).float()

    def _whole(self, graphs: Graphs) -> PreparedGraphs:
        """As ``PreparedGraphs.of``, without the checks that read values."""
        encoding, totals = self.checkpoint.encoding, None
        if self.checkpoint.architecture.totals:
            totals = graph_totals(graphs, encoding.nodes.sizes, self.inputs.edges.sizes)
            if (columns := encoding.encode_whole(graphs)) is not None:
                totals = torch.cat((totals, columns), 1)
        return PreparedGraphs(graphs, self.checkpoint.architecture.fingerprint, totals)

    def _answers(self, whole: PreparedGraphs, seed: int) -> Tensor:
        """One seed's calibrated answers, shape (g, channels)."""
        task, fitted = self.checkpoint.task, self.checkpoint.fitted.get(seed)
        told = self._told(whole, seed)
        outputs = [
            task.in_units(
                network.classify(self._batch(whole, network, told, seed), masked=True)[0], fitted
            )
            for network in self.members[seed]
        ]
        together = outputs[0] if len(outputs) == 1 else task.average(outputs)
        return task.answers(together, self.checkpoint.calibration(seed))

    def _told(self, whole: PreparedGraphs, seed: int) -> WholeInputs:
        """What a seed's networks are told of whole graphs."""
        columns = self.checkpoint.preprocessing(seed).graphs.columns(whole)
        number = torch.arange(_count(whole.graphs), device=whole.graphs.device)
        if columns.rows is None:
            return WholeInputs(number, columns.totals)
        indices, offsets = columns.rows.indices, columns.rows.offsets
        row = segment_of(offsets, indices.shape[0])
        return WholeInputs(number, columns.totals, indices, offsets, row)

    def _batch(
        self, whole: PreparedGraphs, network: GraphNetwork, told: WholeInputs, seed: int
    ) -> GraphBatch:
        """The graphs as the first layer of a network sees them."""
        graphs, encoding = whole.graphs, self.checkpoint.encoding
        scales, dtype = self.checkpoint.preprocessing(seed).scales, next(network.parameters()).dtype
        pattern = Pattern(graphs.row_ptr, graphs.source, row=graphs.target)
        weight = encoding.edge_weight(graphs, dtype=dtype) if network.uses_edges else None
        edges = None
        if network.edge_channels:
            columns = encoding.encode_edges(graphs, dtype=dtype, scale=scales.edges)
            edges = EdgeInputs(columns, symmetric=True)
        return GraphBatch(
            encoding.encode_nodes(graphs, dtype=dtype, scale=scales.nodes),
            Adjacency(pattern, weight, symmetric=True),  # nobody asks for a gradient
            graphs.batch,
            _count(graphs),
            segments=torch.stack((graphs.node_ptr[:-1], graphs.node_ptr[1:])),
            whole=told,
            edges=edges,
        )


def _count(graphs: Graphs) -> int:
    """Number of graphs; Python's ``len`` would make it a constant of the export."""
    return graphs.node_ptr.shape[0] - 1

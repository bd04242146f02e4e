"""What an exported model is given: a few arrays, and what their columns and numbers mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.encoding import Encoding
from lookhops.encoding.columns import Columns
from lookhops.graphs import Graphs
from lookhops.graphs.features import Features
from lookhops.graphs.indexing import counts_of, running_sum, segment_of, stable_argsort


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
    """

    nodes: Columns
    edges: Columns
    whole: Columns

    @classmethod
    def of(cls, encoding: Encoding) -> Inputs:
        """The inputs of a model with this encoding."""
        return cls(encoding.nodes, encoding.edges or Columns(), encoding.whole or Columns())

    @property
    def sides(self) -> dict[str, Columns]:
        """The columns of each side, by how the names of its inputs begin."""
        return {"node": self.nodes, "edge": self.edges, "graph": self.whole}

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs that there are, in order."""
        found = [
            f"{side}_{kind}"
            for side, columns in self.sides.items()
            for kind in ("labels", "numbers")
            if getattr(columns, kind) or (side, kind) == ("node", "labels")
        ]
        return ("graph_sizes", "edge_index", *found)

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
        """The graphs of such inputs; the other way round, without reading any value."""
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

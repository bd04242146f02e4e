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

    Args:
        nodes: The columns of nodes.
        edges: Those of edges.
        whole: Those of whole graphs.
    """

    nodes: Columns
    edges: Columns
    whole: Columns

    @classmethod
    def of(cls, encoding: Encoding) -> Inputs:
        """The inputs of a model with this encoding."""
        return cls(encoding.nodes, encoding.edges or Columns(), encoding.whole or Columns())

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs that there are, in order."""
        wanted = {
            "graph_sizes": True,
            "edge_index": True,
            "node_labels": True,
            "node_numbers": bool(self.nodes.numbers),
            "edge_labels": bool(self.edges.labels),
            "edge_numbers": bool(self.edges.numbers),
            "graph_labels": bool(self.whole.labels),
            "graph_numbers": bool(self.whole.numbers),
        }
        return tuple(name for name, there in wanted.items() if there)

    def arrays(self, graphs: Graphs) -> dict[str, Array]:
        """Graphs that the model's encoding has read, as these inputs."""
        nothing = torch.zeros(graphs.num_nodes, 0)
        labels = nothing if graphs.nodes.labels is None else graphs.nodes.labels
        found = {
            "graph_sizes": graphs.nodes_per_graph.long(),
            "edge_index": graphs.edge_index,
            "node_labels": labels.long(),
            "node_numbers": graphs.nodes.numbers,
            "edge_labels": None if graphs.edges.labels is None else graphs.edges.labels.long(),
            "edge_numbers": graphs.edges.numbers,
            "graph_labels": None if graphs.whole.labels is None else graphs.whole.labels.long(),
            "graph_numbers": graphs.whole.numbers,
        }
        given = {name: found[name] for name in self.names}
        return {name: np.asarray(own) for name, own in given.items() if own is not None}

    def graphs(self, given: dict[str, Tensor]) -> Graphs:
        """The graphs of such inputs; the other way round, without reading any value."""
        node_ptr, edge_index = running_sum(given["graph_sizes"]), given["edge_index"]
        nodes = given["node_labels"].shape[0]
        source, target = edge_index.unbind(0)
        order = stable_argsort(target)
        target = target.index_select(0, order)
        row_ptr = running_sum(counts_of(target, nodes))
        graphs = Graphs(
            node_ptr,
            row_ptr,
            source.index_select(0, order),
            nodes=_features(self.nodes, given.get("node_numbers"), given.get("node_labels")),
            edges=_features(self.edges, given.get("edge_numbers"), given.get("edge_labels")).take(
                order
            ),
            whole=_features(self.whole, given.get("graph_numbers"), given.get("graph_labels")),
        )
        graphs.__dict__["target"] = target  # known already
        graphs.__dict__["batch"] = segment_of(node_ptr, nodes)
        return graphs

    def about(self) -> dict[str, Any]:
        """What the inputs' columns and numbers mean, as JSON can hold it."""
        sides = {"node": self.nodes, "edge": self.edges, "graph": self.whole}
        said: dict[str, Any] = {}
        for name, columns in sides.items():
            values = dict(zip(columns.labels, map(list, columns.values), strict=True))
            said |= {f"{name}_labels": values, f"{name}_numbers": list(columns.numbers)}
        return said


def _features(columns: Columns, numbers: Tensor | None, labels: Tensor | None) -> Features:
    """Features whose unknown labels are one more than the largest that is known."""
    if labels is None or not columns.labels:
        return columns.holding(numbers, None)
    sizes = torch.tensor(columns.sizes, device=labels.device)
    known = torch.where((labels >= 0) & (labels < sizes), labels, sizes)
    return columns.holding(numbers, known)

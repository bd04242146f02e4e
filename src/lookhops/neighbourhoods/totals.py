"""What a graph holds, whatever its structure, as numbers that similar graphs nearly share."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lookhops.graphs import Graphs
from lookhops.graphs.indexing import counts_of

#: Degrees that are told apart: 0, 1, ..., and all from the last on.
DEGREES = 7


def graph_totals(
    graphs: Graphs,
    label_sizes: Sequence[int] | None = None,
    edge_label_sizes: Sequence[int] | None = None,
) -> Tensor:
    r"""Numbers of each graph that know nothing of its structure, float64, shape (g, columns).

    In this order: :math:`\ln(1 + \mathrm{nodes})`, :math:`\ln(1 + \mathrm{edges})`; for each degree
    (the last stands for all above) and each node label :math:`\ln(1 + \mathrm{nodes\ with\ it})`
    and its share of the nodes; the mean of each node attribute (blanks left out, NaN where all are
    blank); then labels and attributes of edges in the same way.

    Args:
        graphs: The graphs.
        label_sizes: How many values of each node label are counted: the first so many; all by
            default.
        edge_label_sizes: The same of the edges' labels.
    """
    node_sizes = graphs.label_sizes if label_sizes is None else label_sizes
    edge_sizes = graphs.edge_label_sizes if edge_label_sizes is None else edge_label_sizes
    nodes, edges = graphs.nodes_per_graph.double(), graphs.edge_ptr.diff().double()
    count = nodes.numel()  # of graphs
    columns = [nodes.log1p()[:, None], edges.log1p()[:, None]]
    node_graph = graphs.batch.long()
    degree = graphs.row_ptr.diff().long().clamp(max=DEGREES - 1)[:, None]
    labels = degree if graphs.labels is None else torch.cat((degree, graphs.labels.long()), 1)
    edge_graph = node_graph[graphs.target.long()]
    for graph_of, total, values, sizes, attributes in (
        (node_graph, nodes, labels, (DEGREES, *node_sizes), graphs.attributes),
        (edge_graph, edges, graphs.edge_labels, edge_sizes, graphs.edge_attributes),
    ):
        whole = total.clamp(min=1)[:, None]
        for column, size in zip(() if values is None else values.unbind(1), sizes, strict=True):
            # One cell more a graph, for what is not counted.
            cell = graph_of * (size + 1) + column.long().clamp(max=size)
            cells = counts_of(cell, count * (size + 1))
            counts = cells.view(count, size + 1)[:, :size].double()
            columns += [counts.log1p(), counts / whole]
        if attributes is not None:
            columns.append(_means(attributes.double(), graph_of, whole))
    return torch.cat(columns, 1)


def _means(values: Tensor, graph_of: Tensor, count: Tensor) -> Tensor:
    """Means of rows of each graph, of which there are ``count``, shape (g, 1)."""
    sums = values.new_zeros(count.shape[0], values.shape[1])
    blank = values.isnan()
    if not torch.compiler.is_exporting() and not bool(blank.any()):
        return sums.index_add_(0, graph_of, values) / count
    known = torch.zeros_like(sums).index_add_(0, graph_of, (~blank).double())
    means = sums.index_add_(0, graph_of, values.nan_to_num(0.0)) / known.clamp(min=1)
    has_rows = torch.zeros_like(count).index_fill_(0, graph_of, 1.0) > 0
    return means.masked_fill((known == 0) & has_rows, float("nan"))

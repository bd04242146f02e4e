"""What a graph holds, whatever its structure, as numbers that similar graphs nearly share."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lookhops.graphs import Graphs
from lookhops.graphs.indexing import counts_of

#: Degrees with a count of their own: 0, 1, ..., and all from the last on.
DEGREES = 7
#: Totals are as usual where they differ from the mean by less than this.
ROUNDING = 1e-9


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
    node_sizes = graphs.nodes.label_sizes if label_sizes is None else label_sizes
    edge_sizes = graphs.edges.label_sizes if edge_label_sizes is None else edge_label_sizes
    nodes, edges = graphs.nodes_per_graph.double(), graphs.edge_ptr.diff().double()
    count = nodes.numel()  # of graphs
    columns = [nodes.log1p()[:, None], edges.log1p()[:, None]]
    node_graph = graphs.batch.long()
    degree = graphs.row_ptr.diff().long().clamp(max=DEGREES - 1)[:, None]
    labels = (
        degree
        if graphs.nodes.labels is None
        else torch.cat((degree, graphs.nodes.labels.long()), 1)
    )
    edge_graph = node_graph[graphs.target.long()]
    for graph_of, total, values, sizes, attributes in (
        (node_graph, nodes, labels, (DEGREES, *node_sizes), graphs.nodes.numbers),
        (edge_graph, edges, graphs.edges.labels, edge_sizes, graphs.edges.numbers),
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


def spread_totals(
    graphs: Graphs,
    shares: Tensor,
    mean: Tensor,
    label_sizes: Sequence[int] | None = None,
    edge_label_sizes: Sequence[int] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Shares of :func:`graph_totals`, handed on to the nodes and edges that make them up.

    Where there are at least as many nodes of a degree or label as usual, by their count or by their
    share of the nodes, what that has goes to these nodes in equal parts. Where there are fewer, it
    stays with the whole graph, as its size does: no node carries what others lack. What the mean of
    a number has goes to node :math:`i` as :math:`(x_i - m) / \sum_j (x_j - m)` of it.

    Args:
        graphs: The graphs.
        shares: Of each total, shape (g, columns).
        mean: The :math:`m` of each total, shape (columns).
        label_sizes, edge_label_sizes: As for :func:`graph_totals`.

    Returns:
        Shares of the nodes, of the edges and of the graphs as wholes, shapes (n), (e), (g); those
        of a graph add up to what it was given.
    """
    node_sizes = graphs.nodes.label_sizes if label_sizes is None else label_sizes
    edge_sizes = graphs.edges.label_sizes if edge_label_sizes is None else edge_label_sizes
    node_graph = graphs.batch.long()
    degree = graphs.row_ptr.diff().long().clamp(max=DEGREES - 1)[:, None]
    labels = (
        degree
        if graphs.nodes.labels is None
        else torch.cat((degree, graphs.nodes.labels.long()), 1)
    )
    whole, found, at = shares[:, :2].sum(1), [], 2
    for graph_of, values, sizes, attributes in (
        (node_graph, labels, (DEGREES, *node_sizes), graphs.nodes.numbers),
        (node_graph[graphs.target.long()], graphs.edges.labels, edge_sizes, graphs.edges.numbers),
    ):
        carried = shares.new_zeros(len(graph_of))
        for column, size in zip(() if values is None else values.unbind(1), sizes, strict=True):
            both = slice(at, at + 2 * size)
            part, left = _to_labelled(shares[:, both], mean[both], graph_of, column.long())
            carried, whole, at = carried + part, whole + left, at + 2 * size
        for number in range(0 if attributes is None else attributes.shape[1]):
            assert attributes is not None
            part, left = _to_rows(shares[:, at], graph_of, attributes[:, number].double(), mean[at])
            carried, whole, at = carried + part, whole + left, at + 1
        found.append(carried)
    return found[0], found[1], whole


def _to_labelled(
    shares: Tensor, mean: Tensor, graph_of: Tensor, label: Tensor
) -> tuple[Tensor, Tensor]:
    """Shares of counts and shares of labels (g, 2 size) in equal parts to the rows that have them,
    and what is left, of labels of which there are fewer than usual."""
    size = shares.shape[1] // 2
    cell = graph_of * (size + 1) + label.clamp(max=size)
    count = counts_of(cell, shares.shape[0] * (size + 1)).double()
    of_graph, each = count.view(-1, size + 1), count[cell]
    share = of_graph / of_graph.sum(1, keepdim=True).clamp(min=1)
    totals = torch.cat((of_graph[:, :size].log1p(), share[:, :size]), 1)
    some = (of_graph[:, :size] > 0).repeat(1, 2) & (totals > mean - ROUNDING)
    carried = torch.where(some, shares, 0)
    of_label = torch.nn.functional.pad(carried.unflatten(1, (2, size)).sum(1), (0, 1))
    return of_label.flatten()[cell] / each, (shares - carried).sum(1)


def _to_rows(share: Tensor, graph_of: Tensor, value: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
    """Shares of a mean (g) to the rows by how far they are from the usual, and what is left."""
    apart = (value - mean).nan_to_num(0.0)
    total = torch.zeros_like(share).index_add(0, graph_of, apart)
    carried = total.abs() > 1e-12
    slope = torch.where(carried, share / torch.where(carried, total, 1), 0)
    return slope[graph_of] * apart, torch.where(carried, 0, share)

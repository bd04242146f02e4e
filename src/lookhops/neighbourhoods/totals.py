"""What a graph holds, whatever its structure, as numbers that similar graphs nearly share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

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
    sides = _sides(graphs, label_sizes, edge_label_sizes)
    columns = [side.total.log1p()[:, None] for side in sides]
    for side in sides:
        whole = side.total.clamp(min=1)[:, None]  # its shape: ``len`` is a constant of an export
        for column, size in zip(side.labels, side.sizes, strict=True):
            # One cell more a graph, for what is not counted.
            cell = side.graph_of * (size + 1) + column.clamp(max=size)
            cells = counts_of(cell, whole.shape[0] * (size + 1))
            counts = cells.view(whole.shape[0], size + 1)[:, :size].double()
            columns += [counts.log1p(), counts / whole]
        if side.numbers is not None:
            columns.append(_means(side.numbers, side.graph_of, whole))
    return torch.cat(columns, 1)


class _Side(NamedTuple):
    """The nodes, or the edges, of graphs, as totals count them."""

    graph_of: Tensor  # the graph of each, (m)
    total: Tensor  # how many each graph has, float64, (g)
    labels: tuple[Tensor, ...]  # columns, (m) each; of nodes the degree is the first
    sizes: tuple[int, ...]  # how many values of each are counted
    numbers: Tensor | None  # float64, (m, a)


def _sides(
    graphs: Graphs, label_sizes: Sequence[int] | None, edge_label_sizes: Sequence[int] | None
) -> list[_Side]:
    """The nodes and the edges; arguments as for :func:`graph_totals`."""
    node_graph = graphs.batch.long()
    edge_graph = node_graph[graphs.target.long()]
    degree = graphs.row_ptr.diff().long().clamp(max=DEGREES - 1)
    found = []
    for features, counted, graph_of, total, degrees in (
        (graphs.nodes, label_sizes, node_graph, graphs.nodes_per_graph, [degree]),
        (graphs.edges, edge_label_sizes, edge_graph, graphs.edge_ptr.diff(), []),
    ):
        labels = () if features.labels is None else features.labels.long().unbind(1)
        sizes = features.label_sizes if counted is None else counted
        numbers = None if features.numbers is None else features.numbers.double()
        columns, counts = (*degrees, *labels), (*(DEGREES for _ in degrees), *sizes)
        found.append(_Side(graph_of, total.double(), columns, counts, numbers))
    return found


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
    r"""Shares (g, columns) of :func:`graph_totals`, handed on to the nodes and edges that make
    them up: of the nodes (n), of the edges (e), and what the graph as a whole keeps (g).

    Where there are at least as many nodes of a degree or label as usual, by their count or by their
    share of the nodes, what that has goes to these nodes in equal parts. Where there are fewer, it
    stays with the whole graph, as its size does: no node carries what others lack. What the mean of
    a number has goes to node :math:`i` as :math:`(x_i - m) / \sum_j (x_j - m)` of it, with
    :math:`m` the ``mean`` of that total.
    """
    whole, found, at = shares[:, :2].sum(1), [], 2
    for side in _sides(graphs, label_sizes, edge_label_sizes):
        carried = shares.new_zeros(len(side.graph_of))
        for column, size in zip(side.labels, side.sizes, strict=True):
            both = slice(at, at + 2 * size)
            part, left = _to_labelled(shares[:, both], mean[both], side.graph_of, column)
            carried, whole, at = carried + part, whole + left, at + 2 * size
        for number in () if side.numbers is None else side.numbers.unbind(1):
            part, left = _to_rows(shares[:, at], side.graph_of, number, mean[at])
            carried, whole, at = carried + part, whole + left, at + 1
        found.append(carried)
    return found[0], found[1], whole


def _to_labelled(
    shares: Tensor, mean: Tensor, graph_of: Tensor, label: Tensor
) -> tuple[Tensor, Tensor]:
    """Of counts and shares of labels (g, 2 size) in equal parts to the rows that have them; and
    what is left, of labels of which there are fewer than usual."""
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

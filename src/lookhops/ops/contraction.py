"""The edges between merged nodes: those that join the same two become one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lookhops.ops.adjacency import Adjacency
from lookhops.ops.pattern import Pattern, group
from lookhops.ops.product import sum_into


@dataclass(frozen=True, eq=False)
class MergedEdges:
    """What became of edges when nodes were merged.

    Args:
        adjacency: The merged edges.
        order: The old edges by where they lead, shape (e); those that are not there come last.
        there: Which of these are there.
        starts: Which of these are the first of those that became one.
    """

    adjacency: Adjacency
    order: Tensor
    there: Tensor
    starts: Tensor

    @property
    def first(self) -> Tensor:
        """Whether each old edge is the first of those that became one, shape (e)."""
        return torch.empty_like(self.starts).scatter(0, self.order, self.starts)

    @property
    def number(self) -> Tensor:
        """The merged edge that each old one became, -1 for none, shape (e)."""
        return _numbers(self.order, self.there, self.starts)

    def sums(self, values: Tensor) -> Tensor:
        """What belongs to old edges, shape (e, ...), added up over each merged one."""
        return sum_into(values, self.number, self.adjacency.num_edges)


def merge_edges(
    adjacency: Adjacency, number: Tensor, rows: int, masked: bool = False
) -> MergedEdges:
    """The edges between merged nodes, by target, then source.

    Args:
        adjacency: The edges as they were.
        number: The row of the merged node into which each node went.
        rows: How many rows there are.
        masked: Whether there are as many edges as before, nothing being asked of the device: those
            that are no more stand past the last row's end, as padding of weight zero.
    """
    present = _present(adjacency, masked)
    source = number.index_select(0, adjacency.source)
    target = number.index_select(0, adjacency.target)
    if present is not None:
        target = torch.where(present, target, rows)  # behind all others
    row_ptr, order = _by_ends(source, target, rows + 1)
    source, target = source.index_select(0, order), target.index_select(0, order)
    there = target < rows
    starts = there.clone()
    starts[1:] &= (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    before = torch.zeros(starts.numel() + 1, dtype=torch.long, device=starts.device)
    torch.cumsum(starts, 0, out=before[1:])
    first = _first_of_each(before) if masked else starts.nonzero().flatten()
    row, column = target.index_select(0, first).int(), source.index_select(0, first).int()
    real = torch.arange(len(first), device=first.device) < before[-1] if masked else None
    if real is not None:
        row, column = torch.where(real, row, rows - 1), torch.where(real, column, rows - 1)
    pattern = Pattern(before.index_select(0, row_ptr[: rows + 1]).int(), column, row=row)
    weight = None
    if adjacency.weight is not None and adjacency.weighted:
        number = _numbers(order, there, starts)
        weight = sum_into(adjacency.weight, number, len(first))
    merged = Adjacency(pattern, weight, symmetric=adjacency.symmetric)
    if real is not None and weight is None:
        merged = merged.masked(real)
    return MergedEdges(merged, order, there, starts)


def _present(adjacency: Adjacency, masked: bool) -> Tensor | None:
    """Which edges are there, none meaning all: in masked form padding is not."""
    present = adjacency.present
    if not masked:
        return present
    entry = torch.arange(adjacency.num_edges, device=adjacency.source.device)
    inside = entry < adjacency.pattern.row_ptr[-1]
    return inside if present is None else inside & present


def _by_ends(source: Tensor, target: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Where the edges into each target start, and the edges by target, then source.

    Edges that share both keep their order.
    """
    if source.is_cuda:  # one sort of both ends in one number
        key, order = (target * size + source).sort(stable=True)
        numbers = torch.arange(size + 1, device=key.device)
        return torch.searchsorted(key, numbers * size), order
    order = group(source, size)[1]
    row_ptr, by_target = group(target.index_select(0, order), size)
    return row_ptr, order.index_select(0, by_target).long()


def _first_of_each(before: Tensor) -> Tensor:
    """Where each run starts, given how many start before each place; the last place past them."""
    run = torch.arange(1, before.numel(), device=before.device)
    return torch.searchsorted(before[1:], run).clamp(max=before.numel() - 2)


def _numbers(order: Tensor, there: Tensor, starts: Tensor) -> Tensor:
    """As :attr:`MergedEdges.number`."""
    went = torch.where(there, starts.cumsum(0) - 1, -1)
    return torch.empty_like(order).scatter(0, order, went)

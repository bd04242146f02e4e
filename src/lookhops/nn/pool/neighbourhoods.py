"""Every node with the sources of its edges as a cluster, and the links between such clusters."""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.nn.kernels import clusters as kernels
from lookhops.nn.level import Level
from lookhops.nn.pool.clusters import links_between, product
from lookhops.ops import Adjacency, Pattern, SparseMatrix
from lookhops.ops.cached import cached


class Neighbourhoods:
    """The neighbourhoods of a level's nodes, one for each.

    Where the level says how large its graphs can be, every shape follows from that and nothing is
    asked of the device: there is room for as many links as there can ever be, and what is left of
    it is padding. Else there are as many entries as are needed.

    Args:
        level: The graphs.
    """

    def __init__(self, level: Level) -> None:
        self.level = level
        self.adjacency = level.adjacency

    @property
    def has_values(self) -> bool:
        """Whether edges are more than there or not."""
        return self.adjacency.weighted or self.adjacency.factor is not None

    @cached
    def pattern(self) -> Pattern:
        """Row i lists node i, then the sources of its edges; of fixed shape the dead have none."""
        adjacency, edges = self.adjacency, self.adjacency.pattern
        if self.level.extent is None:
            return adjacency.with_loops.select(adjacency.counted_with_loops)
        if self.has_values or not kernels.fits(edges.column):
            return self._pushed[0]
        entries = kernels.neighbourhoods(
            edges.row_ptr.int(),
            edges.column.int(),
            adjacency.weight,
            self._alive,
            ascending=edges.mirrored,
        )
        return _known(*entries, mirrored=adjacency.symmetric)

    @cached
    def _pushed(self) -> tuple[Pattern, Tensor]:
        """The pattern of fixed shape, and which entry of ``with_loops`` is where."""
        whole, counted = self.adjacency.with_loops, self.adjacency.counted_with_loops
        pattern, order = whole.push_out(counted & self._alive.index_select(0, whole.row))
        pattern.mirrored = self.adjacency.pattern.mirrored and self.adjacency.weight is None
        return pattern, order

    @cached
    def _order(self) -> Tensor:
        """Which entry of ``adjacency.with_loops`` stands at each place of the pattern."""
        if self.level.extent is None:
            return self.adjacency.counted_with_loops.nonzero().flatten()
        return self._pushed[1]

    @property
    def _alive(self) -> Tensor:
        alive = self.level.alive
        return torch.ones_like(self.level.graph, dtype=torch.bool) if alive is None else alive

    @cached
    def _first(self) -> Tensor:
        """First node of each node's graph, shape (n)."""
        return self.level.bounds[0].index_select(0, self.level.graph)

    # ---------------------------------------------------------------- links

    def links(self, members: SparseMatrix, keep: Tensor, ratio: float) -> Adjacency:
        r"""The links :math:`S A S^\top` between kept neighbourhoods, without the diagonal.

        They have weights where the edges have some, and where these have factors, the mean factor
        of what each stands for.

        Args:
            members: :math:`S`, the share of each node in each neighbourhood.
            keep: Which are kept, shape :math:`(n)`: of each graph the fraction ``ratio``.
            ratio: This fraction.
        """
        adjacency, pattern = self.adjacency, None
        if self.level.extent is not None:
            pattern = self._link_pattern(keep, self.level.extent.links(ratio))

        def between(values: Tensor | None) -> Adjacency:
            if values is not None:
                values = values.index_select(0, self._order)
            if pattern is None:
                return links_between(members, values, keep, self.level)
            value = None if values is None else self._values_at(pattern, members, values, keep)
            return Adjacency(pattern, value, symmetric=adjacency.symmetric)

        dtype = self.level.x.dtype
        coarse = between(adjacency.weight_with_loops(dtype) if adjacency.weighted else None)
        if adjacency.factor is None:
            return coarse
        above = between(adjacency.values_with_loops(dtype)).weight
        below = between(adjacency.weight_with_loops(dtype)).weight
        assert above is not None
        assert below is not None
        return coarse.times(above / below)

    def _link_pattern(self, keep: Tensor, room: int) -> Pattern:
        """Where the links are."""
        assert self.level.extent is not None
        widest, near = self.level.extent.widest, self.pattern
        mirrored = self.adjacency.symmetric
        if kernels.fits(near.column):
            turned = near.transpose
            entries = (near.row_ptr, near.column, turned.row_ptr, turned.column)
            found = kernels.links(*entries, keep, self._first, room, widest)
            return _known(*found, mirrored=mirrored)
        ones = torch.ones_like(near.row, dtype=torch.float32)
        there = self._spread(near, None, None, ones, keep) != 0
        row = torch.arange(keep.numel(), device=keep.device)[:, None]
        column = self._first[:, None] + torch.arange(widest, device=keep.device)
        there = there & keep[:, None] & (row != column)
        place = torch.where(there.flatten(), there.flatten().cumsum(0) - 1, room)
        ends = torch.cat((place.new_zeros(1), there.sum(1).cumsum(0)))
        padding = place.new_full((room + 1,), keep.numel() - 1)
        source, target = (
            padding.scatter(0, place, each.expand_as(there).flatten())[:-1]
            for each in (column, row)
        )
        return _known(ends.int(), source.int(), target.int(), mirrored=mirrored)

    def _values_at(
        self, links: Pattern, members: SparseMatrix, weight: Tensor, keep: Tensor
    ) -> Tensor:
        """The entries of S A S^T at the links; padding has one."""
        assert self.level.extent is not None
        assert members.value is not None
        padding, widest = links.is_padding, self.level.extent.widest
        values = self._spread(self.pattern, members.value, weight, members.value, keep).flatten()
        place = links.row * widest + links.column - self._first.index_select(0, links.column)
        # Padding reads all over the values: their gradients would wait for each other in one place.
        anywhere = torch.arange(place.numel(), device=place.device) % values.numel()
        found = values.index_select(0, torch.where(padding, anywhere, place))
        return found.masked_fill(padding, 1)

    def _spread(
        self,
        near: Pattern,
        share: Tensor | None,
        weight: Tensor | None,
        part: Tensor,
        keep: Tensor,
    ) -> Tensor:
        """S A S^T with a column for each node of the widest graph, shape (n, widest)."""
        assert self.level.extent is not None
        widest = self.level.extent.widest
        place = near.row - self._first.index_select(0, near.row)
        counts = keep.index_select(0, near.row) & ~near.is_padding
        index = (near.column.long(), place.clamp(max=widest - 1))
        part = torch.where(counts, part, 0)
        return product(near, share, weight, part, index, (near.size, widest))


def _known(row_ptr: Tensor, column: Tensor, row: Tensor, mirrored: bool) -> Pattern:
    pattern = Pattern(row_ptr, column, mirrored)
    pattern.row = row
    return pattern

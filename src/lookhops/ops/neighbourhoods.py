"""Every node with the sources of its edges as a cluster, and the links between such clusters.

In the kernels the clusters that a node reaches are a row of bits, one for each node of its graph:
rows are united along the edges, and nothing is sorted.
"""

import torch
from torch import Tensor

from lookhops.graphs.indexing import to_offsets
from lookhops.ops.adjacency import Adjacency
from lookhops.ops.batch import GraphBatch
from lookhops.ops.clusters import links_between, product
from lookhops.ops.gpu import can_run_on, launch_over, tl, triton
from lookhops.ops.pattern import Pattern, cached
from lookhops.ops.product import SparseMatrix

BLOCK = 128  # rows whose entries a program writes one after the other
UNITED = 32  # rows that a program unites, where each is one word
SPREAD = 16  # rows whose bits a program looks at together
WORD = 64  # bits of a word


class Neighbourhoods:
    """The neighbourhoods of a batch's nodes, one for each.

    Where the batch says how large its graphs can be, every shape follows from that and nothing is
    asked of the device: there are as many links as there can ever be, and those that are not there
    are padding. Else there are as many entries as are needed.
    """

    def __init__(self, batch: GraphBatch) -> None:
        self.batch, self.adjacency = batch, batch.adjacency
        alive = batch.alive
        self.alive = torch.ones_like(batch.graph, dtype=torch.bool) if alive is None else alive

    @cached
    def pattern(self) -> Pattern:
        """Row i lists node i, then the sources of its edges; of fixed shape the dead have none."""
        adjacency, edges = self.adjacency, self.adjacency.pattern
        if self.batch.extent is None:
            return adjacency.with_loops.select(adjacency.counted_with_loops)
        has_values = adjacency.weighted or adjacency.factor is not None
        if has_values or not can_run_on(edges.column):
            return self._pushed[0]
        given = edges.row_ptr.int(), edges.column.int(), adjacency.weight, self.alive
        ends, source, target = neighbourhoods_by_kernels(*given, ascending=edges.mirrored)
        return Pattern(ends, source, adjacency.symmetric, target)

    @cached
    def _pushed(self) -> tuple[Pattern, Tensor]:
        """The pattern of fixed shape, and which entry of ``with_loops`` is where."""
        every, counted = self.adjacency.with_loops, self.adjacency.counted_with_loops
        pattern, order = every.push_out(counted & self.alive.index_select(0, every.row))
        pattern.mirrored = self.adjacency.pattern.mirrored and self.adjacency.weight is None
        return pattern, order

    @cached
    def _order(self) -> Tensor:
        """Which entry of ``adjacency.with_loops`` stands at each place of the pattern."""
        if self.batch.extent is None:
            return self.adjacency.counted_with_loops.nonzero().flatten()
        return self._pushed[1]

    @cached
    def _first(self) -> Tensor:
        """First node of each node's graph, shape (n)."""
        return self.batch.bounds[0].index_select(0, self.batch.graph)

    @property
    def _widest(self) -> int:
        assert self.batch.extent is not None
        return self.batch.extent.widest

    # ---------------------------------------------------------------- links

    def links(self, members: SparseMatrix, keep: Tensor, ratio: float) -> Adjacency:
        r"""The links :math:`S A S^\top` between kept neighbourhoods, without the diagonal.

        They have weights where the edges have some, and where these have factors, the mean factor
        of what each stands for. Of each graph the fraction ``ratio`` is kept.
        """
        adjacency, pattern = self.adjacency, None
        if self.batch.extent is not None:
            pattern = self._link_pattern(keep, self.batch.extent.links(ratio))

        def between(values: Tensor | None) -> Adjacency:
            if values is not None:
                values = values.index_select(0, self._order)
            if pattern is None:
                return links_between(members, values, keep, self.batch)
            value = None if values is None else self._values_at(pattern, members, values, keep)
            return Adjacency(pattern, value, symmetric=adjacency.symmetric)

        dtype = self.batch.x.dtype
        coarse = between(adjacency.weight_with_loops(dtype) if adjacency.weighted else None)
        if adjacency.factor is None:
            return coarse
        above = between(adjacency.values_with_loops(dtype)).weight
        below = between(adjacency.weight_with_loops(dtype)).weight
        assert above is not None
        assert below is not None
        return coarse.times(above / below)

    def _link_pattern(self, keep: Tensor, count: int) -> Pattern:
        """Where the links are, of which there are at most so many."""
        near, symmetric, widest = self.pattern, self.adjacency.symmetric, self._widest
        if can_run_on(near.column):
            turned = near.transpose
            entries = (near.row_ptr, near.column, turned.row_ptr, turned.column)
            ends, source, target = links_by_kernels(*entries, keep, self._first, count, widest)
            return Pattern(ends, source, symmetric, target)
        ones = torch.ones_like(near.row, dtype=torch.float32)
        there = self._spread(None, None, ones, keep) != 0
        row = torch.arange(keep.numel(), device=keep.device)[:, None]
        column = self._first[:, None] + torch.arange(widest, device=keep.device)
        there = there & keep[:, None] & (row != column)
        place = torch.where(there.flatten(), there.flatten().cumsum(0) - 1, count)
        ends = to_offsets(there.sum(1))
        padding = place.new_full((count + 1,), keep.numel() - 1)
        source, target = (
            padding.scatter(0, place, each.expand_as(there).flatten())[:-1].int()
            for each in (column, row)
        )
        return Pattern(ends.int(), source, symmetric, target)

    def _values_at(
        self, links: Pattern, members: SparseMatrix, weight: Tensor, keep: Tensor
    ) -> Tensor:
        """The entries of S A S^T at the links; padding has one."""
        assert members.value is not None
        padding, first = links.is_padding, self._first.index_select(0, links.column)
        values = self._spread(members.value, weight, members.value, keep).flatten()
        place = links.row * self._widest + links.column - first
        # Padding reads all over the values: their gradients would wait for each other in one place.
        anywhere = torch.arange(place.numel(), device=place.device) % values.numel()
        found = values.index_select(0, torch.where(padding, anywhere, place))
        return found.masked_fill(padding, 1)

    def _spread(
        self, share: Tensor | None, weight: Tensor | None, part: Tensor, keep: Tensor
    ) -> Tensor:
        """S A S^T with a column for each node of the widest graph, shape (n, widest)."""
        near, widest = self.pattern, self._widest
        place = near.row - self._first.index_select(0, near.row)
        counts = keep.index_select(0, near.row) & ~near.is_padding
        index = (near.column.long(), place.clamp(max=widest - 1))
        part = torch.where(counts, part, 0)
        return product(near, share, weight, part, index, (near.size, widest))


def neighbourhoods_by_kernels(
    row_ptr: Tensor, column: Tensor, weight: Tensor | None, alive: Tensor, ascending: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Every living node with its sources, itself first, then ascending: offsets, columns, rows.

    Edges of weight zero are not there; ``ascending`` says that sources of each node ascend already.
    """
    rows, device = row_ptr.numel() - 1, column.device
    count = torch.zeros(rows + 1, dtype=torch.int32, device=device)
    edges = row_ptr, column, weight, alive
    launch_over(_count_kernel, rows, BLOCK, *edges, count, rows)
    ends = count.cumsum(0, dtype=torch.int32)
    source, target = _padding(rows, column.numel() + rows, device)
    given = *edges, ends, source, target, rows
    launch_over(_enter_kernel, rows, BLOCK, *given, ASCENDING=ascending)
    return ends, source, target


def links_by_kernels(
    row_ptr: Tensor,
    column: Tensor,
    row_ptr_t: Tensor,
    column_t: Tensor,
    keep: Tensor,
    first: Tensor,
    most: int,
    widest: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Which kept clusters an edge or a shared node joins: offsets, columns and rows of the links.

    The rows are the clusters of the nodes, and between nodes the edges. ``first`` is the first node
    of each node's graph, ``widest`` the most nodes of a graph; places up to ``most`` are padding.
    """
    rows, words = keep.numel(), triton.cdiv(widest, WORD)
    block = triton.next_power_of_2(words)
    united = max(UNITED // block, 1)
    grid, sizes = (triton.cdiv(rows, united),), {"ROWS": united, "WORDS": block, "num_warps": 1}
    nodes = (keep, first)
    before, after = torch.empty(2, rows, words, dtype=torch.int64, device=keep.device).unbind()
    count = torch.zeros(rows + 1, dtype=torch.int32, device=keep.device)
    _unite_kernel[grid](row_ptr_t, column_t, None, *nodes, before, None, rows, words, **sizes)
    _unite_kernel[grid](row_ptr, column, before, *nodes, after, None, rows, words, **sizes)
    _unite_kernel[grid](row_ptr, column, after, *nodes, before, count, rows, words, **sizes)
    ends = count.cumsum(0, dtype=torch.int32)
    source, target = _padding(rows, most, keep.device)
    given = (before, first, ends, source, target, rows, words)
    _link_kernel[(triton.cdiv(rows, SPREAD),)](*given, ROWS=SPREAD, WORD=WORD, num_warps=4)
    return ends, source, target


def _padding(rows: int, count: int, device: torch.device) -> Tensor:
    """Columns and rows that are all padding: loops of the last node."""
    return torch.full((2, count), rows - 1, dtype=torch.int32, device=device)


if triton is not None:

    @triton.jit
    def _edges_of(row_ptr, alive, rows, BLOCK: tl.constexpr):
        """This program's rows, which of them live, and the first and last of their edges."""
        row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        live = row < rows
        live = live & (tl.load(alive + row, mask=live, other=0) != 0)
        start = tl.load(row_ptr + row, mask=live, other=0)
        end = tl.load(row_ptr + row + 1, mask=live, other=0)
        return row, live, start, end, tl.max(end - start, axis=0)

    @triton.jit
    def _load_edge(column, weight, row, entry, end):
        """The source of an edge of each row, and whether it is one from another node."""
        here = entry < end
        source = tl.load(column + entry, mask=here, other=0)
        here = here & (source != row)
        if weight is not None:
            here = here & (tl.load(weight + entry, mask=here, other=0.0) != 0)
        return source, here

    @triton.jit
    def _count_kernel(row_ptr, column, weight, alive, count, rows, BLOCK: tl.constexpr):
        """How many nodes each neighbourhood has."""
        row, live, start, end, longest = _edges_of(row_ptr, alive, rows, BLOCK)
        found = live.to(tl.int32)
        for j in range(0, longest):
            found += _load_edge(column, weight, row, start + j, end)[1].to(tl.int32)
        tl.store(count + row + 1, found, mask=row < rows)

    @triton.jit
    def _enter_kernel(
        row_ptr,
        column,
        weight,
        alive,
        ends,
        sources,
        targets,
        rows,
        ASCENDING: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        """Write every neighbourhood: the node itself, then its sources in ascending order."""
        row, live, start, end, longest = _edges_of(row_ptr, alive, rows, BLOCK)
        first = tl.load(ends + row, mask=live, other=0)
        tl.store(sources + first, row, mask=live)
        tl.store(targets + first, row, mask=live)
        place = first + 1
        for j in range(0, longest):
            source, here = _load_edge(column, weight, row, start + j, end)
            if not ASCENDING:
                place = first + 1
                for i in range(0, longest):
                    other, there = _load_edge(column, weight, row, start + i, end)
                    before = there & ((other < source) | ((other == source) & (i < j)))
                    place += before.to(tl.int32)
            tl.store(sources + place, source, mask=here)
            tl.store(targets + place, row, mask=here)
            if ASCENDING:
                place += here.to(tl.int32)

    @triton.jit
    def _unite_kernel(
        row_ptr,
        column,
        given,
        keep,
        first,
        out,
        count,
        rows,
        words,
        ROWS: tl.constexpr,
        WORDS: tl.constexpr,
    ):
        """Bits of all columns of a row: those given, else that of the column where it is kept.

        Where they are to be counted, they are those of kept rows, without the row's own.
        """
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        word = tl.arange(0, WORDS)
        live = row < rows
        start = tl.load(row_ptr + row, mask=live, other=0)
        end = tl.load(row_ptr + row + 1, mask=live, other=0)
        begin = tl.load(first + row, mask=live, other=0).to(tl.int32)
        one = tl.full((ROWS, WORDS), 1, tl.int64)
        found = tl.zeros((ROWS, WORDS), tl.int64)
        for j in range(0, tl.max(end - start, axis=0)):
            here = start + j < end
            source = tl.load(column + start + j, mask=here, other=0)
            if given is None:
                here = here & (tl.load(keep + source, mask=here, other=0) != 0)
                bit = (source - begin)[:, None]
                mine = here[:, None] & (bit // 64 == word[None, :])
                found = found | tl.where(mine, one << (bit % 64).to(tl.int64), 0)
            else:
                place = source.to(tl.int64)[:, None] * words + word[None, :]
                both = here[:, None] & (word < words)[None, :]
                found = found | tl.load(given + place, mask=both, other=0)
        mask = live[:, None] & (word < words)[None, :]
        if count is not None:
            bit = (row - begin)[:, None]
            own = tl.where(bit // 64 == word[None, :], one << (bit % 64).to(tl.int64), 0)
            kept = live & (tl.load(keep + row, mask=live, other=0) != 0)
            found = tl.where(kept[:, None], found & ~own, 0)
            # Bits are added in pairs, in fours, in bytes, and the bytes in the highest one.
            bits = found - ((found >> 1) & 0x5555555555555555)
            bits = (bits & 0x3333333333333333) + ((bits >> 2) & 0x3333333333333333)
            bits = (bits + (bits >> 4)) & 0x0F0F0F0F0F0F0F0F
            bits = (bits * 0x0101010101010101) >> 56
            tl.store(count + row + 1, tl.sum(bits, axis=1).to(tl.int32), mask=live)
        tl.store(out + row.to(tl.int64)[:, None] * words + word[None, :], found, mask=mask)

    @triton.jit
    def _link_kernel(
        given, first, ends, sources, targets, rows, words, ROWS: tl.constexpr, WORD: tl.constexpr
    ):
        """Write the links of every row, one for each of its bits."""
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        live = row < rows
        begin = tl.load(first + row, mask=live, other=0).to(tl.int32)
        place = tl.load(ends + row, mask=live, other=0)
        lane = tl.arange(0, WORD)
        for word in range(0, words):
            bits = tl.load(given + row.to(tl.int64) * words + word, mask=live, other=0)
            bit = ((bits[:, None] >> lane.to(tl.int64)[None, :]) & 1).to(tl.int32)
            there = place[:, None] + tl.cumsum(bit, axis=1) - bit
            source = begin[:, None] + word * WORD + lane[None, :]
            tl.store(sources + there, source, mask=bit != 0)
            tl.store(targets + there, row[:, None] + 0 * lane[None, :], mask=bit != 0)
            place += tl.sum(bit, axis=1)

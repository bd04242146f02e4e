"""How much of a graph is also in the most similar of a set of graphs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.graphs import Graphs
from lookhops.graphs.indexing import elements_of, segment_of, stable_argsort, to_offsets
from lookhops.neighbourhoods.counts import SparseRows, unary_codes
from lookhops.neighbourhoods.identities import identities

#: Hops of the neighbourhoods that are compared: those of the usual molecular fingerprints.
HOPS = 2
#: Neighbourhoods that an index holds at most (four bytes each): of larger sets it takes a sample.
MOST_CODES = 4_000_000
#: Similarities that are computed at a time: on a GPU, and on the CPU, in whose cache they stay.
CHUNK, CPU_CHUNK = 10_000_000, 500_000
#: Features in a larger share of the graphs are multiplied as a dense matrix: the same two.
DENSE, CPU_DENSE = 0.02, 0.05


@dataclass(frozen=True, eq=False)
class SimilarityIndex:
    r"""A set of graphs to find the most similar one in.

    The similarity of two graphs is Tanimoto's of their counts of neighbourhoods within 0, 1 and 2
    hops,

    .. math::
        s(a, b) = \frac{\sum_c \min(\#_a(c), \#_b(c))}{\sum_c \max(\#_a(c), \#_b(c))},

    from 0 (nothing in common) to 1 (the same neighbourhoods). Labels of nodes and edges count,
    numeric attributes do not.

    Args:
        codes: Of each graph its :func:`~lookhops.neighbourhoods.unary_codes`, cut to 32 bits,
            graph after graph.
        offsets: Where each graph begins, and the end, shape (g + 1).
    """

    codes: Tensor
    offsets: Tensor

    def __len__(self) -> int:
        return self.offsets.numel() - 1

    @classmethod
    def of(cls, graphs: Graphs, chosen: Tensor | None = None) -> SimilarityIndex:
        """The index of (chosen) graphs; of very many, of :func:`sample`."""
        return cls(*_codes(graphs.select(sample(graphs, chosen))))

    def nearest(self, graphs: Graphs, codes: Tensor | None = None) -> Array:
        """Similarity of each graph to the most similar one in the index, float32, shape (g)."""
        if not len(self):
            return np.zeros(len(graphs), np.float32)
        found = [each.amax(1) for each in self._similarities(graphs, codes)]
        return torch.cat([torch.zeros(0, device=graphs.device), *found]).cpu().numpy()

    def most_similar(
        self, graphs: Graphs, count: int, codes: Tensor | None = None
    ) -> tuple[Array, Array]:
        """The most similar graphs of the index, of equals those that come first.

        Args:
            graphs: The graphs.
            count: How many of the index; fewer where it has not so many.
            codes: Of the graphs, where they are known.

        Returns:
            Similarities, float32, from the highest, and numbers in the index, shape (g, count).
        """
        last = len(self) - 1
        found = [torch.zeros(0, min(count, len(self)), dtype=torch.int64, device=graphs.device)]
        for each in self._similarities(graphs, codes):
            # The bits of positive floats are in their order; below them stands which comes first.
            before = torch.arange(last, -1, -1, device=each.device)
            keys = (each.view(torch.int32).long() << 32) + before
            found.append(keys.topk(found[0].shape[1]).values)
        keys = torch.cat(found).cpu()
        similarity = (keys >> 32).int().view(torch.float32)
        return similarity.numpy(), (last - (keys & 0xFFFFFFFF)).numpy()

    def _similarities(self, graphs: Graphs, codes: Tensor | None) -> Iterator[Tensor]:
        """Similarities to all graphs of the index, some graphs at a time, shape (step, index)."""
        device, on_cpu = graphs.device, graphs.device.type == "cpu"
        codes, offsets = _codes(graphs, codes)
        if device not in self._postings:
            rows = self._rows(self.codes.to(device), self.offsets.to(device))
            self._postings[device] = Postings.of(rows, CPU_DENSE if on_cpu else DENSE)
        sizes, own_sizes = offsets.diff().float(), self.offsets.to(device).diff().float()
        step = max((CPU_CHUNK if on_cpu else CHUNK) // len(self), 1)
        for start, shared in self._postings[device].shared(self._rows(codes, offsets), step):
            either = sizes[start : start + len(shared), None] + own_sizes
            either -= shared
            yield shared.div_(either.clamp_(min=1))

    @cached_property
    def _postings(self) -> dict[torch.device, Postings]:
        return {}

    @cached_property
    def _vocabulary(self) -> Tensor:
        return self.codes.unique()

    def _rows(self, codes: Tensor, offsets: Tensor) -> SparseRows:
        """Graphs as sparse rows; what no graph of the index has is left out."""
        known = self._vocabulary.to(codes.device)
        place = torch.searchsorted(known, codes).clamp(max=max(len(known) - 1, 0))
        here = known[place] == codes if len(known) else torch.zeros_like(codes, dtype=torch.bool)
        before = to_offsets(here.long())
        return SparseRows(place[here], before[offsets], len(known))


def sample(graphs: Graphs, chosen: Tensor | None = None) -> Tensor:
    """Numbers of the (chosen) graphs that an index holds: all, or always the same of very many."""
    nodes = graphs.nodes_per_graph.cpu().long()
    chosen = torch.arange(len(graphs)) if chosen is None else chosen.cpu()
    if int(nodes[chosen].sum()) * (HOPS + 1) <= MOST_CODES:
        return chosen
    order = torch.randperm(len(chosen), generator=torch.Generator().manual_seed(0))
    sizes = nodes[chosen[order]].cumsum(0) * (HOPS + 1)
    return chosen[order[: max(int((sizes <= MOST_CODES).sum()), 1)].sort().values]


def _codes(graphs: Graphs, codes: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The neighbourhoods of each graph as 32-bit numbers, and where each graph's begin."""
    if codes is None:
        codes = unary_codes(graphs, identities(graphs, HOPS))
    return codes[:, : HOPS + 1].flatten().int(), graphs.node_ptr.long() * (HOPS + 1)


@dataclass(frozen=True, eq=False)
class Postings:
    """For each feature the graphs that have it: the common features dense, the rare ones as lists.

    Args:
        place: Column of each feature in ``dense``, -1 for a rare one, shape (f).
        dense: Counts of the common features, float32, shape (common, g).
        offsets: Where the list of each feature begins, and the end, shape (f + 1).
        graphs: The graphs in the lists.
    """

    place: Tensor
    dense: Tensor
    offsets: Tensor
    graphs: Tensor

    @classmethod
    def of(cls, rows: SparseRows, common: float) -> Postings:
        """The postings of an index; features in a larger share of the graphs are common."""
        count = rows.indices.bincount(minlength=rows.num_columns)
        many = count > common * len(rows)
        place = torch.where(many, many.cumsum(0) - 1, -1)
        graph = segment_of(rows.offsets, rows.indices.numel())
        dense = torch.zeros(int(many.sum()), len(rows), device=graph.device)
        here = many[rows.indices]
        _count(dense, place[rows.indices[here]], graph[here])
        order = stable_argsort(rows.indices)
        return cls(place, dense, to_offsets(count), graph[order])

    def shared(self, rows: SparseRows, step: int) -> Iterator[tuple[int, Tensor]]:
        """How many features graphs share with each of the index: so many graphs at a time.

        Yields:
            The number of the first graph, and the counts, float32, shape (step, g).
        """
        device = self.dense.device
        for start in range(0, len(rows), step):
            number = torch.arange(start, min(start + step, len(rows)), device=device)
            part = rows.select(number)
            row = segment_of(part.offsets, part.indices.numel())
            place = self.place[part.indices]
            common = place >= 0
            counts = torch.zeros(len(part), len(self.dense), device=device)
            _count(counts, row[common], place[common])
            found = counts @ self.dense
            rare = part.indices[~common]
            entry, ends, _ = elements_of(self.offsets, rare)
            owner = torch.repeat_interleave(row[~common], ends.diff(), output_size=entry.numel())
            _count(found, owner, self.graphs[entry])
            yield start, found


def _count(counts: Tensor, row: Tensor, column: Tensor) -> None:
    """Add one at each place that is named, as often as it is."""
    if counts.device.type == "cpu":  # many times as fast as PyTorch's
        place = row * counts.shape[1] + column
        np.add.at(counts.view(-1).numpy(), place.numpy(), np.float32(1))
    else:
        counts.index_put_((row, column), torch.ones((), device=counts.device), accumulate=True)

"""How much graphs have in common: the most similar of a set, and kernels of all pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.graphs.indexing import elements_of, segment_of, stable_argsort, to_offsets
from lookhops.neighbourhoods.counts import Vocabulary, codes_in, unary_codes
from lookhops.neighbourhoods.identities import identities

#: Hops of the neighbourhoods that are compared: those of the usual molecular fingerprints.
HOPS = 2
#: Neighbourhoods that an index holds at most (four bytes each): of larger sets it takes a sample.
MOST_CODES = 4_000_000
#: Pairs of graphs that are compared at a time: on a GPU, and on the CPU, in whose cache they stay.
CHUNK, CPU_CHUNK = 10_000_000, 500_000
#: Features in a larger share of the graphs are multiplied as a dense matrix: the same two.
DENSE, CPU_DENSE = 0.02, 0.05
KINDS = ("subtree", "optimal-assignment")


@dataclass(frozen=True, eq=False)
class SimilarityIndex:
    r"""A set of graphs in which to find the most similar ones.

    The similarity is Tanimoto's of the counts of neighbourhoods within 0, 1 and 2 hops,

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
        """The ``count`` most similar graphs of the index (or all), of equals those that come first.

        Returns similarities, float32, from the highest, and numbers in the index, (g, count).
        ``codes`` are those of the graphs, where they are known.
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
        """Similarities to all graphs of the index, some graphs at a time, shape (some, index)."""
        device = graphs.device
        codes, ptr = _codes(graphs, codes)
        if device not in self._postings:
            self._postings[device] = Postings.of(self.codes.to(device), self.offsets.to(device))
        postings, sizes = self._postings[device], ptr.diff().float()
        for start, shared in postings.shared(codes, ptr):
            either = sizes[start : start + len(shared), None] + postings.sizes
            either -= shared
            yield shared.div_(either.clamp_(min=1))

    @cached_property
    def _postings(self) -> dict[torch.device, Postings]:
        return {}


def sample(graphs: Graphs, chosen: Tensor | None = None) -> Tensor:
    """Numbers of the (chosen) graphs that an index holds: all, or always the same sample."""
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
    """Which graphs of an index hold each code: common codes dense, rare ones as lists."""

    vocabulary: Vocabulary  # the codes
    sizes: Tensor  # how many codes each graph holds, repeated ones too, float32, (g)
    place: Tensor  # row of each code in `dense`, -1 for a rare one, (v)
    dense: Tensor  # counts of the common codes, float32, (common, g)
    offsets: Tensor  # where the list of each code begins, and the end, (v + 1)
    graphs: Tensor  # the graphs in the lists

    @classmethod
    def of(cls, codes: Tensor, ptr: Tensor) -> Postings:
        """The postings of graphs with these codes, those of each graph from ``ptr`` on."""
        distinct, _ = codes_in(codes, least=1)
        vocabulary = Vocabulary(distinct, torch.zeros_like(distinct))
        rows = vocabulary.rows_of(codes, ptr)
        count = rows.indices.bincount(minlength=len(vocabulary))
        common = count > (CPU_DENSE if codes.device.type == "cpu" else DENSE) * len(rows)
        place = torch.where(common, common.cumsum(0) - 1, -1)
        graph = segment_of(ptr, codes.numel())
        dense = torch.zeros(int(common.sum()), len(rows), device=codes.device)
        here = common[rows.indices]
        _count(dense, place[rows.indices[here]], graph[here])
        lists = graph[stable_argsort(rows.indices)]
        return cls(vocabulary, ptr.diff().float(), place, dense, to_offsets(count), lists)

    def shared(self, codes: Tensor, ptr: Tensor) -> Iterator[tuple[int, Tensor]]:
        """How many codes some graphs at a time share with each of the index: the number of the
        first of them, and the counts, float32, shape (some, g)."""
        device, known = codes.device, self.vocabulary.rows_of(codes, ptr)
        pairs = CPU_CHUNK if device.type == "cpu" else CHUNK
        step = max(pairs // max(self.dense.shape[1], 1), 1)
        for start in range(0, len(known), step):
            number = torch.arange(start, min(start + step, len(known)), device=device)
            part = known.select(number)
            row = segment_of(part.offsets, part.indices.numel())
            place = self.place[part.indices]
            common = place >= 0
            counts = torch.zeros(len(part), len(self.dense), device=device)
            _count(counts, row[common], place[common])
            found = counts @ self.dense
            entry, ends, _ = elements_of(self.offsets, part.indices[~common])
            owner = torch.repeat_interleave(row[~common], ends.diff(), output_size=entry.numel())
            _count(found, owner, self.graphs[entry])
            yield start, found

    def all_shared(self, codes: Tensor, ptr: Tensor) -> Tensor:
        """The same of all graphs, shape (graphs, g)."""
        found = self.dense.new_empty(len(ptr) - 1, self.dense.shape[1])
        for start, counts in self.shared(codes, ptr):
            found[start : start + len(counts)] = counts
        return found


def _count(counts: Tensor, row: Tensor, column: Tensor) -> None:
    """Add one at each place that is named, as often as it is."""
    if counts.device.type == "cpu":  # many times as fast as PyTorch's
        place = row * counts.shape[1] + column
        np.add.at(counts.view(-1).numpy(), place.numpy(), np.float32(1))
    else:
        counts.index_put_((row, column), torch.ones((), device=counts.device), accumulate=True)


def gram_by_hop(
    graphs: Graphs, hops: int, kind: str = "optimal-assignment", edge_labels: bool = True
) -> NDArray[np.float32]:
    r"""The kernel of every pair of graphs at each hop alone, shape (h + 1, g, g).

    With :math:`\#_a(c)` the nodes of identity :math:`c` in graph :math:`a`, hop :math:`t` adds
    :math:`\sum_c \#_a(c) \, \#_b(c)` to the subtree kernel (Shervashidze et al., 2011) and
    :math:`\sum_c \min(\#_a(c), \#_b(c))` to the optimal-assignment kernel (Kriege et al., 2016),
    over the identities of that hop. The kernel of depth :math:`h` is the sum over hops 0 to
    :math:`h`: ``gram_by_hop(...)[: h + 1].sum(0)``, or all depths at once by ``cumsum(0)``.

    Args:
        graphs: The graphs, :math:`g` of them.
        hops: How far to look.
        kind: ``"subtree"`` or ``"optimal-assignment"``.
        edge_labels: Whether labels of edges count.
    """
    if kind not in KINDS:
        raise LookHopsError(f"A kernel is one of {', '.join(KINDS)}, not {kind!r}.")
    identity = identities(graphs, hops, edge_labels=edge_labels)
    codes = identity if kind == "subtree" else unary_codes(graphs, identity)
    products = np.empty((hops + 1, len(graphs), len(graphs)), np.float32)
    for product, column in zip(products, codes.split(1, 1), strict=True):
        rows = Vocabulary.choose(graphs, column, min_graphs=1).rows(graphs, column).to_scipy()
        # Columns with many entries are faster as a dense matrix.
        common = np.bincount(rows.indices, minlength=rows.shape[1]) > CPU_DENSE * len(graphs)
        dense, rare = rows[:, np.flatnonzero(common)].toarray(), rows[:, np.flatnonzero(~common)]
        product[:] = (rare @ rare.T).toarray()
        product += dense @ dense.T
    return products

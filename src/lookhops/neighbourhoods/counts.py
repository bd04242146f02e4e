"""Neighbourhoods and pairs of nodes counted for each graph: sparse rows over a vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.hashing import combine
from lookhops.graphs import Graphs
from lookhops.graphs.indexing import (
    argsort_hashes,
    elements_of,
    insertion,
    last_begin,
    run_begins,
    stable_argsort,
    to_offsets,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Codes with the same beginning are looked through one by one where there are no more.
MOST_ALIKE = 8


def unary_codes(graphs: Graphs, identity: Tensor) -> Tensor:
    r"""Counts in unary: one 64-bit code for each node and hop, shape (n, h + 1).

    The :math:`t`-th node of an identity :math:`c` in a graph has the code
    :math:`\mathrm{mix}(g\,c + t)`, a feature that a graph has once or not at all. The
    inner product of two graphs' features is then :math:`\sum_c \min(\#_a(c), \#_b(c))`, the
    Weisfeiler-Lehman optimal-assignment kernel.

    Args:
        graphs: The graphs.
        identity: Their :func:`~lookhops.neighbourhoods.identities`, shape (n, h + 1).
    """
    return count_in_unary(identity, graphs.batch.long())


def count_in_unary(identity: Tensor, owner: Tensor) -> Tensor:
    """As :func:`unary_codes`, of anything that graphs have several of; ``owner`` is their graph."""
    flat = identity.flatten()
    # Equal keys: the same identity in the same graph.
    key = combine(flat, owner.repeat_interleave(identity.shape[1]))
    order = argsort_hashes(key)
    place = torch.arange(flat.numel(), device=flat.device)
    rank = torch.empty_like(flat)
    rank[order] = place - last_begin(run_begins(key[order]))
    return combine(flat, rank).view_as(identity)  # different columns have different identities


@dataclass(frozen=True, eq=False)
class SparseRows:
    """A sparse matrix of ones, graphs × features, in CSR form: a feature may repeat in a row.

    Args:
        indices: Column of every entry, int64, row after row.
        offsets: Where each row begins, and the end, int64, shape (graphs + 1).
        num_columns: Number of features.
    """

    indices: Tensor
    offsets: Tensor
    num_columns: int

    def __len__(self) -> int:
        return self.offsets.numel() - 1

    def select(self, rows: Tensor) -> SparseRows:
        """The rows at ``rows``, in that order."""
        entries, offsets, _ = elements_of(self.offsets, rows)
        return SparseRows(self.indices[entries], offsets, self.num_columns)

    def weights(self) -> Tensor:
        r"""Of each entry :math:`1/\sqrt{\mathrm{entries}}` of its row: rows of unit length."""
        counts = self.offsets.diff()
        scale = counts.clamp(min=1).double().rsqrt().float()
        return torch.repeat_interleave(scale, counts, output_size=self.indices.numel())

    def to_scipy(self, normalise: bool = False) -> csr_array:
        """The same as SciPy's matrix of float32, entries that repeat added up."""
        from scipy.sparse import csr_array

        ones = np.ones(self.indices.numel(), np.float32)
        values = self.weights().cpu().numpy() if normalise else ones
        arrays = values, self.indices.cpu().numpy(), self.offsets.cpu().numpy()
        matrix = csr_array(arrays, shape=(len(self), self.num_columns), copy=True)
        matrix.sum_duplicates()
        return matrix


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The features that a model has weights for.

    Args:
        codes: Their codes, sorted, int64, shape (v).
        hops: How far each looks, int64, shape (v).
    """

    codes: Tensor
    hops: Tensor

    def __len__(self) -> int:
        return self.codes.numel()

    @classmethod
    def choose(
        cls,
        graphs: Graphs,
        codes: Tensor,
        train: Tensor | None = None,
        min_graphs: int = 2,
        max_features: int | None = None,
    ) -> Vocabulary:
        """The codes in at least ``min_graphs`` training graphs.

        Args:
            graphs: The graphs.
            codes: Their :func:`unary_codes`, shape (n, h + 1); a graph has each at most once.
            train: Numbers of the training graphs, the only ones looked at; by default all.
            min_graphs: A feature is in no fewer training graphs.
            max_features: No more features than this: those in most graphs, and of those in as
                many the ones with the smallest codes.
        """
        for name, least in {"min_graphs": min_graphs, "max_features": max_features}.items():
            if least is not None and least < 1:
                raise LookHopsError(f"{name} is a whole number from 1, not {least}.")
        if train is not None:
            inside = torch.zeros(len(graphs), dtype=torch.bool, device=codes.device)
            inside[train.to(codes.device)] = True
            codes = codes[inside[graphs.batch.long()]]
        found = [codes_in(column, min_graphs) for column in codes.unbind(1)]
        sizes = torch.tensor([len(kept) for kept, _ in found], device=codes.device)
        hops = torch.arange(len(found), device=codes.device).repeat_interleave(sizes)
        kept, frequency = (torch.cat(parts) for parts in zip(*found, strict=True))
        order = stable_argsort(kept)
        if max_features is not None and len(kept) > max_features:
            commonest = stable_argsort(-frequency[order])[:max_features]
            order = order[commonest.sort().values]
        return cls(kept[order], hops[order])

    def to(self, device: torch.device | str) -> Vocabulary:
        """The same vocabulary on ``device``."""
        if self.codes.device == torch.device(device):
            return self  # with its cached property
        return Vocabulary(self.codes.to(device), self.hops.to(device))

    def rows(self, graphs: Graphs, codes: Tensor) -> SparseRows:
        """The graphs as sparse rows; codes that are not in the vocabulary are left out."""
        return self.rows_of(codes.flatten(), graphs.node_ptr.long() * codes.shape[1])

    def rows_of(self, codes: Tensor, ptr: Tensor) -> SparseRows:
        """The same of graphs whose codes, shape (m), begin at ``ptr``, shape (g + 1)."""
        place, known = self.places(codes)
        before = torch.cat((place.new_zeros(1, dtype=torch.int64), known.cumsum(0)))
        return SparseRows(place[known], before[ptr], len(self))

    def places(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Where each code stands in the vocabulary, and whether it does; both of its shape."""
        if not len(self):
            return torch.zeros_like(codes), torch.zeros_like(codes, dtype=torch.bool)
        on_cpu = self.codes.device.type == "cpu" and not torch.compiler.is_exporting()
        if on_cpu and self._beginnings[2] <= MOST_ALIKE:
            shift, starts, most = self._beginnings
            place = starts[(codes >> shift) + starts.numel() // 2]
            for _ in range(most - 1):
                place.add_(self.codes[place] < codes).clamp_(max=len(self) - 1)
        else:
            place = insertion(self.codes, codes.contiguous()).clamp(max=len(self) - 1)
        return place, self.codes[place] == codes

    @cached_property
    def _beginnings(self) -> tuple[int, Tensor, int]:
        """Where the first code with each beginning stands: codes are hashes, so few share one.

        Bits that do not belong to it; the places; and how many codes share one at most.
        """
        bits = len(self).bit_length() + 3
        beyond = 8 * self.codes.element_size() - bits
        here = (self.codes >> beyond) + (1 << (bits - 1))
        counts = here.bincount(minlength=1 << bits)
        starts = (counts.cumsum(0) - counts).clamp(max=len(self) - 1)
        return beyond, starts, int(counts.max())

    def names(self) -> list[str]:
        """A name for each feature: how far it looks, and its code in hexadecimal."""
        codes = self.codes.cpu().numpy().view(np.uint64)
        return [
            f"hop{hop}_{code:016x}" for hop, code in zip(self.hops.tolist(), codes, strict=True)
        ]


def codes_in(codes: Tensor, least: int) -> tuple[Tensor, Tensor]:
    """The codes that are there at least ``least`` times, sorted, and how often they are there."""
    if codes.device.type == "cpu":  # NumPy's sort is many times as fast as PyTorch's
        ordered = torch.from_numpy(np.sort(codes.numpy()))
    else:
        ordered = codes.sort().values
    distinct, frequency = ordered.unique_consecutive(return_counts=True)
    enough = frequency >= least
    return distinct[enough], frequency[enough]


def pair_codes(graphs: Graphs, label: Tensor, hops: int) -> tuple[Tensor, Tensor]:
    r"""The pairs of nodes of each graph that are 1 to :math:`h` hops apart, counted in unary.

    A pair :math:`i < j` at distance :math:`d` is

    .. math::
        \mathrm{mix}\big(g \, (c_i + c_j) + d\big),

    and the :math:`t`-th pair of a kind in a graph is a feature of its own, as for nodes
    (:func:`~lookhops.neighbourhoods.unary_codes`). Edges are walked along in both directions;
    ``label`` is a hash of each node, :math:`c`. The codes are of shape (p); those of each graph
    begin at the second tensor, (g + 1).
    """
    _, kinds, owner = pair_kinds(graphs, label, hops)
    codes = count_in_unary(kinds[:, None], owner)[:, 0]
    return codes, to_offsets(owner.bincount(minlength=len(graphs)))


def pair_kinds(graphs: Graphs, label: Tensor, hops: int) -> tuple[Tensor, Tensor, Tensor]:
    """The nodes of each pair, shape (p, 2), its kind, and its graph, as in :func:`pair_codes`."""
    first, second, distance = map(torch.from_numpy, _pairs(graphs, hops))
    owner = graphs.batch.cpu().long()[first]
    order = stable_argsort(owner)
    label = label.cpu()
    kinds = combine((label[first] + label[second])[order], distance[order])
    return torch.stack((first, second), 1)[order], kinds, owner[order]


def _pairs(graphs: Graphs, hops: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The nodes of each pair, the smaller number first, and their distance; nearest pairs first."""
    from scipy.sparse import csr_array, eye_array, triu

    nodes, edges = graphs.num_nodes, (graphs.source.cpu().numpy(), graphs.target.cpu().numpy())
    joined = csr_array((np.ones(len(edges[0]), bool), edges), shape=(nodes, nodes))
    joined = (joined + joined.T).astype(bool)
    seen = eye_array(nodes, dtype=bool, format="csr")
    reached, found = seen, [np.empty((3, 0), dtype=np.int64)]
    for distance in range(1, hops + 1):
        reached = (reached @ joined) > seen
        if not reached.nnz:
            break
        seen = seen + reached
        upper = triu(reached, 1, format="coo")
        found.append(np.stack((*upper.coords, np.full(upper.nnz, distance))).astype(np.int64))
    first, second, distances = np.concatenate(found, 1)
    return first, second, distances

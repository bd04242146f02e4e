"""Parts of a graph that a network cannot tell apart have equal shares."""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.core.hashing import combine, hash_rows
from lookhops.graphs import Graphs
from lookhops.neighbourhoods import identities

#: Farther than this no difference is looked for.
MOST_HOPS = 32


class Alike:
    """Nodes and edges of the same graph that look the same as far as a network sees.

    By its formula a network gives them equal features. Rounding, and poolings that take the earlier
    of equals, part them for no reason that has to do with the graph: of the atoms of benzene some
    would pull towards an answer and others away from it.

    Args:
        graphs: The graphs.
        hops: How far the network sees.
    """

    def __init__(self, graphs: Graphs, hops: int) -> None:
        told = (_bits(graphs.attributes), _bits(graphs.edge_attributes))
        code = identities(graphs, min(hops, MOST_HOPS), told[0], edge_bins=told[1])[:, -1]
        code = combine(code, graphs.batch.long())
        known = [part.long() for part in (graphs.edge_labels, told[1]) if part is not None]
        kind = torch.cat(known, 1) if known else None
        source, target = code[graphs.source.long()], code[graphs.target.long()]
        edge = combine(combine(source, target), hash_rows(kind, graphs.num_edges, graphs.device))
        self.node, self.edge = (kinds_of(one) for one in (code, edge))

    def of_nodes(self, shares: Tensor) -> Tensor:
        """Shares of the nodes, shape (..., n), each the mean over those that are alike."""
        return means_of_kinds(shares, self.node)

    def of_edges(self, shares: Tensor) -> Tensor:
        """Shares of the edges, shape (..., e), each the mean over those that are alike."""
        return means_of_kinds(shares, self.edge)


def _bits(numbers: Tensor | None) -> Tensor | None:
    """Numbers as whole ones that differ where they do."""
    return None if numbers is None else numbers.double().view(torch.int64)


def kinds_of(codes: Tensor) -> Tensor:
    """Numbers from 0 of the different codes, shape (n)."""
    return torch.unique(codes, return_inverse=True)[1]


def means_of_kinds(values: Tensor, kind: Tensor) -> Tensor:
    """Of each value the mean over those of its kind."""
    if not kind.numel():
        return values
    count = torch.bincount(kind).to(values)
    total = values.new_zeros(*values.shape[:-1], len(count)).index_add(-1, kind, values)
    return (total / count)[..., kind]

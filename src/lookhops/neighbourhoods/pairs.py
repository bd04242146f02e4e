"""Pairs of nodes by how many hops they are apart: what no neighbourhood of a few hops holds."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_array, eye_array, triu
from torch import Tensor

from lookhops.core.hashing import combine
from lookhops.graphs import Graphs
from lookhops.graphs.indexing import stable_argsort, to_offsets
from lookhops.neighbourhoods.counts import count_in_unary


def pair_codes(graphs: Graphs, label: Tensor, hops: int) -> tuple[Tensor, Tensor]:
    r"""The pairs of nodes of each graph that are 1 to :math:`h` hops apart, counted in unary.

    A pair :math:`i < j` at distance :math:`d` is

    .. math::
        \mathrm{mix}\big(g \, (c_i + c_j) + d\big),

    and the :math:`t`-th pair of a kind in a graph is a feature of its own, as for nodes
    (:func:`~lookhops.neighbourhoods.unary_codes`). Edges are walked along in both directions.

    Args:
        graphs: The graphs.
        label: A hash of each node, :math:`c`, int64, shape (n).
        hops: The largest distance, :math:`h`.

    Returns:
        The codes, graph after graph, int64, shape (p), and where each graph's begin, shape (g + 1).
    """
    _, kinds, owner = pair_kinds(graphs, label, hops)
    codes = count_in_unary(kinds[:, None], owner)[:, 0]
    return codes, to_offsets(owner.bincount(minlength=len(graphs)))


def pair_kinds(graphs: Graphs, label: Tensor, hops: int) -> tuple[Tensor, Tensor, Tensor]:
    """The nodes of each pair, shape (p, 2), what kind it is, and its graph, shapes (p).

    Arguments and order are those of :func:`pair_codes`.
    """
    first, second, distance = map(torch.from_numpy, _pairs(graphs, hops))
    owner = graphs.batch.cpu().long()[first]
    order = stable_argsort(owner)
    label = label.cpu()
    kinds = combine((label[first] + label[second])[order], distance[order])
    return torch.stack((first, second), 1)[order], kinds, owner[order]


def _pairs(graphs: Graphs, hops: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The nodes of each pair, the smaller number first, and their distance; nearest pairs first."""
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

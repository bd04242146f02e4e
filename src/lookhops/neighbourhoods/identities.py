"""The identity of what lies within h hops of every node."""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.hashing import combine, hash_rows
from lookhops.graphs import Graphs
from lookhops.graphs.indexing import running_sum


def identities(
    graphs: Graphs,
    hops: int,
    bins: Tensor | None = None,
    edge_labels: bool = True,
    edge_bins: Tensor | None = None,
) -> Tensor:
    r"""The identity of every node's neighbourhood after 0 to :math:`h` hops, shape (n, h + 1).

    These are the colours of the Weisfeiler-Lehman test, as 64-bit hashes in place of running
    numbers, so that a graph never seen before gets the same ones:

    .. math::
        c^0_i = \mathrm{hash}(\mathrm{labels}_i, \mathrm{bins}_i), \qquad
        c^{t+1}_i = \mathrm{mix}\Big(g \, c^t_i + \sum_{j \to i} m^t_{ji}\Big),

    with the message :math:`m_{ji} = c_j`, or :math:`\mathrm{mix}(g \, \mathrm{hash}(\mathrm{edge\
    labels}_{ji}) + c_j)` where edges have labels, and :math:`g` an odd constant. All arithmetic is
    modulo :math:`2^{64}`; the sum does not depend on the order of the neighbours. Two nodes share
    :math:`c^h` if the 1-WL test does not tell them apart in :math:`h` rounds.

    The converse fails only by a collision. Among :math:`m` different neighbourhoods the chance of
    any is about :math:`m^2 / 2^{65}`: three in :math:`10^8` for a million of them. (Neighbours that
    repeat a multiple of :math:`2^r` times count as :math:`64 - r` bits.)

    Args:
        graphs: The graphs, on any device; only edges into a node are looked along.
        hops: How far to look, :math:`h`.
        bins: Whole numbers that count as further labels of the nodes, shape (n, b): numeric
            attributes, binned by :class:`~lookhops.neighbourhoods.Bins`.
        edge_labels: Whether labels of edges count, where there are any.
        edge_bins: Whole numbers that count as further labels of the edges, shape (e, b).
    """
    if hops < 0:
        raise LookHopsError(f"The number of hops is a whole number from 0, not {hops}.")
    nodes, device = graphs.num_nodes, graphs.device
    told = [columns for columns in (graphs.labels, bins) if columns is not None]
    current = hash_rows(torch.cat([c.long() for c in told], 1) if told else None, nodes, device)
    edge_hash = None
    kinds = (graphs.edge_labels if edge_labels else None, edge_bins)
    if said := [columns.long() for columns in kinds if columns is not None]:
        edge_hash = hash_rows(torch.cat(said, 1), graphs.num_edges, device)
    found = [current]
    for _ in range(hops):
        messages = current.index_select(0, graphs.source)
        if edge_hash is not None:
            messages = combine(edge_hash, messages)
        current = combine(current, sum_rows(messages, graphs.row_ptr))
        found.append(current)
    return torch.stack(found, 1)


def sum_rows(values: Tensor, row_ptr: Tensor) -> Tensor:
    """Sums over the segments of a CSR, modulo 2^64.

    Differences of one running sum are exact here, since int64 wraps around; they need no atomics.
    """
    return running_sum(values).index_select(0, row_ptr).diff()

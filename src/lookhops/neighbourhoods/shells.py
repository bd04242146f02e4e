"""The identity of what lies exactly so many hops from every node."""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.hashing import combine, mix
from lookhops.graphs import Graphs
from lookhops.graphs.indexing import pair_keys, stable_argsort
from lookhops.neighbourhoods.identities import sum_rows


def shells(graphs: Graphs, own: Tensor, hops: int) -> Tensor:
    r"""The identity of what lies exactly 1 to :math:`h` hops from every node, shape (n, h).

    Deep neighbourhoods are almost all different, because they hold everything on the way; a shell
    leaves the way out, and recurs. It is a node's own label and the multiset of labels at which the
    walks of :math:`t` steps towards it begin that never turn straight back. In a tree these are the
    nodes at distance :math:`t`; around a ring a walk goes on. With messages along the edges,

    .. math::
        m^1_{ji} = c_j, \qquad s^t_i = \sum_{j \to i} m^t_{ji}, \qquad
        m^{t+1}_{ji} = s^t_j - m^t_{ij},

    where :math:`m_{ij}` is 0 if there is no edge back, the identity is
    :math:`\mathrm{mix}(g \, \mathrm{mix}(c_i + t) + s^t_i)`, modulo :math:`2^{64}` as in
    :func:`~lookhops.neighbourhoods.identities`. Labels of edges do not count.

    Args:
        graphs: The graphs, on any device; only edges into a node are looked along.
        own: What each node is by itself, :math:`c`, shape (n): column 0 of ``identities``.
        hops: How far to look, :math:`h`.
    """
    if hops < 0:
        raise LookHopsError(f"The number of hops is a whole number from 0, not {hops}.")
    source, target = graphs.source.long(), graphs.target.long()
    there, back = (
        pair_keys(*pair, graphs.num_nodes) for pair in ((source, target), (target, source))
    )
    order = stable_argsort(there)
    place = torch.searchsorted(there[order], back).clamp(max=max(len(source) - 1, 0))
    reverse = order[place]
    turns_back = there[reverse] == back
    found = own.new_empty(graphs.num_nodes, hops)
    messages = own[source]
    for hop in range(hops):
        total = sum_rows(messages, graphs.row_ptr)
        found[:, hop] = combine(mix(own + (hop + 1)), total)
        messages = total[source] - torch.where(turns_back, messages[reverse], 0)
    return found

"""Shares of exact neighbourhoods, handed on to the nodes that lie in them."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_array, eye_array
from torch import Tensor

from lookhops.core.hashing import combine
from lookhops.encoding.whole import WholeEncoding, WholeGraphs
from lookhops.explain.alike import kinds_of, means_of_kinds
from lookhops.graphs import Graphs
from lookhops.neighbourhoods import identities
from lookhops.nn.whole import Fingerprint


def neighbourhood_shares(
    table: Tensor, whole: WholeGraphs, learnt: WholeEncoding, slope: Tensor
) -> Tensor:
    r"""What each node's neighbourhood of each size has of the number of its graph, shape (n, h+1).

    .. math::
        \phi_{ih} = \frac{\gamma}{\sqrt{|F_g|}}\, W_{f(i, h)} \cdot s_g

    exactly: the fingerprint is linear, with the slope :math:`s_g` of the graph's number. A
    neighbourhood that the vocabulary does not know has nothing. One that stands in a graph several
    times has several rows, of which none belongs to one place: each place has their mean.

    Args:
        table: The rows :math:`W` of a network's fingerprint.
        whole: The graphs.
        learnt: What the network knows of neighbourhoods.
        slope: Of each graph, shape (g, outputs).
    """
    assert learnt.vocabulary is not None
    codes = whole.codes_with(learnt.bins)
    if not len(learnt.vocabulary):
        return torch.zeros_like(codes, dtype=torch.float64)
    place, known = learnt.vocabulary.to(codes.device).places(codes)
    numbers, attributes = None, whole.graphs.attributes
    if learnt.bins is not None and attributes is not None:
        numbers = learnt.bins(attributes)
    identity = identities(whole.graphs, codes.shape[1] - 1, numbers)
    graph = whole.graphs.batch.long()
    count = slope.new_zeros(len(slope)).index_add(0, graph, known.sum(1).to(slope))
    scale = Fingerprint.GAMMA * count.clamp(min=1).rsqrt()
    own = (scale[:, None] * slope).index_select(0, graph)
    found = torch.zeros_like(known, dtype=torch.float64)
    for hop in range(codes.shape[1]):  # one hop at a time: rows of the table are gathered
        rows = table.index_select(0, place[:, hop]).double()
        found[:, hop] = (rows * own).sum(1) * known[:, hop]
        same = kinds_of(combine(identity[:, hop], graph))
        found[:, hop] = means_of_kinds(found[:, hop], same)
    return found


def over_neighbourhoods(graphs: Graphs, shares: Tensor) -> Tensor:
    r"""Shares of neighbourhoods, in equal parts to the nodes in them, shape (..., n).

    The neighbourhood of node :math:`i` with :math:`h` hops holds the nodes from which a walk of at
    most :math:`h` edges leads to :math:`i`.

    Args:
        graphs: The graphs.
        shares: Of the neighbourhoods with 0, 1, ... hops of each node, shape (..., n, h + 1).
    """
    n = graphs.num_nodes
    value = shares.reshape(-1, n, shares.shape[-1]).permute(2, 1, 0).cpu().numpy()
    links = csr_array(
        (np.ones(graphs.num_edges, np.float32), graphs.source.cpu(), graphs.row_ptr.cpu()),
        shape=(n, n),
    ) + eye_array(n, dtype=np.float32, format="csr")
    inside = csr_array(eye_array(n, dtype=np.float32, format="csr"))
    found = value[0].copy()
    for own in value[1:]:
        inside = csr_array(inside @ links)
        inside.data[:] = 1
        found += inside.T @ (own / np.diff(inside.indptr)[:, None])
    return torch.from_numpy(found.T.copy()).to(shares.device).view(shares.shape[:-1])

"""What a graph is, as one number: equal for equal graphs, however their nodes are numbered."""

from __future__ import annotations

import torch
from torch import Tensor

from lookhops.core.hashing import combine, hash_rows
from lookhops.graphs import Graphs
from lookhops.graphs.blocks import graph_ranges
from lookhops.graphs.choosing import slice_of
from lookhops.neighbourhoods.identities import identities, sum_rows

#: Hops after which neighbourhoods are compared.
HOPS = 8
#: Nodes and edges that are looked at together.
AT_ONCE = 1 << 24


def content_hashes(graphs: Graphs) -> Tensor:
    r"""One 64-bit hash a graph, shape (g), of its structure and of all features of nodes and edges.

    .. math::
        \mathrm{hash}\Big(\mathrm{nodes}, \mathrm{edges}, \sum_i c^8_i\Big)

    The identities :math:`c^8` of the nodes (:func:`~lookhops.neighbourhoods.identities`) do not
    depend on how nodes are numbered, nor does their sum. Two graphs with the same hash are the same
    as far as eight rounds of the Weisfeiler-Lehman test can tell. Attributes count by their bits in
    single precision.
    """
    spans = graph_ranges(graphs, AT_ONCE)
    found = [_hashes(slice_of(graphs, *span)) for span in spans]
    return torch.cat(found) if found else _hashes(graphs)


def _hashes(graphs: Graphs) -> Tensor:
    attributes, edge_attributes = _bits(graphs.attributes), _bits(graphs.edge_attributes)
    found = identities(graphs, HOPS, attributes, edge_bins=edge_attributes)
    sums = sum_rows(found[:, HOPS].contiguous(), graphs.node_ptr)
    sizes = torch.stack((graphs.nodes_per_graph, graphs.edge_ptr.diff()), 1)
    return combine(hash_rows(sizes, len(graphs), graphs.device), sums)


def _bits(attributes: Tensor | None) -> Tensor | None:
    """Numbers as the whole numbers with the same 32 bits; the two zeros are one."""
    return None if attributes is None else (attributes.float() + 0.0).view(torch.int32).long()

"""The identity of what lies within h hops of a node, exactly h hops away, and of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.core.hashing import combine, hash_rows, mix
from lookhops.graphs import Graphs
from lookhops.graphs.choosing import graph_ranges, slice_of
from lookhops.graphs.indexing import pair_keys, running_sum, stable_argsort

#: Hops after which the hash of a graph compares neighbourhoods.
CONTENT_HOPS = 8
#: Nodes and edges that are hashed together.
AT_ONCE = 1 << 24


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
    :math:`c^h` if the 1-WL test does not distinguish them in :math:`h` rounds.

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
    current = hash_rows(columns_of(graphs.nodes.labels, bins), nodes, device)
    edge_hash, kinds = None, columns_of(graphs.edges.labels if edge_labels else None, edge_bins)
    if kinds is not None:
        edge_hash = hash_rows(kinds, graphs.num_edges, device)
    found = [current]
    for _ in range(hops):
        messages = current.index_select(0, graphs.source)
        if edge_hash is not None:
            messages = combine(edge_hash, messages)
        current = combine(current, sum_rows(messages, graphs.row_ptr))
        found.append(current)
    return torch.stack(found, 1)


def columns_of(*parts: Tensor | None) -> Tensor | None:
    """The columns of those parts that are there, side by side."""
    known = [part.long() for part in parts if part is not None]
    return torch.cat(known, 1) if known else None


def sum_rows(values: Tensor, row_ptr: Tensor) -> Tensor:
    """Sums over the segments of a CSR, modulo 2^64.

    Differences of one running sum are exact here, since int64 wraps around; they need no atomics.
    """
    return running_sum(values).index_select(0, row_ptr).diff()


def shells(graphs: Graphs, start: Tensor, hops: int) -> Tensor:
    r"""The identity of what lies exactly 1 to :math:`h` hops from every node, shape (n, h).

    Deep neighbourhoods are almost all different, because they hold everything on the way; a shell
    leaves the way out, and recurs. It is a node's own label and the multiset of labels at which the
    walks of :math:`t` steps towards it begin that never turn straight back. In a tree these are the
    nodes at distance :math:`t`; around a ring a walk continues. With messages along the edges,

    .. math::
        m^1_{ji} = c_j, \qquad s^t_i = \sum_{j \to i} m^t_{ji}, \qquad
        m^{t+1}_{ji} = s^t_j - m^t_{ij},

    where :math:`m_{ij}` is 0 if there is no edge back, the identity is
    :math:`\mathrm{mix}(g \, \mathrm{mix}(c_i + t) + s^t_i)`, modulo :math:`2^{64}` as in
    :func:`~lookhops.neighbourhoods.identities`. Labels of edges do not count.

    Args:
        graphs: The graphs, on any device; only edges into a node are looked along.
        start: What each node is by itself, :math:`c`, shape (n): column 0 of ``identities``.
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
    found = start.new_empty(graphs.num_nodes, hops)
    messages = start[source]
    for hop in range(hops):
        total = sum_rows(messages, graphs.row_ptr)
        found[:, hop] = combine(mix(start + (hop + 1)), total)
        messages = total[source] - torch.where(turns_back, messages[reverse], 0)
    return found


def content_hashes(graphs: Graphs, at_once: int = AT_ONCE) -> Tensor:
    r"""One 64-bit hash a graph, shape (g), of its structure and of all features of nodes and edges.

    .. math::
        \mathrm{hash}\Big(\mathrm{nodes}, \mathrm{edges}, \sum_i c^8_i\Big)

    Neither the identities :math:`c^8` of the nodes (:func:`~lookhops.neighbourhoods.identities`)
    nor their sum depend on how nodes are numbered. Eight rounds of the Weisfeiler-Lehman test do
    not distinguish two graphs with the same hash. Attributes count by their bits in single
    precision.
    """
    spans = graph_ranges(graphs, at_once)
    found = [_hashes(slice_of(graphs, *span)) for span in spans]
    return torch.cat(found) if found else _hashes(graphs)


def _hashes(graphs: Graphs) -> Tensor:
    attributes, edge_attributes = bits_of(graphs.nodes.numbers), bits_of(graphs.edges.numbers)
    found = identities(graphs, CONTENT_HOPS, attributes, edge_bins=edge_attributes)
    sums = sum_rows(found[:, CONTENT_HOPS].contiguous(), graphs.node_ptr)
    sizes = torch.stack((graphs.nodes_per_graph, graphs.edge_ptr.diff()), 1)
    return combine(hash_rows(sizes, len(graphs), graphs.device), sums)


def bits_of(attributes: Tensor | None) -> Tensor | None:
    """Numbers as the whole numbers with the same 32 bits; the two zeros are one."""
    return None if attributes is None else (attributes.float() + 0.0).view(torch.int32).long()


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of each column of attributes, fitted on a training part; blanks (NaN) are one more.

    Args:
        edges: For each column the inner edges of its bins, sorted: a value is in the bin whose
            number is how many edges are not above it.
    """

    edges: tuple[Tensor, ...]

    @classmethod
    def learn(cls, attributes: Tensor, count: int) -> Bins:
        """At most ``count`` bins a column, each with about as many of the values (n, a)."""
        edges = []
        for column in attributes.unbind(1):
            values = column[~column.isnan()].sort().values
            inner = torch.arange(1, count, device=values.device) * values.numel() // count
            # An edge at the smallest value would leave the first bin empty.
            distinct = values[inner].unique() if values.numel() else values
            edges.append(distinct[distinct > values[:1]])
        return cls(tuple(edges))

    def __call__(self, attributes: Tensor) -> Tensor:
        """The bin of each value, int64, same shape (n, a)."""
        columns = []
        for column, edges in zip(attributes.T.contiguous(), self.edges, strict=True):
            known = edges.to(column)  # the bin is how many of these are not above the value
            if torch.compiler.is_exporting():
                number = (known <= column[:, None]).sum(1)
            else:
                number = torch.bucketize(column, known, right=True)
            columns.append(torch.where(column.isnan(), len(edges) + 1, number))
        return torch.stack(columns, 1) if columns else attributes.long()

    def tensors(self) -> dict[str, Tensor]:
        """What a model folder keeps of them."""
        sizes = torch.tensor([len(edges) for edges in self.edges])
        return {"edges": torch.cat(self.edges), "sizes": sizes}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Bins:
        """The bins that :meth:`tensors` gave."""
        if int(tensors["sizes"].sum()) != len(tensors["edges"]):
            raise LookHopsError("'bins.sizes' does not divide 'bins.edges'")
        return cls(tensors["edges"].split(tensors["sizes"].tolist()))

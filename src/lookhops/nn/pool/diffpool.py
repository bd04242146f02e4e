"""DiffPool, the baseline that learns soft clusters."""

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.graphs.indexing import to_offsets
from lookhops.nn.conv.gcn import GCN
from lookhops.nn.pool.base import Pooling
from lookhops.ops import Adjacency, Pattern
from lookhops.ops.batch import GraphBatch, Pooled
from lookhops.ops.pattern import group

#: Nodes of one graph that are multiplied at once.
PIECE = 64
#: The most clusters of a graph.
MOST_CLUSTERS = 64


class DiffPool(Pooling):
    r"""The `differentiable pooling <https://arxiv.org/abs/1806.08804>`_ of Ying et al.

    .. math::
        S = \mathrm{softmax}\bigl(\mathrm{GCN}(x, A)\bigr), \qquad x' = S^\top x, \qquad
        A' = S^\top A S

    and each graph adds to the loss

    .. math::
        \frac{\| A - S S^\top \|_F}{n^2} - \frac{1}{n} \sum_{i,c} S_{ic} \log S_{ic}

    so that linked nodes share clusters and a node belongs to few: what PyG's ``dense_diff_pool``
    computes for a graph alone.

    What the paper leaves to choose, and what is done here: :math:`x` is the output of the network's
    convolution, which stands for the paper's embedding GNN, and one GCN for its assignment GNN,
    one for each layer. A graph of n nodes has :math:`\lceil \rho n \rceil` clusters, as many
    as other poolings keep nodes, but **never more than 64**: the dense :math:`A'` of a graph with
    5,748 nodes would have 27 million entries. Neither :math:`S S^\top` nor anything else of
    :math:`n^2` entries is made: :math:`\| A - S S^\top \|_F^2 = \| A \|_F^2 -
    2\, \mathrm{tr}\, S^\top A S + \| S^\top S \|_F^2`. Cluster c takes the place of the c-th node.

    Args:
        in_channels: Channels of the input, :math:`d`.
        ratio: Clusters of a graph over its nodes, :math:`\rho`.
        clusters: The most clusters of a graph.
    """

    name = "diffpool"
    fixed_shapes = False
    shared = False

    def __init__(self, in_channels: int, ratio: float = 0.5, clusters: int = MOST_CLUSTERS) -> None:
        super().__init__(in_channels, ratio)
        if clusters < 1:
            raise LookHopsError(f"DiffPool needs at least one cluster, not {clusters}.")
        self.clusters = clusters
        self.assign = GCN(in_channels, clusters)

    def answer(self, batch: GraphBatch) -> Pooled:
        count = self._counts(batch)
        width = max(int(count.max()), 1) if count.numel() else 1
        share = self.assignment(batch, count, width)
        x = batch.x.flatten(0, -2)
        around = batch.adjacency.times(None).links(share.dtype)(share)
        sums = graph_products(share, torch.cat((x.to(share.dtype), around, share), 1), batch)
        merged, links, overlap = sums.split((x.shape[1], width, width), dim=2)

        place = batch.positions
        kept = (place >= 0) & (place < count.index_select(0, batch.graph))
        node = kept.nonzero().flatten()
        number = batch.graph.index_select(0, node) * width + place.index_select(0, node)
        home = torch.zeros(links.shape[:2].numel(), dtype=torch.long, device=x.device)
        home = home.scatter(0, number, node)  # the node whose place each cluster takes
        pooled = torch.zeros_like(x, dtype=share.dtype)
        pooled = pooled.index_copy(0, node, merged.flatten(0, 1).index_select(0, number))
        adjacency = _links(links, count.index_select(0, batch.graph) * kept, number, home, batch)
        strongest = share.detach().max(1)
        into = home.index_select(0, batch.graph * width + strongest.indices)
        apart = into.index_select(0, batch.adjacency.source)
        apart = apart != into.index_select(0, batch.adjacency.target)
        x, loss = pooled.view(batch.x.shape).to(batch.x.dtype), _loss(batch, share, links, overlap)
        return Pooled(strongest.values, kept, apart, x, adjacency, into, loss)

    def assignment(self, batch: GraphBatch, count: Tensor, width: int) -> Tensor:
        """The shares S of nodes in their graph's clusters, shape (n, width); the dead have none."""
        raw = self.assign(batch.x, batch.adjacency).flatten(0, -2)[:, :width]
        raw = raw.to(torch.promote_types(raw.dtype, torch.float32))
        column = torch.arange(width, device=raw.device)
        there = column < count.index_select(0, batch.graph).unsqueeze(1)
        share = raw.masked_fill(~there, torch.finfo(raw.dtype).min).softmax(1)
        return share if batch.alive is None else share * batch.alive.unsqueeze(1)

    def _counts(self, batch: GraphBatch) -> Tensor:
        """How many clusters each graph has."""
        wanted = (batch.sizes.double() * self.ratio - 1e-7).ceil().long()
        return wanted.clamp(max=self.clusters)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, clusters={self.clusters}"


def _links(
    links: Tensor, entries: Tensor, number: Tensor, home: Tensor, batch: GraphBatch
) -> Adjacency:
    """The dense links of each graph, shape (graphs, width, width), as edges between nodes.

    The row of each node has so many ``entries``; cluster ``number`` takes the place of node
    ``home``.
    """
    width = links.shape[2]
    each = entries[entries > 0]
    cluster = torch.repeat_interleave(number, each)
    start = torch.repeat_interleave(each.cumsum(0) - each, each)
    column = torch.arange(len(cluster), device=cluster.device) - start
    source = home.index_select(0, cluster // width * width + column)
    value = links.flatten().index_select(0, cluster * width + column)
    return Adjacency(
        Pattern(to_offsets(entries).int(), source.int()), value, symmetric=batch.adjacency.symmetric
    )


def _loss(batch: GraphBatch, share: Tensor, links: Tensor, overlap: Tensor) -> Tensor:
    """What each graph adds to the loss, shape (graphs)."""
    adjacency, graphs = batch.adjacency, batch.num_graphs
    weight = share.new_ones(adjacency.num_edges)
    if adjacency.weight is not None:
        weight = adjacency.weight.to(share.dtype)
    # Padding edges lie after the last row's end.
    real = torch.arange(adjacency.num_edges, device=weight.device) < adjacency.pattern.row_ptr[-1]
    edges = batch.graph.index_select(0, adjacency.target)
    squares = share.new_zeros(graphs).index_add(0, edges, weight.square() * real)
    inside = links.diagonal(dim1=1, dim2=2).sum(1)
    distance = squares - 2 * inside + overlap.square().sum((1, 2))
    nodes = batch.sizes.clamp(min=1)
    entropy = -(share * (share + 1e-15).log()).sum(1)
    entropy = share.new_zeros(graphs).index_add(0, batch.graph, entropy)
    return distance.clamp(min=1e-12).sqrt() / nodes.square() + entropy / nodes


def graph_products(a: Tensor, b: Tensor, batch: GraphBatch) -> Tensor:
    r""":math:`\sum_i a_i b_i^\top` over the nodes of each graph, shape (graphs, p, q).

    Nodes are taken in pieces of one graph each, padded to one length: graphs of very different
    sizes take little more memory than they have nodes.
    """
    start, order = group(batch.graph, batch.num_graphs)
    order, size = order.long(), start.long().diff()
    graph = batch.graph.index_select(0, order)
    place = torch.arange(len(order), device=order.device) - start.long().index_select(0, graph)
    pieces = (size + PIECE - 1) // PIECE
    first = pieces.cumsum(0) - pieces
    slot = first.index_select(0, graph) * PIECE + place
    total = int(pieces.sum())

    def padded(x: Tensor) -> Tensor:
        zeros = x.new_zeros(total * PIECE, x.shape[1])
        found = zeros.index_copy(0, slot, x.index_select(0, order))
        return found.view(total, PIECE, x.shape[1])

    owner = torch.repeat_interleave(pieces, output_size=total)
    products = torch.bmm(padded(a).mT, padded(b))
    zeros = products.new_zeros(batch.num_graphs, *products.shape[1:])
    return zeros.index_add(0, owner, products)

"""HGP-SL, the baseline that learns new edges between kept nodes."""

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from lookhops.nn.pool.base import Pooling
from lookhops.nn.pool.ipool import information_score, information_size
from lookhops.ops import Adjacency, Pattern, SparseMatrix
from lookhops.ops.batch import GraphBatch, Pooled
from lookhops.ops.clusters import links_between
from lookhops.ops.dense import linear_scores
from lookhops.ops.ranking import edges_between, keep_top
from lookhops.ops.softmax import edge_scores, sparsemax


class HGPSL(Pooling):
    r"""The `pooling with structure learning <https://arxiv.org/abs/1911.05954>`_ of Zhang et al.

    .. math::
        w_i &= \bigl\| x_i - (D^{-1} A x)_i \bigr\|_1, \qquad x'_i = x_i, \qquad
        V' = \mathrm{top}_{\lceil \rho n \rceil}\{w_i\}

        A'_{ij} &= \underset{j}{\mathrm{sparsemax}}\,\bigl(\mathrm{LeakyReLU}(
        a \cdot [x_i \| x_j]) + \lambda A_{ij}\bigr), \qquad i, j \in V'

    Nodes are kept for what their neighbours do not tell of them. The edges between kept nodes are
    then learned: each node attends to others, edges that were there have a start of
    :math:`\lambda`, and :math:`\mathrm{sparsemax}`, which gives zero to all but a few, says which
    there are. The score only ranks; the attention learns through the weights of the new edges.

    Where the paper and the authors' code differ, and what is done here: the score divides by
    degrees as the paper prints it (the code takes :math:`D^{-1/2} A D^{-1/2}`); the slope of the
    LeakyReLU is 0.2 and :math:`\lambda = 1`, as in the code; a node attends to the kept nodes
    within three hops and to itself, the code's way for large graphs (the paper prints all pairs,
    some 33 million for the largest graph of DD). Row i of :math:`A'` holds the edges into node i.

    Args:
        in_channels: Channels of the input, :math:`d`.
        ratio: The fraction :math:`\rho` of each graph's nodes to keep.
        strength: :math:`\lambda`, the start of edges that were there.
    """

    name = "hgpsl"
    fixed_shapes = False

    def __init__(self, in_channels: int, ratio: float = 0.5, strength: float = 1.0) -> None:
        super().__init__(in_channels, ratio)
        self.strength = strength
        self.attention = nn.Parameter(torch.empty(2, in_channels))  # of the target, of the source
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.attention.data.view(1, -1))  # the two halves as one row

    def answer(self, batch: GraphBatch) -> Pooled:
        x, adjacency = batch.x, batch.adjacency
        walk = adjacency.random_walk(x.dtype)
        score = information_score(x, walk).flatten()
        node = keep_top(batch, score, self.ratio, information_size(x, walk).flatten())
        stays = edges_between(batch, node)
        stays = stays if adjacency.present is None else stays & adjacency.present
        return Pooled(score, node, stays, x, self.learn_edges(batch, node, stays))

    def learn_edges(self, batch: GraphBatch, node: Tensor, stays: Tensor) -> Adjacency:
        """The edges among the nodes of the mask ``node``; ``stays`` are those that were there."""
        adjacency = batch.adjacency
        around = SparseMatrix(adjacency.with_loops.select(adjacency.counted_with_loops))
        links = links_between(around, None, node, batch)  # within three hops
        kept = node.index_select(0, links.with_loops.row)  # dropped nodes have loops alone
        near = links.with_loops.select(kept)
        start = _weights_at(links, adjacency, stays).index_select(0, kept.nonzero().flatten())
        to_target, to_source = linear_scores(batch.x, self.attention).unbind(-2)
        score = edge_scores(to_source.flatten(), to_target.flatten(), near)
        score = leaky_relu(score, 0.2) + self.strength * start
        share = sparsemax(score, near, self._sizes(batch.x, start, near))
        there = share.detach() > 0  # what rounding leaves of zero is no edge
        return Adjacency(near.select(there), share.index_select(0, there.nonzero().flatten()))

    @torch.no_grad()
    def _sizes(self, x: Tensor, start: Tensor, near: Pattern) -> Tensor:
        """How large the numbers are from which each share is computed, shape (e)."""
        to_target, to_source = linear_scores(x.abs(), self.attention.abs()).unbind(-2)
        terms = edge_scores(to_source.flatten(), to_target.flatten(), near)
        return terms + (self.strength * start).abs() + 1  # and shares add up to one


def _weights_at(links: Adjacency, adjacency: Adjacency, stays: Tensor) -> Tensor:
    """The weight of the edge at each entry of ``links.with_loops``, zero for none, shape (e + n).

    There is a link, in the order of target and source, for each edge that ``stays`` and is no loop.
    """
    size = links.num_nodes
    edge = stays.nonzero().flatten()
    source, target = (ends.index_select(0, edge).long() for ends in adjacency.edge_index)
    known = links.target.long() * size + links.source
    at = torch.searchsorted(known, target * size + source)
    # Loops stand at the start of every row, each link behind as many of them as its row's number.
    place = torch.where(source == target, links.pattern.row_ptr.index_select(0, target), at + 1)
    weight = adjacency.weight
    weight = torch.ones_like(edge, dtype=torch.float32) if weight is None else weight[edge]
    zeros = weight.new_zeros(links.num_edges + size)
    return zeros.index_add(0, place + target, weight)

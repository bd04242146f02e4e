"""Edge pooling, the baseline that merges nodes two by two."""

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.nn.linear import Linear
from lookhops.nn.pool.base import Edges, Maybe, Pooling, PyGPooled
from lookhops.ops import Adjacency
from lookhops.ops.batch import GraphBatch, Pooled
from lookhops.ops.contraction import (
    asks_no_device,
    matched_nodes,
    merge_edges,
    merge_nodes,
    scores_of_taken,
)
from lookhops.ops.dense import linear_scores
from lookhops.ops.product import sum_into
from lookhops.ops.softmax import edge_scores, softmax


class Edge(Pooling):
    r"""The `edge contraction pooling <https://arxiv.org/abs/1905.10990>`_ of Diehl et al.

    .. math::
        s_{ji} = \tfrac12 + \underset{j \in N(i)}{\mathrm{softmax}}
        \bigl(\theta \cdot [x_j \| x_i] + t\bigr), \qquad x'_{ij} = s_{ji} (x_i + x_j)

    Edges are taken by falling score, each unless one of its ends is taken already, and the two ends
    become one node; a self-loop takes its node alone, and a node that no edge takes keeps its
    features. Edges between two merged nodes become one, and those inside one a self-loop: PyG's
    ``EdgePooling``. Of scores that are equal but for rounding the edge that was given first goes
    first. An edge of weight zero is no edge, and a weight or factor multiplies the exponential in
    the softmax; where edges that become one have weights or features, these are summed, and of
    their factors the mean is taken.

    The parts of :math:`x_i` and :math:`t` are the same for all edges into a node, and cancel: they
    are parameters as in PyG, but nothing is computed from them. So nodes with the same neighbours
    have edges of exactly the same scores, and rounding does not decide between them.

    A merged node stands where the first of its two nodes stood, so nodes keep their order, which
    PyG's do not.

    Args:
        in_channels: Channels of the input, :math:`d`.

    Shapes:
        - x :math:`(n, d)`, edge_index :math:`(2, e)`, edge_attr :math:`(e, \ldots)` *(optional)*,
          batch :math:`(n)` *(optional)*
        - output as PyG's other poolings: x, edge_index, edge_attr, batch, perm, score, where perm
          is the first node of each merged one and score that of the edge that was taken, or one
    """

    name = "edge"

    def __init__(self, in_channels: int) -> None:
        super().__init__(in_channels)
        self.ends = Linear(2 * in_channels, 1)

    @property
    def fixed_shapes(self) -> bool:  # type: ignore[override]
        """Not where a GPU lacks Triton: without its kernel every round of the matching asks it."""
        return asks_no_device()

    def score(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        """The score s of each edge, shape (e)."""
        of_source = self.ends.weight[..., : self.in_channels]
        raw = edge_scores(linear_scores(x, of_source).flatten(), None, adjacency.pattern)
        value = None
        if adjacency.weighted or adjacency.factor is not None:
            value = adjacency.edge_values(torch.promote_types(raw.dtype, torch.float32))
        return softmax(raw, adjacency.pattern, adjacency.present, value) + 0.5

    def pool(self, batch: GraphBatch, masked: bool = False) -> tuple[GraphBatch, Pooled]:
        answer = self._contract(batch, masked)
        return batch.pooled(answer, masked), answer

    def forward(
        self, x: Tensor, edge_index: Edges, edge_attr: Maybe = None, batch: Maybe = None
    ) -> PyGPooled:
        """Pool as PyG's other poolings do; arguments as for :class:`~lookhops.nn.NodePooling`."""
        given = self._batch(x, edge_index, batch)
        if edge_attr is not None and edge_attr.shape[0] != given.adjacency.num_edges:
            raise LookHopsError(
                f"There are {given.adjacency.num_edges} edges but {edge_attr.shape[0]} rows of "
                "edge_attr; batch is the fourth argument."
            )
        made, pooled = self.pool(given)
        if edge_attr is not None:
            if not isinstance(edge_index, Adjacency):  # whose edges stand in its own order
                edge_attr = edge_attr[given.adjacency.order]
            assert pooled.edge_cluster is not None
            edge_attr = sum_into(edge_attr, pooled.edge_cluster, made.adjacency.num_edges)
        perm = pooled.node.nonzero().flatten()
        edges = made.adjacency.edge_index
        return made.x, edges, edge_attr, made.graph, perm, pooled.score[perm]

    def _contract(self, batch: GraphBatch, masked: bool) -> Pooled:
        adjacency, x = batch.adjacency, batch.x
        score = self.score(x, adjacency)
        bounds = batch.bounds if masked else None  # what PyG users give may stand in any order
        partner, taken = matched_nodes(score.detach(), adjacency, bounds)
        gate = scores_of_taken(score, taken)
        node = torch.arange(adjacency.num_nodes, device=x.device)
        cluster = torch.minimum(node, partner)
        stays = cluster == node if batch.alive is None else (cluster == node) & batch.alive
        score = gate.index_select(0, cluster)
        row, number = node, cluster
        if not masked and batch.alive is None:  # of the nodes that stay alone
            row = batch.rows(stays)
            number = (stays.cumsum(0) - 1).index_select(0, cluster)
            partner, gate = partner.index_select(0, row), gate.index_select(0, row)
        merged = merge_edges(adjacency, number, row.numel(), masked)
        member = torch.stack((row, partner), dim=1)
        alone = stays.index_select(0, row)
        there = torch.stack((alone, alone & (partner > row)), dim=1)
        merged_x = merge_nodes(x.flatten(0, -2), gate.to(x.dtype), member, there, number)
        return Pooled(
            score,
            stays,
            merged.first,
            merged_x.view(*x.shape[:-2], -1, x.shape[-1]),
            merged.adjacency,
            cluster,
            edge_cluster=merged.number,
        )

    def extra_repr(self) -> str:
        return f"{self.in_channels}"

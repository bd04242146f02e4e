"""ASAP pooling, the baseline that keeps neighbourhoods."""

import torch
from torch import Tensor

from lookhops.nn.linear import Linear
from lookhops.nn.pool.base import Edges, Maybe, Pooling, PyGPooled
from lookhops.nn.pool.topk import Direction
from lookhops.ops import Pattern, SparseMatrix
from lookhops.ops.batch import GraphBatch, Pooled
from lookhops.ops.dense import linear_scores, scores_beside
from lookhops.ops.gate import gate
from lookhops.ops.neighbour_max import neighbour_max
from lookhops.ops.neighbourhoods import Neighbourhoods
from lookhops.ops.ranking import edges_between, keep_top
from lookhops.ops.softmax import attention


class ASAP(Pooling):
    r"""The `structure aware pooling <https://arxiv.org/abs/1911.07979>`_ of Ranjan et al.

    Each node i represents its neighbourhood :math:`N_i`, the sources of its edges and itself:

    .. math::
        q_i &= W \max_{j \in N_i} x_j + c, \qquad
        S_{ij} = \underset{j \in N_i}{\mathrm{softmax}}\,
        \mathrm{LeakyReLU}\bigl(\theta \cdot [q_i \| x_j] + t\bigr), \qquad
        h_i = \textstyle\sum_j S_{ij} x_j

        w_i &= \mathrm{sigmoid}\Bigl(\textstyle\sum_{j \in N_i}
        (\theta_1 \cdot h_j + t_1 - \theta_2 \cdot h_i) + \theta_3 \cdot h_i + t_3\Bigr), \qquad
        x'_i = w_i h_i

    Of each graph it keeps the :math:`\lceil \rho n \rceil` neighbourhoods of highest
    :math:`\pm w_i` (of equal ones the first, no more, so that their links find room), and links two
    of them where an edge or a shared node does, :math:`A' = S (A + I) S^\top` without its diagonal:
    PyG's ``ASAPooling``, with its sign as a parameter. Where edges have no weights the
    new ones have none either; where they have factors :math:`f`, a new one has the mean of those
    that it stands for, :math:`S (f \odot A + I) S^\top / A'`.

    Args:
        in_channels: Channels of the input, :math:`d`.
        ratio: The fraction :math:`\rho` of each graph's nodes to keep.

    Shapes:
        - x :math:`(n, d)`, edge_index :math:`(2, e)`, edge_weight :math:`(e)` *(optional)*,
          batch :math:`(n)` *(optional)*
        - output as PyG's other poolings: x, edge_index, edge_weight, batch, perm, score
    """

    name = "asap"
    makes_links = True

    def __init__(self, in_channels: int, ratio: float = 0.5) -> None:
        super().__init__(in_channels, ratio)
        self.query = Linear(in_channels, in_channels)
        self.attention = Linear(2 * in_channels, 1)
        self.neighbours = Linear(in_channels, 1)  # theta_1
        self.against = Linear(in_channels, 1, bias=False)  # theta_2
        self.own = Linear(in_channels, 1)  # theta_3
        self.sign = Direction(1)

    def attend(self, x: Tensor, pattern: Pattern) -> tuple[SparseMatrix, Tensor]:
        """The shares S of the nodes in each neighbourhood, and what these carry, h = S x."""
        of_query, of_node = self.attention.weight.chunk(2, dim=-1)
        x, node = scores_beside(x, of_node)
        highest, x = (each.view_as(x) for each in neighbour_max(pattern, x.flatten(0, -2)))
        # theta . (W m + c) is (theta W) . m + theta . c: one number a node, and no (n, d) query.
        constant = of_query @ self.query.bias.unsqueeze(-1) + self.attention.bias.unsqueeze(-1)
        query = linear_scores(highest, of_query @ self.query.weight) + constant
        members = SparseMatrix(pattern, attention(node.flatten(), query.flatten(), pattern))
        return members, members(x)

    def fitness(self, h: Tensor, pattern: Pattern) -> tuple[Tensor, Tensor]:
        """The score w of each neighbourhood, shape (..., n), and h again."""
        parts = (self.neighbours.weight, self.against.weight, self.own.weight)
        h, scores = scores_beside(h, torch.cat(parts, dim=-2))
        neighbours, against, own = scores.unbind(-2)
        links = SparseMatrix(pattern, symmetric=pattern.mirrored)
        around = links((neighbours + self.neighbours.bias).unsqueeze(-1))
        size = pattern.row_ptr.diff().view(against.shape)
        return torch.sigmoid(around.squeeze(-1) - size * against + own + self.own.bias), h

    def answer(self, batch: GraphBatch) -> Pooled:
        near, adjacency = Neighbourhoods(batch), batch.adjacency
        members, h = self.attend(batch.x, near.pattern)
        fitness, h = self.fitness(h, near.pattern)
        node = keep_top(batch, self._rank(fitness), self.ratio, exact=True)
        links = near.links(members, node, self.ratio)
        stays = edges_between(batch, node) & ~adjacency.is_loop
        stays = stays if adjacency.present is None else stays & adjacency.present
        x = gate(h, fitness * node.view(fitness.shape), normalize=False)
        extent = None if batch.extent is None else batch.extent.kept(self.ratio)
        return Pooled(fitness.flatten(), node, stays, x, links, extent=extent, zeroed=True)

    def forward(
        self, x: Tensor, edge_index: Edges, edge_weight: Maybe = None, batch: Maybe = None
    ) -> PyGPooled:
        """Pool as PyG's other poolings do; arguments as for :class:`~lookhops.nn.NodePooling`."""
        x, edges, weight, graph, perm, score = super().forward(x, edge_index, edge_weight, batch)
        order = self._rank(score).argsort(descending=True, stable=True)
        order = order.index_select(0, graph.index_select(0, order).argsort(stable=True))
        number = torch.empty_like(order).scatter(0, order, torch.arange(len(order)).to(order))
        return x[order], number[edges], weight, graph[order], perm[order], score[order]

    def _rank(self, fitness: Tensor) -> Tensor:
        """What neighbourhoods are chosen by, flat."""
        return torch.tanh(self.sign(fitness.unsqueeze(-1))).flatten()

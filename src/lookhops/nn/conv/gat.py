"""GAT, the baseline that weighs its neighbours."""

from math import prod

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from lookhops.nn.conv.base import Convolution
from lookhops.nn.linear import Linear
from lookhops.ops import Adjacency, SparseMatrix
from lookhops.ops.dense import linear_scores
from lookhops.ops.softmax import edge_scores, softmax


class GAT(Convolution):
    r"""The graph attention of `Veličković et al. <https://arxiv.org/abs/1710.10903>`_.

    .. math::
        z = x W, \qquad
        \alpha_{ij} = \underset{j \in N(i) \cup \{i\}}{\mathrm{softmax}}
        \mathrm{LeakyReLU}\bigl(a_s \cdot z_j + a_t \cdot z_i\bigr), \qquad
        x'_i = \sum_{j \in N(i) \cup \{i\}} \alpha_{ij} z_j + b

    for each head, the heads side by side: PyG's ``GATConv``, with its slope of 0.2 and its
    initialisation. An edge's weight and factor multiply its exponential in the softmax, so that an
    edge of weight zero is no edge.

    Args:
        in_channels: Channels of the input, :math:`d`.
        out_channels: Channels of one head, :math:`d'`.
        heads: Number of heads, :math:`h`.

    Shapes:
        - x :math:`(\ldots, n, d)`, edge_index :math:`(2, e)`, edge_weight :math:`(e)` *(optional)*
        - output :math:`(\ldots, n, h d')`
    """

    name = "gat"
    reads_k = False

    def __init__(self, in_channels: int, out_channels: int, heads: int = 1) -> None:
        super().__init__(in_channels, out_channels)
        self.heads = self._count("heads", heads)
        self.project = Linear(in_channels, heads * out_channels, bias=False)
        self.attention = nn.Parameter(torch.empty(2, heads, out_channels))  # a_s, a_t
        self.bias = nn.Parameter(torch.empty(heads * out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.project.weight)
        for attention in self.attention:
            nn.init.xavier_uniform_(attention)
        nn.init.zeros_(self.bias)

    def convolve(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        z = self.project(x)
        parts = zip(z.split(self.out_channels, -1), self.attention.unbind(-2), strict=True)
        heads = [_attend(part, attention.to(z.dtype), adjacency) for part, attention in parts]
        return _join(heads, dim=-1) + self.bias.to(z.dtype).unsqueeze(-2)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}, heads={self.heads}"


def _attend(z: Tensor, attention: Tensor, adjacency: Adjacency) -> Tensor:
    """One head: z (..., n, d') and its a_s, a_t (..., 2, d')."""
    pattern, counted = adjacency.with_loops, adjacency.counted_with_loops
    # Slices that share the adjacency differ in attention: each takes its own product.
    shape = (prod(z.shape[:-1]) // pattern.size if pattern.size else 1, pattern.size)
    source, target = (end.reshape(shape) for end in linear_scores(z, attention).unbind(-2))
    slices, value = [], adjacency.values_with_loops(torch.promote_types(z.dtype, torch.float32))
    for number, part in enumerate(z.reshape(*shape, z.shape[-1])):
        score = leaky_relu(edge_scores(source[number], target[number], pattern), 0.2)
        slices.append(SparseMatrix(pattern, softmax(score, pattern, counted, value))(part))
    return _join(slices, dim=0).view(z.shape)


def _join(parts: list[Tensor], dim: int) -> Tensor:
    """Concatenate, without a copy where there is nothing to join."""
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim)

"""LookHops pooling: nodes scored by their anchors, features on the sphere, edges by difference."""

from math import sqrt

import torch
from torch import Tensor, nn

from lookhops.core.errors import LookHopsError
from lookhops.nn.pool.base import GivenAnchors, NodePooling, check_ratio
from lookhops.ops import Adjacency, Anchors, chebyshev
from lookhops.ops.anchors import ACTIVATIONS
from lookhops.ops.batch import GraphBatch
from lookhops.ops.ranking import top_of_each


class LookHopsPooling(NodePooling):
    r"""LookHops pooling.

    .. math::
        w_i &= \sigma\bigl(\theta \cdot [z_i^0 \| \ldots \| z_i^k] + t\bigr)

        x'_i &= w_i \, z'_i / \|z'_i\|

        V' &= \mathrm{top}_{\lceil \rho_v n \rceil}\{w_i\}

        E' &= \mathrm{top}_{\lceil \rho_e m \rceil}\{\|x'_i - x'_j\| : i, j \in V'\}

    where :math:`z_i^j` are the convolution's anchors, :math:`z'_i` its output, :math:`n` a graph's
    nodes and :math:`m` its edges between kept nodes. The fractions :math:`\rho_v, \rho_e` are those
    that are **kept**; each graph decides alone; equal scores stay or go together, and so do both
    directions of an undirected edge. The paper ranks edges by :math:`e^{\|x'_i - x'_j\|}`, which is
    the same order. A zero vector stays zero under the normalisation.

    Args:
        in_channels: Channels of the input, :math:`d'`.
        k: Hops of the anchors.
        ratio: The fraction :math:`\rho_v` of nodes to keep.
        edge_ratio: The fraction :math:`\rho_e` of edges to keep; none keeps all.
        normalize: Whether to put features on the sphere (NF), or just multiply them by the score.
        activation: :math:`\sigma`: ``"sigmoid"``, the paper's ``"relu"``, ``"tanh"``, ``"none"``.

    Shapes:
        - x :math:`(n, d')`, edge_index :math:`(2, e)`, edge_attr :math:`(e, \ldots)` *(optional)*,
          batch :math:`(n)` *(optional)*, anchors :math:`(n, k + 1, d')` *(optional: without them
          the layer takes Chebyshev hops of x itself)*
        - output as PyG's poolings: x, edge_index, edge_attr, batch, perm, score
    """

    name = "lookhops"
    uses_anchors = True

    def __init__(
        self,
        in_channels: int,
        k: int = 2,
        ratio: float = 0.5,
        edge_ratio: float | None = None,
        normalize: bool = True,
        activation: str = "sigmoid",
    ) -> None:
        super().__init__(in_channels, ratio)
        if not isinstance(k, int) or isinstance(k, bool) or k < 0:
            raise LookHopsError(f"LookHopsPooling: k counts hops, from 0 up, not {k!r}.")
        if activation not in ACTIVATIONS:
            raise LookHopsError(
                f"LookHopsPooling: activation is one of {', '.join(ACTIVATIONS)}, "
                f"not {activation!r}."
            )
        self.k = k
        self.edge_ratio = (
            None if edge_ratio is None else check_ratio(self, "edge_ratio", edge_ratio)
        )
        self.normalize = normalize
        self.activation = activation
        self.theta = nn.Parameter(torch.empty(k + 1, in_channels))
        self.bias = nn.Parameter(torch.empty(1))
        self.reset_parameters()

    @property
    def reads_merged(self) -> bool:  # type: ignore[override]
        """Whether edges are ranked by the difference of their ends' features."""
        return self.edge_ratio is not None and self.edge_ratio < 1

    def reset_parameters(self) -> None:
        bound = 1 / sqrt(self.theta.numel())
        nn.init.uniform_(self.theta, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def score(self, x: Tensor, adjacency: Adjacency, anchors: GivenAnchors) -> Tensor:
        return self.score_beside(x, adjacency, anchors)[0]

    def score_beside(
        self, x: Tensor, adjacency: Adjacency, anchors: GivenAnchors
    ) -> tuple[Tensor, GivenAnchors]:
        if anchors is None:
            anchors = Anchors(chebyshev, adjacency.chebyshev(x.dtype), x, self.k)
        if tuple(anchors.shape[-3:]) != (x.shape[-2], *self.theta.shape[-2:]):
            raise LookHopsError(
                f"LookHopsPooling with k={self.k} reads {self.k + 1} anchors of {self.in_channels} "
                f"channels for each of {x.shape[-2]} nodes, not {tuple(anchors.shape)}."
            )
        if isinstance(anchors, Anchors):
            return anchors.score(self.theta, self.bias, self.activation)
        raw = (anchors.flatten(-2) @ self.theta.flatten(-2).unsqueeze(-1)).squeeze(-1)
        return ACTIVATIONS[self.activation](raw + self.bias), anchors

    def connect(self, batch: GraphBatch, score: Tensor, keep: Tensor) -> Tensor:
        """Edges between kept nodes; of those, the ones whose ends differ most."""
        between = super().connect(batch, score, keep)
        if self.edge_ratio is None or not self.reads_merged:
            return between
        adjacency = batch.adjacency
        with torch.no_grad():
            flat = self.reduce(batch.x, score).flatten(0, -2)
            difference = flat.index_select(0, adjacency.source)
            difference -= flat.index_select(0, adjacency.target)
            difference = torch.linalg.vector_norm(difference, dim=-1)
        # One edge represents both directions: the first of its pair.
        representative = adjacency.pair == torch.arange(adjacency.num_edges, device=keep.device)
        order, kept = top_of_each(
            difference,
            batch.graph[adjacency.target],
            batch.num_graphs,
            self.edge_ratio,
            between & representative,
            torch.linalg.vector_norm(flat, dim=-1).index_select(0, adjacency.target),
        )
        chosen = torch.zeros_like(kept).scatter(0, order, kept)
        return chosen[adjacency.pair] & between

    def extra_repr(self) -> str:
        return (
            f"{self.in_channels}, k={self.k}, ratio={self.ratio}, edge_ratio={self.edge_ratio}, "
            f"normalize={self.normalize}, activation={self.activation!r}"
        )

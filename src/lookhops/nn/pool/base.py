"""Pooling is three small answers: which nodes stay, what they carry, which edges stay."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lookhops.errors import LookHopsError
from lookhops.hops import Adjacency, Anchors
from lookhops.nn.level import Level, Pooled, top_of_each


def check_ratio(owner: object, name: str, ratio: float) -> float:
    """Refuse a ratio that is not a fraction to keep."""
    if not isinstance(ratio, int | float) or not 0 < ratio <= 1:
        raise LookHopsError(
            f"{type(owner).__name__}: {name} is the fraction that is kept, "
            f"above 0 and up to 1, not {ratio!r}."
        )
    return float(ratio)


class Pooling(nn.Module):
    """A pooling layer: :meth:`pool` for our network, ``forward`` for PyG users."""

    #: Whether the layer reads the convolution's anchors (and so is asked before the activation).
    uses_anchors = False

    def pool(
        self, level: Level, anchors: Anchors | Tensor | None = None, masked: bool = False
    ) -> tuple[Level, Pooled]:
        """The next level in compacted or masked form, and what was decided."""
        raise NotImplementedError


class NodePooling(Pooling):
    r"""Poolings that drop nodes: keep the :math:`\lceil \rho n \rceil` best of each graph.

    Subclasses answer :meth:`score`, and where they differ :meth:`reduce` and :meth:`connect`.

    Args:
        in_channels: Channels of the input.
        ratio: The fraction :math:`\rho` of each graph's nodes to keep.
    """

    def __init__(self, in_channels: int, ratio: float = 0.5) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.ratio = check_ratio(self, "ratio", ratio)

    def score(self, x: Tensor, adjacency: Adjacency, anchors: Anchors | Tensor | None) -> Tensor:
        """Select: the score of each node, shape (..., n)."""
        raise NotImplementedError

    def reduce(self, x: Tensor, score: Tensor) -> Tensor:
        """Reduce: what each node carries on, here its features times its score."""
        return x * score.unsqueeze(-1)

    def connect(self, level: Level, x: Tensor, keep: Tensor) -> Tensor:
        """Connect: which edges stay, here all between kept nodes."""
        between = keep[level.adjacency.source] & keep[level.adjacency.target]
        return between if level.edge_alive is None else between & level.edge_alive

    def pool(
        self, level: Level, anchors: Anchors | Tensor | None = None, masked: bool = False
    ) -> tuple[Level, Pooled]:
        """The next level in compacted or masked form, and what was decided."""
        x, pooled, _ = self._decide(level, anchors)
        return level.keep(x, pooled.node, pooled.edge, masked), pooled

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | Adjacency,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        anchors: Anchors | Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor, Tensor, Tensor]:
        """Pool as PyG's poolings do.

        Args:
            x: Node features, shape (n, d).
            edge_index: The edges, shape (2, e).
            edge_attr: Anything known of the edges, shape (e, ...); kept with the kept edges.
            batch: Graph of each node, ascending, shape (n); by default all nodes are one graph.
            anchors: The convolution's anchors, for layers that read them.

        Returns:
            ``(x, edge_index, edge_attr, batch, perm, score)`` of the kept nodes, those of one graph
            by falling score, as PyG orders them; ``perm`` says which nodes they were.
        """
        if x.dim() != 2 or x.shape[1] != self.in_channels:
            raise LookHopsError(
                f"{type(self).__name__} takes {self.in_channels} channels a node, "
                f"but x has shape {tuple(x.shape)}."
            )
        adjacency = Adjacency.of(edge_index, x.shape[0])
        if batch is None:
            batch = torch.zeros(x.shape[0], dtype=torch.long, device=x.device)
        num_graphs = int(batch[-1]) + 1 if batch.numel() else 0
        level = Level(x, adjacency, batch, num_graphs)
        x, pooled, perm = self._decide(level, anchors)
        number = torch.full_like(batch, -1).scatter(0, perm, torch.arange(len(perm)).to(perm))
        keep_edge = pooled.edge
        if adjacency.order is not None:  # back to the order of the caller's edge_index
            keep_edge = torch.empty_like(keep_edge).scatter(0, adjacency.order, keep_edge)
        given = edge_index.edge_index if isinstance(edge_index, Adjacency) else edge_index
        return (
            x[perm],
            number[given[:, keep_edge]],
            None if edge_attr is None else edge_attr[keep_edge],
            batch[perm],
            perm,
            pooled.score[perm],
        )

    def _decide(
        self, level: Level, anchors: Anchors | Tensor | None
    ) -> tuple[Tensor, Pooled, Tensor]:
        """The three answers: features of all nodes, what stays, and the kept nodes by score."""
        score = self.score(level.x, level.adjacency, anchors)
        flat = score.flatten()
        order, kept = top_of_each(flat, level.graph, level.num_graphs, self.ratio, level.alive)
        node = torch.zeros_like(kept).scatter(0, order, kept)
        x = self.reduce(level.x, score)
        edge = self.connect(level, x, node)
        return x, Pooled(flat, node, edge), order[kept]

    def extra_repr(self) -> str:
        """Channels and ratio, as printing the module shows them."""
        return f"{self.in_channels}, ratio={self.ratio}"

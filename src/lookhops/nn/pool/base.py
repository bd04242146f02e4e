"""Pooling is three small answers: which nodes stay, what they carry, which edges stay."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from lookhops.core.errors import LookHopsError
from lookhops.ops import Adjacency, Anchors
from lookhops.ops.batch import GraphBatch, Pooled
from lookhops.ops.gate import gate
from lookhops.ops.ranking import edges_between, keep_top, top_of_each

#: Edges as PyG gives them, or in order already.
Edges = Tensor | Adjacency
Maybe = Tensor | None
#: The convolution's anchors, as they are or stacked to a tensor of shape (n, k + 1, d).
GivenAnchors = Anchors | Tensor | None
#: What PyG's poolings return: x, edge_index, edge_attr, batch, perm, score.
PyGPooled = tuple[Tensor, Tensor, Tensor | None, Tensor, Tensor, Tensor]


def check_ratio(owner: object, name: str, ratio: float) -> float:
    """Refuse a ratio that is not a fraction to keep."""
    if not isinstance(ratio, int | float) or not 0 < ratio <= 1:
        raise LookHopsError(
            f"{type(owner).__name__}: {name} is the fraction that is kept, "
            f"above 0 and up to 1, not {ratio!r}."
        )
    return float(ratio)


class Pooling(nn.Module):
    """A pooling layer: :meth:`pool` for our network, ``forward`` for PyG users.

    Args:
        in_channels: Channels of the input.
        ratio: The fraction of each graph's nodes to keep.
    """

    #: What the command line calls it; none for what others are derived from.
    name = ""
    #: Whether it reads the convolution's anchors. The network then has one such layer for each
    #: convolution, and asks it before the activation.
    uses_anchors = False
    #: Whether a pooling that reads anchors reads what the convolution made of them too.
    reads_merged = True
    #: Whether weights and factors of edges change what it answers.
    reads_edges = True
    #: Whether one layer serves the network; else there is one for each convolution but the last.
    shared = True
    #: Whether members of a stack can be pooled at once.
    stackable = True
    #: Whether the masked form keeps every shape and never asks the device for a value.
    fixed_shapes = True
    #: Whether it makes links between any two nodes of a graph: its shapes are then fixed where the
    #: batch says how large graphs can be (:class:`~lookhops.ops.batch.Extent`).
    makes_links = False

    def __init__(self, in_channels: int, ratio: float = 0.5) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.ratio = check_ratio(self, "ratio", ratio)

    def reset_parameters(self) -> None:
        for module in self.children():
            if hasattr(module, "reset_parameters"):
                module.reset_parameters()  # type: ignore[operator]

    def answer(self, batch: GraphBatch) -> Pooled:
        """Select, reduce, connect: which nodes stay, what they carry on, which edges there are."""
        raise NotImplementedError

    def pool(self, batch: GraphBatch, masked: bool = False) -> tuple[GraphBatch, Pooled]:
        """The next batch in compacted or masked form, and what was answered."""
        answer = self.answer(batch)
        return batch.pooled(answer, masked), answer

    def forward(
        self, x: Tensor, edge_index: Edges, edge_weight: Maybe = None, batch: Maybe = None
    ) -> PyGPooled:
        """Pool as PyG's poolings do, for layers that make new edges.

        Arguments as for :class:`~lookhops.nn.NodePooling`, with a weight for each edge; what is
        returned stands in the order of the nodes whose places the new ones have, ``perm``.
        """
        given = self._batch(x, edge_index, batch, edge_weight)
        pooled, answer = self.pool(given)
        perm = answer.node.nonzero().flatten()
        edges = pooled.adjacency
        return pooled.x, edges.edge_index, edges.weight, pooled.graph, perm, answer.score[perm]

    def _batch(
        self,
        x: Tensor,
        edge_index: Tensor | Adjacency,
        batch: Tensor | None,
        edge_weight: Tensor | None = None,
    ) -> GraphBatch:
        if x.dim() != 2 or x.shape[1] != self.in_channels:
            raise LookHopsError(
                f"{type(self).__name__} takes {self.in_channels} channels a node, "
                f"but x has shape {tuple(x.shape)}."
            )
        return GraphBatch.of(x, Adjacency.of(edge_index, x.shape[0], edge_weight), batch)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, ratio={self.ratio}"


class NodePooling(Pooling):
    r"""Poolings that drop nodes: keep the :math:`\lceil \rho n \rceil` best of each graph.

    Nodes whose score equals that of the last one are kept with it.
    Subclasses answer :meth:`score`, and where they differ :meth:`reduce` and :meth:`connect`.

    Args:
        in_channels: Channels of the input, :math:`d`.
        ratio: The fraction :math:`\rho` of each graph's nodes to keep.

    Shapes:
        - x :math:`(n, d)`, edge_index :math:`(2, e)`, edge_attr :math:`(e, \ldots)` *(optional)*,
          batch :math:`(n)` *(optional)*, anchors :math:`(n, k + 1, d)` *(optional)*
        - output: x, edge_index, edge_attr, batch, perm, score
    """

    #: Whether what a node carries on is put on the unit sphere before it is scaled by the score.
    normalize = False

    def score(self, x: Tensor, adjacency: Adjacency, anchors: GivenAnchors) -> Tensor:
        """Select: the score of each node, shape (..., n)."""
        raise NotImplementedError

    def score_beside(
        self, x: Tensor, adjacency: Adjacency, anchors: GivenAnchors
    ) -> tuple[Tensor, GivenAnchors]:
        """The scores, and the anchors again: a layer that reads both may join their gradients."""
        return self.score(x, adjacency, anchors), anchors

    def size(self, x: Tensor) -> Tensor | None:
        """How large the numbers are that each score was computed from, flat, as its rounding is.

        None means as large as the score, which is so where nothing large cancels.
        """
        return None

    def reduce(self, x: Tensor, score: Tensor) -> Tensor:
        """Reduce: what each node carries on, here its features times its score."""
        return gate(x, score, self.normalize)

    def connect(self, batch: GraphBatch, score: Tensor, keep: Tensor) -> Tensor:
        """Connect: which edges stay, here all between kept nodes."""
        return edges_between(batch, keep)

    def answer(self, batch: GraphBatch) -> Pooled:
        score = self.score(batch.x, batch.adjacency, None)
        return replace(self.decide(batch, score), x=self.reduce(batch.x, score))

    def forward(
        self,
        x: Tensor,
        edge_index: Edges,
        edge_attr: Maybe = None,
        batch: Maybe = None,
        anchors: GivenAnchors = None,
    ) -> PyGPooled:
        """Pool as PyG's poolings do.

        Args:
            x: Node features, shape (n, d).
            edge_index: The edges, shape (2, e).
            edge_attr: Anything known of the edges, shape (e, ...); kept with the kept edges.
            batch: Graph of each node, shape (n); by default all nodes are one graph.
            anchors: The convolution's anchors, for layers that read them.

        Returns:
            ``(x, edge_index, edge_attr, batch, perm, score)`` of the kept nodes, those of one graph
            by falling score, as PyG orders them; ``perm`` says which nodes they were.
        """
        given = self._batch(x, edge_index, batch)
        score = self.score(x, given.adjacency, anchors)
        size = self.size(x)
        order, kept = top_of_each(score, given.graph, given.num_graphs, self.ratio, size=size)
        perm = order.index_select(0, kept.nonzero().flatten())
        pooled = self.decide(given, score, torch.zeros_like(kept).scatter(0, order, kept))
        keep_edge = pooled.edge
        if isinstance(edge_index, Adjacency):  # its edges stand in its own order
            edge_index = edge_index.edge_index
        elif given.adjacency.order is not None:
            keep_edge = torch.empty_like(keep_edge).scatter(0, given.adjacency.order, keep_edge)
        edge = keep_edge.nonzero().flatten()
        ends = edge_index.index_select(1, edge)
        number = torch.empty_like(order).scatter(0, perm, torch.arange(len(perm)).to(perm))
        return (
            self.reduce(x.index_select(0, perm), score.index_select(0, perm)),
            number.index_select(0, ends.flatten()).view_as(ends),
            None if edge_attr is None else edge_attr.index_select(0, edge),
            given.graph.index_select(0, perm),
            perm,
            score.index_select(0, perm),
        )

    def decide(self, batch: GraphBatch, score: Tensor, node: Tensor | None = None) -> Pooled:
        """Which nodes and edges stay, given the scores, and the nodes where they are known."""
        flat = score.flatten()
        if node is None:
            node = keep_top(batch, flat, self.ratio, self.size(batch.x))
        return Pooled(flat, node, self.connect(batch, score, node))

"""One layer of the network: factors of edges, convolution, ReLU, pooling, readout."""

from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn

from lookhops.core.errors import LookHopsError
from lookhops.nn.conv.base import Convolution
from lookhops.nn.conv.light import LightConv
from lookhops.nn.linear import Linear
from lookhops.nn.pool.base import NodePooling
from lookhops.nn.registry import edges_taken
from lookhops.ops.activate import activate, readout
from lookhops.ops.batch import EdgeInputs, GraphBatch, Pooled
from lookhops.ops.dense import linear_scores
from lookhops.ops.light_layer import Merging


class EdgeFactors(nn.Module):
    r"""A factor for each edge and each layer, learned from the features of the edge.

    .. math::
        f_{ij} = 2\, \mathrm{sigmoid}\bigl(\gamma\,(t \cdot l_{ij} +
        v \cdot \mathrm{ReLU}(U a_{ij} + u))\bigr)

    with the one-hot labels :math:`l_{ij}` of an edge, for which :math:`t` is a table, and its
    numbers :math:`a_{ij}`. Every layer has its own :math:`t, v, U, u`. Factors lie between 0 and 2,
    so that no number of hops makes them run away. They begin around one, at random: layers that
    tell kinds of edges apart from the start learn what these mean, where equal factors seldom part.
    Adam moves every parameter equally far in a step; :math:`\gamma` lets so few of them keep up
    with the many others of a layer.

    Args:
        num_numbers: Columns of numbers.
        num_labels: Columns of one-hot labels.
        layers: Number of layers.
        hidden: Channels of the network for numbers, of each layer.

    Shapes:
        - columns :math:`(\ldots, e, f)`, numbers first
        - output :math:`(\ldots, \text{layers}, e)`
    """

    GAMMA = 10.0
    START = 2.0  # what the sigmoid of a label takes at most to begin with: 0.24 to 1.76

    def __init__(self, num_numbers: int, num_labels: int, layers: int, hidden: int = 8) -> None:
        super().__init__()
        self.num_numbers, self.num_labels = num_numbers, num_labels
        self.layers, self.hidden = layers, hidden
        self.table = nn.Parameter(torch.empty(layers, num_labels)) if num_labels else None
        self.inner = Linear(num_numbers, layers * hidden) if num_numbers else None
        self.outer = nn.Parameter(torch.empty(layers, hidden)) if num_numbers else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = self.START / self.GAMMA
        if self.table is not None:
            nn.init.uniform_(self.table, -bound, bound)
        if self.inner is not None and self.outer is not None:
            self.inner.reset_parameters()
            nn.init.uniform_(self.outer, -bound / sqrt(self.hidden), bound / sqrt(self.hidden))

    def forward(self, columns: Tensor) -> Tensor:
        raw: Tensor | None = None
        if self.table is not None:
            raw = linear_scores(columns[..., self.num_numbers :], self.table)
        if self.inner is not None and self.outer is not None:
            inner = torch.relu(self.inner(columns[..., : self.num_numbers]))
            parts = inner.unflatten(-1, (self.layers, self.hidden))
            of_numbers = (parts * self.outer.to(inner.dtype).unsqueeze(-3)).sum(-1).mT
            raw = of_numbers if raw is None else raw + of_numbers
        assert raw is not None
        return 2 * torch.sigmoid(self.GAMMA * raw)

    def of(self, edges: EdgeInputs) -> Tensor:
        """The factors of the adjacency's edges in each layer, shape (layers, e)."""
        factors = self(edges.columns).movedim(-2, 0).flatten(1)
        return factors if edges.place is None else factors.index_select(1, edges.place)

    def extra_repr(self) -> str:
        return f"{self.num_numbers} numbers, {self.num_labels} labels, layers={self.layers}"


def run_layer(
    conv: nn.Module, pool: Any, batch: GraphBatch, normalize: bool, last: bool, masked: bool
) -> tuple[GraphBatch, Tensor, Pooled | None]:
    """Project, anchors, merge, score, pool, readout; what reads no anchors pools after the ReLU.

    The last layer drops nothing. Without a pooling ``normalize`` says whether features become unit
    vectors before the ReLU; with ``masked`` pooling keeps all shapes and masks what it drops.

    Returns:
        What is left of the batch, the ReLU of its readout, shape (..., g, 2 d), and what the
        pooling decided.
    """
    scores = pool is not None and pool.uses_anchors
    reduces = scores and type(pool).reduce is not NodePooling.reduce  # in a way of its own
    merging = anchors = pooled = score = None
    if isinstance(conv, LightConv):
        anchors = conv.aggregate(batch.x, batch.adjacency)
        late = not (scores and (pool.reads_merged or reduces))
        merging = Merging(anchors, conv.weight, conv.bias, batch, late)
        batch = batch.with_x(merging.x)
    else:
        batch = batch.with_x(convolve(conv, batch))
    if scores:  # one tensor, two readings: the convolution merges the anchors, the pooling scores
        score, anchors = pool.score_beside(batch.x, batch.adjacency, anchors)
        if not last:
            pooled = pool.decide(batch, score)
            batch = batch.drop(pooled.node, pooled.edge, masked)
            score = score if masked else score.index_select(0, pooled.node.nonzero().flatten())
        normalize = pool.normalize
        if reduces:  # else the activation gates in the same pass
            batch, score, normalize = batch.with_x(pool.reduce(batch.x, score)), None, False
    if merging is None:
        batch, read = activate(batch, score, normalize)
    else:
        batch, read = merging.activate(batch, score, normalize, anchors)
    if pool is None or last or scores:
        return batch, read, pooled
    batch, pooled = pool.pool(batch, masked=masked)  # of what a ReLU left: none is below zero
    return batch, torch.relu(readout(batch)), pooled


def convolve(conv: nn.Module, batch: GraphBatch) -> Tensor:
    """Run a convolution: ours on the adjacency, anybody else's on what it takes of edges."""
    if isinstance(conv, Convolution):
        return conv(batch.x, batch.adjacency)
    adjacency, taken = batch.adjacency, edges_taken(conv)
    present = adjacency.present  # theirs know no masks, and many of them no weights
    edge_index = adjacency.edge_index if present is None else adjacency.edge_index[:, present]
    if taken == "edge_attr":
        columns = batch.edge_columns
        if columns is None:
            raise LookHopsError(
                f"{type(conv).__name__} reads what edges carry, and of these edges nothing is "
                "known: graphs without edge features, or a pooling that made new edges."
            )
        columns = columns if present is None else columns[present]
        return conv(batch.x, edge_index, edge_attr=columns)
    weighted = adjacency.weighted or adjacency.factor is not None
    value = adjacency.edge_values(batch.x.dtype) if weighted else None
    if value is None or taken is None:
        return conv(batch.x, edge_index)
    return conv(batch.x, edge_index, value if present is None else value[present])

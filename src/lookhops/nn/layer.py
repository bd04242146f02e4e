"""One layer of the network: convolution, ReLU, pooling, readout."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from lookhops.core.errors import LookHopsError
from lookhops.nn.conv.base import Convolution
from lookhops.nn.conv.light import LightConv
from lookhops.nn.pool.base import NodePooling
from lookhops.nn.registry import Edges, edges_taken
from lookhops.ops.activate import activate, readout
from lookhops.ops.batch import GraphBatch, Pooled
from lookhops.ops.light_layer import Merging


def run_layer(
    conv: nn.Module,
    pool: Any,
    batch: GraphBatch,
    normalize: bool,
    last: bool,
    masked: bool,
) -> tuple[GraphBatch, Tensor, Pooled | None]:
    """Convolution, ReLU, pooling, readout; what reads anchors pools before the ReLU.

    Args:
        conv: The convolution.
        pool: The pooling, or none.
        batch: The batch.
        normalize: Whether features become unit vectors before the ReLU, where no pooling says.
        last: Whether it is the last layer, which drops nothing.
        masked: Whether pooling keeps all shapes and masks what it drops.

    Returns:
        What is left of the batch, the ReLU of its readout, shape (..., g, 2 d), and what the
        pooling decided.
    """
    scores = pool is not None and pool.uses_anchors
    merging = anchors = None
    if isinstance(conv, LightConv):
        anchors = conv.aggregate(batch.x, batch.adjacency)
        late = not (scores and (pool.reads_merged or _reduces(pool)))
        merging = Merging(anchors, conv.weight, conv.bias, batch, late)
        batch = batch.with_x(merging.x)
    else:
        batch = batch.with_x(convolve(conv, batch))
    pooled, score = None, None
    if scores:  # one tensor, two readings: the convolution merges the anchors, the pooling scores
        score, anchors = pool.score_beside(batch.x, batch.adjacency, anchors)
        if not last:
            pooled = pool.decide(batch, score)
            batch = batch.drop(pooled.node, pooled.edge, masked)
            score = score if masked else score.index_select(0, pooled.node.nonzero().flatten())
        normalize = pool.normalize
        if _reduces(pool):  # else the activation gates in the same pass
            batch, score, normalize = batch.with_x(pool.reduce(batch.x, score)), None, False
    if merging is None:
        batch, read = activate(batch, score, normalize)
    else:
        batch, read = merging.activate(batch, score, normalize, anchors)
    if pool is None or last or scores:
        return batch, read, pooled
    batch, pooled = pool.pool(batch, masked=masked)  # of what a ReLU left: none is below zero
    return batch, torch.relu(readout(batch)), pooled


def _reduces(pool: NodePooling) -> bool:
    """Whether a pooling has its own way of what a node carries on."""
    return type(pool).reduce is not NodePooling.reduce


def convolve(conv: nn.Module, batch: GraphBatch) -> Tensor:
    """Run a convolution: ours on the adjacency, anybody else's on what it takes of edges."""
    if isinstance(conv, Convolution):
        return conv(batch.x, batch.adjacency)
    adjacency, taken = batch.adjacency, edges_taken(conv)
    present = adjacency.present  # theirs know no masks, and many of them no weights
    edge_index = adjacency.edge_index if present is None else adjacency.edge_index[:, present]
    if taken is Edges.FEATURES:
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
    if value is None or taken is not Edges.WEIGHTS:
        return conv(batch.x, edge_index)
    return conv(batch.x, edge_index, value if present is None else value[present])

"""One layer of the network: convolution, ReLU, pooling, readout."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from lookhops.core.errors import LookHopsError
from lookhops.nn.activate import activate, at_once, merge_and_activate
from lookhops.nn.conv.base import Convolution
from lookhops.nn.conv.light import LightConv
from lookhops.nn.level import Level, Pooled
from lookhops.nn.pool.base import NodePooling
from lookhops.nn.readout import readout
from lookhops.nn.registry import Edges, edges_taken
from lookhops.ops import Anchors


def run_layer(
    conv: nn.Module,
    pool: Any,
    level: Level,
    normalize: bool,
    last: bool,
    masked: bool,
) -> tuple[Level, Tensor, Pooled | None]:
    """Convolution, ReLU, pooling, readout; what reads anchors pools before the ReLU.

    Args:
        conv: The convolution.
        pool: The pooling, or none.
        level: The batch.
        normalize: Whether features become unit vectors before the ReLU, where no pooling says.
        last: Whether it is the last layer, which drops nothing.
        masked: Whether pooling keeps all shapes and masks what it drops.

    Returns:
        What is left of the batch, the ReLU of its readout, shape (..., g, 2 d), and what the
        pooling decided.
    """
    reads = pool is not None and pool.uses_anchors
    finish, anchors = activate, None
    if isinstance(conv, LightConv):
        anchors = conv.aggregate(level.x, level.adjacency)
        if at_once(anchors, level) and not (reads and pool.reads_merged):
            finish = partial(merge_and_activate, conv, anchors, level.alive)
            level = level.with_x(anchors.z)  # still to be merged
        else:
            level = level.with_x(conv.merge(anchors))
    else:
        level = level.with_x(convolve(conv, level))
    if reads:
        return _pool_and_activate(pool, level, anchors, finish, last, masked)
    level, read = finish(level, None, normalize)  # of what a ReLU left: none is below zero
    if pool is None or last:
        return level, read, None
    level, pooled = pool.pool(level, masked=masked)
    return level, torch.relu(readout(level)), pooled


def _pool_and_activate(
    pool: NodePooling,
    level: Level,
    anchors: Anchors | None,
    finish: Callable[[Level, Tensor | None, bool], tuple[Level, Tensor]],
    last: bool,
    masked: bool,
) -> tuple[Level, Tensor, Pooled | None]:
    """One tensor, two readings: the convolution merged the anchors, the pooling scores them."""
    score, pooled = pool.score(level.x, level.adjacency, anchors), None
    if not last:
        pooled = pool.decide(level, score)
        level = level.drop(pooled.node, pooled.edge, masked)
        if not masked:
            score = score.index_select(0, pooled.node.nonzero().flatten())
    if type(pool).reduce is NodePooling.reduce:  # the activation gates in the same pass
        return *finish(level, score, pool.normalize), pooled
    return *finish(level.with_x(pool.reduce(level.x, score)), None, False), pooled


def convolve(conv: nn.Module, level: Level) -> Tensor:
    """Run a convolution: ours on the adjacency, anybody else's on what it takes of edges."""
    if isinstance(conv, Convolution):
        return conv(level.x, level.adjacency)
    adjacency, taken = level.adjacency, edges_taken(conv)
    present = adjacency.present  # theirs know no masks, and many of them no weights
    edge_index = adjacency.edge_index if present is None else adjacency.edge_index[:, present]
    if taken is Edges.FEATURES:
        columns = level.edge_columns
        if columns is None:
            raise LookHopsError(
                f"{type(conv).__name__} reads what edges carry, and of these edges nothing is "
                "known: graphs without edge features, or a pooling that made new edges."
            )
        columns = columns if present is None else columns[present]
        return conv(level.x, edge_index, edge_attr=columns)
    weighted = adjacency.weighted or adjacency.factor is not None
    value = adjacency.edge_values(level.x.dtype) if weighted else None
    if value is None or taken is not Edges.WEIGHTS:
        return conv(level.x, edge_index)
    return conv(level.x, edge_index, value if present is None else value[present])

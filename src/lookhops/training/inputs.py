"""Graphs as the network of one member is told of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from lookhops.encoding import Encoding
from lookhops.encoding.whole import WholeEncoding, WholeGraphs
from lookhops.graphs.choosing import gather
from lookhops.graphs.indexing import elements_of
from lookhops.nn import GraphNetwork, Level
from lookhops.training.gather import WholeGatherer

BATCH_SIZE = 256


class MemberInputs:
    """Makes batches for one network, in compacted form.

    Args:
        whole: The graphs, on the network's device, and what is known of them as wholes.
        encoding: What the network is told of nodes.
        learnt: What it learnt to be told of whole graphs.
    """

    def __init__(self, whole: WholeGraphs, encoding: Encoding, learnt: WholeEncoding) -> None:
        self.graphs = whole.graphs
        self.encoding = encoding
        self.gather_whole = WholeGatherer([learnt.columns(whole)], [learnt.num_neighbourhoods])

    def level(self, model: GraphNetwork, index: Tensor) -> Level:
        """The graphs with these numbers as the network sees them."""
        graphs = gather(self.graphs, index)
        dtype = next(model.parameters()).dtype
        told: dict[str, Any] = {}
        if model.uses_edges:
            told["edge_weight"] = self.encoding.edge_weight(graphs, dtype=dtype)
        if model.edge_channels:
            told["edge_attr"] = self.encoding.edge_columns(graphs, dtype=dtype)
        level = model.level(graphs, self.encoding.columns(graphs, dtype=dtype), **told)
        node, *_ = elements_of(self.graphs.node_ptr, index)
        return replace(level, place=node, whole=self.gather_whole.one(index))

    def levels(self, model: GraphNetwork, size: int = BATCH_SIZE) -> Iterator[Level]:
        """All graphs, in batches of at most so many."""
        numbers = torch.arange(len(self.graphs), device=self.graphs.device)
        return (self.level(model, index) for index in numbers.split(size) if index.numel())

    def outputs(self, model: GraphNetwork) -> Tensor:
        """What the network gives for each graph, shape (g, outputs), in main memory."""
        found = [model(level).cpu() for level in self.levels(model)]
        return torch.cat(found) if found else torch.zeros(0, model.out_channels)

"""Graphs as batches for the network of one member."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from lookhops.encoding import Encoding
from lookhops.encoding.graph_encoding import PreparedGraphs, Preprocessing
from lookhops.graphs import Graphs
from lookhops.graphs.choosing import gather
from lookhops.graphs.indexing import elements_of, spread
from lookhops.nn import GraphBatch, GraphNetwork
from lookhops.training.gather import WholeGatherer
from lookhops.training.windows import Windows, first_entries

BATCH_SIZE = 256


class MemberInputs:
    """Makes batches for one network, in compacted form.

    Args:
        whole: The graphs, on the network's device, and what is known of them as wholes.
        encoding: The columns that the network reads.
        preprocessing: What was fitted on a training part.
    """

    def __init__(
        self, whole: PreparedGraphs, encoding: Encoding, preprocessing: Preprocessing
    ) -> None:
        self.graphs = whole.graphs
        self.encoding = encoding
        self.scales = preprocessing.scales
        self.gather_whole = WholeGatherer.of(
            [preprocessing.graphs.columns(whole)], [preprocessing.graphs.num_neighbourhoods]
        )

    @property
    def are_scaled(self) -> bool:
        """Whether numbers are brought to a scale that was fitted."""
        return any(scale is not None for scale in self.scales)

    def batch(self, model: GraphNetwork, index: Tensor, graphs: Graphs | None = None) -> GraphBatch:
        """The graphs with these numbers as the network sees them, shape (size).

        Args:
            model: The network.
            index: Numbers of the graphs.
            graphs: The same graphs, where they have been gathered already.
        """
        index = index.to(self.graphs.device)
        batch = self.bare_batch(model, gather(self.graphs, index) if graphs is None else graphs)
        node, *_ = elements_of(self.graphs.node_ptr, index)
        return replace(batch, place=node, whole=self.gather_whole.one(index))

    def bare_batch(self, model: GraphNetwork, graphs: Graphs) -> GraphBatch:
        """Some of the graphs as the layers see them: features of whole graphs are left out."""
        dtype = next(model.parameters()).dtype
        of_edges: dict[str, Any] = {}
        if model.uses_edges:
            of_edges["edge_weight"] = self.encoding.edge_weight(graphs, dtype=dtype)
        if model.edge_channels:
            of_edges["edge_attr"] = self.encoding.encode_edges(
                graphs, dtype=dtype, scale=self.scales.edges
            )
        x = self.encoding.encode_nodes(graphs, dtype=dtype, scale=self.scales.nodes)
        return model.batch(graphs, x, **of_edges)

    def batches(self, model: GraphNetwork, size: int = BATCH_SIZE) -> Iterator[GraphBatch]:
        """All graphs, in batches of at most so many."""
        numbers = torch.arange(len(self.graphs), device=self.graphs.device)
        return (self.batch(model, index) for index in numbers.split(size) if index.numel())

    def outputs(self, model: GraphNetwork) -> Tensor:
        """What the network gives for each graph, shape (g, outputs), in main memory."""
        found = [model(batch).cpu() for batch in self.batches(model)]
        return torch.cat(found) if found else torch.zeros(0, model.out_channels)


class WindowInputs:
    """The same for graphs that do not live on the network's device: a batch is a window of them."""

    def __init__(self, windows: Windows, preprocessing: Preprocessing) -> None:
        self.windows, self.preprocessing = windows, preprocessing
        counts = windows.count_entries([preprocessing.graphs])
        self.first_entries = None if counts is None else first_entries(counts[0])

    def batch(self, model: GraphNetwork, index: Tensor) -> GraphBatch:
        """The graphs with these numbers, in main memory, as the network sees them."""
        windows = self.windows
        window = windows.of(index)
        whole = windows.whole(window.graphs)
        inputs = MemberInputs(whole, windows.encoding, self.preprocessing)
        batch = inputs.batch(model, torch.arange(len(index), device=windows.device))
        # What is random belongs to graphs, nodes and entries by their numbers in the whole set.
        moved = window.first_node - window.graphs.node_ptr[:-1]
        place = batch.places + spread(moved, window.graphs.node_ptr, batch.places.numel())
        whole_inputs: Any = replace(batch.whole, number=window.number)  # type: ignore[type-var]
        if self.first_entries is not None:
            first = self.first_entries[index].to(windows.device)
            shift = (first - whole_inputs.offsets[:-1])[whole_inputs.row]
            whole_inputs = replace(whole_inputs, place=whole_inputs.place + shift)
        return replace(batch, place=place, whole=whole_inputs)

"""Batches of packed graphs, made on the device: for one network, or of fixed shape for a stack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookhops.encoding import Encoding
from lookhops.encoding.preprocessing import GraphColumns, PreparedGraphs, Preprocessing
from lookhops.graphs import Graphs
from lookhops.graphs.choosing import gather
from lookhops.graphs.indexing import elements_of, segment_of, to_offsets
from lookhops.nn import GraphBatch, GraphNetwork
from lookhops.ops.batch import WholeInputs
from lookhops.training.windows import Windows, first_entries

#: Graphs of a batch where graphs are only asked about.
BATCH_SIZE = 256


class MemberInputs:
    """Makes batches for one network, in compacted form, of graphs on its device."""

    def __init__(
        self, whole: PreparedGraphs, encoding: Encoding, preprocessing: Preprocessing
    ) -> None:
        self.graphs, self.encoding = whole.graphs, encoding
        self.scales = preprocessing.scales
        self.gather_whole = WholeGatherer.of(
            [preprocessing.columns(whole)], [preprocessing.num_neighbourhoods]
        )

    @property
    def are_scaled(self) -> bool:
        return any(scale is not None for scale in self.scales)

    def batch(self, model: GraphNetwork, index: Tensor, graphs: Graphs | None = None) -> GraphBatch:
        """The graphs with these numbers, shape (size); ``graphs`` are the same, if gathered."""
        index = index.to(self.graphs.device)
        batch = self.bare_batch(model, gather(self.graphs, index) if graphs is None else graphs)
        node, *_ = elements_of(self.graphs.node_ptr, index)
        return replace(batch, place=node, whole=self.gather_whole.one(index))

    def bare_batch(self, model: GraphNetwork, graphs: Graphs) -> GraphBatch:
        """Some of the graphs as the layers see them, without features of whole graphs."""
        dtype = next(model.parameters()).dtype
        of_edges: dict[str, Any] = {}
        columns = self.encoding.edges
        if model.uses_edges and columns is not None:
            of_edges["edge_weight"] = columns.weights(graphs.edges, dtype=dtype)
            if model.edge_channels:
                encoded = columns.encode(graphs.edges, dtype=dtype, scale=self.scales.edges)
                of_edges["edge_attr"] = encoded
        x = self.encoding.encode_nodes(graphs, dtype=dtype, scale=self.scales.nodes)
        return model.batch(graphs, x, **of_edges)

    def batches(self, model: GraphNetwork, size: int = BATCH_SIZE) -> Iterator[GraphBatch]:
        numbers = torch.arange(len(self.graphs), device=self.graphs.device)
        return (self.batch(model, index) for index in numbers.split(size) if index.numel())


class WindowInputs:
    """The same for graphs that do not live on the network's device: a batch is a window of them."""

    def __init__(self, windows: Windows, preprocessing: Preprocessing) -> None:
        self.windows, self.preprocessing = windows, preprocessing
        counts = windows.count_entries([preprocessing])
        self.first_entries = None if counts is None else first_entries(counts[0])

    def batch(self, model: GraphNetwork, index: Tensor) -> GraphBatch:
        windows = self.windows
        window = windows.of(index)
        prepared = windows.whole(window.graphs)
        inputs = MemberInputs(prepared, windows.encoding, self.preprocessing)
        # What is random belongs to graphs, nodes and entries by their numbers in the whole set.
        node, *_ = elements_of(windows.graphs.node_ptr, index)
        whole: Any = inputs.gather_whole.every(window.number)
        if self.first_entries is not None:
            first = self.first_entries[index].to(windows.device)
            whole = replace(whole, place=whole.place + (first - whole.offsets[:-1])[whole.row])
        batch = inputs.bare_batch(model, window.graphs)
        return replace(batch, place=node.to(windows.device), whole=whole)


@dataclass(frozen=True, eq=False)
class WholeGatherer:
    """Gathers the features of whole graphs, for the members of a stack.

    Its tables have a row for every graph of every member, member after member; those of a window of
    a larger set, in which each graph is of one member, a row for each graph.
    """

    totals: Tensor | None = None  # (rows, q)
    indices: Tensor | None = None  # the neighbourhood of each entry, row after row
    offsets: Tensor | None = None  # first entry of each row, and the end, (rows + 1)
    first_entry: Tensor | None = None  # number of that entry among all of its member's, (rows)
    number: Tensor | None = None  # of each graph in the whole set, where it is not the row's
    stride: int = 0  # rows of each member, 0 for a window

    @cached_property
    def counts(self) -> np.ndarray | None:
        """Entries of each graph, shape (members, graphs), in main memory."""
        if self.offsets is None:
            return None
        return self.offsets.diff().view(-1, self.stride).cpu().numpy()

    @classmethod
    def of(cls, members: Sequence[GraphColumns], sizes: Sequence[int]) -> WholeGatherer:
        """Those of all graphs, from each member's columns and the sizes of the vocabularies."""
        each = [member.totals for member in members if member.totals is not None]
        totals, stride = (torch.cat(each), len(each[0])) if each else (None, 0)
        rows = [member.rows for member in members if member.rows is not None]
        if not rows:
            return cls(totals, stride=stride)
        return cls(
            totals,
            torch.cat([member.indices + i * max(sizes) for i, member in enumerate(rows)]),
            to_offsets(torch.cat([member.offsets.diff() for member in rows])),
            torch.cat([member.offsets[:-1] for member in rows]),
            stride=len(rows[0]),
        )

    def one(self, index: Tensor) -> WholeInputs:
        """Those of the graphs at ``index``, shape (size), of a stack of one member."""
        entries = 0 if self.counts is None else int(self.counts[0, index.cpu().numpy()].sum())
        made = self(index[None], entries)
        totals = None if made.totals is None else made.totals[0]
        return replace(made, number=made.number[0], totals=totals)

    def every(self, number: Tensor) -> WholeInputs:
        """:meth:`one` of all graphs in their order, of which nothing has to be gathered."""
        if self.indices is None or self.offsets is None:
            return WholeInputs(number, self.totals)
        entry = torch.arange(self.indices.numel(), device=self.indices.device)
        row = segment_of(self.offsets, self.indices.numel())
        return WholeInputs(number, self.totals, self.indices, self.offsets, row, entry)

    def __call__(self, index: Tensor, entries: int) -> WholeInputs:
        """Those of each member's graphs, shape (members, size), -1 for none; at most so many."""
        graph = index.clamp(min=0)
        table_row = graph + self.stride * torch.arange(len(graph), device=graph.device)[:, None]
        number = graph if self.number is None else self.number[graph]
        totals = None if self.totals is None else self.totals[table_row]
        if self.indices is None or self.offsets is None or self.first_entry is None:
            return WholeInputs(number, totals)
        table_row = table_row.flatten()
        first = self.offsets[table_row]
        count = torch.where(index.flatten() >= 0, self.offsets[table_row + 1] - first, 0)
        offsets = torch.cat((count.new_zeros(1), count.cumsum(0)))
        entry = torch.arange(entries, device=index.device)
        row = torch.searchsorted(offsets[1:], entry, right=True).clamp(max=count.numel() - 1)
        old = torch.where(entry < offsets[-1], first[row] + entry - offsets[row], 0)
        place = old - (first - self.first_entry[table_row])[row]
        return WholeInputs(number, totals, self.indices[old], offsets, row, place)

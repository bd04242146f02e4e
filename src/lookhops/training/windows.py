"""Graphs that stay in main memory, or in their mapped file: a few at a time go to the device."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from lookhops.core.options import Architecture, Protocol
from lookhops.encoding import Encoding
from lookhops.encoding.preprocessing import PreparedGraphs, Preprocessing
from lookhops.graphs import Graphs
from lookhops.graphs.choosing import gather, graph_ranges, slice_of
from lookhops.graphs.indexing import to_offsets

#: Nodes that scales, totals and the vocabulary are fitted on at most; of a larger training part
#: every second, third, ... graph is looked at.
LEARN_FROM = 1 << 23
#: Nodes and edges that are looked at together when neighbourhoods are counted.
COUNT_AT_ONCE = 1 << 22
#: Share of the free memory that graphs may take and still be held on a device.
SHARE = 0.5


@dataclass(frozen=True, eq=False)
class Window:
    """Some graphs of a larger set, on the device, numbered from 0."""

    graphs: Graphs
    number: Tensor  # of each graph in the whole set
    first_node: Tensor  # of each graph, its number in the whole set


@dataclass(frozen=True, eq=False)
class Windows:
    """A set of graphs, in main memory, of which a device gets a few at a time."""

    graphs: Graphs
    architecture: Architecture
    encoding: Encoding
    device: torch.device

    def of(self, index: Tensor) -> Window:
        """The graphs with these numbers, through pinned memory, without waiting for the copy."""
        graphs = _moved(gather(self.graphs, index), self.device)
        first_node = self.graphs.node_ptr[index].long()
        return Window(graphs, _sent(index, self.device), _sent(first_node, self.device))

    def whole(self, graphs: Graphs) -> PreparedGraphs:
        return PreparedGraphs.of(graphs, self.architecture, self.encoding)

    def learn(self, train: Tensor) -> Preprocessing:
        nodes = int(self.graphs.nodes_per_graph[train].sum(dtype=torch.long))
        ordered, order = train[:: max(1, -(-nodes // LEARN_FROM))].sort()
        whole = self.whole(self.of(ordered).graphs)
        return Preprocessing.fit(whole, self.architecture, order.argsort())

    def count_entries(self, encodings: Sequence[Preprocessing]) -> Tensor | None:
        """How many known neighbourhoods each graph has, int32, shape (members, g), or none."""
        if self.architecture.fingerprint is None:
            return None
        bare = replace(self.architecture, totals=False)
        plain = {one: replace(one, mean=None, factor=None) for one in dict.fromkeys(encodings)}
        counts = {one: torch.empty(len(self.graphs), dtype=torch.int32) for one in plain}
        for first, after in graph_ranges(self.graphs, COUNT_AT_ONCE):
            block = _moved(slice_of(self.graphs, first, after), self.device)
            whole = PreparedGraphs.of(block, bare, self.encoding)
            for one, encoding in plain.items():
                rows = encoding.columns(whole).rows
                assert rows is not None
                counts[one][first:after] = rows.offsets.diff()
        return torch.stack([counts[one] for one in encodings])


def first_entries(counts: Tensor) -> Tensor:
    """Number of the first entry of each graph, int64, shape (g), from the counts of a member."""
    return to_offsets(counts.long())[:-1]


def _moved(graphs: Graphs, device: torch.device) -> Graphs:
    """The graphs on a device, with what has been found out about their edges."""
    sent = {name: _sent(tensor, device) for name, tensor in graphs.tensors.items()}
    moved = graphs.with_tensors(sent)
    cached = ("is_undirected", "is_symmetric")
    moved.__dict__.update({k: v for k, v in graphs.__dict__.items() if k in cached})
    return moved


def _sent(tensor: Tensor, device: torch.device) -> Tensor:
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def should_stream(
    graphs: Graphs,
    architecture: Architecture,
    protocol: Protocol,
    networks: int,
    device: torch.device,
) -> bool:
    """Whether graphs stay where they are: as the protocol says, or where they do not fit.

    Exact neighbourhoods take more room than the graphs, and each of the ``networks`` that are
    trained together has its own.
    """
    if protocol.stream is not None:
        return protocol.stream
    # At its peak a device also holds some keys of 64 bits: edges are sorted both ways, or the
    # neighbourhoods.
    nodes, edges = graphs.num_nodes, graphs.num_edges
    hops = 0 if architecture.fingerprint is None else architecture.fingerprint + 1
    keys = nodes + max(4 * edges, hops * nodes * (4 + networks))
    free = _free_memory(device)
    return free is not None and packed_bytes(graphs) + 8 * keys > SHARE * free


def packed_bytes(graphs: Graphs) -> int:
    """Bytes of the graphs themselves."""
    return sum(tensor.nbytes for tensor in graphs.tensors.values())


def _free_memory(device: torch.device) -> int | None:
    """Bytes that are free on a device, or none where the system does not say."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if "MemAvailable" in line)
    except (OSError, StopIteration):
        return None

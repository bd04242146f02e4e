"""The nodes within reach after k steps: bits that are joined along the edges, and counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lookhops.graphs import Graphs
from lookhops.neighbourhoods.density import run_bounds


@dataclass(frozen=True)
class Block:
    r"""Some graphs, with a bit for every node of a graph in every row of that graph.

    A row is a node, and rows stand by falling number of neighbours. Within its graph a node has a
    bit position; nodes of one label stand together and start a new byte, so that how many of them
    a neighbourhood holds is a sum over whole bytes.
    """

    graphs: np.ndarray  # numbers of the graphs, (g)
    nodes: np.ndarray  # node of each row, (n)
    graph: np.ndarray  # which of `graphs` each row belongs to, (n)
    position: np.ndarray  # bit position of each row's node, (n)
    words: int  # 64-bit words that hold the positions of any graph here
    slots: list[np.ndarray]  # for j = 0, 1, ...: rows of the j-th neighbours, of the first rows
    labels: np.ndarray  # of each graph, (g, l), ascending; -1 where it has fewer than l
    ends: np.ndarray  # the byte where each of these labels begins, and the last ends, (g, l + 1)

    def positions(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows whose nodes are in these words, and their bit positions there."""
        rows = np.flatnonzero((self.position >= 64 * start) & (self.position < 64 * stop))
        return rows, self.position[rows] - 64 * start


def blocks(
    graphs: Graphs, label: np.ndarray, members: np.ndarray, block_size: int
) -> Iterator[Block]:
    """Blocks of at most ``block_size`` nodes, or of one graph, that hold the graphs ``members``.

    Graphs of about one size come together: all rows of a block are as wide as its largest graph.
    Graphs without nodes are in no block. ``label``, one of each node, shape (n), is to be counted.
    """
    tensors = (graphs.node_ptr, graphs.row_ptr, graphs.source)
    node_ptr, row_ptr, source = (tensor.cpu().numpy().astype(np.int64) for tensor in tensors)
    nodes = np.diff(node_ptr)
    order = members[np.argsort(-nodes[members], kind="stable")]
    order = order[nodes[order] > 0]
    filled = np.cumsum(nodes[order])
    start = 0
    while start < order.size:
        before = filled[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(filled, before + block_size, side="right")))
        yield _block(node_ptr, row_ptr, source, label, order[start:stop])
        start = stop


def _block(
    node_ptr: np.ndarray,
    row_ptr: np.ndarray,
    source: np.ndarray,
    label: np.ndarray,
    graphs: np.ndarray,
) -> Block:
    length = np.diff(node_ptr)[graphs]
    graph = np.repeat(np.arange(graphs.size), length)
    place = np.cumsum(length) - length - node_ptr[graphs]  # of a node, less its number
    nodes = np.arange(graph.size) - place[graph]
    degree = row_ptr[nodes + 1] - row_ptr[nodes]
    order = np.argsort(-degree, kind="stable")
    nodes, graph, degree = nodes[order], graph[order], degree[order]
    row = np.empty(nodes.size, dtype=np.int64)  # by place among the block's nodes in graph order
    row[order] = np.arange(nodes.size)
    first = row_ptr[nodes]
    slots = []
    for j in range(int(degree[0])):
        having = np.searchsorted(-degree, -j)  # rows with more than j neighbours
        neighbour = source[first[:having] + j]
        slots.append(row[neighbour + place[graph[:having]]])
    position, words, labels, ends = _layout(graph, label[nodes], graphs.size)
    return Block(graphs, nodes, graph, position, words, slots, labels, ends)


def _layout(
    graph: np.ndarray, label: np.ndarray, graphs: int
) -> tuple[np.ndarray, int, np.ndarray, np.ndarray]:
    """Give each node a bit position: label after label, each from a new byte on."""
    order = np.lexsort((label, graph))
    bounds = run_bounds((np.diff(graph[order]) != 0) | (np.diff(label[order]) != 0))
    start, length = bounds[:-1], np.diff(bounds)  # of runs: the nodes of one label in one graph
    run_graph, run_label = graph[order][start], label[order][start]
    size = -(-length // 8)
    runs = np.bincount(run_graph, minlength=graphs)
    first_run = np.repeat(np.cumsum(runs) - runs, runs)  # of the same graph
    rank = np.arange(start.size) - first_run
    end = np.cumsum(size)
    end -= (end - size)[first_run]
    position = np.empty(order.size, dtype=np.int64)
    position[order] = np.repeat((end - size) * 8 - start, length) + np.arange(order.size)
    labels = np.full((graphs, runs.max()), -1)
    labels[run_graph, rank] = run_label
    ends = np.zeros((graphs, runs.max() + 1), dtype=np.int64)
    ends[run_graph, rank + 1] = end
    np.maximum.accumulate(ends, axis=1, out=ends)
    return position, -(-int(end.max()) // 8), labels, ends


NEIGHBOURHOODS = ("walk", "ball")
# Bits of a block are worked on in panels of some columns, of at most this many bytes: a graph too
# large for a square of bits is no special case, and a panel stays in the processor's cache.
PANEL_BYTES = 1 << 21
# Bits are unpacked to numbers for a product this many at a time.
UNPACKED = 1 << 21

_EACH_BYTE = np.uint64(0x0101010101010101)


def reach(
    block: Block, max_k: int, neighbourhood: str, values: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""What each node reaches in 1 to ``max_k`` steps: how many nodes, labels, and sums of values.

    :math:`F_i^k` are the nodes whose information arrives at node :math:`i` in :math:`k` steps
    along the edges: by a walk of exactly :math:`k` steps (``"walk"``), or of at most :math:`k`
    (``"ball"``, which holds :math:`i` itself). Edge weights and repeated edges do not matter.

    Sizes of :math:`F_i^k` are of shape (K, n); how many of them have each of the graph's labels
    (``block.labels``), (K, n, l); sums of their ``values``, which are (n, d) by row, (K, d, n).
    """
    rows, labels = block.nodes.size, block.labels.shape[1]
    size = np.zeros((max_k, rows), dtype=np.int64)
    having = np.zeros((max_k, rows, labels), dtype=np.int32)
    width = 0 if values is None else values.shape[1]
    sums = np.zeros((max_k, width, rows))
    panel = max(1, PANEL_BYTES // (8 * rows))
    for start in range(0, block.words, panel):
        stop = min(start + panel, block.words)
        count = _Count(block, start, stop)
        multiply = None if values is None else _Product(block, values, start, stop)
        for k, bits in enumerate(_steps(block, max_k, neighbourhood, start, stop)):
            count(bits[:-1], size[k], having[k])
            if multiply is not None:
                sums[k] += multiply(bits)
    return size, having, sums


def _steps(
    block: Block, max_k: int, neighbourhood: str, start: int, stop: int
) -> Iterator[np.ndarray]:
    """Bits of F^1, F^2, ... in the words from ``start`` to ``stop``, with a row of zeros last."""
    rows = block.nodes.size
    bits = np.zeros((rows + 1, stop - start), dtype=np.uint64)
    here, column = block.positions(start, stop)
    bits.view(np.uint8)[here, column >> 3] = (1 << (column & 7)).astype(np.uint8)
    for _ in range(max_k):
        reached = np.zeros_like(bits) if neighbourhood == "walk" else bits.copy()
        for sources in block.slots:
            part = reached[: sources.size]
            np.bitwise_or(part, np.take(bits, sources, axis=0), out=part)
        bits = reached
        yield bits


class _Count:
    """How many bits of each row are set, in all and label by label."""

    def __init__(self, block: Block, start: int, stop: int) -> None:
        self._shape = (block.nodes.size, stop - start + 1)
        ends = np.clip(block.ends - 8 * start, 0, 8 * (stop - start))[block.graph]
        words = np.arange(block.nodes.size)[:, None] * self._shape[1]
        self._word = (ends >> 3) + words
        self._byte = ends + 8 * words

    def __call__(self, bits: np.ndarray, size: np.ndarray, having: np.ndarray) -> None:
        """Add the bits of each row to ``size`` (n), those of each label to ``having`` (n, l)."""
        # Times 0x0101...: each byte becomes the sum of itself and the lower ones, at most 64.
        running = _bits_per_byte(bits) * _EACH_BYTE
        before = np.zeros(self._shape, dtype=np.int32)  # bits set in the words before this one
        before[:, 1:] = running.view(np.uint8)[:, 7::8]
        for word in range(2, self._shape[1]):  # words are few: faster than a cumsum row by row
            before[:, word] += before[:, word - 1]
        inside = np.zeros(self._shape, dtype=np.uint64)  # in the bytes before, within the word
        np.left_shift(running, np.uint64(8), out=inside[:, :-1])
        upto = np.take(before, self._word)
        upto += np.take(inside.view(np.uint8), self._byte)
        size += before[:, -1]
        having += np.diff(upto, axis=1)


def _bits_per_byte(bits: np.ndarray) -> np.ndarray:
    """How many bits of each byte are set, still eight bytes to a word."""
    if hasattr(np, "bitwise_count"):  # NumPy 2
        return np.bitwise_count(bits.view(np.uint8)).view(np.uint64)
    return _TABLE[bits.view(np.uint8)].view(np.uint64)


_TABLE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(1, dtype=np.uint8)


class _Product:
    """Sums of values over the nodes whose bits are set: a dense product, graph by graph."""

    def __init__(self, block: Block, values: np.ndarray, start: int, stop: int) -> None:
        graphs = block.graphs.size
        here, column = block.positions(start, stop)
        self._bytes = (int(column.max()) >> 3) + 1 if column.size else 1
        dense = np.zeros((graphs, 8 * self._bytes, values.shape[1]))
        dense[block.graph[here], column] = values[here]
        self._values = np.ascontiguousarray(dense.transpose(0, 2, 1))
        # Rows of each graph side by side, filled up with the row of zeros.
        nodes = np.bincount(block.graph, minlength=graphs)
        order = np.argsort(block.graph, kind="stable")
        place = np.arange(order.size) - np.repeat(np.cumsum(nodes) - nodes, nodes)
        self._rows = np.full((graphs, int(nodes.max())), order.size)
        self._rows[block.graph[order], place] = order

    def __call__(self, bits: np.ndarray) -> np.ndarray:
        """Sums for each row, shape (d, n)."""
        graphs, nodes = self._rows.shape
        narrow = bits.view(np.uint8)[:, : self._bytes]
        sums = np.empty((self._values.shape[1], bits.shape[0]))
        columns = 8 * self._bytes
        graphs_at_once = max(1, UNPACKED // (columns * nodes))
        rows_at_once = max(1, UNPACKED // columns)  # where one graph is already too much
        for g in range(0, graphs, graphs_at_once):
            for i in range(0, nodes, rows_at_once):
                rows = self._rows[g : g + graphs_at_once, i : i + rows_at_once]
                dense = np.unpackbits(np.take(narrow, rows, axis=0), axis=2, bitorder="little")
                values = self._values[g : g + graphs_at_once]
                part = values @ dense.astype(np.float64).transpose(0, 2, 1)
                sums[:, rows] = part.transpose(1, 0, 2)
        return sums[:, :-1]

"""Graphs of about one size, laid out together so that their neighbourhoods are bits of words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from lookhops.graphs import Graphs


@dataclass(frozen=True)
class Structure:
    """The arrays of a set of graphs that neighbourhoods depend on.

    Args:
        node_ptr: Node offsets of the graphs, shape (g + 1).
        row_ptr: Offsets of the edges into each node, shape (n + 1).
        source: Source of each edge, shape (e).
        label: One label of each node, shape (n), that is to be counted; all 0 if there is none.
    """

    node_ptr: np.ndarray
    row_ptr: np.ndarray
    source: np.ndarray
    label: np.ndarray

    @classmethod
    def of(cls, graphs: Graphs, label: np.ndarray | None = None) -> Structure:
        """Take the structure of graphs, and the label to count."""
        arrays = (graphs.node_ptr, graphs.row_ptr, graphs.source)
        node_ptr, row_ptr, source = (tensor.cpu().numpy().astype(np.int64) for tensor in arrays)
        if label is None:
            label = np.zeros(graphs.num_nodes, dtype=np.int64)
        return cls(node_ptr, row_ptr, source, label)

    def without_label(self) -> Structure:
        """The same with one label for all nodes, which takes the fewest bits."""
        return replace(self, label=np.zeros_like(self.label))


@dataclass(frozen=True)
class Block:
    r"""Some graphs, with a bit for every node of a graph in every row of that graph.

    A row is a node, and rows stand by falling number of neighbours. Within its graph a node has a
    bit position; nodes of one label stand together and start a new byte, so that how many of them
    a neighbourhood holds is a sum over whole bytes.

    Args:
        graphs: Numbers of the graphs, shape (g).
        nodes: Node of each row, shape (n).
        graph: Which of ``graphs`` each row belongs to, shape (n).
        position: Bit position of each row's node, shape (n).
        words: 64-bit words that hold the positions of any graph here.
        slots: For j = 0, 1, ...: the rows of the j-th neighbours. Rows stand by falling number of
            neighbours, so that the j-th neighbours are those of the first rows.
        labels: The labels of each graph, shape (g, l), ascending; -1 where it has fewer than l.
        ends: The byte where each of these labels begins, then where the last ends, (g, l + 1).
    """

    graphs: np.ndarray
    nodes: np.ndarray
    graph: np.ndarray
    position: np.ndarray
    words: int
    slots: list[np.ndarray]
    labels: np.ndarray
    ends: np.ndarray


def blocks(structure: Structure, block_size: int, members: np.ndarray) -> Iterator[Block]:
    """Blocks of at most ``block_size`` nodes, or of one graph, that hold the graphs ``members``.

    Graphs of about one size come together: all rows of a block are as wide as its largest graph.
    Graphs without nodes are in no block.
    """
    nodes = np.diff(structure.node_ptr)
    order = members[np.argsort(-nodes[members], kind="stable")]
    order = order[nodes[order] > 0]
    filled = np.cumsum(nodes[order])
    start = 0
    while start < order.size:
        before = filled[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(filled, before + block_size, side="right")))
        yield _block(structure, order[start:stop])
        start = stop


def _block(structure: Structure, graphs: np.ndarray) -> Block:
    nodes, graph = _ranges(structure.node_ptr, graphs)
    degree = structure.row_ptr[nodes + 1] - structure.row_ptr[nodes]
    order = np.argsort(-degree, kind="stable")
    nodes, graph, degree = nodes[order], graph[order], degree[order]
    row = np.empty(nodes.size, dtype=np.int64)  # by place among the block's nodes in graph order
    row[order] = np.arange(nodes.size)
    place = _starts(np.diff(structure.node_ptr)[graphs])[:-1] - structure.node_ptr[graphs]
    first = structure.row_ptr[nodes]
    slots = []
    for j in range(int(degree[0])):
        having = np.searchsorted(-degree, -j)  # rows with more than j neighbours
        source = structure.source[first[:having] + j]
        slots.append(row[source + place[graph[:having]]])
    position, words, labels, ends = _layout(graph, structure.label[nodes], graphs.size)
    return Block(graphs, nodes, graph, position, words, slots, labels, ends)


def _layout(
    graph: np.ndarray, label: np.ndarray, graphs: int
) -> tuple[np.ndarray, int, np.ndarray, np.ndarray]:
    """Give each node a bit position: label after label, each from a new byte on."""
    order = np.lexsort((label, graph))
    new = np.ones(order.size, dtype=bool)
    new[1:] = (np.diff(graph[order]) != 0) | (np.diff(label[order]) != 0)
    start = np.flatnonzero(new)  # of runs: the nodes of one label in one graph
    length = np.diff(start, append=order.size)
    run_graph, run_label = graph[order][start], label[order][start]
    size = -(-length // 8)
    runs = np.bincount(run_graph, minlength=graphs)
    rank = np.arange(start.size) - np.repeat(_starts(runs)[:-1], runs)
    end = np.cumsum(size)
    end -= np.repeat(_starts(np.bincount(run_graph, size, graphs).astype(np.int64))[:-1], runs)
    position = np.empty(order.size, dtype=np.int64)
    position[order] = np.repeat((end - size) * 8 - start, length) + np.arange(order.size)
    labels = np.full((graphs, runs.max()), -1)
    labels[run_graph, rank] = run_label
    ends = np.zeros((graphs, runs.max() + 1), dtype=np.int64)
    ends[run_graph, rank + 1] = end
    np.maximum.accumulate(ends, axis=1, out=ends)
    return position, -(-int(end.max()) // 8), labels, ends


def _ranges(pointer: np.ndarray, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The elements of the segments at ``index``, and which of them each one belongs to."""
    length = np.diff(pointer)[index]
    segment = np.repeat(np.arange(index.size), length)
    shift = pointer[index] - _starts(length)[:-1]
    return np.arange(segment.size) + shift[segment], segment


def _starts(lengths: np.ndarray) -> np.ndarray:
    """Offsets of segments of these lengths: 0, l_0, l_0 + l_1, ..."""
    return np.concatenate((np.zeros(1, dtype=lengths.dtype), np.cumsum(lengths)))

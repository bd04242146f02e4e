"""Graphs of about one size, laid out together so that their neighbourhoods are bits of words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lookhops.graphs import Graphs
from lookhops.information.density import run_bounds


@dataclass(frozen=True)
class Structure:
    """The arrays of a set of graphs that neighbourhoods depend on.

    Args:
        node_ptr: Node offsets of the graphs, shape (g + 1).
        row_ptr: Offsets of the edges into each node, shape (n + 1).
        source: Source of each edge, shape (e).
    """

    node_ptr: np.ndarray
    row_ptr: np.ndarray
    source: np.ndarray

    @classmethod
    def of(cls, graphs: Graphs) -> Structure:
        """Take the structure of graphs."""
        tensors = (graphs.node_ptr, graphs.row_ptr, graphs.source)
        return cls(*(tensor.cpu().numpy().astype(np.int64) for tensor in tensors))


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


def blocks(
    structure: Structure, label: np.ndarray, members: np.ndarray, block_size: int
) -> Iterator[Block]:
    """Blocks of at most ``block_size`` nodes, or of one graph, that hold the graphs ``members``.

    Graphs of about one size come together: all rows of a block are as wide as its largest graph.
    Graphs without nodes are in no block. ``label``, one of each node, shape (n), is to be counted;
    equal labels take the fewest bits.
    """
    nodes = np.diff(structure.node_ptr)
    order = members[np.argsort(-nodes[members], kind="stable")]
    order = order[nodes[order] > 0]
    filled = np.cumsum(nodes[order])
    start = 0
    while start < order.size:
        before = filled[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(filled, before + block_size, side="right")))
        yield _block(structure, label, order[start:stop])
        start = stop


def _block(structure: Structure, label: np.ndarray, graphs: np.ndarray) -> Block:
    length = np.diff(structure.node_ptr)[graphs]
    graph = np.repeat(np.arange(graphs.size), length)
    place = np.cumsum(length) - length - structure.node_ptr[graphs]  # of a node, less its number
    nodes = np.arange(graph.size) - place[graph]
    degree = structure.row_ptr[nodes + 1] - structure.row_ptr[nodes]
    order = np.argsort(-degree, kind="stable")
    nodes, graph, degree = nodes[order], graph[order], degree[order]
    row = np.empty(nodes.size, dtype=np.int64)  # by place among the block's nodes in graph order
    row[order] = np.arange(nodes.size)
    first = structure.row_ptr[nodes]
    slots = []
    for j in range(int(degree[0])):
        having = np.searchsorted(-degree, -j)  # rows with more than j neighbours
        source = structure.source[first[:having] + j]
        slots.append(row[source + place[graph[:having]]])
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

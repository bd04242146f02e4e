r"""kInfo: the entropy of what a node sees at k hops, one channel at a time.

With :math:`G` the global density of a channel and :math:`F_i^k` the nodes that node :math:`i` sees,
:math:`L_j = G_j / \sum_{F_i^k} G` and :math:`H_i = -\sum_{F_i^k} L_j \log L_j`. That needs no loop
over nodes: with :math:`S = \sum_{F_i^k} G` and :math:`U = \sum_{F_i^k} G \log G`,

.. math:: H_i = \log S - U / S
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.graphs.features import Features
from lookhops.neighbourhoods.compositions import two_valued_entropy
from lookhops.neighbourhoods.density import Sample, evaluate_exactly, global_density
from lookhops.neighbourhoods.reach import NEIGHBOURHOODS, Block, blocks, reach

# The most nodes that are worked on together: their bits, or their densities, stay in the
# processor's cache.
BLOCK_SIZE, SUMMED_BLOCK_SIZE = 4096, 1024
# Entropies of as many summed channels are held at once as fit in this many bytes, one at least.
HELD_BYTES = 1 << 28


@dataclass(frozen=True)
class Channels:
    """The columns of ``graphs.x`` that vary.

    A column of two values (a one-hot label, a flag) is *counted*: of a neighbourhood it is enough
    to know how many nodes it has and how many of them hold the upper value. The others are
    *summed*.
    """

    counted: np.ndarray  # columns of x that have two values, (c)
    ratio: np.ndarray  # of each the global density at the upper value over that at the lower
    most: np.ndarray  # of each the most nodes of one graph that hold the upper value
    label: np.ndarray  # the label column with the most values, (n)
    channel_of_label: np.ndarray  # which of `counted` each of its values is, or -1
    channel_of_flag: np.ndarray  # which of `counted` the other columns are, (f)
    flags: np.ndarray  # whether each node holds their upper value, (n, f)
    summed: np.ndarray  # columns of x with more than two values
    attributes: np.ndarray  # of the nodes, (n, a): `summed` are columns of it
    constant: int  # how many columns have one value only, and are left out

    @property
    def columns(self) -> np.ndarray:
        """Columns of ``x`` in use, counted ones first, shape (d)."""
        return np.concatenate((self.counted, self.summed))


def with_something_to_see(graphs: Graphs) -> Graphs:
    """The graphs, with degrees for features where no feature of the nodes varies."""
    seen = graphs.nodes.tensors.values()
    if any(bool((columns != columns[:1]).any()) for columns in seen):
        return graphs
    degree = graphs.row_ptr.diff().float()[:, None]
    if not bool((degree != degree[:1]).any()):
        return graphs
    why = "no feature of the nodes differs" if seen else "the nodes have no features"
    warnings.warn(f"{graphs.name}: {why}, so their degrees are looked at.", stacklevel=3)
    return replace(graphs, nodes=Features(numbers=degree, number_names=("degree",)))


def sort_channels(graphs: Graphs) -> Channels:
    """Find the columns of ``graphs.x`` that vary, and of them those that have two values."""
    if graphs.num_nodes == 0:
        raise LookHopsError(f"{graphs.name}: there are no nodes to look at.")
    attributes, sizes = _attributes(graphs), graphs.nodes.label_sizes
    labels = np.zeros((graphs.num_nodes, 1))
    if graphs.nodes.labels is not None:
        labels = graphs.nodes.labels.cpu().numpy()
    main = int(np.argmax(sizes)) if sizes else 0
    main_start = attributes.shape[1] + sum(sizes[:main])  # column of x where that label begins
    channel_of_label = np.full(sizes[main] if sizes else 1, -1)
    graph = graphs.batch.cpu().numpy()
    counted, channel_of_flag, summed = list[int](), list[int](), list[int]()
    ratio, most, flags = list[float](), list[int](), list[np.ndarray]()
    for column, values in enumerate(_columns(attributes, labels, sizes)):
        low, high = values.min(), values.max()
        upper = values == high
        if low == high:
            continue
        if not np.all(upper | (values == low)):
            summed.append(column)
            continue
        if main_start <= column < main_start + channel_of_label.size:
            channel_of_label[column - main_start] = len(counted)
        else:
            channel_of_flag.append(len(counted))
            flags.append(upper)
        counted.append(column)
        ratio.append(_density_ratio(upper))
        most.append(int(np.bincount(graph[upper]).max()))
    if not counted and not summed:
        features = {0: "the nodes have no features", 1: "the only feature of the nodes is constant"}
        all_constant = f"all {graphs.num_features} features are constant"
        raise LookHopsError(
            f"{graphs.name}: {features.get(graphs.num_features, all_constant)}, so every "
            "neighbourhood looks the same and no hop adds information. Give the nodes features "
            "that differ, such as a label."
        )
    return Channels(
        counted=np.array(counted, dtype=np.int64),
        ratio=np.array(ratio),
        most=np.array(most, dtype=np.int64),
        label=labels[:, main].astype(np.int64),
        channel_of_label=channel_of_label,
        channel_of_flag=np.array(channel_of_flag, dtype=np.int64),
        flags=np.array(flags, dtype=bool).reshape(-1, graphs.num_nodes).T,
        summed=np.array(summed, dtype=np.int64),
        attributes=attributes,
        constant=graphs.num_features - len(counted) - len(summed),
    )


def _columns(
    attributes: np.ndarray, labels: np.ndarray, sizes: Sequence[int]
) -> Iterator[np.ndarray]:
    """The columns of ``x``, each of shape (n)."""
    yield from (np.ascontiguousarray(values) for values in attributes.T)
    for j, size in enumerate(sizes):
        yield from (labels[:, j] == value for value in range(size))


def _density_ratio(upper: np.ndarray) -> float:
    """The global density at the upper of two values over that at the lower."""
    # The entropy does not change when all densities are scaled, nor do they when the two values
    # are moved: 0 and 1 stand for any two.
    count = np.count_nonzero(upper)
    sample = Sample(np.array([0.0, 1.0]), np.array([upper.size - count, count]))
    low, high = evaluate_exactly(sample, sample.values)
    return float(high / low)


def _attributes(graphs: Graphs) -> np.ndarray:
    """The numbers of the nodes, shape (n, a); a blank is the mean of its column, as in training."""
    if graphs.nodes.numbers is None:
        return np.zeros((graphs.num_nodes, 0))
    attributes = graphs.nodes.numbers.detach().cpu().numpy()
    infinite = np.argwhere(np.isinf(attributes))
    if len(infinite):
        node, column = infinite[0]
        graph = int(np.searchsorted(graphs.node_ptr.cpu().numpy(), node, side="right")) - 1
        raise LookHopsError(
            f"{graphs.name}: attribute {column} of node {node} (in graph {graph}) is "
            f"{attributes[node, column]}, and {len(infinite)} values in all are not finite; fill "
            "them in or leave those graphs out."
        )
    blank = np.isnan(attributes)
    count = np.maximum((~blank).sum(0), 1)
    mean = np.where(blank, 0, attributes).sum(0, dtype=np.float64) / count
    return np.where(blank, mean.astype(attributes.dtype), attributes)


@dataclass(frozen=True)
class Scope:
    """Some graphs, and how far to look from each of their nodes."""

    graphs: Graphs
    channels: Channels  # of all graphs
    members: np.ndarray  # numbers of the graphs to look at, (g)
    max_k: int
    neighbourhood: str  # walk or ball
    block_size: int  # the most nodes that are worked on together

    @classmethod
    def of(cls, graphs: Graphs, max_k: int, neighbourhood: str, block_size: int) -> Scope:
        """All graphs."""
        if neighbourhood not in NEIGHBOURHOODS:
            raise LookHopsError(f"A neighbourhood is walk or ball, not {neighbourhood!r}.")
        if block_size < 1:
            raise LookHopsError(f"A block holds 1 node or more, not {block_size}.")
        members = np.arange(len(graphs))
        return cls(graphs, sort_channels(graphs), members, max_k, neighbourhood, block_size)

    @cached_property
    def nodes_per_graph(self) -> np.ndarray:
        """Also of graphs that are not looked at."""
        return self.graphs.nodes_per_graph.cpu().numpy().astype(np.int64)

    @property
    def num_nodes(self) -> int:
        """Nodes of the graphs to look at."""
        return int(self.nodes_per_graph[self.members].sum())

    def _blocks(self, label: np.ndarray, summed: bool) -> Iterator[Block]:
        block_size = min(self.block_size, SUMMED_BLOCK_SIZE) if summed else self.block_size
        return blocks(self.graphs, label, self.members, block_size)

    def counted(self) -> Iterator[tuple[Block, np.ndarray, np.ndarray, np.ndarray]]:
        """For each block: how many nodes each node sees, and how many upper values among them.

        Sizes (K, n), where an empty neighbourhood counts as one node of the lower value, whose
        entropy is 0 as well; the channel of each count (n, l), -1 for none; the counts (K, n, l).
        """
        flags = self.channels.flags
        of_label = np.append(self.channels.channel_of_label, -1)  # a block's label -1 is none
        # Either all labels that occur are channels or, with only one label, none is.
        labels = np.s_[:] if (of_label >= 0).any() else np.s_[:0]
        for block in self._blocks(self.channels.label, summed=flags.size > 0):
            values = flags[block.nodes].astype(np.float64) if flags.size else None
            size, ones, sums = reach(block, self.max_k, self.neighbourhood, values)
            channel, ones = of_label[block.labels][block.graph][:, labels], ones[:, :, labels]
            if flags.size:
                of_flag = np.tile(self.channels.channel_of_flag, (len(channel), 1))
                channel = np.hstack((channel, of_flag))
                by_flag = np.rint(sums).astype(ones.dtype).transpose(0, 2, 1)
                ones = np.concatenate((ones, by_flag), axis=2)
            yield block, np.maximum(size, 1), channel, ones

    def summed(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For some summed channels at a time, columns of ``x`` (c): all nodes in some order (n),
        and their entropies (K, c, n)."""
        no_label = np.zeros_like(self.channels.label)
        step = max(1, HELD_BYTES // (8 * self.max_k * max(1, self.num_nodes)))
        held = np.empty((self.max_k, min(step, self.channels.summed.size), self.num_nodes))
        for start in range(0, self.channels.summed.size, step):
            columns = self.channels.summed[start : start + step]
            values = self.channels.attributes[:, columns]
            density = np.stack([global_density(column) for column in values.T], axis=1)
            entropy = held[:, : columns.size]
            nodes = np.empty(self.num_nodes, dtype=np.int64)
            done = 0
            for block in self._blocks(no_label, summed=True):
                here = slice(done, done + block.nodes.size)
                nodes[here] = block.nodes
                entropy[:, :, here] = self._entropy(block, density[block.nodes])
                done = here.stop
            yield columns, nodes, entropy

    def _entropy(self, block: Block, density: np.ndarray) -> np.ndarray:
        """Entropies from sums of densities, shape (K, c, n)."""
        values = np.hstack((density, density * np.log(density)))
        size, _, sums = reach(block, self.max_k, self.neighbourhood, values)
        s, u = np.split(sums, 2, axis=1)
        if size.min() == 0:  # nothing within reach: u is 0, and so is the entropy
            s[np.broadcast_to(size[:, None] == 0, s.shape)] = 1
        u /= s
        np.log(s, out=s)
        s -= u
        return s


def kinfo(
    graphs: Graphs, max_k: int, neighbourhood: str = "walk", block_size: int = BLOCK_SIZE
) -> np.ndarray:
    """kInfo of every node for k = 1 to K: the entropies that the information gain is made of.

    Returns shape (K, n, d') for the d' columns of ``graphs.x`` that vary, in their order there;
    arguments are those of :class:`Scope`.
    """
    scope = Scope.of(graphs, max_k, neighbourhood, block_size)
    counted, ratio = scope.channels.counted, scope.channels.ratio
    entropy = np.empty((max_k, graphs.num_nodes, graphs.num_features))
    for block, size, channel, ones in scope.counted() if counted.size else ():
        row, column = np.nonzero(channel >= 0)
        which = channel[row, column]
        entropy[:, block.nodes[:, None], counted] = np.log(size)[:, :, None]
        entropy[:, block.nodes[row], counted[which]] = two_valued_entropy(
            size[:, row], ones[:, row, column], ratio[which]
        )
    for columns, nodes, found in scope.summed():
        entropy[:, nodes[:, None], columns] = found.transpose(0, 2, 1)
    return entropy[:, :, np.sort(scope.channels.columns)]

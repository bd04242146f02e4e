"""The features of the nodes, sorted by how their neighbourhoods are summed up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.information.density import Sample, evaluate_exactly


@dataclass(frozen=True)
class Channels:
    """The columns of ``graphs.x`` that vary.

    A column of two values (a one-hot label, a flag) is *counted*: of a neighbourhood it is enough
    to know how many nodes it has and how many of them hold the upper value. The others are
    *summed*.

    Args:
        counted: Columns of ``x`` that have two values, shape (c): first those of ``label``.
        ratio: The global density at the upper value over that at the lower, of each, shape (c).
        most: The most nodes of one graph that hold the upper value, of each, shape (c).
        label: The label column with the most values, one number a node, shape (n).
        channel_of_label: Which of ``counted`` each value of ``label`` is, or -1.
        flags: The other counted columns, shape (n, f): whether a node holds the upper value.
        summed: Columns of ``x`` with more than two values.
        attributes: The attributes of the nodes, shape (n, a); ``summed`` are columns of it.
        constant: How many columns have one value only, and are left out.
    """

    counted: np.ndarray
    ratio: np.ndarray
    most: np.ndarray
    label: np.ndarray
    channel_of_label: np.ndarray
    flags: np.ndarray
    summed: np.ndarray
    attributes: np.ndarray
    constant: int

    @property
    def columns(self) -> np.ndarray:
        """Columns of ``x`` in use, counted ones first, shape (d)."""
        return np.concatenate((self.counted, self.summed))


def sort_channels(graphs: Graphs) -> Channels:
    """Find the columns of ``graphs.x`` that vary, and those that have two values."""
    if graphs.num_nodes == 0:
        raise LookHopsError(f"{graphs.name}: there are no nodes, so hops have nothing to tell.")
    attributes = _attributes(graphs)
    labels = _labels(graphs)
    sizes = graphs.label_sizes
    start = attributes.shape[1] + np.cumsum((0, *sizes))  # column of x where each label begins
    main = int(np.argmax(sizes)) if sizes else 0
    label = labels[:, main] if sizes else np.zeros(graphs.num_nodes, dtype=np.int64)
    channel_of_label = np.full(sizes[main] if sizes else 1, -1)
    varying = np.flatnonzero(_varies(np.bincount(label, minlength=channel_of_label.size), label))
    channel_of_label[varying] = np.arange(varying.size)
    counted = list(start[main] + varying)
    flags, summed = [], []
    for column in range(attributes.shape[1]):
        values = np.ascontiguousarray(attributes[:, column])
        low, high = values.min(), values.max()
        upper = values == high
        if low < high and np.all(upper | (values == low)):
            counted.append(column)
            flags.append(upper)
        elif low < high:
            summed.append(column)
    for j in range(len(sizes)):
        for value in range(sizes[j]) if j != main else ():
            upper = labels[:, j] == value
            if 0 < upper.sum() < upper.size:
                counted.append(start[j] + value)
                flags.append(upper)
    columns = graphs.num_features
    constant = columns - len(counted) - len(summed)
    if not counted and not summed:
        raise LookHopsError(
            f"{graphs.name}: {_no_feature_varies(columns)}, so every neighbourhood looks the same "
            "and hops have nothing to tell. Give the nodes features that differ, such as a label "
            "or their degree."
        )
    flag = np.stack(flags, axis=1) if flags else np.zeros((graphs.num_nodes, 0), dtype=bool)
    ratio, most = _two_valued(graphs, label, varying, flag)
    return Channels(
        counted=np.array(counted, dtype=np.int64),
        ratio=ratio,
        most=most,
        label=label,
        channel_of_label=channel_of_label,
        flags=flag,
        summed=np.array(summed, dtype=np.int64),
        attributes=attributes,
        constant=constant,
    )


def _attributes(graphs: Graphs) -> np.ndarray:
    if graphs.attributes is None:
        return np.zeros((graphs.num_nodes, 0))
    attributes = graphs.attributes.detach().cpu().numpy()
    finite = np.isfinite(attributes)
    if not finite.all():
        bad = np.argwhere(~finite)
        node, column = bad[0]
        graph = int(np.searchsorted(graphs.node_ptr.cpu().numpy(), node, side="right")) - 1
        raise LookHopsError(
            f"{graphs.name}: attribute {column} of node {node} (in graph {graph}) is "
            f"{attributes[node, column]}, and {len(bad)} values in all are not finite numbers; "
            "fill them in or leave those graphs out."
        )
    return attributes


def _labels(graphs: Graphs) -> np.ndarray:
    if graphs.labels is None:
        return np.zeros((graphs.num_nodes, 0), dtype=np.int64)
    return graphs.labels.cpu().numpy().astype(np.int64)


def _varies(count: np.ndarray, label: np.ndarray) -> np.ndarray:
    return (count > 0) & (count < label.size)


def _no_feature_varies(columns: int) -> str:
    if columns == 0:
        return "the nodes have no features"
    if columns == 1:
        return "the only feature of the nodes is constant"
    return f"all {columns} features are constant"


def _two_valued(
    graphs: Graphs, label: np.ndarray, varying: np.ndarray, flags: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Ratio of the two global densities, and the most upper values in one graph, per channel."""
    node_ptr = graphs.node_ptr.cpu().numpy().astype(np.int64)
    graph = np.repeat(np.arange(len(graphs)), np.diff(node_ptr))
    pairs, count = np.unique(graph * (label.max() + 1) + label, return_counts=True)
    most_label = np.zeros(label.max() + 1, dtype=np.int64)
    np.maximum.at(most_label, pairs % (label.max() + 1), count)
    running = np.zeros((graphs.num_nodes + 1, flags.shape[1]), dtype=np.int64)
    np.cumsum(flags, axis=0, out=running[1:])
    most_flag = np.diff(running[node_ptr], axis=0).max(axis=0)
    upper = np.concatenate((np.bincount(label)[varying], flags.sum(axis=0)))
    ratio = np.empty(upper.size)
    for c, count in enumerate(upper):
        # The entropy does not change when all densities are scaled, nor do they when the two values
        # are moved: 0 and 1 stand for any two.
        sample = Sample.counted(np.array([0.0, 1.0]), np.array([label.size - count, count]))
        low, high = evaluate_exactly(sample, sample.values)
        ratio[c] = high / low
    return ratio, np.concatenate((most_label[varying], most_flag))

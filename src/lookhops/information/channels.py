"""The features of the nodes, sorted by how their neighbourhoods are summed up."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.information.density import Sample, evaluate_exactly


@dataclass(frozen=True)
class Channels:
    """The columns of ``graphs.x`` that vary.

    A column of two values (a one-hot label, a flag) is *counted*: of a neighbourhood it is enough
    to know how many nodes it has and how many of them hold the upper value. The others are
    *summed*.

    Args:
        counted: Columns of ``x`` that have two values, shape (c).
        ratio: The global density at the upper value over that at the lower, of each, shape (c).
        most: The most nodes of one graph that hold the upper value, of each, shape (c).
        label: The label column with the most values, one number a node, shape (n).
        channel_of_label: Which of ``counted`` each value of ``label`` is, or -1.
        channel_of_flag: Which of ``counted`` the columns are that are no value of ``label``, (f).
        flags: Whether each node holds their upper value, shape (n, f).
        summed: Columns of ``x`` with more than two values.
        attributes: The attributes of the nodes, shape (n, a); ``summed`` are columns of it.
        constant: How many columns have one value only, and are left out.
    """

    counted: np.ndarray
    ratio: np.ndarray
    most: np.ndarray
    label: np.ndarray
    channel_of_label: np.ndarray
    channel_of_flag: np.ndarray
    flags: np.ndarray
    summed: np.ndarray
    attributes: np.ndarray
    constant: int

    @property
    def columns(self) -> np.ndarray:
        """Columns of ``x`` in use, counted ones first, shape (d)."""
        return np.concatenate((self.counted, self.summed))


def with_something_to_see(graphs: Graphs) -> Graphs:
    """Graphs whose nodes differ: by their degrees, where no feature of theirs varies."""
    seen = [columns for columns in (graphs.attributes, graphs.labels) if columns is not None]
    if any(bool((columns != columns[:1]).any()) for columns in seen):
        return graphs
    degree = graphs.row_ptr.diff().float()[:, None]
    if not bool((degree != degree[:1]).any()):
        return graphs
    why = "no feature of the nodes differs" if seen else "the nodes have no features"
    warnings.warn(f"{graphs.name}: {why}, so their degrees are looked at.", stacklevel=3)
    return replace(graphs, attributes=degree, attribute_names=("degree",), labels=None)


def sort_channels(graphs: Graphs) -> Channels:
    """Find the columns of ``graphs.x`` that vary, and those that have two values."""
    if graphs.num_nodes == 0:
        raise LookHopsError(f"{graphs.name}: there are no nodes, so hops have nothing to tell.")
    attributes, sizes = _attributes(graphs), graphs.label_sizes
    labels = (
        np.zeros((graphs.num_nodes, 1)) if graphs.labels is None else graphs.labels.cpu().numpy()
    )
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
            "neighbourhood looks the same and hops have nothing to tell. Give the nodes features "
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
    if graphs.attributes is None:
        return np.zeros((graphs.num_nodes, 0))
    attributes = graphs.attributes.detach().cpu().numpy()
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
    if not blank.any():
        return attributes
    known = np.maximum((~blank).sum(0), 1)
    mean = np.where(blank, 0, attributes).sum(0, dtype=np.float64) / known
    return np.where(blank, mean.astype(attributes.dtype), attributes)

"""Features of nodes or edges: numbers as attributes, integers as labels, and both as columns."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.graphs.indexing import take

if TYPE_CHECKING:
    from lookhops.graphs import Graphs
    from lookhops.graphs.packed import PackedGraphs

#: The value of a text label that is not known.
BLANK = "(blank)"


def width(features: Tensor | None) -> int:
    """Number of columns; none where there are no features."""
    return 0 if features is None else features.shape[1]


def feature_columns(
    attributes: Tensor | None,
    labels: Tensor | None,
    sizes: Sequence[int],
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Attributes as they are, then one-hot labels: one tensor of floats, one row each.

    Nothing waits for the device: it can be recorded in a CUDA graph. Without a ``dtype`` the
    attributes' own is taken, else PyTorch's default.
    """
    given = attributes if attributes is not None else labels
    assert given is not None
    if dtype is None:
        dtype = given.dtype if given.is_floating_point() else torch.get_default_dtype()
    if torch.compiler.is_exporting():
        return _compared_columns(attributes, labels, sizes, dtype)
    start = width(attributes)
    rows, columns = len(given), start + sum(sizes)
    out = torch.zeros(rows, columns, dtype=dtype, device=given.device)
    if attributes is not None:
        out[:, :start] = attributes
    if labels is not None:
        for size, label in zip(sizes, labels.unbind(1), strict=True):
            row = torch.arange(start, start + rows * columns, columns, device=given.device)
            out.view(-1).index_fill_(0, row.add_(label), 1.0)
            start += size
    return out


def _compared_columns(
    attributes: Tensor | None, labels: Tensor | None, sizes: Sequence[int], dtype: torch.dtype
) -> Tensor:
    """The same by comparisons, which other runtimes have; labels that are too large are zeros."""
    parts = [] if attributes is None else [attributes.to(dtype)]
    for size, label in zip(sizes, () if labels is None else labels.unbind(1), strict=True):
        parts.append((label[:, None] == torch.arange(size, device=label.device)).to(dtype))
    return torch.cat(parts, 1)


def node_columns(
    graphs: PackedGraphs, node: Tensor | None = None, dtype: torch.dtype | None = None
) -> Tensor:
    """Feature columns of all nodes or of some; a set without any feature has a column of ones."""
    attributes, labels, rows = graphs.attributes, graphs.labels, graphs.num_nodes
    if node is not None:
        attributes, labels, rows = take(attributes, node), take(labels, node), node.numel()
    if not graphs.num_features:
        return torch.ones(rows, 1, dtype=dtype, device=graphs.device)
    return feature_columns(attributes, labels, graphs.label_sizes, dtype)


def packed_features(
    of: str,
    attributes: Tensor | None,
    labels: Tensor | None,
    sizes: Sequence[int] | None,
    values: Sequence[Sequence[str]] | None,
    order: Tensor | None = None,
) -> dict[str, Any]:
    """Features as ``Graphs`` keeps them, under its names for nodes (``""``) or ``"edge_"``.

    Attributes are float32, unless the caller gave floats of another width on purpose. The rows are
    put in the ``order`` where one is given. Labels without given ``values`` stand for 0, 1, ...
    """
    if values is None:
        values = default_values(sizes_of(labels, sizes))
    else:
        sizes_of(labels, [len(known) for known in values])
    labels = compact(labels)
    if attributes is not None and not attributes.is_floating_point():
        attributes = attributes.float()
    if order is not None:
        attributes, labels = take(attributes, order), take(labels, order)
    values = tuple(tuple(known) for known in values)
    return {f"{of}attributes": attributes, f"{of}labels": labels, f"{of}label_values": values}


def column_names(graphs: Graphs, of: str = "") -> tuple[str, ...]:
    """The name of each column of ``x`` (or of ``edge_attr``, with ``"edge_"``): ``role old``."""
    names, columns = getattr(graphs, f"{of}label_names"), getattr(graphs, f"{of}label_values")
    labels = (f"{name} {v}" for name, known in zip(names, columns, strict=True) for v in known)
    return (*getattr(graphs, f"{of}attribute_names"), *labels)


def default_values(sizes: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    """What labels stand for where a source does not say: 0, 1, ... in each column."""
    return tuple(tuple(map(str, range(size))) for size in sizes)


def default_names(kind: str, count: int) -> tuple[str, ...]:
    """Names of columns where a source knows none: ``attribute 0``, ``attribute 1``, ..."""
    return tuple(f"{kind} {number}" for number in range(count))


def fitting_names(kind: str, names: Sequence[str], count: int) -> tuple[str, ...]:
    """The names of so many columns: those given, else the default ones; none for no columns."""
    if len(names) == count:
        if len(set(names)) < count:
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise LookHopsError(f"Two columns have the same name, {twice!r}.")
        return tuple(names)
    if names and count:
        raise LookHopsError(f"{len(names)} names were given for {count} columns of {kind}s.")
    return default_names(kind, count)


def sizes_of(labels: Tensor | None, sizes: Sequence[int] | None) -> tuple[int, ...]:
    """How many values each column of labels takes: as given, else one more than the largest."""
    if labels is None:
        return ()
    needed, lowest = [0] * labels.shape[1], 0
    if labels.numel():
        needed, lowest = [largest + 1 for largest in labels.amax(0).tolist()], int(labels.min())
    sizes = tuple(sizes or needed)
    fits = len(sizes) == len(needed) and all(map(operator.le, needed, sizes))
    if lowest < 0 or not fits:
        raise LookHopsError("A label is below 0 or not below its column's number of values.")
    return sizes


def compact(labels: Tensor | None) -> Tensor | None:
    """Labels in the smallest integer type that holds them."""
    if labels is None:
        return None
    largest = int(labels.max()) if labels.numel() else 0
    return labels.to(
        torch.uint8 if largest < 2**8 else torch.int16 if largest < 2**15 else torch.int32
    )


def feature_fields(of: str, features: Tensor | None) -> dict[str, Any]:
    """Features under the names that ``Graphs`` has for those of nodes (``""``) or ``"edge_"``.

    Rows that are all one-hot become one column of labels.
    """
    if features is None or not are_one_hot(features):
        return {f"{of}attributes": features}
    labels, sizes = features.int().argmax(1, keepdim=True), (features.shape[1],)
    return {f"{of}labels": labels, f"{of}label_sizes": sizes}


def are_one_hot(rows: Tensor) -> bool:
    """Whether every row is; floats of another width than usual are meant as numbers."""
    if not rows.numel() or rows.dtype in (torch.float64, torch.half):
        return False
    ones = rows == 1
    return bool((ones | (rows == 0)).all()) and bool((ones.sum(1) == 1).all())

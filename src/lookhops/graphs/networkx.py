"""From and to NetworkX graphs, with any names of nodes, numbers or text as features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.graphs.indexing import pair_keys
from lookhops.graphs.pyg import by_source, split_one_hot

if TYPE_CHECKING:
    import networkx as nx

# Nodes or edges with their features, each with what to call it in an error.
_Places = list[tuple[str, dict[Any, Any]]]


def from_networkx(
    graphs: Iterable[nx.Graph],
    y: Sequence[Any] | Tensor | None = None,
    node_features: Sequence[str] | None = None,
    edge_features: Sequence[str] | None = None,
    **rest: Any,
) -> Graphs:
    """Pack a list of NetworkX graphs; see :meth:`Graphs.from_networkx`."""
    graphs = list(graphs)
    node_data: _Places = []
    edge_data: _Places = []
    sources, targets, nodes = [], [], []
    for number, graph in enumerate(graphs):
        place = {node: len(node_data) + i for i, node in enumerate(graph)}
        nodes.append(len(place))
        node_data += [(f"Graph {number}, node {n!r}", data) for n, data in graph.nodes(data=True)]
        for u, v, data in graph.edges(data=True):
            turned = () if graph.is_directed() or u == v else ((v, u),)
            for a, b in ((u, v), *turned):
                sources.append(place[a])
                targets.append(place[b])
                edge_data.append((f"Graph {number}, edge {u!r} to {v!r}", data))
    attributes, labels, sizes = _features(node_data, node_features)
    edge_attributes, edge_labels, edge_sizes = _features(edge_data, edge_features)
    classes, names = _named_classes(graphs, y, rest.pop("class_names", None))
    return Graphs.from_edges(
        torch.tensor(sources, dtype=torch.long),
        torch.tensor(targets, dtype=torch.long),
        torch.tensor(nodes, dtype=torch.long),
        attributes=attributes,
        labels=labels,
        label_sizes=sizes,
        edge_attributes=edge_attributes,
        edge_labels=edge_labels,
        edge_label_sizes=edge_sizes,
        y=classes,
        class_names=names,
        **rest,
    )


def _features(
    places: _Places, names: Sequence[str] | None
) -> tuple[Tensor | None, Tensor | None, tuple[int, ...] | None]:
    """Attributes, labels and label sizes of nodes or edges."""
    if names is None:
        first = places[0][1] if places else {}
        names = [name for name in first if all(name in data for _, data in places)]
    columns, labels, sizes = [], [], []
    for name in names:
        values = []
        for place, data in places:
            if name not in data:
                raise LookHopsError(f"{place} has no {name!r}.")
            values.append(data[name])
        if all(isinstance(value, str) for value in values):
            texts, codes = np.unique(np.array(values, dtype=str), return_inverse=True)
            labels.append(torch.from_numpy(codes.reshape(-1)))
            sizes.append(len(texts))
        else:
            columns.append(_numbers(name, values, places))
    if not places or not (columns or labels):
        return None, None, None
    attributes = torch.from_numpy(np.concatenate(columns, 1)).float() if columns else None
    if not labels:
        return split_one_hot(attributes)
    return attributes, torch.stack(labels, 1), tuple(sizes)


def _numbers(name: str, values: list[Any], places: _Places) -> np.ndarray:
    """One row a value: numbers, or sequences of the same number of numbers."""
    rows: list[np.ndarray] = []
    for (place, _), value in zip(places, values, strict=True):
        try:
            row = np.asarray(value, dtype=np.float64).reshape(-1)
            fine = not isinstance(value, str) and bool(np.isfinite(row).all())
        except (TypeError, ValueError):
            fine = False
        if not fine or (rows and len(row) != len(rows[0])):
            raise LookHopsError(
                f"{place}: {name!r} must be finite numbers everywhere, as many as elsewhere, or "
                f"text everywhere; found {value!r}."
            )
        rows.append(row)
    return np.stack(rows)


def _named_classes(
    graphs: list[nx.Graph], y: Sequence[Any] | Tensor | None, names: Sequence[str] | None
) -> tuple[Tensor | None, Sequence[str] | None]:
    """Class numbers and names: those given, else the values of ``y``, sorted."""
    if y is None and graphs and all("y" in graph.graph for graph in graphs):
        y = [graph.graph["y"] for graph in graphs]
    if y is None:
        return None, names
    values = np.asarray(y).reshape(-1)
    if len(values) != len(graphs):
        raise LookHopsError(f"There are {len(graphs)} graphs but {len(values)} classes in y.")
    if names is None:
        known, codes = np.unique(values, return_inverse=True)
        return torch.from_numpy(codes.reshape(-1)), [str(value) for value in known]
    number_of = {name: number for number, name in enumerate(names)}
    whole = values.dtype.kind in "iu"
    classes = [v if whole else number_of.get(str(v), -1) for v in values.tolist()]
    if any(not 0 <= number < len(names) for number in classes):
        raise LookHopsError(f"Some of y is not one of the {len(names)} classes in class_names.")
    return torch.tensor(classes, dtype=torch.long), names


def to_networkx(graphs: Graphs) -> list[nx.Graph]:
    """A list of NetworkX graphs; see :meth:`Graphs.to_networkx`."""
    try:
        import networkx as nx
    except ImportError as error:
        raise LookHopsError("NetworkX is not installed: pip install networkx.") from error
    graphs = graphs.to("cpu")
    order, edge_index = by_source(graphs)
    edge_attr = None if graphs.edge_attr is None else graphs.edge_attr[order]
    repeated = bool((pair_keys(graphs.source, graphs.target, graphs.num_nodes).diff() == 0).any())
    both_ways = graphs.is_undirected and (
        edge_attr is None or torch.equal(edge_attr, graphs.edge_attr)  # type: ignore[arg-type]
    )
    kind = nx.MultiDiGraph if repeated else nx.Graph if both_ways else nx.DiGraph
    x = graphs.x.tolist() if graphs.num_features else None
    pairs = edge_index.t().tolist()
    attrs = None if edge_attr is None else edge_attr.tolist()
    node_ptr, edge_ptr = graphs.node_ptr.tolist(), graphs.edge_ptr.tolist()
    out = []
    for number in range(len(graphs)):
        graph = kind() if graphs.y is None else kind(y=int(graphs.y[number]))
        first = node_ptr[number]
        for node in range(first, node_ptr[number + 1]):
            graph.add_node(node - first, **({} if x is None else {"x": x[node]}))
        for edge in range(edge_ptr[number], edge_ptr[number + 1]):
            graph.add_edge(*pairs[edge], **({} if attrs is None else {"edge_attr": attrs[edge]}))
        out.append(graph)
    return out

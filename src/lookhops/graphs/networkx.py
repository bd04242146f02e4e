"""From and to NetworkX graphs, with any names of nodes, numbers or text as features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.graphs.choosing import by_source
from lookhops.graphs.features import (
    BLANK,
    Column,
    Features,
    are_one_hot,
    default_names,
    default_values,
)
from lookhops.graphs.indexing import Texts, pair_keys, refuse_empty
from lookhops.graphs.targets import (
    class_names_of,
    columns_of_rows,
    is_blank,
    pack_targets,
    read_target,
    target_columns,
)

if TYPE_CHECKING:
    import networkx as nx

    from lookhops.graphs import Graphs

# Names of features, each with the texts that are known of it, or none where it is numbers.
Vocabulary = Mapping[str, Sequence[str] | None]
# Nodes or edges with their features, each with what to call it in an error.
_Places = list[tuple[str, dict[Any, Any]]]


def edges_of(
    graphs: Iterable[nx.Graph] | nx.Graph,
    y: Sequence[Any] | Tensor | None = None,
    node_features: Vocabulary | Sequence[str] | None = None,
    edge_features: Vocabulary | Sequence[str] | None = None,
    graph_features: Vocabulary | Sequence[str] = (),
    **fields: Any,
) -> dict[str, Any]:
    """Arguments of :meth:`Graphs.from_edges`; see :meth:`Graphs.from_networkx`."""
    graphs = _listed(graphs)
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
    asked = _targets(graphs, y, fields.pop("class_names", None))
    counts = {"source": sources, "target": targets, "nodes_per_graph": nodes}
    ends = {key: torch.tensor(values, dtype=torch.long) for key, values in counts.items()}
    refuse_empty(ends["nodes_per_graph"])
    graph_data = [(f"Graph {number}", graph.graph) for number, graph in enumerate(graphs)]
    return {
        **ends,
        "nodes": features_of("node", node_data, node_features),
        "edges": features_of("edge", edge_data, edge_features),
        "whole": features_of("graph", graph_data, graph_features),
        "node_ids": Texts.of([str(node) for graph in graphs for node in graph]),
        **asked,
        **fields,
    }


def _listed(graphs: Any) -> list[nx.Graph]:
    """A list of graphs, or of the only one; what is none is refused."""
    found = [graphs] if hasattr(graphs, "adj") else list(graphs)
    for number, graph in enumerate(found):
        if not hasattr(graph, "adj"):
            kind = type(graph).__name__
            raise LookHopsError(f"Graph {number} is no NetworkX graph, but {kind}: {graph!r}.")
    return found


def features_of(owner: str, places: _Places, names: Vocabulary | Sequence[str] | None) -> Features:
    """The features of nodes, edges or graphs: numbers, and text as labels."""
    if names is None:
        names = list(dict.fromkeys(name for _, data in places for name in data))
    columns: list[Column] = []
    for name in names if places else ():
        _require(owner, name, places)
        values = [data[name] for _, data in places]
        if any(isinstance(value, str) for value in values):
            values = [v if isinstance(v, str) or not is_blank(v) else BLANK for v in values]
        texts: Sequence[str] | None = None
        if isinstance(names, Mapping):
            texts = names[name]
        elif all(isinstance(value, str) for value in values):
            texts = sorted(set(values))
        if texts is not None:
            codes = torch.tensor(_codes(name, values, places, texts))
            columns.append(Column(str(name), codes, tuple(texts)))
            continue
        rows = torch.from_numpy(_numbers(name, values, places)).float()
        size = rows.shape[1]
        if size > 1 and are_one_hot(rows):
            columns.append(Column(str(name), rows.argmax(1), default_values([size])[0]))
        else:
            titles = [str(name)] if size == 1 else default_names(name, size)
            columns += map(Column, titles, rows.unbind(1))
    return Features.of(columns)


def _require(owner: str, name: str, places: _Places) -> None:
    """Refuse a feature that only some have: what is left out silently is never missed."""
    lacking = [place for place, data in places if name not in data]
    if lacking:
        more = f", nor have {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise LookHopsError(
            f"{lacking[0]} has no {name!r}{more}: give every {owner} one, or name the features to "
            f"use with {owner}_features=[...]."
        )


def _codes(name: str, values: list[Any], places: _Places, texts: Sequence[str]) -> list[int]:
    """The place of each value among the known texts."""
    code_of: dict[Any, int] = {text: code for code, text in enumerate(texts)}
    for (place, _), value in zip(places, values, strict=True):
        if not isinstance(value, str) or value not in code_of:
            raise LookHopsError(f"{place}: {name!r} is {value!r}, which no training graph has.")
    return [code_of[value] for value in values]


def _numbers(name: str, values: list[Any], places: _Places) -> np.ndarray:
    """One row a value: numbers, or sequences of the same number of numbers."""
    rows: list[np.ndarray] = []
    for (place, _), value in zip(places, values, strict=True):
        try:
            row = np.asarray(value, dtype=np.float64).reshape(-1)  # a blank, None, is NaN
            fine = not isinstance(value, str) and not bool(np.isinf(row).any())
        except (TypeError, ValueError):
            fine = False
        if not fine or (rows and len(row) != len(rows[0])):
            raise LookHopsError(
                f"{place}: {name!r} must be finite numbers or blank (None, NaN) everywhere, as "
                f"many as elsewhere, or text everywhere; found {value!r}."
            )
        rows.append(row)
    return np.stack(rows)


def _targets(
    graphs: list[nx.Graph], y: Sequence[Any] | Tensor | None, names: Sequence[str] | None
) -> dict[str, Any]:
    """Fields of ``Graphs``: what is given as ``y``, else what the graphs carry."""
    if y is None and graphs and all("y" in graph.graph for graph in graphs):
        y = [graph.graph["y"] for graph in graphs]
    if y is None:
        return {"y": None, "class_names": names}
    values = list(y.tolist() if hasattr(y, "tolist") else y)
    if len(values) != len(graphs):
        raise LookHopsError(f"There are {len(graphs)} graphs but {len(values)} classes in y.")
    if not values:
        return {"y": torch.zeros(0, dtype=torch.long), "class_names": names}
    columns = columns_of_rows(values) or [values]
    if len(columns) > 1:
        return pack_targets([read_target(f"target {j}", c) for j, c in enumerate(columns)])
    target, found = read_target("class", class_names_of(columns[0], names), classes=names)
    return pack_targets([(target if target.classes else replace(target, name="value"), found)])


def target_cells(graphs: Iterable[nx.Graph]) -> list[list[Any]]:
    """What the graphs carry as ``y``: a column for each target, one cell a graph, None if blank."""
    return columns_of_rows(graph.graph.get("y") for graph in graphs)


def to_networkx(graphs: Graphs) -> list[nx.Graph]:
    """A list of NetworkX graphs; see :meth:`Graphs.to_networkx`."""
    try:
        import networkx as nx
    except ImportError as error:
        raise LookHopsError("NetworkX is not installed: pip install networkx.") from error
    graphs = graphs.to("cpu")
    order, edge_index = by_source(graphs)
    repeated = bool((pair_keys(graphs.source, graphs.target, graphs.num_nodes).diff() == 0).any())
    kind = nx.MultiDiGraph if repeated else nx.Graph if graphs.is_symmetric else nx.DiGraph
    pairs = edge_index.t().tolist()
    of_nodes = _by_name(graphs.nodes, graphs.num_nodes, "x")
    of_edges = _by_name(graphs.edges.take(order), graphs.num_edges, "edge_attr")
    of_graphs = _by_name(graphs.whole, len(graphs), "u")
    node_ptr, edge_ptr = graphs.node_ptr.tolist(), graphs.edge_ptr.tolist()
    y = [  # numbers of classes, numbers, or None
        [None if v != v else int(v) if target.classes else v for v in values.tolist()]
        for target, values in target_columns(graphs.y, graphs.targets)
    ]
    out = []
    for number in range(len(graphs)):
        of_graph = [column[number] for column in y]
        carried = {"y": of_graph if len(y) > 1 else of_graph[0]} if y else {}
        graph = kind(**of_graphs[number], **carried)
        nodes = of_nodes[node_ptr[number] : node_ptr[number + 1]]
        graph.add_nodes_from(enumerate(nodes))
        edges = slice(edge_ptr[number], edge_ptr[number + 1])
        described = zip(pairs[edges], of_edges[edges], strict=True)
        graph.add_edges_from((*pair, data) for pair, data in described)
        out.append(graph)
    return out


def _by_name(features: Features, rows: int, unnamed: str) -> list[dict[str, Any]]:
    """The features of each row by name, labels as texts."""
    columns = features.columns()
    if columns is None:
        return [{} for _ in range(rows)]
    if features.names.are_default:
        return [{unnamed: row} for row in columns.tolist()]
    found = {name: values.tolist() for name, values in features.decoded().items()}
    return [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]

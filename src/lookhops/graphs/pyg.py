"""From and to PyG: packing a list of ``Data`` or a dataset, and unpacking into a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lookhops.core.errors import LookHopsError
from lookhops.graphs.choosing import by_source
from lookhops.graphs.features import Features
from lookhops.graphs.indexing import refuse_empty, spread, to_offsets
from lookhops.graphs.networkx import features_of
from lookhops.graphs.targets import columns_of_rows, is_fraction, pack_targets, read_target

#: The features that are read of a graph, and of what they are.
FEATURES = {"x": "node", "edge_attr": "edge", "edge_weight": "edge", "u": "graph"}
#: All that is read of it.
FIELDS = (*FEATURES, "edge_index", "y")
#: Whole numbers below this are numbers of classes.
MOST_CLASSES = 1000

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from lookhops.graphs import Graphs


def edges_of(
    data: Iterable[Data] | Data, graph_features: Sequence[str] = (), **fields: Any
) -> dict[str, Any]:
    """Arguments of :meth:`Graphs.from_edges`; see :meth:`Graphs.from_pyg`."""
    fields.setdefault("name", str(getattr(data, "name", "graphs")))
    named = Features()
    if graph_features:
        data = _listed(data)
        named = _fields(data, graph_features)
    sizes, found = _in_one_piece(data)
    nodes, edge_index = sizes["node"], found["edge_index"]
    if "y" not in fields:
        fields |= _targets(found["y"], len(nodes))
    ptr = {owner: to_offsets(each) for owner, each in sizes.items()}
    node_ptr, edge_ptr = ptr["node"], ptr["edge"]
    local_size = spread(nodes, edge_ptr, edge_index.shape[1])
    _refuse(((edge_index < 0) | (edge_index >= local_size)).any(0), edge_ptr, "an edge to no node")
    for name, owner in FEATURES.items():
        if found[name] is not None:
            # Comparisons with NaN, a blank, are false.
            wrong = (found[name].abs() > torch.finfo(torch.float32).max).any(1)
            article = "an" if owner == "edge" else "a"
            what = f"{article} {owner} feature that is not a finite number of float32"
            _refuse(wrong, ptr[owner], what)
    edge_features, weight = Features.from_columns(found["edge_attr"]), found["edge_weight"]
    if weight is not None:
        numbers = edge_features.numbers
        weight = weight.float() if numbers is None else weight.to(numbers)
        edge_features = edge_features.beside(Features(weight, ("edge_weight",)))
    source, target = edge_index + spread(node_ptr[:-1], edge_ptr, edge_index.shape[1])
    return {
        "source": source,
        "target": target,
        "nodes_per_graph": nodes,
        "nodes": Features.from_columns(found["x"]),
        "edges": edge_features,
        "whole": Features(found["u"]).beside(named),
        **fields,
    }


def _fields(data: Sequence[Data], names: Sequence[str]) -> Features:
    """Fields of graphs by their names: numbers, one or several a graph, or texts."""
    places = []
    for number, one in enumerate(data):
        found = {name: one[name] for name in names if one.get(name) is not None}
        for name, value in found.items():
            if isinstance(value, Tensor):
                found[name] = value.flatten().tolist()
        places.append((f"Graph {number}", found))
    return features_of("graph", places, names)


def target_cells(data: Iterable[Data]) -> list[list[Any]]:
    """What the graphs carry as ``y``: a column for each target, one cell a graph, None if blank."""
    sizes, found = _in_one_piece(data)
    return [] if found["y"] is None else _cells(found["y"], len(sizes["node"]))


#: How many nodes, edges and graphs (one) each graph has, and its fields.
_Collated = tuple[dict[str, Tensor], dict[str, Any]]


def _in_one_piece(data: Any) -> _Collated:
    sizes, found = _collated(data) or _collate(_listed(data))
    refuse_empty(sizes["node"])
    return {**sizes, "graph": torch.ones_like(sizes["node"])}, found


def _listed(data: Any) -> list[Any]:
    """A list of graphs, those of a batch, or the only one."""
    from torch_geometric.data import Batch
    from torch_geometric.data.data import BaseData

    data = graphs_of_batch(data) if isinstance(data, Batch) else data
    return [data] if isinstance(data, BaseData) else list(data)


def graphs_of_batch(batch: Any) -> list[Any]:
    """The graphs of PyG's ``Batch``."""
    try:
        return list(batch.to_data_list())
    except (AttributeError, RuntimeError) as error:  # it does not know its parts
        raise LookHopsError(
            "A PyG Batch that Batch.from_data_list did not make cannot be taken apart: give a list "
            "of its graphs."
        ) from error


def _collated(dataset: Any) -> _Collated | None:
    """What an in-memory dataset holds in one piece, where it can be used as it is."""
    from torch_geometric.data import Data, InMemoryDataset

    whole = isinstance(dataset, InMemoryDataset) and dataset.transform is None
    if not whole or dataset._indices is not None or dataset.slices is None:
        return None
    stored, slices, length = dataset._data, dataset.slices, len(dataset)
    if not isinstance(stored, Data):
        return None
    used = set(FIELDS) & set(stored.keys())
    if not {"x", "edge_index"} <= used or any(len(slices[k]) != length + 1 for k in used):
        return None
    tensors = [stored[name] for name in used - {"y"}]
    if not all(isinstance(one, Tensor) and one.layout == torch.strided for one in tensors):
        return None  # graph by graph it is said which
    sizes = {"node": slices["x"].diff(), "edge": slices["edge_index"].diff()}
    found = {name: _two_axes(stored.get(name)) for name in FEATURES}
    return sizes, {**found, "edge_index": stored.edge_index.cpu(), "y": stored.y}


def _collate(data: list[Data]) -> _Collated:
    _check_kind(data)
    if any(d.edge_index is None and "adj_t" in d for d in data):
        raise LookHopsError("PyG graphs with adj_t alone cannot be packed: give them edge_index.")
    none = torch.zeros(2, 0, dtype=torch.long)
    edge_index = [none if d.edge_index is None else d.edge_index.long().cpu() for d in data]
    sizes = {
        "node": torch.tensor([d.num_nodes or 0 for d in data], dtype=torch.long),
        "edge": torch.tensor([e.shape[1] for e in edge_index], dtype=torch.long),
        "graph": torch.ones(len(data), dtype=torch.long),
    }
    found: dict[str, Any] = {
        name: _cat([d.get(name) for d in data], name, sizes[owner])
        for name, owner in FEATURES.items()
    }
    y = None if all(d.y is None for d in data) else [d.y for d in data]
    return sizes, {**found, "edge_index": torch.cat([none, *edge_index], 1), "y": y}


def _check_kind(data: list[Any]) -> None:
    """Refuse what is no graph of PyG, or has nodes of several types."""
    from torch_geometric.data import Data, HeteroData

    for number, one in enumerate(data):
        if isinstance(one, HeteroData):
            raise LookHopsError(
                f"Graph {number} is a HeteroData, with nodes of several types: give one Data, as "
                "its to_homogeneous() makes it, with the type as a feature."
            )
        if not isinstance(one, Data):
            raise LookHopsError(f"Graph {number} is no PyG Data, but {type(one).__name__}.")
        for name in FIELDS:
            _check_field(number, name, one.get(name))


def _check_field(number: int, name: str, value: Any) -> None:
    """Refuse what is no dense tensor of numbers; ``y`` may be a plain number or a list, too."""
    wrong = ""
    if isinstance(value, Tensor):
        if value.layout != torch.strided or value.is_meta or value.is_complex():
            wrong = "must be a dense tensor of real numbers"
        elif name == "edge_index" and (value.dim() != 2 or len(value) != 2):
            wrong = f"must have the shape (2, edges); found {tuple(value.shape)}"
        elif name == "edge_index" and value.is_floating_point():
            wrong = f"must hold whole numbers; found {value.dtype}"
    elif value is not None and (name != "y" or isinstance(value, str)):
        wrong = f"must be a tensor; found {type(value).__name__}"
    if wrong:
        raise LookHopsError(f"Graph {number}: {name} {wrong}.")


def _two_axes(features: Tensor | None) -> Tensor | None:
    if features is None:
        return None
    return (features.unsqueeze(1) if features.dim() == 1 else features).cpu()


def _cat(features: list[Tensor | None], name: str, counts: Tensor) -> Tensor | None:
    """One tensor of all graphs' features; a graph with nothing to describe may lack them."""
    given = [_two_axes(f) for f in features]
    kept = [f for f in given if f is not None]
    for number, (feature, count) in enumerate(zip(given, counts.tolist(), strict=True)):
        if kept and (count if feature is None else feature.shape != (count, kept[0].shape[1])):
            found = "none" if feature is None else f"shape {tuple(feature.shape)}"
            raise LookHopsError(
                f"Graph {number}: {name} must be a row of {kept[0].shape[1]} numbers for each of "
                f"{count}, as in the other graphs; found {found}."
            )
    return torch.cat(kept) if kept else None


def _targets(y: Any, count: int) -> dict[str, Any]:
    """Fields of ``Graphs`` from PyG's ``y``: a list with one entry a graph, or all in one tensor.

    Whole numbers below 1,000 are classes as they are; larger ones and floats are numbers, or
    classes where they are few and whole.
    """
    cells = [] if y is None else _cells(y, count)
    if not cells:
        return {"y": None}
    filled = [value for value in (cells[0] if len(cells) == 1 else ()) if value is not None]
    whole = bool(filled) and all(isinstance(value, int) for value in filled)
    if whole and max(filled) < MOST_CLASSES:
        if min(filled) < 0:
            number = cells[0].index(min(filled))
            raise LookHopsError(f"Graph {number}: y must be one class, a whole number from 0.")
        classes = torch.tensor([-1 if value is None else int(value) for value in cells[0]])
        return {"y": classes}
    names = ["value"] if len(cells) == 1 else [f"target {j}" for j in range(len(cells))]
    kinds = ["numbers" if any(map(is_fraction, column)) else "auto" for column in cells]
    return pack_targets(list(map(read_target, names, cells, kinds)))


def _cells(y: Any, count: int) -> list[list[Any]]:
    """A column for each target of PyG's ``y``, one cell a graph."""
    if isinstance(y, Tensor) and y.numel() == count:
        y = y.flatten()
    return columns_of_rows(None if one is None else torch.as_tensor(one).flatten() for one in y)


def _refuse(wrong: Tensor, ptr: Tensor, what: str) -> None:
    """Name the first graph with something wrong."""
    if bool(wrong.any()):
        place = wrong.int().argmax()
        number = int(torch.searchsorted(ptr, place, right=True)) - 1
        raise LookHopsError(f"Graph {number} has {what}.")


def to_pyg(graphs: Graphs) -> list[Data]:
    """A list of PyG ``Data``; see :meth:`Graphs.to_pyg`."""
    from torch_geometric.data import Data

    order, edge_index = by_source(graphs)
    nodes, edges = graphs.nodes_per_graph.tolist(), graphs.edge_ptr.diff().tolist()
    x = _split(graphs.nodes.columns(), nodes)
    attrs = _split(graphs.edges.take(order).columns(), edges)
    each = [1] * len(graphs)
    u, y = _split(graphs.whole.columns(), each), list(_split(graphs.y, each))
    if graphs.class_names:  # a blank class has no number
        y = [None if one is None or one < 0 else one for one in y]
    parts = zip(x, edge_index.split(edges, 1), attrs, u, y, nodes, strict=True)
    return [
        Data(
            *(x, e, a, y),
            **({"num_nodes": n} if x is None else {}),
            **({} if u is None else {"u": u}),
        )
        for x, e, a, u, y, n in parts
    ]


def _split(rows: Tensor | None, sizes: list[int]) -> Sequence[Tensor | None]:
    return [None] * len(sizes) if rows is None else rows.split(sizes)

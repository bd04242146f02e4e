"""What a user has as graphs, packed: Graphs, PyG lists, NetworkX lists or SMILES."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs, concatenate


@dataclass
class Packer:
    """Turns what an estimator is given into ``Graphs``, at ``predict`` as it did at ``fit``.

    Text features of NetworkX nodes become one-hot columns. Their values are learnt from the
    training graphs, so that a column means the same later.

    Args:
        kind: ``graphs``, ``pyg``, ``networkx`` or ``smiles``.
        features: Of NetworkX graphs: the node features' names, and the values of those with text.
    """

    kind: str
    features: dict[str, list[str] | None] = field(default_factory=dict)

    @classmethod
    def learn(cls, given: Any) -> Packer:
        """Find out what ``given`` is."""
        kind = kind_of(given)
        return cls(kind, _networkx_features(list(given)) if kind == "networkx" else {})

    def pack(self, given: Any) -> Graphs:
        """The packed graphs."""
        kind = kind_of(given)
        if kind != self.kind:
            raise LookHopsError(f"The model was fitted on {self.kind}, and this is {kind}.")
        if kind == "graphs":
            return given if isinstance(given, Graphs) else concatenate(list(given))
        if kind == "pyg":
            return Graphs.from_pyg(given)
        if kind == "networkx":
            names = ["features"] if self.features else []
            graphs = [self._encode(number, graph) for number, graph in enumerate(given)]
            return Graphs.from_networkx(graphs, node_features=names, edge_features=[])
        from lookhops.datasets.molecules import from_smiles

        return from_smiles([str(smiles) for smiles in given])

    def _encode(self, number: int, graph: Any) -> Any:
        """A graph whose nodes carry one list of numbers, ``features``."""
        plain = type(graph)()
        for node, data in graph.nodes(data=True):
            row: list[float] = []
            for name, values in self.features.items():
                if name not in data:
                    raise LookHopsError(f"Graph {number}, node {node!r} has no {name!r}.")
                row += _numbers(data[name], values, f"Graph {number}, node {node!r}: {name!r}")
            plain.add_node(node, features=row)
        plain.add_edges_from(graph.edges())
        return plain


def kind_of(given: Any) -> str:
    """What was given: ``graphs``, ``pyg``, ``networkx`` or ``smiles``."""
    if isinstance(given, Graphs):
        return "graphs"
    if isinstance(given, str) or not hasattr(given, "__len__") or not hasattr(given, "__getitem__"):
        raise LookHopsError(f"{_WANTED}; this is {type(given).__name__}.")
    if len(given) == 0:
        raise LookHopsError("There are no graphs (Found array with 0 sample(s)).")
    first = next(iter(given))
    if isinstance(first, Graphs):
        return "graphs"
    if isinstance(first, str):
        return "smiles"
    if hasattr(first, "edge_index"):
        return "pyg"
    if hasattr(first, "nodes") and hasattr(first, "edges"):
        return "networkx"
    raise LookHopsError(f"{_WANTED}; the first of these is {type(first).__name__}.")


_WANTED = "Graphs are given as Graphs, or a list of PyG Data, of NetworkX graphs or of SMILES"


def classes_in(given: Any, graphs: Graphs) -> np.ndarray | None:
    """The classes that the graphs carry themselves: names where they have any, else numbers."""
    kind = kind_of(given)
    if kind == "networkx":
        own = [graph.graph.get("y") for graph in given]
        return None if any(y is None for y in own) else np.asarray(own)
    if graphs.y is None:
        return None
    numbers = graphs.y.cpu().numpy()
    return np.asarray(graphs.class_names)[numbers] if kind == "graphs" else numbers


def _networkx_features(graphs: list[Any]) -> dict[str, list[str] | None]:
    """Names of the features that every node has; with the values of those that are text."""
    nodes = [data for graph in graphs for _, data in graph.nodes(data=True)]
    names = [name for name in (nodes[0] if nodes else ()) if all(name in data for data in nodes)]
    found: dict[str, list[str] | None] = {}
    for name in names:
        text = all(isinstance(data[name], str) for data in nodes)
        found[name] = sorted({data[name] for data in nodes}) if text else None
    return found


def _numbers(value: Any, values: list[str] | None, where: str) -> list[float]:
    if values is None:
        try:
            return [float(number) for number in np.asarray(value, dtype=float).reshape(-1)]
        except (TypeError, ValueError) as error:
            raise LookHopsError(f"{where} is {value!r}, not a number or numbers.") from error
    if value not in values:
        raise LookHopsError(f"{where} is {value!r}, which no training graph has.")
    return [float(value == known) for known in values]

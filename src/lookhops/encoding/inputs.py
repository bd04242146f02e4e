"""What a user has as graphs, packed: Graphs, PyG lists, NetworkX lists or SMILES."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs, concatenate


@dataclass
class Packer:
    """Turns what an estimator is given into ``Graphs``, at ``predict`` as it did at ``fit``.

    Args:
        kind: ``graphs``, ``pyg``, ``networkx`` or ``smiles``.
    """

    kind: str

    @classmethod
    def learn(cls, given: Any) -> Packer:
        """Find out what ``given`` is."""
        return cls(kind_of(given))

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
            no_class = [0] * len(given)  # what the graphs call their class may be anything
            return Graphs.from_networkx(given, no_class)
        from lookhops.datasets.molecules import from_smiles

        return from_smiles([str(smiles) for smiles in given])


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

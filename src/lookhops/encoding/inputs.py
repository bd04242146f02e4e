"""What a user has as graphs, packed: Graphs, PyG lists, NetworkX lists or SMILES."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs, concatenate, networkx, pyg
from lookhops.graphs.targets import is_blank, target_columns


@dataclass
class Packer:
    """Turns what an estimator is given into ``Graphs``, at ``predict`` as it did at ``fit``.

    What graphs of other libraries carry as ``y`` may be anything, and is not looked at here:
    :func:`own_targets` does.

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
            return _one_set(given)
        if kind == "pyg":
            return Graphs.from_pyg(given, y=None)
        if kind == "networkx":
            return Graphs.from_networkx(given, [0] * len(given))
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


@dataclass(frozen=True)
class OwnTarget:
    """What graphs carry themselves, to be learnt.

    Args:
        name: What to call it.
        cells: One value a graph; None or NaN where it is blank.
        kind: ``classes``, ``numbers``, or ``auto`` where the source does not say.
    """

    name: str
    cells: list[Any]
    kind: str = "auto"

    @property
    def are_numbers(self) -> bool:
        """Whether the values can be read as numbers."""
        return all(is_blank(cell) or _is_number(cell) for cell in self.cells)


def own_targets(given: Any) -> list[OwnTarget]:
    """The targets that graphs carry themselves; none where they carry nothing."""
    kind = kind_of(given)
    if kind in ("pyg", "networkx"):
        cells = (pyg if kind == "pyg" else networkx).target_cells(given)
        names = ["y"] if len(cells) == 1 else [f"target {j}" for j in range(len(cells))]
        return [
            OwnTarget(name, column, "numbers" if any(map(_is_fraction, column)) else "auto")
            for name, column in zip(names, cells, strict=True)
        ]
    graphs = _one_set(given) if kind == "graphs" else None
    if graphs is None or graphs.y is None:
        return []
    found = []
    for target, column in target_columns(graphs.y, graphs.targets):
        values: list[Any] = column.tolist()
        if target.classes:
            values = [None if one != one else target.classes[int(one)] for one in values]
        found.append(OwnTarget(target.name, values, "classes" if target.classes else "numbers"))
    return found


def _one_set(given: Any) -> Graphs:
    return given if isinstance(given, Graphs) else concatenate(list(given))


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return not isinstance(cell, bool)


def _is_fraction(cell: Any) -> bool:
    return isinstance(cell, float) and cell == cell and cell % 1 != 0

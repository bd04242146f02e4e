"""What a user has as graphs, packed: Graphs, PyG lists, NetworkX lists or molecules."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs, concatenate, networkx, pyg
from lookhops.graphs.targets import is_blank, target_columns


@dataclass
class Packer:
    """Turns what an estimator is given into ``Graphs``, at ``predict`` as it did at ``fit``.

    What graphs of other libraries carry as ``y`` may be anything, and is not looked at here:
    :func:`own_targets` does.

    Args:
        kind: What ``fit`` was given: ``graphs``, ``pyg``, ``networkx`` or ``smiles``.
    """

    kind: str

    @classmethod
    def learn(cls, given: Any) -> Packer:
        """Find out what ``given`` is."""
        return cls(kind_of(given))

    def pack(self, given: Any) -> Graphs:
        """The packed graphs; of other kinds than at ``fit`` too, where their features are known."""
        given = _plain(given)
        kind = kind_of(given)
        if kind == "graphs":
            return _one_set(given)
        if kind == "pyg":
            return Graphs.from_pyg(given, y=None)
        if kind == "networkx":
            return Graphs.from_networkx(given, [0] * len(given))
        if self.kind in ("pyg", "networkx"):
            raise LookHopsError(
                f"The model was fitted on graphs of {LIBRARIES[self.kind]}, and these are SMILES: "
                "give it graphs with the features that it knows."
            )
        return _molecules(list(given))


def kind_of(given: Any) -> str:
    """What was given: ``graphs``, ``pyg``, ``networkx`` or ``smiles``."""
    given = _plain(given)
    if isinstance(given, Graphs):
        return "graphs"
    if isinstance(given, str) or not hasattr(given, "__len__") or not hasattr(given, "__getitem__"):
        raise LookHopsError(f"{_WANTED}; this is {type(given).__name__}.")
    if len(given) == 0:
        raise LookHopsError("There are no graphs (Found array with 0 sample(s)).")
    first = next((one for one in given if one is not None), None)
    if isinstance(first, Graphs):
        return "graphs"
    if isinstance(first, str) or hasattr(first, "GetAtoms"):
        return "smiles"
    if _is_pyg(first):
        return "pyg"
    if _is_networkx(first):
        return "networkx"
    raise LookHopsError(f"{_WANTED}; the first of these is {type(first).__name__}.")


_WANTED = (
    "Graphs are given as Graphs, or a list of PyG Data, of NetworkX graphs, of SMILES or of "
    "molecules of RDKit"
)
LIBRARIES = {"pyg": "PyG", "networkx": "NetworkX"}


def _plain(given: Any) -> Any:
    """A list of the only graph, of a batch of PyG or of the only column of a frame or an array.

    Anything else as it is.
    """
    if _is_pyg(given) and hasattr(given, "to_data_list"):
        return pyg.graphs_of_batch(given)
    if _is_pyg(given) or _is_networkx(given):  # they have lengths and items, of nodes or fields
        return [given]
    shape: tuple[int, ...] = getattr(given, "shape", ())
    if len(shape) != 2:
        return given
    if shape[1] != 1:
        raise LookHopsError(f"{_WANTED}; this has {shape[1]} columns: choose that of the SMILES.")
    return np.asarray(given)[:, 0].tolist()


def _is_pyg(given: Any) -> bool:
    """Whether this is a graph of PyG, with nodes of one or several types, or a batch of them."""
    return hasattr(given, "node_stores")


def _is_networkx(given: Any) -> bool:
    return hasattr(given, "nodes") and hasattr(given, "edges") and hasattr(given, "adj")


def _one_set(given: Any) -> Graphs:
    return given if isinstance(given, Graphs) else concatenate(list(given))


def _molecules(given: list[Any]) -> Graphs:
    """The graphs of molecules; the first that does not parse is refused."""
    from lookhops.sources.molecules import SkippedMolecules, from_smiles

    texts = [_smiles(one) for one in given]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkippedMolecules)
        graphs = from_smiles(texts, invalid="skip")
    if graphs.skipped:
        (row, _, reason), *more = graphs.skipped
        others = ", ".join(f"{one.row + 1}" for one in more[:10])
        others += f" and {len(more) - 10} more" if len(more) > 10 else ""
        raise LookHopsError(
            f"molecule {row + 1}: {texts[row][:60]!r} does not parse ({reason}); mend it, or leave "
            f"it out of X and of y{f', and so for {others}' if more else ''}."
        )
    return graphs


def _smiles(molecule: Any) -> str:
    """The SMILES of a molecule of RDKit, or what was given; nothing where that is blank."""
    if hasattr(molecule, "GetAtoms"):
        from rdkit.Chem import MolToSmiles

        return str(MolToSmiles(molecule))
    return "" if is_blank(molecule) else str(molecule)


@dataclass(frozen=True)
class OwnTarget:
    """What graphs carry themselves, to be learnt.

    Args:
        name: What to call it.
        cells: One value a graph; None or NaN where it is blank.
        kind: As of :class:`~lookhops.graphs.Target`, or ``auto`` where the source does not say.
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
    given = _plain(given)
    kind = kind_of(given)
    if kind in LIBRARIES:
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
        found.append(OwnTarget(target.name, values, target.kind))
    return found


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return not isinstance(cell, bool)


def _is_fraction(cell: Any) -> bool:
    return isinstance(cell, float) and cell == cell and cell % 1 != 0

"""What a user has as graphs, packed: Graphs, PyG lists, NetworkX lists, molecules or frames."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.reading import called, listed, names_in
from lookhops.graphs import Graphs, concatenate, networkx, pyg
from lookhops.graphs.columns import ALL
from lookhops.graphs.targets import as_number, is_blank, is_fraction, target_columns
from lookhops.sources.molecule_rows import SMILES_NAMES

_WANTED = (
    "Graphs are given as Graphs, or a list of PyG Data, of NetworkX graphs, of SMILES or of "
    "molecules of RDKit, or a frame with a column of these"
)
#: What graphs of other libraries carry that is no feature: targets, names and sizes.
NO_FEATURES = ("y", "label", "target", "id", "name", "smiles", "num_nodes")
LIBRARIES = {"pyg": "PyG", "networkx": "NetworkX"}


@dataclass
class Packer:
    """Turns what an estimator is given into ``Graphs``, at ``predict`` as it did at ``fit``."""

    kind: str  # what ``fit`` was given: ``graphs``, ``pyg``, ``networkx`` or ``smiles``
    carried: tuple[str, ...] = ()  # features that graphs of PyG and NetworkX carry themselves
    has_features: bool = False  # whether features of whole graphs were named or given

    @classmethod
    def fit(cls, given: Any, features: Any = None) -> tuple[Packer, Graphs]:
        """The packer of what ``fit`` is given, and the packed graphs with their features.

        More features of whole graphs are a frame or a mapping of columns, a row a graph, or the
        names of what the graphs carry themselves.
        """
        items, columns = _apart(given)
        kind, names = _kind_of(items), None
        if isinstance(features, str):
            names = names_in(features)
        elif isinstance(features, list | tuple):
            names = [str(name) for name in features]
        if names == [ALL] and kind in LIBRARIES:
            names = _carried_by_all(items, kind)
        carried = tuple(names or ()) if kind in LIBRARIES else ()
        values = features if names is None else None
        chosen = [*columns, *columns_of(values), *(names or ())]
        packer = cls(kind, carried, bool(chosen))
        graphs = packer.pack(given, values)
        return packer, graphs.with_features([name for name in chosen if name not in carried])

    def pack(self, given: Any, features: Any = None) -> Graphs:
        """The packed graphs, what is known of each by name in ``columns``."""
        items, columns = _apart(given)
        graphs, columns = self._packed(items), columns | columns_of(features)
        for name, cells in columns.items():
            if len(cells) != len(graphs):
                raise LookHopsError(
                    f"There are {len(graphs):,} graphs but {len(cells):,} values of {name!r} in "
                    "features."
                )
        others = {name: old for name, old in graphs.columns.items() if not called(name, columns)}
        whole = graphs.whole.without(columns)
        return graphs.changed(whole=whole, columns=others | columns)

    def _packed(self, given: Any) -> Graphs:
        kind = _kind_of(given)
        if kind == "graphs":
            return _one_set(given)
        if kind == "pyg":
            return Graphs.from_pyg(given, self.carried, y=None)
        if kind == "networkx":
            return Graphs.from_networkx(given, [0] * len(given), graph_features=self.carried)
        if self.kind in ("pyg", "networkx"):
            raise LookHopsError(
                f"The model was fitted on graphs of {LIBRARIES[self.kind]}, and these are SMILES: "
                "give it graphs with the features that it knows."
            )
        return _molecules(list(given))


def _carried_by_all(given: Any, kind: str) -> list[str]:
    """The names of the numbers and texts that every graph carries and that could be features."""
    each = [one.to_dict() if kind == "pyg" else one.graph for one in given]
    names = [
        {name for name, value in carried.items() if isinstance(value, str | int | float)}
        for carried in each
    ]
    common = set.intersection(*names).difference(NO_FEATURES)
    return [name for name in each[0] if name in common]


def kind_of(given: Any) -> str:
    """What was given: ``graphs``, ``pyg``, ``networkx`` or ``smiles``."""
    return _kind_of(_apart(given)[0])


def _kind_of(given: Any) -> str:
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


def _apart(given: Any) -> tuple[Any, dict[str, Array]]:
    """The graphs, as ``Graphs`` or one by one, and the columns beside them in a frame."""
    if _is_pyg(given) and hasattr(given, "to_data_list"):
        return pyg.graphs_of_batch(given), {}
    if _is_pyg(given) or _is_networkx(given):  # they have lengths and items, of nodes or fields
        return [given], {}
    shape: tuple[int, ...] = getattr(given, "shape", ())
    if len(shape) == 2 and hasattr(given, "columns"):
        columns = columns_of(given)
        return columns.pop(_graph_column(columns)).tolist(), columns
    if len(shape) == 2 and shape[1] != 1:
        raise LookHopsError(f"{_WANTED}; this is an array of {shape[1]} columns.")
    return np.asarray(given)[:, 0].tolist() if len(shape) == 2 else given, {}


def _graph_column(columns: Mapping[str, Array]) -> str:
    """The only column, that of SMILES by its name, or the first with graphs or molecules in it."""
    names = list(columns)
    if len(names) == 1:
        return names[0]
    for usual in SMILES_NAMES:
        if (found := called(usual, names)) is not None:
            return found
    for name, cells in columns.items():
        first = next((one for one in cells.tolist() if one is not None), None)
        if _is_pyg(first) or _is_networkx(first) or hasattr(first, "GetAtoms"):
            return name
    raise LookHopsError(
        f"{_WANTED}; no column of this frame ({listed(names)}) holds graphs: call that of the "
        f"SMILES {SMILES_NAMES[0]!r}."
    )


def columns_of(features: Any) -> dict[str, Array]:
    """Columns of a frame of pandas or polars, or of a mapping, by name; none of nothing."""
    if features is None:
        return {}
    if not hasattr(features, "columns") and not isinstance(features, Mapping):
        raise LookHopsError(
            "features is a frame or a mapping with a column for each feature and a row for each "
            f"graph, or names of what graphs carry; this is {type(features).__name__}."
        )
    names = getattr(features, "columns", features)
    found = {str(name): np.asarray(features[name]) for name in names}
    # Dates are no numbers, and a column of lists or of graphs is one of objects.
    return {k: v.astype(str) if v.dtype.kind in "mM" else v for k, v in found.items()}


def _is_pyg(given: Any) -> bool:
    return hasattr(given, "node_stores")  # of one or several types, or a batch


def _is_networkx(given: Any) -> bool:
    return hasattr(given, "nodes") and hasattr(given, "edges") and hasattr(given, "adj")


def _one_set(given: Any) -> Graphs:
    return given if isinstance(given, Graphs) else concatenate(list(given))


def _molecules(given: list[Any]) -> Graphs:
    from lookhops.sources.molecule_streams import SkippedMolecules
    from lookhops.sources.molecules import from_smiles

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
    if hasattr(molecule, "GetAtoms"):
        from rdkit.Chem import MolToSmiles

        return str(MolToSmiles(molecule))
    return "" if is_blank(molecule) else str(molecule)


@dataclass(frozen=True)
class OwnTarget:
    """What graphs carry themselves, to be learnt: one cell a graph, None or NaN where blank."""

    name: str
    cells: list[Any]
    kind: str = "auto"

    @property
    def are_numbers(self) -> bool:
        """Whether the values can be read as numbers."""
        return all(is_blank(cell) or as_number(cell) is not None for cell in self.cells)


def own_targets(given: Any) -> list[OwnTarget]:
    """The targets that graphs carry themselves; none where they carry nothing."""
    given, _ = _apart(given)
    kind = _kind_of(given)
    if kind in LIBRARIES:
        cells = (pyg if kind == "pyg" else networkx).target_cells(given)
        names = ["y"] if len(cells) == 1 else [f"target {j}" for j in range(len(cells))]
        return [
            OwnTarget(name, column, "numbers" if any(map(is_fraction, column)) else "auto")
            for name, column in zip(names, cells, strict=True)
        ]
    if kind == "smiles":
        return []
    graphs, found = _one_set(given), []
    for target, column in target_columns(graphs.y, graphs.targets):
        values: list[Any] = column.tolist()
        if target.classes:
            values = [None if one != one else target.classes[int(one)] for one in values]
        found.append(OwnTarget(target.name, values, target.kind))
    return found

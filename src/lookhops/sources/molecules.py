"""Molecules as graphs: an atom is a node, a bond an undirected edge.

The features are listed in :mod:`lookhops.sources.rdkit.features`. RDKit is imported when the first
molecule is parsed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from lookhops.core.errors import LookHopsError
from lookhops.core.reading import Reading
from lookhops.graphs import Graphs
from lookhops.graphs.choosing import kept_rows
from lookhops.graphs.features import Features
from lookhops.graphs.indexing import spread, to_offsets
from lookhops.graphs.targets import (
    as_number,
    class_names_of,
    is_blank,
    pack_targets,
    read_target,
)
from lookhops.sources.molecule_rows import SmilesList
from lookhops.sources.molecule_streams import MoleculeStream, as_texts
from lookhops.sources.rdkit.features import ATOM_FEATURES, BOND_FEATURES
from lookhops.sources.rdkit.parsing import Parsed
from lookhops.sources.rdkit.workers import ParsingPool

#: What makes the features, by name and version.
FEATURISER = "molecules-2"


def from_smiles(
    smiles: Iterable[str],
    y: Iterable[Any] | None = None,
    class_names: Sequence[str] | None = None,
    ids: Iterable[str] | None = None,
    invalid: str = "raise",
    name: str = "molecules",
) -> Graphs:
    """Graphs of molecules given as SMILES.

    Args:
        smiles: One SMILES a molecule.
        y: What is to be learnt of each molecule: its class, or a number; None and NaN are blanks.
            A column of many different numbers is one of numbers.
        class_names: The classes' order; ``y`` then holds names out of it or places in it. By
            default the classes are sorted.
        ids: A name for each molecule; by default they are counted from 1.
        invalid: What to do with a molecule that does not parse: ``"raise"`` a
            :class:`LookHopsError`, or ``"skip"`` it with a :class:`SkippedMolecules` warning.
        name: What to call the set.

    Returns:
        One graph a molecule, the nodes in the order of the atoms in ``columns["smiles"]``, with
        the ids in ``columns["id"]``. Where a molecule stands more than once, however it is written,
        ``columns["duplicate_of"]`` has the number of the first.
    """
    structures = [str(text) for text in smiles]
    values = getattr(y, "tolist", lambda: y)()  # of an array or a tensor
    labels = None if values is None else class_names_of(values, class_names)
    names = None if ids is None else [str(value) for value in ids]
    for what, given in (("classes", labels), ("ids", names)):
        if given is not None and len(given) != len(structures):
            raise LookHopsError(f"There are {len(structures)} SMILES but {len(given)} {what}.")
    rows = SmilesList(structures, names)
    with ParsingPool(0) as pool:
        graphs = MoleculeStream(rows, pool, name, Reading(invalid=invalid)).read_all().graphs
    if labels is None or all(map(is_blank, labels)):
        return graphs
    kept = kept_rows(graphs)
    target = read_target(
        "class",
        [labels[row] for row in kept],
        classes=class_names,
        place=lambda number: rows.where(kept[number] + 1),
    )
    return replace(graphs, **pack_targets([target]))


def feature_names() -> list[str]:
    """What each column of ``Graphs.x`` says: ``["element H", "element Li", ...]``."""
    return [f"{name} {value}" for name, values in ATOM_FEATURES.items() for value in values]


def pack(parsed: Parsed, **fields: Any) -> Graphs:
    """All molecules of which RDKit said something, with other fields of :class:`Graphs`."""
    tensors = {name: torch.from_numpy(array) for name, array in parsed.arrays.items()}
    node_ptr, row_ptr = to_offsets(tensors["atom_counts"]), to_offsets(tensors["degrees"])
    source = tensors["neighbours"]
    graphs = Graphs(
        node_ptr=node_ptr,
        row_ptr=row_ptr,
        source=source + spread(node_ptr[:-1], row_ptr[node_ptr], len(source)),
        nodes=Features(
            labels=tensors["labels"],
            label_names=tuple(ATOM_FEATURES),
            label_values=tuple(ATOM_FEATURES.values()),
        ),
        edges=Features(
            labels=tensors["edge_labels"],
            label_names=tuple(BOND_FEATURES),
            label_values=tuple(BOND_FEATURES.values()),
        ),
        whole=Features(tensors["descriptors"], parsed.descriptor_names),
        featuriser=FEATURISER,
        **fields,
    )
    graphs.__dict__["is_undirected"] = graphs.__dict__["is_symmetric"] = True  # as just made
    return graphs


def as_column(cells: Sequence[str]) -> np.ndarray:
    """Whole numbers or numbers where all cells are (an empty one is NaN), else the text."""
    text = as_texts(cells)
    values = [math.nan if is_blank(cell) else as_number(cell) for cell in cells]
    if None in values or all(map(is_blank, cells)):
        return text
    # Beyond 17 digits a whole number may not fit: it stays a float.
    if all(cell.lstrip("+-").isdecimal() and len(cell) < 18 for cell in cells):
        return text.astype(np.int64)
    return np.array(values, dtype=np.float64)

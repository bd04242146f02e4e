"""Molecules as graphs: an atom is a node, a bond an undirected edge.

The features are listed in :mod:`lookhops.sources.rdkit.features`. RDKit is imported when the first
molecule is parsed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lookhops.core.errors import LookHopsError
from lookhops.core.options import AS_USUAL, Reading
from lookhops.graphs import Graphs
from lookhops.graphs.choosing import kept_rows
from lookhops.graphs.targets import is_blank, pack_targets, read_target
from lookhops.sources.molecule_rows import SmilesList
from lookhops.sources.molecule_streams import MoleculeStream, SkippedMolecules
from lookhops.sources.parsed_rows import MoleculeRows, open_molecule_rows
from lookhops.sources.rdkit.features import ATOM_FEATURES
from lookhops.sources.rdkit.workers import ParsingPool, parsing_pool
from lookhops.sources.text_files import stem_of

__all__ = ["SkippedMolecules", "feature_names", "from_smiles", "read_molecules"]


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
    plain = getattr(y, "tolist", lambda: y)()  # of an array or a tensor
    labels = None if plain is None else [_class_name(value, class_names) for value in plain]
    names = None if ids is None else [str(value) for value in ids]
    for what, values in (("classes", labels), ("ids", names)):
        if values is not None and len(values) != len(structures):
            raise LookHopsError(f"There are {len(structures)} SMILES but {len(values)} {what}.")
    rows = SmilesList(structures, names)
    with parsing_pool(0) as pool:
        graphs = (
            MoleculeStream(MoleculeRows(rows, pool, Reading(invalid=invalid)), name)
            .read_all()
            .graphs
        )
    if labels is None or all(map(is_blank, labels)):
        return graphs
    kept = kept_rows(graphs)
    cells = [labels[row] for row in kept]
    place = lambda number: rows.where(kept[number] + 1)  # noqa: E731
    return replace(
        graphs, **pack_targets([read_target("class", cells, classes=class_names, place=place)])
    )


def _class_name(value: Any, class_names: Sequence[str] | None) -> str:
    if class_names is None or not isinstance(value, int):
        return "" if is_blank(value) else str(value)
    if not 0 <= value < len(class_names):
        raise LookHopsError(f"There are {len(class_names)} class names, so {value} is no class.")
    return class_names[value]


def read_molecules(
    path: Path | str,
    reading: Reading = AS_USUAL,
    *,
    remembered: Reading = AS_USUAL,
    processes: ParsingPool | int | None = 0,
    need_targets: bool = True,
    **options: Any,
) -> Graphs:
    """Graphs of the molecules in a ``.smi``, ``.csv`` or ``.sdf`` file.

    By default the column of SMILES is called ``smiles``, ``canonical_smiles``, ``structure``, ...
    (any case); classes stand in a column or data field ``class``, ``label``, ``y`` or ``target``
    where there is one; a molecule is called by its ``id`` or ``name``, an SDF record's title, the
    name after a SMILES, or the line (record) number.

    Args:
        path: The file: UTF-8 text.
        reading: The columns, and what to do with molecules that do not parse.
        remembered: Where ``reading`` names no column, these are looked for before the usual ones.
        processes: Worker processes that parse molecules, none meaning one for each core; by default
            this process does. A script that asks for some keeps what it runs below
            ``if __name__ == "__main__"``, as for all of Python's processes. A pool of them is used
            and left as it is.
        need_targets: Whether a target that cannot be read is an error; else it stays a column.
        options: Fields of ``reading`` to choose by their names.

    Returns:
        As :func:`from_smiles`; the other columns of the file are kept in ``columns`` too.
    """
    with parsing_pool(processes) as pool:
        stream = open_molecules(Path(path), replace(reading, **options), remembered, pool)
        return stream.read_all(need_targets).graphs


def open_molecules(
    path: Path, reading: Reading, remembered: Reading, pool: ParsingPool
) -> MoleculeStream:
    """The molecules of a file, to be read in parts or at once.

    Args:
        path: The file.
        reading: The columns, and what to do with molecules.
        remembered: Where ``reading`` names no column, these are looked for before the usual ones.
        pool: Parses molecules.
    """
    return MoleculeStream(open_molecule_rows(path, reading, remembered, pool), stem_of(path))


def feature_names() -> list[str]:
    """What each column of ``Graphs.x`` says: ``["element H", "element Li", ...]``."""
    return [f"{name} {value}" for name, values in ATOM_FEATURES.items() for value in values]

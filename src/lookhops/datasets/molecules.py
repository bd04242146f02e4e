"""Molecules as graphs: an atom is a node, a bond an undirected edge.

The features are listed in :mod:`lookhops.datasets.molecule_features`. RDKit is imported when the
first molecule is parsed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lookhops.datasets.duplicates import first_of_each
from lookhops.datasets.molecule_features import feature_names, molecule_rows, pack
from lookhops.datasets.molecule_files import read_csv, read_sdf, read_smi
from lookhops.datasets.molecule_sizes import why_too_large
from lookhops.datasets.molecule_table import MoleculeTable, as_column, target_fields
from lookhops.datasets.splits.groups import SAME
from lookhops.datasets.text_tables import TABLE_SUFFIXES, suffix_of
from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs, Skipped
from lookhops.graphs.column_finder import ColumnFinder
from lookhops.graphs.targets import is_blank
from lookhops.options import AS_USUAL, Reading

__all__ = ["SUFFIXES", "SkippedMolecules", "feature_names", "from_smiles", "read_molecules"]
SUFFIXES = (".smi", ".sdf", *TABLE_SUFFIXES)
_SHOWN = 10  # places named in a warning


class SkippedMolecules(UserWarning):
    """Molecules that did not parse were left out, as the caller chose."""


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
    numbers = [str(number) for number in range(1, len(structures) + 1)]
    plain = getattr(y, "tolist", lambda: y)()  # of an array or a tensor
    labels = None if plain is None else [_class_name(value, class_names) for value in plain]
    names = numbers if ids is None else [str(value) for value in ids]
    for what, values in (("classes", labels), ("ids", names)):
        if values is not None and len(values) != len(structures):
            raise LookHopsError(f"There are {len(structures)} SMILES but {len(values)} {what}.")
    where = [f"molecule {number}" for number in numbers]
    table = MoleculeTable("", where, structures, names, labels)
    return featurise(table, Reading(invalid=invalid), class_names=class_names, name=name)


def read_molecules(
    path: Path | str,
    reading: Reading = AS_USUAL,
    *,
    remembered: Reading = AS_USUAL,
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
        options: Fields of ``reading`` to choose by their names.

    Returns:
        As :func:`from_smiles`; the other columns of the file are kept in ``columns`` too.
    """
    path = Path(path)
    reading = replace(reading, **options)
    finder = ColumnFinder(path, reading, remembered)
    kind = suffix_of(path)
    if kind in TABLE_SUFFIXES:
        table = read_csv(path, finder)
    elif kind == ".sdf" and reading.smiles_column is None:
        table = read_sdf(path, finder)
    elif kind == ".smi" and not (
        reading.smiles_column or reading.label_column or reading.id_column
    ):
        table = read_smi(path)
    elif kind in SUFFIXES:
        raise LookHopsError(
            f"{path}: an SDF file has structures, not a column of SMILES; leave out smiles_column."
            if kind == ".sdf"
            else f"{path}: a .smi file has no named columns; use a .csv file to name them."
        )
    else:
        raise LookHopsError(f"{path}: molecules are read from {', '.join(SUFFIXES)} files.")
    return featurise(table, reading, name=path.name.removesuffix(kind), mol_blocks=kind == ".sdf")


def featurise(
    table: MoleculeTable,
    reading: Reading = AS_USUAL,
    *,
    class_names: Sequence[str] | None = None,
    name: str = "molecules",
    mol_blocks: bool = False,
) -> Graphs:
    """Graphs of the molecules in a table, as SMILES or as mol blocks."""
    if not table.structures:
        raise LookHopsError(f"{table.origin or 'from_smiles'}: there are no molecules.")
    parsed, skipped = _parse(table, reading, mol_blocks)
    kept = list(parsed)
    smiles, canonical, atoms, bonds = zip(*parsed.values(), strict=True)
    columns = {
        "id": np.array(table.ids, dtype=object)[kept],
        "smiles": np.array(smiles, dtype=object),
    }
    same = first_of_each(canonical)
    if (same < np.arange(len(same))).any():
        columns[SAME] = same
    for key, cells in table.columns.items():
        columns.setdefault(key, as_column([cells[index] for index in kept]))
    rest: dict[str, Any] = {"columns": columns, "name": name, "skipped": skipped}
    return pack(atoms, bonds, **target_fields(table, kept, class_names), **rest)


def _class_name(value: Any, class_names: Sequence[str] | None) -> str:
    if class_names is None or not isinstance(value, int):
        return "" if is_blank(value) else str(value)
    if not 0 <= value < len(class_names):
        raise LookHopsError(f"There are {len(class_names)} class names, so {value} is no class.")
    return class_names[value]


# -------------------------------------------------------------------- RDKit


def _parse(
    table: MoleculeTable, reading: Reading, mol_blocks: bool
) -> tuple[dict[int, tuple[str, str, np.ndarray, np.ndarray]], tuple[Skipped, ...]]:
    """Of each molecule that parses SMILES, canonical SMILES, atoms and bonds; and the others."""
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise LookHopsError("Molecules are read with RDKit: pip install rdkit.") from error
    parsed, skipped = {}, []
    with rdBase.BlockLogs():  # what RDKit would print is in our own sentences
        for index, structure in enumerate(table.structures):
            too_large = why_too_large(structure, mol_blocks, reading.max_atoms)
            smiles, molecule = "", None
            if not too_large:
                smiles, molecule = _read(structure, mol_blocks, reading.salts)
            if molecule is not None and molecule.GetNumAtoms():
                parsed[index] = smiles, Chem.MolToSmiles(molecule), *molecule_rows(molecule)
                continue
            reason = too_large or _reason(structure, mol_blocks)
            skipped.append(Skipped(index, table.ids[index], reason))
            if reading.invalid == "raise":
                shown = table.ids[index] if mol_blocks else structure
                shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
                raise LookHopsError(
                    f"{table.place(index)}: {shown!r} does not parse ({reason}); mend it, or leave "
                    "such molecules out with invalid='skip' (--invalid skip)."
                )
    if skipped:
        total = len(table.structures)
        listed = ", ".join(f"{table.where[one.row]} ({one.reason})" for one in skipped[:_SHOWN])
        listed += f" and {len(skipped) - _SHOWN} more" if len(skipped) > _SHOWN else ""
        origin = f"{table.origin}: " if table.origin else ""
        if not parsed:
            raise LookHopsError(f"{origin}none of the {total} molecules parses: {listed}.")
        said = f"{len(skipped)} of {total} molecules do not parse and are left out: {listed}."
        warnings.warn(f"{origin}{said}", SkippedMolecules, stacklevel=4)
    return parsed, tuple(skipped)


def _read(structure: str, mol_block: bool, salts: str) -> tuple[str, Any]:
    """SMILES and molecule, whose atoms stand in the order of the SMILES: a mol block's may not."""
    from rdkit import Chem

    if mol_block:
        molecule = Chem.MolFromMolBlock(structure)
        structure = "" if molecule is None else Chem.MolToSmiles(molecule)
    molecule = Chem.MolFromSmiles(structure)
    if salts == "largest" and molecule is not None and "." in structure:
        pieces = Chem.GetMolFrags(molecule, asMols=True)
        structure = Chem.MolToSmiles(max(pieces, key=_size))
        molecule = Chem.MolFromSmiles(structure)
    return structure, molecule


def _size(piece: Any) -> tuple[int, int, str]:
    """What makes a piece of a molecule the largest: atoms, then their numbers; then the SMILES."""
    from rdkit import Chem

    numbers = [atom.GetAtomicNum() for atom in piece.GetAtoms()]
    return len(numbers), sum(numbers), Chem.MolToSmiles(piece)


def _reason(structure: str, mol_block: bool) -> str:
    """Why a molecule does not parse: how it is written, or its chemistry."""
    from rdkit import Chem

    if not structure.strip():
        return "it is empty"
    read = Chem.MolFromMolBlock if mol_block else Chem.MolFromSmiles
    molecule = read(structure, sanitize=False)
    if molecule is None:
        return "not a mol block" if mol_block else "not SMILES"
    if not molecule.GetNumAtoms():
        return "it has no atoms"
    problems = Chem.DetectChemistryProblems(molecule)
    return " ".join(problems[0].Message().split()) if problems else "RDKit refuses it"

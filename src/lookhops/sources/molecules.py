"""Molecules as graphs: an atom is a node, a bond an undirected edge.

The features are listed in :mod:`lookhops.sources.molecule_features`. RDKit is imported when the
first molecule is parsed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lookhops.core.errors import LookHopsError
from lookhops.core.options import AS_USUAL, Reading
from lookhops.core.words import agreeing, counted
from lookhops.graphs import Graphs, Skipped
from lookhops.graphs.column_finder import ColumnFinder
from lookhops.graphs.skipped import kept_rows
from lookhops.graphs.targets import is_blank, pack_targets, read_target
from lookhops.sources.duplicates import first_of_each
from lookhops.sources.molecule_features import feature_names, pack
from lookhops.sources.molecule_files import read_csv, read_sdf, read_smi
from lookhops.sources.molecule_table import MoleculeTable, as_column
from lookhops.sources.rdkit.parsing import Parsed, Parsing
from lookhops.sources.rdkit.workers import ParsingPool
from lookhops.sources.splits.groups import SAME
from lookhops.sources.targets import Offer, choose_targets
from lookhops.sources.text_tables import TABLE_SUFFIXES, suffix_of, unpacked_suffix

__all__ = ["SUFFIXES", "SkippedMolecules", "feature_names", "from_smiles", "read_molecules"]
SUFFIXES = (".smi", ".sdf", *TABLE_SUFFIXES, ".smi.gz", ".sdf.gz")
SHOWN = 10  # places named in a warning


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
    table = MoleculeTable("", where, structures, names)
    graphs = featurise(table, Reading(invalid=invalid), name=name)
    if labels is None or all(map(is_blank, labels)):
        return graphs
    kept = kept_rows(graphs)
    cells = [labels[row] for row in kept]
    place = lambda number: where[kept[number]]  # noqa: E731
    return replace(
        graphs, **pack_targets([read_target("class", cells, classes=class_names, place=place)])
    )


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
    path = Path(path)
    reading = replace(reading, **options)
    finder = ColumnFinder(path, reading, remembered)
    kind = unpacked_suffix(path)
    if suffix_of(path) in TABLE_SUFFIXES:
        table = read_csv(path, finder)
    elif kind == ".sdf" and reading.smiles_column is None:
        table = read_sdf(path, finder)
    elif kind == ".smi" and not (
        reading.smiles_column or reading.label_column or reading.id_column
    ):
        table = read_smi(path)
    elif suffix_of(path) in SUFFIXES:
        raise LookHopsError(
            f"{path}: an SDF file has structures, not a column of SMILES; leave out smiles_column."
            if kind == ".sdf"
            else f"{path}: a .smi file has no named columns; use a .csv file to name them."
        )
    else:
        raise LookHopsError(f"{path}: molecules are read from {', '.join(SUFFIXES)} files.")
    rest: dict[str, Any] = {"mol_blocks": kind == ".sdf", "processes": processes}
    graphs = featurise(table, reading, name=path.name.removesuffix(suffix_of(path)), **rest)
    kept = kept_rows(graphs)
    offer = Offer(table.label_column, lambda number: table.place(kept[number]), need_targets)
    return choose_targets(graphs, reading, remembered, offer)


def featurise(
    table: MoleculeTable,
    reading: Reading = AS_USUAL,
    *,
    name: str = "molecules",
    mol_blocks: bool = False,
    processes: ParsingPool | int | None = 0,
) -> Graphs:
    """Graphs of the molecules in a table, as SMILES or as mol blocks, without targets.

    Args:
        table: The molecules as texts.
        reading: What to do with them.
        name: What to call the set.
        mol_blocks: Whether the texts are mol blocks.
        processes: As for :func:`read_molecules`.
    """
    if not table.structures:
        raise LookHopsError(f"{table.origin or 'from_smiles'}: there are no molecules.")
    parsed = _parse(table.structures, Parsing.of(reading, mol_blocks), processes)
    skipped = skipped_rows(table, parsed, reading, mol_blocks)
    if skipped:
        places = [f"{table.where[one.row]} ({one.reason})" for one in skipped[:SHOWN]]
        said = skipped_sentence(table.origin, places, len(skipped), len(table.structures))
        warnings.warn(said, SkippedMolecules, stacklevel=3)
    kept = parsed.rows.tolist()
    columns = {
        "id": np.array(table.ids, dtype=object)[kept],
        "smiles": np.array(parsed.smiles, dtype=object),
    }
    same = first_of_each(parsed.canonical)
    if (same < np.arange(len(same))).any():
        columns[SAME] = same
    for key, cells in table.columns.items():
        columns.setdefault(key, as_column([cells[index] for index in kept]))
    rest: dict[str, Any] = {"columns": columns, "name": name, "skipped": skipped}
    return pack(parsed, **rest)


def _class_name(value: Any, class_names: Sequence[str] | None) -> str:
    if class_names is None or not isinstance(value, int):
        return "" if is_blank(value) else str(value)
    if not 0 <= value < len(class_names):
        raise LookHopsError(f"There are {len(class_names)} class names, so {value} is no class.")
    return class_names[value]


# -------------------------------------------------------------------- RDKit


def _parse(structures: Sequence[str], how: Parsing, processes: ParsingPool | int | None) -> Parsed:
    """Parse molecules, in a pool that is there or in one of so many processes."""
    if isinstance(processes, ParsingPool):
        processes.how = how
        return processes.parse(structures)
    with ParsingPool(how, processes) as pool:
        return pool.parse(structures)


def skipped_rows(
    table: MoleculeTable, parsed: Parsed, reading: Reading, mol_blocks: bool = False
) -> tuple[Skipped, ...]:
    """The molecules that do not parse; where they are not to be left out, an error for the first.

    Args:
        table: The molecules as texts.
        parsed: What RDKit says of them.
        reading: What to do with those that do not parse.
        mol_blocks: Whether the texts are mol blocks.
    """
    for row, reason in parsed.failures if reading.invalid != "skip" else ():
        if row in table.blank:
            continue
        shown = table.ids[row] if mol_blocks else table.structures[row]
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
        raise LookHopsError(
            f"{table.place(row)}: {shown!r} does not parse ({reason}); mend it, or leave "
            "such molecules out with invalid='skip' (--invalid skip)."
        )
    return tuple(Skipped(row, table.ids[row], reason) for row, reason in parsed.failures)


def skipped_sentence(origin: str, places: Sequence[str], skipped: int, total: int) -> str:
    """That molecules were left out, where the first of them stand, and why; refuses to lose all.

    Args:
        origin: The source.
        places: Where the first of them stand, with the reasons.
        skipped: How many they are.
        total: How many molecules there are.
    """
    listed = ", ".join(places[:SHOWN])
    listed += f" and {skipped - SHOWN} more" if skipped > SHOWN else ""
    origin = f"{origin}: " if origin else ""
    if skipped == total:
        raise LookHopsError(f"{origin}none of {counted(total, 'molecule')} parses: {listed}.")
    verbs = agreeing(skipped, "does not parse and is", "do not parse and are")
    return f"{origin}{skipped:,} of {counted(total, 'molecule')} {verbs} left out: {listed}."

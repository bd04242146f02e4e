"""Texts of molecules to what RDKit says of them: those that parse, and why the others do not."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from textwrap import shorten
from typing import Any

import numpy as np

from lookhops.core.errors import LookHopsError
from lookhops.core.reading import Reading
from lookhops.sources.rdkit.descriptors import descriptor_names, descriptors_of
from lookhops.sources.rdkit.features import AtomsAndBonds

REFUSED = "RDKit refuses it"
#: What a SMILES has beside plain atoms and bonds: stereochemistry, hydrogen atoms, extensions.
_MORE_THAN_ATOMS = re.compile(r"[@/\\|]|\[\d*[H#]")
#: Where an atom's isotope is given.
_ISOTOPE = re.compile(r"\[\d+")
#: Characters that an atom takes: in SMILES with its bonds and rings, in a mol block with its lines.
SMILES_WIDTH, BLOCK_WIDTH = 40, 400
#: Bonds that an atom has at most, in the mean.
MOST_BONDS = 4

_ATOM = re.compile(r"\[[^\]]*\]|Br|Cl|[BCNOPSFIbcnops*]")
_RING = re.compile(r"%\d\d|%\(\d+\)|\d")


PLAIN = Reading(invalid="skip", descriptors="none")


@dataclass(frozen=True)
class Parsing:
    """How molecules are parsed: as a reading says, from SMILES or mol blocks."""

    reading: Reading = PLAIN
    mol_blocks: bool = False
    #: Whether canonical SMILES are wanted.
    canonical: bool = True


@dataclass(frozen=True, eq=False)
class Parsed:
    """What RDKit says of some molecules, m of which parse."""

    count: int
    #: The numbers of those that parse, shape (m), and their SMILES, with atoms in the same order.
    rows: np.ndarray
    smiles: list[str]
    #: Their canonical SMILES, where wanted.
    canonical: list[str]
    #: The number of each of the others, and why it does not parse.
    failures: list[tuple[int, str]]
    #: ``AtomsAndBonds.arrays``, and ``descriptors``, float32, shape (m, d), with these names.
    arrays: dict[str, np.ndarray]
    descriptor_names: tuple[str, ...]

    @classmethod
    def failed(cls, reason: str, how: Parsing) -> Parsed:
        return replace(parse([], how), count=1, failures=[(0, reason)])

    @classmethod
    def join(cls, parts: Sequence[Parsed]) -> Parsed:
        if len(parts) == 1:
            return parts[0]
        before = [0, *accumulate(part.count for part in parts)]
        shifted = list(zip(before[:-1], parts, strict=True))
        return cls(
            before[-1],
            np.concatenate([start + part.rows for start, part in shifted]),
            list(chain.from_iterable(part.smiles for part in parts)),
            list(chain.from_iterable(part.canonical for part in parts)),
            [(start + row, why) for start, part in shifted for row, why in part.failures],
            {
                name: np.concatenate([part.arrays[name] for part in parts])
                for name in parts[0].arrays
            },
            parts[0].descriptor_names,
        )


def parse(
    structures: Sequence[str], how: Parsing, begin: Callable[[int], None] | None = None
) -> Parsed:
    """Parse molecules here; ``begin`` is called with the number of each before RDKit sees it."""
    try:
        from rdkit import Chem, rdBase
    except ImportError as error:
        raise LookHopsError("Molecules are read with RDKit: pip install rdkit.") from error
    rows: list[int] = []
    found: list[str] = []
    canonical: list[str] = []
    parts, names = AtomsAndBonds(), descriptor_names(how.reading.descriptors)
    values = np.zeros((len(structures), len(names)), np.float32)
    failures: list[tuple[int, str]] = []
    with rdBase.BlockLogs():  # what RDKit would print is in our sentences
        for number, structure in enumerate(structures):
            if begin is not None:
                begin(number)
            try:
                smiles, molecule, failure = _read(structure, how)
                if not failure:
                    text = Chem.MolToSmiles(molecule) if how.canonical else ""
                    if names:
                        values[len(rows)] = descriptors_of(molecule, names)
                    parts.add(molecule, smiles)
            except (RuntimeError, ValueError):  # what RDKit's C++ throws; text that is no UTF-8
                failure = REFUSED
            if failure:
                failures.append((number, failure))
                if how.reading.invalid != "skip" and structure:  # an empty one may be let pass
                    break
                continue
            rows.append(number)
            found.append(smiles)
            if how.canonical:
                canonical.append(text)
    numbers = np.array(rows, dtype=np.int64)
    arrays = {**parts.arrays(), "descriptors": values[: len(rows)]}
    return Parsed(len(structures), numbers, found, canonical, failures, arrays, names)


def _read(structure: str, how: Parsing) -> tuple[str, Any, str]:
    """SMILES and molecule with its atoms in the order of the SMILES, or why there is none.

    Isotopes are left out: no feature has them, and RDKit would make deuterium an atom of its own.
    """
    from rdkit import Chem

    failure = why_too_large(structure, how.mol_blocks, how.reading.max_atoms)
    if failure:
        return "", None, failure
    smiles = structure
    if how.mol_blocks:
        molecule = Chem.MolFromMolBlock(structure)
        smiles = "" if molecule is None else Chem.MolToSmiles(molecule)
    smiles = _ISOTOPE.sub("[", smiles)
    read = _molecule if how.reading.descriptors == "none" else Chem.MolFromSmiles
    molecule = read(smiles)
    if how.reading.salts == "largest" and molecule is not None and "." in smiles:
        pieces = Chem.GetMolFrags(molecule, asMols=True)
        smiles = Chem.MolToSmiles(max(pieces, key=_size))
        molecule = read(smiles)
    if molecule is None or not molecule.GetNumAtoms():
        failure = _reason(structure, how.mol_blocks)
    return smiles, molecule, failure


def _molecule(smiles: str) -> Any:
    """The molecule of a SMILES; none where RDKit refuses it.

    Where no stereochemistry is written, none is looked for, which takes RDKit a quarter of the
    time; hydrogens that are atoms of their own are its to remove. Descriptors need it.
    """
    from rdkit import Chem

    if _MORE_THAN_ATOMS.search(smiles):
        return Chem.MolFromSmiles(smiles)
    molecule = Chem.MolFromSmiles(smiles, sanitize=False)
    if molecule is None or Chem.SanitizeMol(molecule, catchErrors=True):
        return None
    return molecule


def _size(piece: Any) -> tuple[int, int, str]:
    """What makes a piece of a molecule the largest: atoms, then their numbers; then the SMILES."""
    from rdkit import Chem

    numbers = [atom.GetAtomicNum() for atom in piece.GetAtoms()]
    return len(numbers), sum(numbers), Chem.MolToSmiles(piece)


def _reason(structure: str, mol_block: bool) -> str:
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
    return shorten(problems[0].Message(), 120, placeholder=" ...") if problems else REFUSED


def why_too_large(structure: str, mol_block: bool, most: int) -> str:
    """Why a molecule is not read, from its text before RDKit sees it; empty where it is.

    RDKit takes minutes for chains of 100,000 atoms and crashes at 100 atoms that are all joined,
    which no chemistry has: an atom has a handful of bonds.
    """
    width = BLOCK_WIDTH if mol_block else SMILES_WIDTH
    if len(structure) > width * most + 10 * BLOCK_WIDTH:
        return f"its {len(structure):,} characters are more than {most:,} atoms need (max_atoms)"
    if not mol_block and len(structure.splitlines()) > 1:
        return "it has several lines, and one SMILES is one line"
    atoms, bonds = _block_counts(structure) if mol_block else _smiles_counts(structure)
    if atoms > most:
        return f"it has {atoms:,} atoms, more than {most:,} (max_atoms)"
    if bonds > MOST_BONDS * atoms + 10:
        return f"{bonds:,} bonds are too many for {atoms:,} atoms"
    return ""


def _smiles_counts(smiles: str) -> tuple[int, int]:
    """Atoms, and bonds at most: one to the atom before, and one for each ring that is closed."""
    atoms = len(_ATOM.findall(smiles))
    rings = len(_RING.findall(re.sub(r"\[[^\]]*\]", "", smiles))) // 2
    return atoms, atoms + rings


def _block_counts(block: str) -> tuple[int, int]:
    lines = block.split("\n", 8)
    found = re.search(r"M  V30 COUNTS +(\d+) +(\d+)", block)
    if found is None and len(lines) > 3:
        found = re.match(r" {0,2}(\d{1,3}) {0,2}(\d{1,3})", lines[3])
    return (int(found[1]), int(found[2])) if found else (0, 0)

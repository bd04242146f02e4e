"""Atoms and bonds of RDKit's molecules as rows of labels, and what the labels stand for.

Every atom has six labels and every bond four, from vocabularies that never change, so that any two
sets of molecules have the same feature columns (:data:`ATOM_FEATURES`, :data:`BOND_FEATURES`):

==========  =================================================================== =======
label       values                                                              columns
==========  =================================================================== =======
element     H Li B C N O F Na Mg Si P S Cl K Ca As Se Br I, other               20
degree      bonds to other nodes: 0 to 5, 6 or more                             7
charge      formal: -2 or less, -1, 0, 1, 2 or more                             5
hydrogens   attached, and not nodes themselves: 0 to 3, 4 or more               5
aromatic    no, yes                                                             2
chirality   none given, R, S, other (pseudo-asymmetric, not tetrahedral, ...)   4
==========  =================================================================== =======

==========  =================================================================== =======
of bonds    values                                                              columns
==========  =================================================================== =======
bond        single, double, triple, aromatic, other                             5
stereo      none given, E (trans), Z (cis), other                               4
conjugated  no, yes                                                             2
ring        no, yes                                                             2
==========  =================================================================== =======

Stereochemistry is R or S, E or Z and not the turn in which the SMILES is written, which would give
one molecule other features each time its SMILES begins at another atom.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from typing import Any

import numpy as np

ELEMENTS = {
    "H": 1, "Li": 3, "B": 5, "C": 6, "N": 7, "O": 8, "F": 9, "Na": 11, "Mg": 12, "Si": 14,
    "P": 15, "S": 16, "Cl": 17, "K": 19, "Ca": 20, "As": 33, "Se": 34, "Br": 35, "I": 53,
}  # fmt: skip
ATOM_FEATURES = {
    "element": (*ELEMENTS, "other"),
    "degree": ("0", "1", "2", "3", "4", "5", "6 or more"),
    "charge": ("-2 or less", "-1", "0", "1", "2 or more"),
    "hydrogens": ("0", "1", "2", "3", "4 or more"),
    "aromatic": ("no", "yes"),
    "chirality": ("none", "R", "S", "other"),
}
BOND_TYPES = ("single", "double", "triple", "aromatic", "other")
BOND_FEATURES = {
    "bond": BOND_TYPES,
    "stereo": ("none", "E", "Z", "other"),
    "conjugated": ("no", "yes"),
    "ring": ("no", "yes"),
}

#: The label of each atomic number, and that of each of RDKit's numbers of the types of bonds.
_ELEMENT = np.full(256, len(ELEMENTS))
_ELEMENT[list(ELEMENTS.values())] = np.arange(len(ELEMENTS))
_BOND = np.full(256, BOND_TYPES.index("other"))
_BOND[[1, 2, 3, 12]] = np.arange(4)  # single, double, triple, aromatic
#: RDKit's numbers of the types of bonds, by their order; of no metal, and none drawn as an arrow.
_TYPE_OF_ORDER = {1.0: 1, 2.0: 2, 3.0: 3, 1.5: 12}
#: Between these elements a bond of order one is single: a dative one has a metal, or an arrow.
_ORGANIC = frozenset((1, 5, 6, 7, 8, 9, 14, 15, 16, 17, 34, 35, 53))


#: Columns of atoms or of bonds of one molecule.
Columns = list[list[int]]


class AtomsAndBonds:
    """What RDKit says of the atoms and bonds of molecules, one molecule after the other.

    Each question takes a quarter of a microsecond, and those for an enumeration one: what follows
    from other answers is not asked for, nor what is not written in the SMILES.
    """

    def __init__(self) -> None:
        from rdkit.Chem.rdchem import Atom, Bond

        ask = Atom.GetAtomicNum, Atom.GetFormalCharge, Atom.GetTotalNumHs, Atom.GetIsAromatic
        self._of_atoms, self._atoms = ask, list[Columns]()
        self._of_bonds, self._bonds = (Bond.GetBeginAtomIdx, Bond.GetEndAtomIdx), list[Columns]()
        self._more_of_bonds: tuple[Any, ...] = Bond.GetIsConjugated, Bond.IsInRing
        self._order = Bond.GetBondTypeAsDouble

    def add(self, molecule: Any, smiles: str) -> None:
        """Take a molecule of RDKit, and the SMILES that it was read from; all of it or nothing."""
        chiral, turned = "@" in smiles, "/" in smiles or "\\" in smiles
        atoms = list(map(molecule.GetAtomWithIdx, range(molecule.GetNumAtoms())))
        of_atoms = [list(map(ask, atoms)) for ask in self._of_atoms]
        bonds = list(map(molecule.GetBondWithIdx, range(molecule.GetNumBonds())))
        of_bonds = [list(map(ask, bonds)) for ask in self._of_bonds]
        kinds: list[Any] = [None] * len(bonds)
        if "->" not in smiles and "<-" not in smiles and _ORGANIC.issuperset(of_atoms[0]):
            kinds = list(map(_TYPE_OF_ORDER.get, map(self._order, bonds)))
        if None in kinds:
            kinds = [int(bond.GetBondType()) for bond in bonds]
        chirality, stereo = [0] * len(atoms), [0] * len(bonds)
        if chiral:
            chirality = [int(atom.GetChiralTag() != 0) for atom in atoms]
        if turned:
            stereo = [int(bond.GetStereo() != 0) for bond in bonds]
        of_atoms.append(chirality)
        of_bonds += [kinds, stereo, *(list(map(ask, bonds)) for ask in self._more_of_bonds)]
        if any(chirality) or any(stereo):
            _label_stereo(molecule, (atoms, chirality), (bonds, stereo))
        self._atoms.append(of_atoms)
        self._bonds.append(of_bonds)

    def arrays(self) -> dict[str, np.ndarray]:
        """What is known of all molecules, m of them with n atoms and e bonds.

        Returns:
            ``atom_counts`` of each molecule, shape (m); the ``labels`` of atoms, by
            :data:`ATOM_FEATURES`, shape (n, 6); the ``degrees`` of atoms, shape (n); of each atom
            its ``neighbours``, numbered within the molecule, in their order, shape (2 e); and the
            ``edge_labels`` of these bonds, by :data:`BOND_FEATURES`, shape (2 e, 4).
        """
        counts, atoms = _joined(self._atoms, 5)
        of_bonds, bonds = _joined(self._bonds, 6)
        first = np.repeat(np.cumsum(counts) - counts, of_bonds)
        begin, end = first + bonds[:, 0], first + bonds[:, 1]
        here, there = np.concatenate((begin, end)), np.concatenate((end, begin))
        order = np.argsort(here * len(atoms) + there)
        degrees = np.bincount(here, minlength=len(atoms))
        charges = atoms[:, 1] + ATOM_FEATURES["charge"].index("0")
        columns = (_ELEMENT[atoms[:, 0]], degrees, charges, *atoms[:, 2:].T)
        last = [len(values) - 1 for values in ATOM_FEATURES.values()]
        labels = np.clip(np.stack(columns, 1), 0, last)  # the ends of a vocabulary hold all beyond
        of_edges = np.column_stack((_BOND[bonds[:, 2]], bonds[:, 3:])).astype(np.uint8)
        return {
            "atom_counts": counts.astype(np.int32),
            "labels": labels.astype(np.uint8),
            "degrees": degrees.astype(np.int32),
            "neighbours": (there - np.tile(first, 2))[order].astype(np.int32),
            "edge_labels": np.tile(of_edges, (2, 1))[order],
        }


def _joined(each: list[Columns], columns: int) -> tuple[np.ndarray, np.ndarray]:
    counts = np.array([len(columns_of_one[0]) for columns_of_one in each], dtype=np.int64)
    rows = np.zeros((int(counts.sum()), columns), dtype=np.int64)
    for column in range(columns if each else 0):
        values = chain.from_iterable(columns_of_one[column] for columns_of_one in each)
        rows[:, column] = np.fromiter(values, np.int64, len(rows))
    return counts, rows


def _label_stereo(molecule: Any, *parts: tuple[list[Any], list[int]]) -> None:
    """Put the place of R, S, E, Z or other in its vocabulary where there is any stereo at all.

    ``parts`` are the atoms and which of them have any, and the same of bonds.
    """
    from rdkit.Chem import rdCIPLabeler

    labelled = False
    with suppress(RuntimeError):
        # The bound, about a second's work, is RDKit's advice against molecules that never end.
        rdCIPLabeler.AssignCIPLabels(molecule, maxRecursiveIterations=1_250_000)
        labelled = True
    vocabularies = ATOM_FEATURES["chirality"], BOND_FEATURES["stereo"]
    for (all_of_them, stereo), words in zip(parts, vocabularies, strict=True):
        for index, one in enumerate(all_of_them):
            if stereo[index]:
                label = one.GetProp("_CIPCode") if labelled and one.HasProp("_CIPCode") else ""
                stereo[index] = words.index(label if label in words else "other")

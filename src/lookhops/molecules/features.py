"""Atoms and bonds of RDKit's molecules as rows of numbers, and what the numbers stand for."""

from __future__ import annotations

from typing import Any

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

#: Rows of atoms and of bonds (:func:`molecule_rows`).
Rows = list[tuple[int, ...]]
#: RDKit's numbers of the types of bonds, by their order; of no metal, and none drawn as an arrow.
_TYPE_OF_ORDER = {1.0: 1, 2.0: 2, 3.0: 3, 1.5: 12}
#: Between these elements a bond of order one is single: a dative one has a metal, or an arrow.
_ORGANIC = frozenset((1, 5, 6, 7, 8, 9, 14, 15, 16, 17, 34, 35, 53))


def molecule_rows(molecule: Any, smiles: str) -> tuple[Rows, Rows]:
    """What is known of each atom and of each bond of a molecule of RDKit.

    Args:
        molecule: The molecule.
        smiles: The SMILES that it was read from: what is not written there is not asked for, since
            each question takes a microsecond, and those for an enumeration five.

    Returns:
        Of each atom: atomic number, degree, charge, hydrogens, aromaticity, and the place of the
        chirality in its vocabulary. Of each bond: both ends, RDKit's number of the type, the place
        of the stereo in its vocabulary, conjugation, and whether it is in a ring.
    """
    chiral, turned = "@" in smiles, "/" in smiles or "\\" in smiles
    atoms: Rows = []
    atom_at, bond_at = molecule.GetAtomWithIdx, molecule.GetBondWithIdx
    for index in range(molecule.GetNumAtoms()):
        atom = atom_at(index)
        atoms.append(
            (
                atom.GetAtomicNum(),
                atom.GetDegree(),
                atom.GetFormalCharge(),
                atom.GetTotalNumHs(),
                atom.GetIsAromatic(),
                chiral and int(atom.GetChiralTag()) != 0,
            )
        )
    plain = "->" not in smiles and "<-" not in smiles and _ORGANIC.issuperset(a[0] for a in atoms)
    bonds: Rows = []
    for index in range(molecule.GetNumBonds()):
        bond = bond_at(index)
        kind = _TYPE_OF_ORDER.get(bond.GetBondTypeAsDouble()) if plain else None
        bonds.append(
            (
                bond.GetBeginAtomIdx(),
                bond.GetEndAtomIdx(),
                int(bond.GetBondType()) if kind is None else kind,
                turned and int(bond.GetStereo()) != 0,
                bond.GetIsConjugated(),
                bond.IsInRing(),
            )
        )
    if chiral or turned:
        _label_stereo(molecule, atoms, bonds)
    return atoms, bonds


def _label_stereo(molecule: Any, atoms: Rows, bonds: Rows) -> None:
    """Put the place of R, S, E, Z or other in its vocabulary where there is any stereo at all."""
    from rdkit.Chem import rdCIPLabeler

    parts = (
        (atoms, 5, ATOM_FEATURES["chirality"], molecule.GetAtomWithIdx),
        (bonds, 3, BOND_FEATURES["stereo"], molecule.GetBondWithIdx),
    )
    if not any(row[column] for rows, column, *_ in parts for row in rows):
        return
    try:
        # The bound, about a second's work, is RDKit's advice against molecules that never end.
        rdCIPLabeler.AssignCIPLabels(molecule, maxRecursiveIterations=1_250_000)
        labelled = True
    except RuntimeError:
        labelled = False
    for rows, column, words, part in parts:
        for index, row in enumerate(rows):
            if row[column]:
                one = part(index)
                label = one.GetProp("_CIPCode") if labelled and one.HasProp("_CIPCode") else ""
                place = words.index(label if label in words else "other")
                rows[index] = (*row[:column], place, *row[column + 1 :])

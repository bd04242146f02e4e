"""The features of atoms and bonds: the vocabulary, and how atoms and bonds of RDKit become labels.

Every atom has six labels and every bond one, from vocabularies that never change, so that any two
sets of molecules have the same feature columns (:data:`ATOM_FEATURES`, :data:`BOND_TYPES`):

=========  ==================================================================== =======
label      values                                                               columns
=========  ==================================================================== =======
element    H Li B C N O F Na Mg Si P S Cl K Ca As Se Br I, other                20
degree     bonds to other nodes: 0 to 5, 6 or more                              7
charge     formal: -2 or less, -1, 0, 1, 2 or more                              5
hydrogens  attached, and not nodes themselves: 0 to 3, 4 or more                5
aromatic   no, yes                                                              2
chirality  none given, R, S, other (pseudo-asymmetric, not tetrahedral, ...)    4
bond       single, double, triple, aromatic, other                              5
=========  ==================================================================== =======

Chirality is R or S and not the turn in which the SMILES is written, which would give one molecule
other features each time its SMILES begins at another atom.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from lookhops.graphs import Graphs

FEATURISER = "molecules-1"
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


def feature_names() -> list[str]:
    """What each column of ``Graphs.x`` says: ``["element H", "element Li", ...]``."""
    return [f"{name} {value}" for name, values in ATOM_FEATURES.items() for value in values]


def atom_rows(molecule: Any) -> np.ndarray:
    """Atomic number, degree, charge, hydrogens, aromaticity and chirality of each atom."""
    rows = [
        (
            atom.GetAtomicNum(),
            atom.GetDegree(),
            atom.GetFormalCharge(),
            atom.GetTotalNumHs(),
            atom.GetIsAromatic(),
            int(atom.GetChiralTag()) != 0,
        )
        for atom in molecule.GetAtoms()
    ]
    atoms = np.array(rows, dtype=np.int64)
    if atoms[:, 5].any():
        _label_stereocentres(molecule, atoms[:, 5])
    return atoms


def _label_stereocentres(molecule: Any, chirality: np.ndarray) -> None:
    """Put the place of R, S or other in the vocabulary where an atom is chiral at all."""
    from rdkit.Chem import rdCIPLabeler

    values = ATOM_FEATURES["chirality"]
    try:
        # The bound, about a second's work, is RDKit's advice against molecules that never end.
        rdCIPLabeler.AssignCIPLabels(molecule, maxRecursiveIterations=1_250_000)
    except RuntimeError:
        chirality[chirality > 0] = values.index("other")
        return
    for index in chirality.nonzero()[0].tolist():
        atom = molecule.GetAtomWithIdx(index)
        label = atom.GetProp("_CIPCode") if atom.HasProp("_CIPCode") else ""
        chirality[index] = values.index(label if label in ("R", "S") else "other")


def bond_rows(molecule: Any) -> np.ndarray:
    """Both ends of each bond and RDKit's number for its type."""
    rows = [
        (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), int(bond.GetBondType()))
        for bond in molecule.GetBonds()
    ]
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def pack(atoms: Sequence[np.ndarray], bonds: Sequence[np.ndarray], **rest: Any) -> Graphs:
    """Turn RDKit's numbers into labels, and pack all molecules at once.

    Args:
        atoms: Of each molecule, shape (atoms, 6): atomic number, degree, charge, hydrogens,
            aromaticity, and the place of the chirality in its vocabulary.
        bonds: Of each molecule, shape (bonds, 3): both ends, and RDKit's number of the type.
        rest: Other fields of :class:`Graphs`.
    """
    counts = np.array([len(rows) for rows in atoms])
    raw = np.concatenate(atoms)
    element = np.full(256, len(ELEMENTS))
    element[list(ELEMENTS.values())] = np.arange(len(ELEMENTS))
    raw[:, 0] = element[raw[:, 0]]
    raw[:, 2] += ATOM_FEATURES["charge"].index("0")
    last = np.array([len(values) - 1 for values in ATOM_FEATURES.values()])
    labels = np.clip(raw, 0, last)  # the ends of a vocabulary hold all beyond
    ends = np.concatenate(bonds)
    shift = np.repeat(np.cumsum(counts) - counts, [len(rows) for rows in bonds])
    begin = torch.from_numpy(ends[:, 0] + shift)
    end = torch.from_numpy(ends[:, 1] + shift)
    kind = np.full(256, BOND_TYPES.index("other"))
    kind[[1, 2, 3, 12]] = np.arange(4)  # RDKit's single, double, triple, aromatic
    return Graphs.from_edges(
        torch.cat((begin, end)),
        torch.cat((end, begin)),
        torch.from_numpy(counts),
        labels=torch.from_numpy(labels),
        label_names=tuple(ATOM_FEATURES),
        label_values=list(ATOM_FEATURES.values()),
        edge_labels=torch.from_numpy(kind[ends[:, 2]]).repeat(2)[:, None],
        edge_label_names=("bond",),
        edge_label_values=[BOND_TYPES],
        featuriser=FEATURISER,
        **rest,
    )

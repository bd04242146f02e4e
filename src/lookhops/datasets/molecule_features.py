"""The features of atoms and bonds: the vocabulary, and how atoms and bonds of RDKit become labels.

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

The first version, ``molecules-1``, had of bonds the label ``bond`` alone: models of that version
are given that alone (:func:`as_featurised`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from lookhops.graphs import Graphs

FEATURISER = "molecules-2"
EARLIER = "molecules-1"
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


def feature_names() -> list[str]:
    """What each column of ``Graphs.x`` says: ``["element H", "element Li", ...]``."""
    return [f"{name} {value}" for name, values in ATOM_FEATURES.items() for value in values]


def molecule_rows(molecule: Any) -> tuple[np.ndarray, np.ndarray]:
    """What is known of each atom and of each bond of a molecule of RDKit.

    Returns:
        Of atoms, shape (n, 6): atomic number, degree, charge, hydrogens, aromaticity, and the place
        of the chirality in its vocabulary. Of bonds, shape (e, 6): both ends, RDKit's number of the
        type, the place of the stereo in its vocabulary, conjugation, and whether it is in a ring.
    """
    atoms = np.array(
        [
            (
                atom.GetAtomicNum(),
                atom.GetDegree(),
                atom.GetFormalCharge(),
                atom.GetTotalNumHs(),
                atom.GetIsAromatic(),
                int(atom.GetChiralTag()) != 0,
            )
            for atom in molecule.GetAtoms()
        ],
        dtype=np.int64,
    )
    rows = [
        (
            bond.GetBeginAtomIdx(),
            bond.GetEndAtomIdx(),
            int(bond.GetBondType()),
            int(bond.GetStereo()) != 0,
            bond.GetIsConjugated(),
            bond.IsInRing(),
        )
        for bond in molecule.GetBonds()
    ]
    bonds = np.array(rows, dtype=np.int64).reshape(-1, 6)
    if atoms[:, 5].any() or bonds[:, 3].any():
        _label_stereo(molecule, atoms[:, 5], bonds[:, 3])
    return atoms, bonds


def _label_stereo(molecule: Any, chirality: np.ndarray, stereo: np.ndarray) -> None:
    """Put the place of R, S, E, Z or other in its vocabulary where there is any stereo at all."""
    from rdkit.Chem import rdCIPLabeler

    try:
        # The bound, about a second's work, is RDKit's advice against molecules that never end.
        rdCIPLabeler.AssignCIPLabels(molecule, maxRecursiveIterations=1_250_000)
        labelled = True
    except RuntimeError:
        labelled = False
    for found, words, part in (
        (chirality, ATOM_FEATURES["chirality"], molecule.GetAtomWithIdx),
        (stereo, BOND_FEATURES["stereo"], molecule.GetBondWithIdx),
    ):
        for index in found.nonzero()[0].tolist():
            one = part(index)
            label = one.GetProp("_CIPCode") if labelled and one.HasProp("_CIPCode") else ""
            found[index] = words.index(label if label in words else "other")


def pack(atoms: Sequence[np.ndarray], bonds: Sequence[np.ndarray], **rest: Any) -> Graphs:
    """Turn RDKit's numbers into labels, and pack all molecules at once.

    Args:
        atoms: Of each molecule what :func:`molecule_rows` says of its atoms.
        bonds: Of each molecule what it says of its bonds.
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
    edge_labels = np.concatenate((kind[ends[:, 2:3]], ends[:, 3:]), axis=1)
    return Graphs.from_edges(
        torch.cat((begin, end)),
        torch.cat((end, begin)),
        torch.from_numpy(counts),
        labels=torch.from_numpy(labels),
        label_names=tuple(ATOM_FEATURES),
        label_values=list(ATOM_FEATURES.values()),
        edge_labels=torch.from_numpy(edge_labels).repeat(2, 1),
        edge_label_names=tuple(BOND_FEATURES),
        edge_label_values=list(BOND_FEATURES.values()),
        featuriser=FEATURISER,
        **rest,
    )


def as_featurised(graphs: Graphs, featuriser: str) -> Graphs:
    """Molecules with the features of an earlier version; other graphs as they are."""
    if graphs.featuriser != FEATURISER or featuriser != EARLIER or graphs.edge_labels is None:
        return graphs
    return replace(
        graphs,
        edge_labels=graphs.edge_labels[:, :1],
        edge_label_names=graphs.edge_label_names[:1],
        edge_label_values=graphs.edge_label_values[:1],
        featuriser=EARLIER,
    )

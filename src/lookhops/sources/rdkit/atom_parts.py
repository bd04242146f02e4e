"""What each atom has of the descriptors that are sums over atoms."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from lookhops.core.arrays import Array

#: A sum of parts is the descriptor where it is off by less than this, relative to its size.
CLOSE = 1e-4
_HYDROGEN = 1.008


def atom_parts(smiles: str, values: Mapping[str, float]) -> dict[str, Array]:
    """Each atom's part of the descriptors that are sums over atoms, by name, shape (atoms).

    These are ``MolLogP``, ``MolMR``, ``TPSA``, ``LabuteASA``, the surface with some charge, logP,
    refraction or electrotopological state (``PEOE_VSA1``, ``SlogP_VSA1``, ...), weights, counts of
    atoms, and counts of fragments (``fr_nitro``), where the atoms of a match have equal parts.
    Hydrogens count with the atom that holds them. Parts that do not add up to the given value are
    left out: a column of the user may have the name of a descriptor.

    Args:
        smiles: The molecule; parts are in the order of its atoms.
        values: The descriptors of the molecule by name.
    """
    from rdkit import Chem

    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        return {}
    found = {**_additive(molecule), **_fragments(molecule, values)}
    return {
        name: found[name]
        for name, value in values.items()
        if name in found and abs(found[name].sum() - value) <= CLOSE * max(abs(value), 1.0)
    }


def _additive(molecule: Any) -> dict[str, Array]:
    """Parts of properties and counts that RDKit adds up over atoms."""
    from rdkit import Chem
    from rdkit.Chem import MolSurf, rdMolDescriptors, rdPartialCharges
    from rdkit.Chem.EState import EState_VSA, EStateIndices

    atoms = list(molecule.GetAtoms())
    number = np.array([atom.GetAtomicNum() for atom in atoms])
    mass = np.array([atom.GetMass() for atom in atoms])
    common = Chem.GetPeriodicTable().GetMostCommonIsotopeMass
    hydrogens = np.array([atom.GetTotalNumHs() for atom in atoms], dtype=float)
    exact = np.array([common(z) for z in number.tolist()]) + common(1) * hydrogens
    surface, of_hydrogens = rdMolDescriptors._CalcLabuteASAContribs(molecule)
    surface = np.array(list(surface))
    rdPartialCharges.ComputeGasteigerCharges(molecule)
    charge = np.array([atom.GetDoubleProp("_GasteigerCharge") for atom in atoms])
    state = EStateIndices(molecule)
    alone = np.array(rdMolDescriptors._CalcCrippenContribs(molecule)).reshape(-1, 2)
    every = Chem.AddHs(molecule)
    holder = [
        atom.GetIdx() if atom.GetIdx() < len(atoms) else atom.GetNeighbors()[0].GetIdx()
        for atom in every.GetAtoms()
    ]
    holds = hydrogens if hydrogens.any() else np.ones(len(atoms))
    crippen = np.zeros((len(atoms), 2))
    np.add.at(crippen, holder, np.array(rdMolDescriptors._CalcCrippenContribs(every)))
    found = {
        "MolLogP": crippen[:, 0],
        "MolMR": crippen[:, 1],
        "TPSA": np.array(rdMolDescriptors._CalcTPSAContribs(molecule)),
        "LabuteASA": surface + of_hydrogens * holds / holds.sum(),
        "MolWt": mass + _HYDROGEN * hydrogens,
        "ExactMolWt": exact,
        "HeavyAtomMolWt": mass,
        "HeavyAtomCount": np.ones(len(atoms)),
        "NumHeteroatoms": (number != 6) * 1.0,
        "NOCount": np.isin(number, (7, 8)) * 1.0,
        "NHOHCount": np.isin(number, (7, 8)) * hydrogens,
    }
    for name, ends, property_, added in (
        ("PEOE_VSA", MolSurf.chgBins, charge, surface),
        ("SlogP_VSA", MolSurf.logpBins, alone[:, 0], surface),
        ("SMR_VSA", MolSurf.mrBins, alone[:, 1], surface),
        ("EState_VSA", EState_VSA.estateBins, state, surface),
        ("VSA_EState", EState_VSA.vsaBins, surface, state),
    ):
        bins = np.searchsorted(ends, property_, side="right")
        found |= {f"{name}{i + 1}": added * (bins == i) for i in range(len(ends) + 1)}
    return found


def _fragments(molecule: Any, values: Mapping[str, float]) -> dict[str, Array]:
    """Counts of fragments, each match in equal parts to its atoms."""
    found = {}
    for name, pattern in _patterns():
        if values.get(name):
            found[name] = np.zeros(molecule.GetNumAtoms())
            for match in molecule.GetSubstructMatches(pattern):
                found[name][list(match)] += 1 / len(match)
    return found


@cache
def _patterns() -> list[tuple[str, Any]]:
    """The patterns of RDKit's fragments by the names of their counts; none without the file."""
    from rdkit import Chem, RDConfig

    path = Path(RDConfig.RDDataDir) / "FragmentDescriptors.csv"
    if not path.is_file():
        return []
    rows = [line.split("\t") for line in path.read_text().splitlines() if line[:1] not in ("", "#")]
    named = [(row[0].replace("=", "_").replace("-", "_"), row[2]) for row in rows if len(row) > 2]
    return [(name, Chem.MolFromSmarts(smarts)) for name, smarts in named]

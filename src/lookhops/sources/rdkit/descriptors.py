"""RDKit's two-dimensional descriptors of molecules, and what each atom has of them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from lookhops.core.arrays import Array
from lookhops.core.errors import LookHopsError
from lookhops.core.reading import listed
from lookhops.core.words import counted

#: Values are cut here: the information content of a large molecule reaches 1e30.
LARGEST = 1e4
_TABLE = (files("lookhops.sources.rdkit") / "descriptors.csv").read_text(encoding="utf-8")
#: Whether descriptors are ``fast`` or ``slow``, by name, whatever RDKit is here.
SPEEDS = {row["name"]: row["speed"] for row in csv.DictReader(_TABLE.splitlines())}
#: Those that take at most about 0.02 ms a molecule on one core, 0.7 ms together; the others
#: (``qed``, ``BertzCT``, EState extremes, ...) take 3 ms. Measured on 300 drug-like molecules.
FAST = tuple(name for name, speed in SPEEDS.items() if speed == "fast")
#: Molecules by which a model knows whether another version of RDKit computes other values.
REFERENCES = (
    "CC(=O)Oc1ccccc1C(=O)O",
    "CN1CCC[C@H]1c1cccnc1",
    "O=S(=O)(Nc1ccc(Cl)cc1)c1cccc(C(F)(F)F)c1[N+](=O)[O-]",
    "OC[C@H]1O[C@@H](n2cnc3c(N)ncnc32)[C@H](O)[C@@H]1OP(=O)(O)O",
    "[Na+].[O-]C(=O)C1CC2CCC1(C#N)O2",
    "CC1(C)S[C@@H]2[C@H](NC(=O)Cc3ccccc3)C(=O)N2[C@H]1C(=O)O",
    "CN1C(=O)CN=C(c2ccccc2)c2cc(Cl)ccc12",
    "COc1cc2c(cc1O)CC1N(C)CCc3c1c-2c[nH]3",
    "C=CCC1(CCCCCC)C(=O)NC(=O)NC1=O",
    "C#CCN1CCN(CC1)C(=N)NN=Cc1ccc(C=O)o1",
    "C[N+](C)(C)CCOC(=O)C1OC12CCSC2",
)


def is_descriptor(name: str) -> bool:
    """Whether a feature is one of RDKit's descriptors, by its name."""
    return name in SPEEDS


def in_words(features: Sequence[str]) -> str:
    """Names of features, of which those of descriptors are counted."""
    named = [name for name in features if not is_descriptor(name)]
    if (count := len(features) - len(named)) > 0:
        named.insert(0, f"{counted(count, 'descriptor')} of RDKit")
    return listed(named)


def descriptor_names(choice: str = "fast") -> tuple[str, ...]:
    """Descriptors that this version of RDKit has: the ``fast`` ones, ``all`` or ``none``."""
    if choice == "none":
        return ()
    available = _functions()
    return tuple(name for name in (available if choice == "all" else FAST) if name in available)


def descriptors_of(molecule: Any, names: Sequence[str]) -> Array:
    """Descriptors of one of RDKit's molecules, float64, shape (names).

    A value that is not finite, or that RDKit fails to compute, is 0; none exceeds ±10,000.
    """
    functions = _functions()
    values = np.array([_value(functions[name], molecule) for name in names])
    return np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0).clip(-LARGEST, LARGEST)


def reference_values(names: Sequence[str]) -> Array:
    """Descriptors of :data:`REFERENCES`, float64, shape (molecules, names), NaN where unknown."""
    from rdkit.Chem import MolFromSmiles

    available = [name for name in names if name in _functions()]
    values = np.full((len(REFERENCES), len(names)), np.nan)
    place = [names.index(name) for name in available]
    values[:, place] = [descriptors_of(MolFromSmiles(smiles), available) for smiles in REFERENCES]
    return values


def rdkit_version() -> str:
    """The version of RDKit that is installed."""
    return version("rdkit")


@cache
def _functions() -> dict[str, Callable[[Any], float]]:
    try:
        from rdkit.Chem import Descriptors
    except ImportError as error:
        raise LookHopsError(
            "Descriptors of molecules need RDKit: pip install rdkit; or choose descriptors=none."
        ) from error
    return dict(Descriptors.descList)


def _value(function: Callable[[Any], float], molecule: Any) -> float:
    try:
        return float(function(molecule))
    except (ArithmeticError, RuntimeError, ValueError):  # of single odd molecules
        return np.nan


# -------------------------------------------------------------------- parts of atoms

#: A sum of parts is the descriptor where it is off by less than this, relative to its size.
CLOSE = 1e-4
#: Descriptors of which every atom has a part.
OF_EVERY_ATOM = frozenset(
    ["MolLogP", "MolMR", "LabuteASA", "MolWt", "ExactMolWt", "HeavyAtomMolWt", "HeavyAtomCount"]
)
_HYDROGEN = 1.008


def atom_parts(smiles: str, values: Mapping[str, float]) -> dict[str, Array]:
    """Each atom's part of the descriptors of a molecule that are sums over atoms, shape (atoms).

    These are ``MolLogP``, ``MolMR``, ``TPSA``, ``LabuteASA``, surfaces (``PEOE_VSA1``, ...),
    weights, counts of atoms, and counts of fragments (``fr_nitro``), where the atoms of a match
    have equal parts. Hydrogens count with the atom that holds them. Parts that do not add up to the
    given value are left out: a column of the user may have the name of a descriptor.
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

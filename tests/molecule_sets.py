"""Molecules to test with, and what RDKit says of them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from rdkit import Chem

from lookhops.core.errors import LookHopsError
from lookhops.graphs import Graphs
from lookhops.sources.rdkit.features import ATOM_FEATURES, BOND_TYPES, ELEMENTS

VARIED = [
    "CCO",
    "C",
    "[Na+].[Cl-]",
    "c1ccc2[nH]ccc2c1",
    "N[C@@H](C)C(=O)O",
    "C[C@H]1CC[C@@H](C)CC1",
    "OC(=O)[C@H](O)[C@@H](O)C(=O)O",
    "FS(F)(F)(F)(F)F",
    "C[N+](C)(C)CC([O-])=O",
    "[Fe+3].[O-]P([O-])([O-])=O",
    "[H][H].OC#N",
    "[BH4-].[Li+]",
    "C[S@](=O)c1ccccc1",
    "[NH3]->[Cu]",
    "O=C1CC[C@@]2(O)[C@H]3Cc4ccc(O)c5c4[C@@]2(CCN3CC2CC2)[C@H]1O5",
]


def labels_of(smiles: str) -> list[list[str]]:
    """The features of each atom in words, straight from RDKit, one atom at a time."""
    molecule = Chem.MolFromSmiles(smiles)
    Chem.rdCIPLabeler.AssignCIPLabels(molecule)
    rows = []
    for atom in molecule.GetAtoms():
        charge, code = atom.GetFormalCharge(), "none"
        if atom.GetChiralTag() != Chem.ChiralType.CHI_UNSPECIFIED:
            code = atom.GetPropsAsDict().get("_CIPCode", "other")
        rows.append(
            [
                atom.GetSymbol() if atom.GetSymbol() in ELEMENTS else "other",
                str(atom.GetDegree()) if atom.GetDegree() < 6 else "6 or more",
                {-2: "-2 or less", 2: "2 or more"}.get(max(-2, min(charge, 2)), str(charge)),
                str(atom.GetTotalNumHs()) if atom.GetTotalNumHs() < 4 else "4 or more",
                "yes" if atom.GetIsAromatic() else "no",
                code if code in ("none", "R", "S") else "other",
            ]
        )
    return rows


def words(graphs: Graphs) -> list[list[str]]:
    return [
        [values[i] for values, i in zip(ATOM_FEATURES.values(), row, strict=True)]
        for row in graphs.nodes.labels.tolist()
    ]


def bonds(graphs: Graphs) -> dict[tuple[int, int], str]:
    source, target = graphs.edge_index.tolist()
    kinds = [BOND_TYPES[i] for i in graphs.edges.labels[:, 0].tolist()]
    return dict(zip(zip(source, target, strict=True), kinds, strict=True))


def assert_drawable(graphs: Graphs) -> None:
    """The SMILES that is kept has the atoms and the bonds of the graph, in its order."""
    for i, smiles in enumerate(graphs.columns["smiles"]):
        assert words(graphs[i]) == labels_of(smiles)
        drawn = {}
        for bond in Chem.MolFromSmiles(smiles).GetBonds():
            kind = str(bond.GetBondType()).lower()
            kind = kind if kind in BOND_TYPES else "other"
            drawn[bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()] = kind
            drawn[bond.GetEndAtomIdx(), bond.GetBeginAtomIdx()] = kind
        assert bonds(graphs[i]) == drawn


def message(call, *arguments, **options) -> str:
    with pytest.raises(LookHopsError) as error:
        call(*arguments, **options)
    return str(error.value)


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


_ENDS = ("", "O", "N", "S", "OC", "NC", "SC", "CO", "CN", "CS")
_CORES = {True: ("C1CC1", "C1CCC1", "C1CCCC1"), False: ("CCC", "CCCC", "CCCCC")}
#: The columns of :func:`measured`.
MEASURED = ("name", "smiles", "temperature", "solvent", "site", "class")


def measured(count=240):
    """A row a molecule; it dissolves where a ring is hot or a chain is cold."""
    draw = random.Random(1)
    rows = []
    for number in range(count):
        ring, hot = draw.random() < 0.5, draw.random() < 0.5
        smiles = "".join(map(draw.choice, (_ENDS, _CORES[ring], ("", "C", "CC"), ("", "O", "S"))))
        temperature = f"{(90 if hot else 10) + draw.random():.3f}" if number % 17 else ""
        label = ring == hot if number % 17 else ring
        solvent = draw.choice(("water", "ethanol"))
        rows.append((f"m{number}", smiles, temperature, solvent, f"s{number % 4}", "ny"[label]))
    return rows

"""Morgan fingerprints of molecules with a random forest. RDKit is imported when it is used."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

import numpy as np

from lookhops.classical.outputs import Array, Outputs, classes_of, log_probabilities, parts_of
from lookhops.datasets.splits import Split
from lookhops.errors import LookHopsError
from lookhops.graphs import Graphs

TREES = 500
RADIUS, BITS = 2, 2048


def morgan_counts(smiles: Iterable[str]) -> Array:
    """Folded counts of atom environments up to radius 2, uint8, shape (molecules, 2048)."""
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdFingerprintGenerator

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=RADIUS, fpSize=BITS)
    rows = []
    for number, text in enumerate(smiles, 1):
        with rdBase.BlockLogs():
            molecule = Chem.MolFromSmiles(str(text))
        if molecule is None:
            raise LookHopsError(f"Molecule {number}: {str(text)!r} is not a SMILES.")
        rows.append(generator.GetCountFingerprintAsNumPy(molecule).clip(max=255).astype(np.uint8))
    return np.stack(rows) if rows else np.zeros((0, BITS), np.uint8)


def check_molecules(graphs: Graphs) -> None:
    """Refuse graphs that are not molecules, and say where RDKit is not installed."""
    if "smiles" not in graphs.columns:
        raise LookHopsError(
            f"morgan-forest is for molecules, and {graphs.name} has no SMILES: choose another."
        )
    if find_spec("rdkit") is None:
        raise LookHopsError("morgan-forest reads molecules with RDKit: pip install rdkit.")


def fit_morgan_forest(graphs: Graphs, split: Split, seed: int = 0) -> Outputs:
    """Fit a random forest of 500 trees on Morgan fingerprints.

    Args:
        graphs: Molecules: graphs with a column ``smiles``.
        split: The parts; the forest is fitted on the training part alone.
        seed: Of the forest.
    """
    from sklearn.ensemble import RandomForestClassifier

    y = classes_of(graphs)
    check_molecules(graphs)
    prints = morgan_counts(graphs.columns["smiles"])
    train, val, test = parts_of(split)
    forest = RandomForestClassifier(TREES, random_state=seed)
    forest.fit(prints[train], y[train])
    answers = (log_probabilities(forest, prints[part], graphs.num_classes) for part in (val, test))
    return Outputs.of_arrays(*answers)

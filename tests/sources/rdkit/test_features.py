"""Features of atoms and bonds, by hand and by RDKit."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rdkit import Chem
from torch_geometric.utils import from_smiles as pyg_from_smiles

from lookhops.graphs import Graphs
from lookhops.graphs.choosing import go_both_ways, have_equal_features
from lookhops.sources.molecules import (
    feature_names,
    from_smiles,
)
from lookhops.sources.rdkit.features import ATOM_FEATURES, BOND_FEATURES, BOND_TYPES
from molecule_sets import VARIED, assert_drawable, bonds, words


def test_features_by_hand():
    graphs = from_smiles(["C[C@H](N)C#N"])
    assert words(graphs) == [
        ["C", "1", "0", "3", "no", "none"],
        ["C", "3", "0", "1", "no", "S"],
        ["N", "1", "0", "2", "no", "none"],
        ["C", "2", "0", "0", "no", "none"],
        ["N", "1", "0", "0", "no", "none"],
    ]
    assert bonds(graphs) == {
        (0, 1): "single", (1, 0): "single", (1, 2): "single", (2, 1): "single",
        (1, 3): "single", (3, 1): "single", (3, 4): "triple", (4, 3): "triple",
    }  # fmt: skip


def test_features_of_varied_molecules_and_their_order():
    graphs = from_smiles(VARIED)
    assert_drawable(graphs)
    assert graphs.is_undirected == go_both_ways(graphs)  # said without looking
    assert graphs.is_symmetric == have_equal_features(graphs)
    assert graphs.featuriser == "molecules-2"
    assert graphs.columns["smiles"].tolist() == VARIED
    assert "other" in {row[0] for row in words(graphs)}
    assert {row[5] for row in words(graphs)} == set(ATOM_FEATURES["chirality"])
    assert set(bonds(graphs).values()) == set(BOND_TYPES)


def test_stereo_conjugation_and_rings_of_bonds():
    graphs = from_smiles(["F/C=C/F", "F/C=C\\F", "FC=CF", "C1CC1C=CC=C"])
    stereo, conjugated, ring = (
        [BOND_FEATURES[name][number] for number in graphs.edges.labels[:, j].tolist()]
        for j, name in enumerate(BOND_FEATURES)
        if j
    )
    double = graphs.edges.labels[:, 0] == BOND_TYPES.index("double")
    words = [word for word, one in zip(stereo, double.tolist(), strict=True) if one]
    assert words == ["E", "E", "Z", "Z"] + ["none"] * 6
    assert {word for word, one in zip(stereo, double.tolist(), strict=True) if not one} == {"none"}
    assert ring.count("yes") == 6
    assert conjugated.count("yes") == 6


def test_every_set_has_the_same_columns():
    one, other = from_smiles(["C"]), from_smiles(VARIED)
    assert one.x.shape[1] == other.x.shape[1] == len(feature_names()) == 43
    assert len(set(feature_names())) == 43
    assert list(one.nodes.names.columns) == feature_names()
    of_bonds = [f"{name} {value}" for name, known in BOND_FEATURES.items() for value in known]
    assert list(one.edges.names.columns) == of_bonds
    assert one.num_edge_features == other.num_edge_features == len(of_bonds) == 13
    on = [feature_names()[i] for i in one.x[0].nonzero().flatten()]
    assert on == [
        "element C", "degree 0", "charge 0", "hydrogens 4 or more", "aromatic no", "chirality none",
    ]  # fmt: skip


@pytest.mark.parametrize("smiles", VARIED)
def test_edges_are_those_of_pyg(smiles):
    ours = from_smiles([smiles]).to_pyg()[0]
    theirs = pyg_from_smiles(smiles)
    assert torch.equal(ours.edge_index, theirs.edge_index)
    assert ours.num_nodes == theirs.num_nodes


@settings(max_examples=60, derandomize=True, deadline=None)
@given(smiles=st.sampled_from(VARIED), seed=st.integers(0, 2**31 - 1))
def test_one_molecule_has_one_graph_however_it_is_written(smiles, seed):
    molecule = Chem.MolFromSmiles(smiles)
    again = Chem.MolToRandomSmilesVect(molecule, 1, seed)[0]
    seen = []
    for graphs in (from_smiles([smiles]), from_smiles([again])):
        atoms = [tuple(row) for row in words(graphs)]
        said = map(tuple, graphs.edges.labels.tolist())
        edges = [(atoms[a], atoms[b], one) for (a, b), one in zip(bonds(graphs), said, strict=True)]
        seen.append((sorted(atoms), sorted(edges)))
    assert seen[0] == seen[1]


def test_save_and_load(tmp_path):
    graphs = from_smiles(["CCO", "C"], y=["b", "a"], ids=["ethanol", "methane"])
    graphs.save(tmp_path / "set.graphs")
    back = Graphs.load(tmp_path / "set.graphs")
    assert back.fingerprint == graphs.fingerprint
    assert back.class_names == ("a", "b")
    assert back.columns["id"].tolist() == ["ethanol", "methane"]
    assert back.columns["smiles"].tolist() == ["CCO", "C"]

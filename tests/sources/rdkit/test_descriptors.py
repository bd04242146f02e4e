"""RDKit's descriptors by name."""

import numpy as np
import pytest
import torch
from rdkit import Chem
from rdkit.Chem import Descriptors

from lookhops import LookHopsError
from lookhops.sources.loading import load
from lookhops.sources.molecules import from_smiles
from lookhops.sources.rdkit import descriptors as module
from lookhops.sources.rdkit.descriptors import (
    FAST,
    descriptor_names,
    descriptors_of,
    is_descriptor,
)


def test_choices_name_what_rdkit_has(monkeypatch):
    assert len(FAST) == len(set(FAST)) == 194
    assert set(descriptor_names("fast")) <= set(descriptor_names("all"))
    assert descriptor_names("all") == tuple(name for name, _ in Descriptors.descList)
    assert descriptor_names("none") == ()
    known = dict(module._functions())
    del known["MolLogP"]
    monkeypatch.setattr(module, "_functions", lambda: known)
    assert "MolLogP" not in descriptor_names("fast")


def test_values_are_those_of_rdkit_and_finite(monkeypatch):
    names = descriptor_names("all")
    smiles = ("CCO", "[Na+].[Cl-]", "C" * 300)
    found = np.stack([descriptors_of(Chem.MolFromSmiles(one), names) for one in smiles])
    assert found.shape == (3, len(Descriptors.descList))
    assert np.isfinite(found).all()
    assert np.abs(found).max() == module.LARGEST  # Ipc of the long chain
    molecule = Chem.MolFromSmiles("CCO")
    assert found[0, names.index("MolLogP")] == Descriptors.MolLogP(molecule)
    assert found[0, names.index("TPSA")] == Descriptors.TPSA(molecule)
    failing = dict(module._functions()) | {"MolWt": lambda molecule: 1 / 0}
    monkeypatch.setattr(module, "_functions", lambda: failing)
    assert descriptors_of(molecule, ["MolWt", "TPSA"]).tolist() == [0.0, Descriptors.TPSA(molecule)]


def test_every_descriptor_is_known_by_its_name():
    assert all(is_descriptor(name) for name, _ in Descriptors.descList)
    assert not is_descriptor("temperature")


def test_molecules_bring_them_as_features_of_whole_graphs(tmp_path):
    smiles = ["CCO", "c1ccccc1", "C(", "CC(C)[C@H](N)C(=O)O", "[Na+].[Cl-]"]
    graphs = from_smiles(smiles, invalid="skip")
    assert graphs.whole.number_names == descriptor_names("fast")
    rows = [descriptors_of(Chem.MolFromSmiles(one), FAST) for one in graphs.columns["smiles"]]
    np.testing.assert_allclose(graphs.whole.numbers.numpy(), rows, rtol=1e-6)
    path = tmp_path / "m.csv"
    path.write_text("smiles\n" + "\n".join(smiles) + "\n")
    for processes in (0, 2):
        read = load(path, invalid="skip", processes=processes)
        assert torch.equal(read.whole.numbers, graphs.whole.numbers)
    assert load(path, invalid="skip", descriptors="none").whole.width == 0
    assert load(path, invalid="skip", descriptors="all").whole.width == len(Descriptors.descList)
    with pytest.raises(LookHopsError, match="descriptors"):
        load(path, descriptors="most")

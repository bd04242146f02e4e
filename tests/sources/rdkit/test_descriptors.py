"""RDKit's descriptors by name."""

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import Descriptors

from lookhops import LookHopsError
from lookhops.sources.rdkit import descriptors as module
from lookhops.sources.rdkit.descriptors import FAST, descriptor_names, descriptors


def test_choices_name_what_rdkit_has(monkeypatch):
    assert len(FAST) == len(set(FAST)) == 194
    assert set(descriptor_names("fast")) <= set(descriptor_names("all"))
    assert descriptor_names("all") == tuple(name for name, _ in Descriptors.descList)
    assert descriptor_names("none") == ()
    with pytest.raises(LookHopsError, match="fast, all, none"):
        descriptor_names("most")
    known = dict(module._functions())
    del known["MolLogP"]
    monkeypatch.setattr(module, "_functions", lambda: known)
    assert "MolLogP" not in descriptor_names("fast")
    with pytest.raises(LookHopsError, match="'MolLogP'"):
        descriptors(["CCO"], ["MolWt", "MolLogP"])


def test_values_are_those_of_rdkit_and_finite(monkeypatch):
    molecule = Chem.MolFromSmiles("CCO")
    found = descriptors(["CCO", molecule, "[Na+].[Cl-]", "C" * 300], descriptor_names("all"))
    assert found.shape == (4, len(Descriptors.descList))
    assert np.isfinite(found).all()
    assert np.abs(found).max() == module.LARGEST  # Ipc of the long chain
    np.testing.assert_array_equal(found[0], found[1])
    names = descriptor_names("all")
    assert found[0, names.index("MolLogP")] == Descriptors.MolLogP(molecule)
    assert found[0, names.index("TPSA")] == Descriptors.TPSA(molecule)
    failing = dict(module._functions()) | {"MolWt": lambda molecule: 1 / 0}
    monkeypatch.setattr(module, "_functions", lambda: failing)
    assert descriptors([molecule], ["MolWt", "TPSA"])[0].tolist() == [
        0.0,
        Descriptors.TPSA(molecule),
    ]


def test_what_is_no_molecule_is_named():
    with pytest.raises(LookHopsError, match=r"Molecule 2: 'C\('"):
        descriptors(["CC", "C("], ["MolWt"])
    assert descriptors([], ["MolWt"]).shape == (0, 1)

"""Descriptors that are sums over atoms are split over these."""

import numpy as np
import pytest
from rdkit import Chem

from lookhops.sources.rdkit.descriptors import FAST, atom_parts, descriptors_of

ADDITIVE = {
    "MolLogP",
    "MolMR",
    "TPSA",
    "LabuteASA",
    "MolWt",
    "ExactMolWt",
    "HeavyAtomCount",
    "NOCount",
}


@pytest.mark.parametrize(
    "smiles",
    [
        "OC(=O)c1ccccc1[N+](=O)[O-]",
        "CC(=O)Nc1ccc(O)cc1",
        "FC(Cl)(F)F",
        "[Na+].[Cl-]",
        "C[N+](C)(C)C",
        "B",
    ],
)
def test_parts_add_up_to_what_rdkit_says(smiles):
    molecule = Chem.MolFromSmiles(smiles)
    values = dict(zip(FAST, descriptors_of(molecule, FAST).tolist(), strict=True))
    found = atom_parts(smiles, values)
    assert found.keys() >= ADDITIVE | {name for name in FAST if "VSA" in name}
    assert found.keys() >= {name for name in FAST if name.startswith("fr_") and values[name]}
    for name, part in found.items():
        assert part.shape == (molecule.GetNumAtoms(),)
        assert part.sum() == pytest.approx(values[name], abs=1e-3)


def test_parts_stand_at_their_atoms():
    found = atom_parts("c1ccccc1CO", {"fr_benzene": 1.0, "TPSA": 20.23, "NOCount": 1.0})
    np.testing.assert_allclose(found["fr_benzene"], [1 / 6] * 6 + [0, 0])
    np.testing.assert_allclose(found["TPSA"], [0] * 7 + [20.23])
    np.testing.assert_array_equal(found["NOCount"], [0] * 7 + [1])


def test_a_column_that_only_has_the_name_is_left_out():
    assert not atom_parts("CCO", {"TPSA": 5.0, "temperature": 1.0})
    assert not atom_parts("C1CC", {"TPSA": 5.0})

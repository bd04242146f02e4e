"""Molecules that do not parse: named, or left out with a warning."""

from __future__ import annotations

import warnings

import pytest
from rdkit import Chem, RDLogger

from lookhops.sources.molecules import (
    SkippedMolecules,
    from_smiles,
    read_molecules,
)
from molecule_sets import message, written


@pytest.mark.parametrize(
    ("smiles", "reason"),
    [
        ("", "it is empty"),
        ("CC(", "not SMILES"),
        ("hello", "not SMILES"),
        ("C(C)(C)(C)(C)C", "Explicit valence for atom # 0 C, 5, is greater than permitted"),
        ("c1cccc1", "Can't kekulize mol."),
    ],
)
def test_what_does_not_parse_is_named(smiles, reason, capfd):
    RDLogger.EnableLog("rdApp.error")  # PyG's function turns it off for good
    text = message(from_smiles, ["C", smiles])
    assert text.startswith(f"molecule 2: {smiles!r} does not parse ({reason}")
    assert "invalid='skip' (--invalid skip)" in text
    assert capfd.readouterr().err == ""  # RDKit prints nothing of its own
    Chem.MolFromSmiles("hello")
    assert "hello" in capfd.readouterr().err  # and is left as it was


def test_skipped_molecules_are_listed_in_one_warning(tmp_path):
    path = written(tmp_path, "set.csv", "smiles,label,dose\nC,a,1\nCC(,b,2\n,,3\nN,c,4\n")
    with pytest.warns(SkippedMolecules) as caught:
        graphs = read_molecules(path, invalid="skip")
    assert [str(one.message) for one in caught] == [
        f"{path}: 2 of 4 molecules do not parse and are left out: "
        "line 3 (not SMILES), line 4 (it is empty)."
    ]
    assert caught[0].filename == __file__
    assert graphs.columns["id"].tolist() == ["2", "5"]
    assert graphs.columns["dose"].tolist() == [1, 4]
    assert graphs.class_names == ("a", "c")
    assert graphs.y.tolist() == [0, 1]


def test_many_skipped_molecules_are_counted():
    with pytest.warns(SkippedMolecules, match=r"molecule 11 \(not SMILES\) and 15 more\.$"):
        from_smiles(["C"] + ["x"] * 25, invalid="skip")
    text = message(from_smiles, ["x", "y"], invalid="skip")
    assert text.startswith("none of 2 molecules parses: molecule 1 (not SMILES), molecule 2")


def test_nothing_is_warned_of_without_need():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_smiles(["C"], invalid="skip")

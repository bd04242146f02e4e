"""Molecules that do not parse: named, or left out with a warning; and what labels mean."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from rdkit import Chem, RDLogger

from lookhops.graphs import Target
from lookhops.sources.loading import load
from lookhops.sources.molecule_streams import SkippedMolecules
from lookhops.sources.molecules import from_smiles
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
        graphs = load(path, invalid="skip")
    assert [str(one.message) for one in caught] == [
        f"{path}: 2 of 4 molecules do not parse and are left out: "
        "line 3 (not SMILES), line 4 (it is empty)."
    ]
    assert graphs.columns["id"].tolist() == ["2", "5"]
    assert graphs.columns["dose"].tolist() == [1, 4]
    assert graphs.class_names == ("a", "c")
    assert graphs.y.tolist() == [0, 1]


def test_many_skipped_molecules_are_counted():
    with pytest.warns(SkippedMolecules, match="molecule 11.*15") as caught:
        from_smiles(["C"] + ["x"] * 25, invalid="skip")
    assert caught[0].filename == __file__
    text = message(from_smiles, ["x", "y"], invalid="skip")
    assert text.startswith("none of 2 molecules parses: molecule 1 (not SMILES), molecule 2")


def test_nothing_is_warned_of_without_need():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_smiles(["C"], invalid="skip")


# -------------------------------------------------------------------- labels


@pytest.mark.parametrize(
    ("y", "names", "numbers"),
    [
        (["10", "9", "10", "-1"], ("-1", "9", "10"), [2, 1, 2, 0]),
        ([1, 0, 1, 1], ("0", "1"), [1, 0, 1, 1]),
        (torch.tensor([2, 0, 2, 0]), ("0", "2"), [1, 0, 1, 0]),
        (np.array([1.0, 0.0, 0.0, 1.0]), ("0", "1"), [1, 0, 0, 1]),
        ([0.5, 1.5, 0.5, 0.5], ("0.5", "1.5"), [0, 1, 0, 0]),
        (["yes", "no", "No", "yes"], ("No", "no", "yes"), [2, 1, 0, 2]),
        (["1_0", "10", "10", "10"], ("10", "1_0"), [1, 0, 0, 0]),
    ],
)
def test_classes_are_sorted(y, names, numbers):
    graphs = from_smiles(["C"] * 4, y=y)
    assert graphs.class_names == names
    assert graphs.y.tolist() == numbers


def test_classes_in_a_given_order():
    names = ("low", "high", "never")
    by_name = from_smiles(["C", "N"], y=["high", "low"], class_names=names)
    by_place = from_smiles(["C", "N"], y=[1, 0], class_names=names)
    for graphs in (by_name, by_place):
        assert graphs.class_names == names
        assert graphs.y.tolist() == [1, 0]
    assert from_smiles(["C"]).y is None
    assert from_smiles(["C"]).class_names == ()


def test_wrong_classes_and_lists():
    assert message(from_smiles, ["C", "N"], y=[1]) == "There are 2 SMILES but 1 classes."
    assert message(from_smiles, ["C", "N"], ids=["a"]) == "There are 2 SMILES but 1 ids."
    assert "so 2 is no class" in message(from_smiles, ["C"], y=[2], class_names=["a", "b"])
    wrong = message(from_smiles, ["C"], y=["c"], class_names=["a", "b"])
    assert "molecule 1: 'c' of 'class' is not a class; the classes are a, b." in wrong
    assert message(from_smiles, []) == "from_smiles: there are no molecules."
    assert "not 'no'" in message(from_smiles, ["C"], invalid="no")


@pytest.mark.parametrize(
    "values",
    [
        [f"{i / 7:.3f}" for i in range(30)],
        ["0.1", "0.2", "0.3", "0.2"],
        [str(i) for i in range(30)],
    ],
)
def test_measured_values_are_numbers(tmp_path, values):
    rows = "".join(f"C,{value}\n" for value in values)
    graphs = load(written(tmp_path, "set.csv", f"smiles,target\n{rows}C,\n"))
    assert graphs.targets == (Target("target"),)
    assert graphs.y.tolist()[:-1] == [float(value) for value in values]
    assert graphs.y[-1].isnan()


def test_names_of_molecules_are_no_classes(tmp_path):
    rows = "".join(f"C,name {i}\n" for i in range(30))
    path = written(tmp_path, "set.csv", f"smiles,target\n{rows}")
    assert "'target' has 30 different values for 30 graphs" in message(load, path)


def test_a_blank_is_no_class(tmp_path):
    path = written(tmp_path, "s.csv", "smiles,y\nC,1\nN,\nO,NaN\nS,0\n")
    for graphs in (
        load(path),
        from_smiles(["C"] * 4, y=[1, None, float("nan"), 0]),
        from_smiles(["C"] * 4, y=pd.Series([1, pd.NA, None, 0], dtype="Int64")),
        from_smiles(["C"] * 4, y=["1", "", "nan", "0"]),
    ):
        assert graphs.class_names == ("0", "1")
        assert graphs.y.tolist() == [1, -1, -1, 0]

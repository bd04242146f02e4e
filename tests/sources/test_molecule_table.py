"""What the text of labels means: classes, or why not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from lookhops.graphs import Target
from lookhops.sources.molecules import (
    from_smiles,
    read_molecules,
)
from molecule_sets import message, written


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
    assert message(from_smiles, ["C"], invalid="no") == "invalid is 'raise' or 'skip', not 'no'."


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
    graphs = read_molecules(written(tmp_path, "set.csv", f"smiles,target\n{rows}C,\n"))
    assert graphs.targets == (Target("target"),)
    assert graphs.y.tolist()[:-1] == [float(value) for value in values]
    assert graphs.y[-1].isnan()


def test_names_of_molecules_are_no_classes(tmp_path):
    rows = "".join(f"C,name {i}\n" for i in range(30))
    path = written(tmp_path, "set.csv", f"smiles,target\n{rows}")
    assert "'target' has 30 different values for 30 graphs" in message(read_molecules, path)


def test_a_blank_is_no_class(tmp_path):
    path = written(tmp_path, "s.csv", "smiles,y\nC,1\nN,\nO,NaN\nS,0\n")
    for graphs in (
        read_molecules(path),
        from_smiles(["C"] * 4, y=[1, None, float("nan"), 0]),
        from_smiles(["C"] * 4, y=pd.Series([1, pd.NA, None, 0], dtype="Int64")),
        from_smiles(["C"] * 4, y=["1", "", "nan", "0"]),
    ):
        assert graphs.class_names == ("0", "1")
        assert graphs.y.tolist() == [1, -1, -1, 0]

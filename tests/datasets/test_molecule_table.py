"""What the text of labels means: classes, or why not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lookhops.datasets.molecules import (
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
    assert "molecule 2: '' in y is not a class" in message(from_smiles, ["C", "N"], y=["a", None])
    assert "molecule 1: 'nan'" in message(from_smiles, ["C", "N"], y=[float("nan"), 1])
    assert "so 2 is no class" in message(from_smiles, ["C"], y=[2], class_names=["a", "b"])
    wrong = message(from_smiles, ["C"], y=["c"], class_names=["a", "b"])
    assert "molecule 1: 'c' in y is not a class; the classes are a, b." in wrong
    assert message(from_smiles, []) == "from_smiles: there are no molecules."
    assert message(from_smiles, ["C"], invalid="no") == "invalid is 'raise' or 'skip', not 'no'."


@pytest.mark.parametrize(
    "values",
    [
        [f"{i / 7:.3f}" for i in range(30)],
        ["0.1", "0.2", "0.3", "0.2"],
        [str(i) for i in range(30)],
        [f"name {i}" for i in range(30)],
    ],
)
def test_measured_values_are_no_classes(tmp_path, values):
    rows = "".join(f"C,{value}\n" for value in values)
    path = written(tmp_path, "set.csv", f"smiles,target\n{rows}")
    text = message(read_molecules, path)
    different = len(set(values))
    assert f"the label column 'target' has {different} different values for {len(values)}" in text
    assert "not a class; choose another column" in text


def test_many_real_classes_are_classes(tmp_path):
    rows = "".join(f"C,{i % 30}\n" for i in range(90))
    assert read_molecules(written(tmp_path, "s.csv", f"smiles,y\n{rows}")).num_classes == 30

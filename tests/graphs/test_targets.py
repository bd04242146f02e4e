"""What is to be learnt of graphs: columns as classes or numbers, blanks, storage."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from lookhops import Graphs, LookHopsError, Target
from lookhops.graphs import concatenate
from lookhops.graphs.targets import (
    are_dates,
    are_sound,
    meant_as_number,
    pack_targets,
    read_target,
)
from strategies import two_graphs

NAN = float("nan")


def values(*arguments, **options) -> list:
    return np.where(np.isnan(found := read_target(*arguments, **options)[1]), None, found).tolist()


@pytest.mark.parametrize(
    "cells",
    [
        ["b", "", "a", "NaN"],
        ["b", None, "a", NAN],
        pd.Series(["b", None, "a", pd.NA]),
        pd.Series(["b", "", "a", " n/a "], dtype="string"),
        ["b", "#DIV/0!", "a", "#N/A"],
        np.array(["b", None, "a", np.nan], dtype=object),
    ],
)
def test_blanks_of_every_kind(cells):
    target, found = read_target("smell", cells)
    assert target == Target("smell", ("a", "b"))
    assert found[[0, 2]].tolist() == [1, 0]
    assert np.isnan(found[[1, 3]]).all()


def test_few_numbers_are_classes_and_many_are_numbers():
    assert read_target("y", [1, 0, NAN, 1])[0].classes == ("0", "1")
    assert read_target("y", ["1.0", "2", "10"])[0].classes == ("1", "2", "10")
    assert read_target("y", [True, False])[0].classes == ("False", "True")
    assert read_target("y", range(21))[0] == Target("y")
    assert read_target("y", [0.1, 0.2, 0.3])[0] == Target("y")
    assert values("y", [3, "", 1.5], "numbers") == [3, None, 1.5]
    assert read_target("y", [*range(21)] * 2, "classes")[0].classes[20] == "20"
    assert values("y", ["b", "", "a"], classes=("b", "a", "c")) == [0, None, 1]


@pytest.mark.parametrize(
    ("cells", "options", "named"),
    [
        (["1", "inf"], {}, "graph 1: 'inf' of 'y'"),
        (["1", "1e300"], {}, "graph 1: '1e300' of 'y'"),
        (["1", "a"], {"kind": "numbers"}, "graph 1: 'a' of 'y'"),
        (["a", "b"], {"classes": ["a"]}, "graph 1: 'b' of 'y'"),
        (["", None], {}, "^y"),
        ([f"name {i}" for i in range(30)], {}, "'y' has 30"),
        (["1"], {"kind": "poetry"}, "'poetry'"),
    ],
)
def test_what_is_no_target_is_refused(cells, options, named):
    with pytest.raises(LookHopsError, match=named):
        read_target("y", cells, **options)


def mixed() -> Graphs:
    """Two graphs with a class, a number and blanks."""
    columns = [read_target("active", ["no", ""]), read_target("logS", [NAN, -1.5], "numbers")]
    return replace(two_graphs(), **pack_targets(columns))


def test_several_targets_are_kept_chosen_and_joined(tmp_path: Path):
    graphs = mixed()
    assert graphs.targets == (Target("active", ("no",)), Target("logS"))
    graphs.save(tmp_path / "mixed.graphs")
    again = Graphs.load(tmp_path / "mixed.graphs")
    assert again.targets == graphs.targets
    assert again.fingerprint == graphs.fingerprint
    assert torch.equal(again.y, graphs.y) is False  # NaN is not NaN
    assert torch.allclose(again.y, graphs.y, equal_nan=True)
    assert again[1].y.tolist()[0][1] == -1.5
    both = concatenate([graphs, again])
    assert (both.y.shape, both.targets) == ((4, 2), graphs.targets)
    other = replace(graphs, targets=(Target("a"), Target("b")))
    assert other.fingerprint != graphs.fingerprint
    assert concatenate([graphs, other]).y is None
    assert graphs.class_names == ()


@pytest.mark.parametrize(
    ("y", "targets"),
    [
        (torch.tensor([0.5, 1.0]), (Target("value"),)),  # float32
        (torch.tensor([0.5, 1.0]).double(), (Target("class", ("a",)),)),
        (torch.tensor([0, -2]), (Target("class", ("a",)),)),
        (torch.tensor([0.0, float("inf")]).double(), (Target("value"),)),
        (torch.tensor([[0.0], [1.0]]).double(), (Target("value"),)),
        (torch.tensor([[0.0, 2.0], [1.0, 0.0]]).double(), (Target("v"), Target("c", ("a", "b")))),
        (torch.tensor([0, 0]), ()),
    ],
)
def test_what_does_not_fit_its_targets_is_not_sound(y, targets):
    assert not are_sound(y, targets, 2)
    assert are_sound(None, targets, 2)


def test_pygs_numbers_rows_and_blanks():
    def packed(*ys):
        x = torch.rand(2, 3)
        return Graphs.from_pyg([Data(x=x) if y is None else Data(x=x, y=y) for y in ys])

    numbers = packed(torch.tensor([0.5]), torch.tensor(2.0), torch.tensor([NAN]), None)
    assert numbers.targets == (Target("value"),)
    assert numbers.y[:2].tolist() == [0.5, 2.0]
    assert numbers.y[2:].isnan().all()
    classes = packed(torch.tensor([1]), None, torch.tensor([0]))
    assert (classes.class_names, classes.y.tolist()) == (("0", "1"), [1, -1, 0])
    rows = packed(torch.tensor([[1.0, 0.0, 0.25]]), torch.tensor([[0.0, NAN, 7.5]]))
    assert rows.targets == (
        Target("target 0", ("0", "1")),
        Target("target 1", ("0",)),
        Target("target 2"),
    )
    again = Graphs.from_pyg(rows.to_pyg())
    assert again.targets == rows.targets
    assert torch.allclose(again.y, rows.y, equal_nan=True)
    assert Graphs.from_pyg(classes.to_pyg()).y.tolist() == [1, -1, 0]
    with pytest.raises(LookHopsError, match="Graph 1: y"):
        packed(torch.tensor([[1.0, 0.5]]), torch.tensor([0.5]))


def test_networkx_numbers_and_blanks():
    nx = pytest.importorskip("networkx", reason="needs networkx (in the extra `dev`)")
    graphs = [nx.path_graph(2) for _ in range(3)]
    numbers = Graphs.from_networkx(graphs, y=[0.25, None, 1.75, 3.5][:3])
    assert numbers.targets == (Target("value"),)
    assert numbers.to_networkx()[1].graph["y"] is None
    blank = Graphs.from_networkx(graphs, y=pd.Series(["a", None, "b"]))
    assert (blank.class_names, blank.y.tolist()) == (("a", "b"), [0, -1, 1])
    again = Graphs.from_networkx(blank.to_networkx(), class_names=("a", "b"))
    assert again.y.tolist() == [0, -1, 1]
    several = Graphs.from_networkx(graphs, y=[[0, 0.5], [1, None], [None, 2.5]])
    assert [target.classes for target in several.targets] == [("0", "1"), ()]
    assert several.to_networkx()[1].graph["y"] == [1, None]


def test_numbers_and_dates_as_people_write_them():
    written = ("1,200.50", "8,4", "12%", "25 °C", "25°C", ">100", "<= 0.01", "-1.5 mg/L", "10 µM")
    assert all(meant_as_number(text) is not None for text in written)
    others = ("25", "1e-3", "1 200", "3A4", "5-HT", "low", "A 1", "12-7")
    assert all(meant_as_number(text) is None for text in others)
    assert are_dates(["2021-03-04", "2021/3/4", "2021-03-04 10:11", "4.12.2021", "04/12/21 9:05"])
    assert are_dates(["12 Sep 2021", "1-Jan-21"])
    assert not any(are_dates([text]) for text in ("3.4.21", "50-78-2", "12.5", "3/4", "Q1 2021"))

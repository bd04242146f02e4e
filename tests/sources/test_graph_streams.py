"""Sources in parts: put together they are the whole, whatever the size of a part."""

import gzip
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops.core.errors import LookHopsError
from lookhops.core.reading import Reading
from lookhops.graphs import Graphs, Skipped
from lookhops.graphs.choosing import slice_of
from lookhops.sources.graph_streams import GraphStream
from lookhops.sources.loading import load
from lookhops.sources.molecule_streams import open_molecules
from lookhops.sources.rdkit.workers import ParsingPool
from strategies import graph_sets

HERE = ParsingPool(0)
SKIP = Reading(invalid="skip")


def assert_same(one: Graphs, other: Graphs) -> None:
    for name, value in one.tensors.items():
        assert torch.equal(value, other.tensors[name]), name


@given(graph_sets(), st.integers(0, 9), st.integers(0, 9))
def test_a_slice_is_a_choice_of_graphs_that_follow_each_other(graphs, one, other):
    first, after = sorted(min(i, len(graphs)) for i in (one, other))
    found = slice_of(graphs, first, after)
    assert_same(found, graphs.select(slice(first, after)))
    _ = graphs.is_undirected
    assert slice_of(graphs, first, after).is_undirected == found.is_undirected or len(found) == 0


@pytest.mark.parametrize("size", [1, 4, 100])
def test_graphs_and_rows_without_one_come_in_the_order_of_the_input(size):
    graphs = load("solubility")[:9]
    skipped = (Skipped(0, "x", "bad"), Skipped(4, "y", "bad"), Skipped(11, "z", "bad"))
    stream = GraphStream(replace(graphs, skipped=skipped))
    parts = list(stream.parts(size))
    ids = [cells[0] for part in parts for cells in part.cells]
    names = graphs.columns["id"].tolist()
    assert ids == ["x", *names[:3], "y", *names[3:], "z"]
    assert sum(len(part.graphs) for part in parts) == 9
    assert all(len(p.graphs) + len(p.graphs.skipped) == len(p.cells) for p in parts)
    labels = [label for part in parts for label in part.labels]
    want = [graphs.class_names[number] for number in graphs.y.tolist()]
    assert labels == ["", *want[:3], "", *want[3:], ""]
    assert parts[-1].share == 1


def test_rows_are_passed_over_as_they_are_asked_for():
    stream = GraphStream(load("solubility")[:9])
    rows = stream.skip(100)
    assert [next(rows)[0] for _ in range(4)] == load("solubility").columns["id"][:4].tolist()
    assert sum(len(part.graphs) for part in stream.parts(3)) == 5


TABLE = "name,smiles,class,note\n" + "".join(
    f'm{i},{"C" * (1 + i % 7)}O,{"ab"[i % 2]},"n, {i}"\n' for i in range(1100)
).replace("m7,CO", "m7,C(")


@pytest.mark.parametrize(
    ("kind", "size", "descriptors"),
    [
        (".csv", 1000, "fast"),
        (".csv", 1, "none"),
        (".csv.gz", 1000, "none"),
        (".parquet", 1, "none"),
        (".smi", 1000, "none"),
        (".smi", 1, "none"),
    ],
)
def test_a_file_in_parts_is_the_file_read_at_once(tmp_path, kind, size, descriptors):
    path = tmp_path / f"mine{kind}"
    (tmp_path / "mine.csv").write_text(TABLE)
    if kind == ".csv.gz":
        path.write_bytes(gzip.compress(TABLE.encode()))
    elif kind == ".parquet":
        pd.read_csv(tmp_path / "mine.csv").to_parquet(path)
    elif kind == ".smi":
        rows = (line.split(",") for line in TABLE.splitlines())
        path.write_text("\n".join(f"{smiles} {name}" for name, smiles, *_ in rows))
    with pytest.warns(UserWarning, match="1,100"):
        whole = load(path, SKIP, descriptors=descriptors)
    stream = open_molecules(path, replace(SKIP, descriptors=descriptors), HERE)
    parts = list(stream.parts(size))
    assert len(parts) == (3 if size == 1 else 2)  # chunks of 512 are not cut
    assert np.array_equal(
        np.concatenate([part.graphs.columns["id"] for part in parts]), whole.columns["id"]
    )
    at = 0
    for part in parts:
        assert_same(
            replace(part.graphs, y=None), replace(whole[at : at + len(part.graphs)], y=None)
        )
        at += len(part.graphs)
    assert [one.reason for part in parts for one in part.graphs.skipped] == ["not SMILES"]
    cells = [row for part in parts for row in part.cells]
    assert len(cells) == 1100
    if kind != ".smi":
        assert stream.head == ["name", "smiles", "class", "note"]
        assert list(cells[3]) == ["m3", "CCCCO", "b", "n, 3"]
        assert [label for part in parts for label in part.labels][:3] == ["a", "b", "a"]
    assert stream.remarks()[0].startswith(f"{path}: 1 of 1,100 molecules does not parse")
    assert parts[-1].share > 0.9


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("smiles\nC(\n", "mine.csv.*line 2"),
        ("smiles,x\nCC\n", "mine.csv, line 2"),
        ("smiles\n", "mine.csv"),
        ("smiles\nCC\n\xff\n", "mine.csv, line 3"),
        ('smiles\n"CC\n', "mine.csv, line 2"),
    ],
)
def test_what_cannot_be_read(tmp_path, text, place):
    path = tmp_path / "mine.csv"
    path.write_bytes(text.encode("latin-1"))

    def read():
        stream = open_molecules(path, SKIP, HERE)
        list(stream.parts(10))
        stream.remarks()

    with pytest.raises(LookHopsError, match=place):
        read()

"""Seeded, stratified and given splits."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookhops import Graphs, LookHopsError
from lookhops.sources.splits import Split, read_splits, split, write_splits


def nodes_alone(y: list[int] | None, count: int = 0) -> Graphs:
    """One node a graph."""
    none = torch.zeros(0, dtype=torch.long)
    sizes = torch.ones(count if y is None else len(y), dtype=torch.long)
    return Graphs.from_edges(none, none, sizes, y=None if y is None else torch.tensor(y))


@given(st.integers(10, 300), st.integers(0, 200))
def test_every_graph_is_in_one_part(count: int, seed: int):
    parts = split(count, seed)
    assert len(parts.train) == int(0.8 * count)
    assert len(parts.val) == int(0.1 * count)
    everything = torch.cat((parts.train, parts.val, parts.test))
    assert sorted(everything.tolist()) == list(range(count))


def test_the_seed_decides_and_nothing_else():
    torch.manual_seed(5)
    first = split(50, 11)
    torch.manual_seed(6)
    second = split(nodes_alone(None, 50), 11)
    assert torch.equal(first.train, second.train)
    assert torch.equal(first.test, second.test)
    assert not torch.equal(first.train, split(50, 22).train)
    # Written down, so that a release of PyTorch that drew otherwise would be noticed.
    assert split(10, 11).train.tolist() == [1, 7, 2, 0, 9, 3, 5, 6]


@given(st.lists(st.integers(0, 3), min_size=40, max_size=150), st.integers(0, 50))
def test_stratified_parts_have_the_classes_in_proportion(y: list[int], seed: int):
    graphs = nodes_alone(y)
    parts = split(graphs, seed, stratify=True)
    assert len(parts.train) == int(0.8 * len(y))
    assert len(parts.val) == int(0.1 * len(y))
    everything = torch.cat((parts.train, parts.val, parts.test))
    assert sorted(everything.tolist()) == list(range(len(y)))
    labels = np.array(y)
    for part in (parts.train, parts.val, parts.test):
        for number in set(y):
            expected = (labels == number).mean() * len(part)
            assert abs((labels[part.numpy()] == number).sum() - expected) <= 2


def test_splits_that_cannot_be():
    with pytest.raises(LookHopsError, match="val"):
        split(5, 0)
    with pytest.raises(LookHopsError, match=r"0\.2"):
        split(50, 0, fractions=(0.8, 0.1, 0.2))
    with pytest.raises(LookHopsError):
        split(nodes_alone(None, 50), 0, stratify=True)
    with pytest.raises(LookHopsError, match="seed"):
        split(50, -1)
    assert len(split(10, 0, fractions=(0.9, 0.1, 0.0)).test) == 0


def test_writing_and_reading(tmp_path: Path):
    path = tmp_path / "splits.json"
    splits = [split(30, seed) for seed in (11, 22)]
    write_splits(path, splits)
    for one, again in zip(splits, read_splits(path, 30), strict=True):
        assert isinstance(again, Split)
        for part in ("train", "val", "test"):
            assert torch.equal(getattr(one, part), getattr(again, part))


def one(**changes: object) -> list[dict[str, object]]:
    return [{"train": [0, 1], "val": [2], "test": [3], **changes}]


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ('[{"train": [0],\n"val": [1\n', "splits.json, line 3"),
        (b"\xff\xfe\x00", "splits.json"),
        ({}, "splits.json"),
        ([], "splits.json"),
        ([[0]], "split 1"),
        ([*one(), {"train": [0], "test": [1]}], "split 2"),
        (one(val=[]), "split 1: val"),
        (one(val=7), "split 1: val"),
        (one(test=[4]), "test has 4,.* 3"),
        (one(test=[-1]), "test has -1"),
        (one(test=[3.0]), "test has 3.0"),
        (one(test=[True]), "test has true"),
        (one(test=["3"]), 'test has "3"'),
        (one(test=[1]), "graph 1 of test.*train"),
        (one(train=[0, 0]), "graph 0 of train"),
    ],
)
def test_files_that_are_not_splits(tmp_path: Path, content: object, named: str):
    path = tmp_path / "splits.json"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(LookHopsError, match=named):
        read_splits(path, 4)


def test_published_folds_are_read_as_they_are(tmp_path: Path):
    path = tmp_path / "folds.json"
    inner = [{"train": [0, 1], "validation": [2]}]
    path.write_text(json.dumps([{"test": [3], "model_selection": inner}]))
    [found] = read_splits(path, 4)
    assert [getattr(found, part).tolist() for part in ("train", "val", "test")] == [
        [0, 1],
        [2],
        [3],
    ]
    path.write_text(json.dumps([{"test": [3], "model_selection": []}]))
    with pytest.raises(LookHopsError, match="split 1"):
        read_splits(path, 4)


def test_graphs_by_their_ids(tmp_path: Path):
    path = tmp_path / "splits.json"
    path.write_text(json.dumps([{"train": ["b", "a"], "val": ["c"], "test": [3]}]))
    ids = np.array(["a", "b", "c", "d"], dtype=object)
    graphs = replace(nodes_alone(None, 4), columns={"id": ids})
    [found] = read_splits(path, graphs)
    assert found.train.tolist() == [1, 0]
    with pytest.raises(LookHopsError, match=r'train.*"b"'):
        read_splits(path, replace(graphs, columns={"id": np.array(["x", "y", "c", "d"])}))
    repeated = replace(graphs, columns={"id": ids[[0, 0, 2, 3]]})
    with pytest.raises(LookHopsError, match="train"):
        read_splits(path, repeated)


def test_no_file(tmp_path: Path):
    with pytest.raises(LookHopsError, match="none"):
        read_splits(tmp_path / "none.json", 4)

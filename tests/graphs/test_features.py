"""Numbers and labels, their names, and the columns that they make."""

from dataclasses import replace

import pytest
import torch

from lookhops import Features, Graphs, LookHopsError
from lookhops.graphs.features import compact, default_values, feature_columns


def node_of(features: Features) -> Graphs:
    """A graph without edges, a node a row."""
    none = torch.zeros(0, dtype=torch.long)
    rows = next(iter(features.tensors.values())).shape[0]
    return Graphs.from_edges(none, none, torch.tensor([rows]), nodes=features)


def test_labels_outside_their_sizes_are_refused():
    for labels, sizes in (([[3]], [3]), ([[-1]], []), ([[0, 0]], [1])):
        with pytest.raises(LookHopsError, match="label"):
            node_of(Features(labels=torch.tensor(labels), label_values=default_values(sizes)))


def test_sizes_are_read_off_labels_of_any_type():
    labels = torch.tensor([[0], [255]], dtype=torch.uint8)
    assert node_of(Features(labels=labels)).nodes.label_sizes == (256,)


@pytest.mark.parametrize("dtype", [None, torch.float32, torch.float64])
def test_columns_are_numbers_and_then_one_hot_labels(dtype: torch.dtype | None):
    numbers = torch.tensor([[0.5], [-1.0]], dtype=torch.float64)
    labels = torch.tensor([[1, 0], [0, 2]], dtype=torch.uint8)
    found = Features(numbers, labels=labels, label_values=default_values([2, 3])).columns(dtype)
    assert found.dtype == (dtype or torch.float64)
    assert found.tolist() == [[0.5, 0, 1, 1, 0, 0], [-1, 1, 0, 0, 0, 1]]
    assert feature_columns(None, labels[:0], (2, 3)).shape == (0, 5)
    assert Features().columns() is None


def test_one_hot_columns_become_labels():
    rows = torch.eye(3)[[2, 0]]
    found = Features.from_columns(rows)
    assert found.numbers is None
    assert found.labels.tolist() == [[2], [0]]
    assert found.label_sizes == (3,)
    for kept in (rows.double(), rows * 2, rows + torch.eye(3)[[0, 1]], rows[:0]):
        assert Features.from_columns(kept).numbers is kept


@pytest.mark.parametrize(
    ("largest", "dtype"), [(255, torch.uint8), (256, torch.int16), (2**15, torch.int32)]
)
def test_labels_take_the_smallest_type_that_holds_them(largest: int, dtype: torch.dtype):
    found = compact(torch.tensor([[0], [largest]]))
    assert found.dtype == dtype
    assert found.flatten().tolist() == [0, largest]


def test_every_column_has_a_name():
    numbers = torch.zeros(1, 2)
    features = Features(numbers, labels=torch.tensor([[0, 1]]))
    assert features.number_names == ("number 0", "number 1")
    assert features.label_names == ("label 0", "label 1")
    assert features.label_values == (("0",), ("0", "1"))
    assert features.names.columns[1:] == ("number 1", "label 0 0", "label 1 0", "label 1 1")
    assert features.names.are_unknown
    bare = replace(features, labels=None, numbers=None)
    assert (bare.number_names, bare.label_names, bare.label_values) == ((), (), ())
    named = node_of(Features(numbers, ("age", "size")))
    assert named.select([0]).nodes.number_names == ("age", "size")
    assert not named.nodes.names.are_unknown
    for names, named in ((("age",), "2 columns"), (("age", "age"), "'age'")):
        with pytest.raises(LookHopsError, match=named):
            replace(features, number_names=names)


def test_blanks_are_counted_by_name():
    numbers = torch.tensor([[0.0, float("nan")], [1.0, float("nan")], [float("nan"), 2.0]])
    assert Features(numbers, ("age", "size")).blanks == {"age": 1, "size": 2}
    assert Features().blanks == {}

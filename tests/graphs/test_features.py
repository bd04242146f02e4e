"""Attributes and labels, and the columns that they make."""

from dataclasses import replace

import pytest
import torch

from lookhops import Graphs, LookHopsError
from lookhops.graphs.features import column_names, compact, feature_columns, feature_fields


def test_labels_outside_their_sizes_are_refused():
    none = torch.zeros(0, dtype=torch.long)
    for labels, sizes in (([[3]], (3,)), ([[-1]], None), ([[0, 0]], (1,))):
        with pytest.raises(LookHopsError, match="label"):
            Graphs.from_edges(
                none, none, torch.tensor([1]), labels=torch.tensor(labels), label_sizes=sizes
            )


def test_sizes_are_read_off_labels_of_any_type():
    none = torch.zeros(0, dtype=torch.long)
    labels = torch.tensor([[0], [255]], dtype=torch.uint8)
    graphs = Graphs.from_edges(none, none, torch.tensor([2]), labels=labels)
    assert graphs.label_sizes == (256,)


@pytest.mark.parametrize("dtype", [None, torch.float32, torch.float64])
def test_columns_are_attributes_and_then_one_hot_labels(dtype: torch.dtype | None):
    attributes = torch.tensor([[0.5], [-1.0]], dtype=torch.float64)
    labels = torch.tensor([[1, 0], [0, 2]], dtype=torch.uint8)
    found = feature_columns(attributes, labels, (2, 3), dtype)
    assert found.dtype == (dtype or torch.float64)
    assert found.tolist() == [[0.5, 0, 1, 1, 0, 0], [-1, 1, 0, 0, 0, 1]]
    assert feature_columns(None, labels[:0], (2, 3)).shape == (0, 5)


def test_one_hot_attributes_become_labels():
    rows = torch.eye(3)[[2, 0]]
    found = feature_fields("edge_", rows)
    assert "edge_attributes" not in found
    assert found["edge_labels"].tolist() == [[2], [0]]
    assert found["edge_label_sizes"] == (3,)
    for kept in (rows.double(), rows * 2, rows + torch.eye(3)[[0, 1]], rows[:0]):
        assert feature_fields("", kept)["attributes"] is kept


@pytest.mark.parametrize(
    ("largest", "dtype"), [(255, torch.uint8), (256, torch.int16), (2**15, torch.int32)]
)
def test_labels_take_the_smallest_type_that_holds_them(largest: int, dtype: torch.dtype):
    found = compact(torch.tensor([[0], [largest]]))
    assert found is not None
    assert found.dtype == dtype
    assert found.flatten().tolist() == [0, largest]


def test_every_column_has_a_name():
    none = torch.zeros(0, dtype=torch.long)
    labels, numbers = torch.tensor([[0, 1]]), torch.zeros(1, 2)
    graphs = Graphs.from_edges(none, none, torch.tensor([1]), attributes=numbers, labels=labels)
    assert graphs.attribute_names == ("attribute 0", "attribute 1")
    assert graphs.label_names == ("label 0", "label 1")
    assert graphs.label_values == (("0",), ("0", "1"))
    assert column_names(graphs)[1:] == ("attribute 1", "label 0 0", "label 1 0", "label 1 1")
    bare = replace(graphs, labels=None, attributes=None)
    assert (bare.attribute_names, bare.label_names, bare.label_values) == ((), (), ())
    named = replace(bare, attributes=numbers, attribute_names=("age", "size"))
    assert named.select([0]).attribute_names == ("age", "size")
    for names, sentence in (
        (("age",), "1 names were given for 2 columns of attributes"),
        (("age", "age"), "Two columns have the same name, 'age'"),
    ):
        with pytest.raises(LookHopsError, match=sentence):
            replace(graphs, attribute_names=names)

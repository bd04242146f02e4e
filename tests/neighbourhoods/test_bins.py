"""Bins of numeric attributes."""

import torch

from lookhops.neighbourhoods import Bins


def test_bins_hold_about_as_many_values_each():
    values = torch.randn(1000, 2, generator=torch.Generator().manual_seed(0))
    placed = Bins.learn(values, 4)(values)
    for column in placed.T:
        assert column.bincount().tolist() == [250] * 4


def test_values_never_seen_fall_into_the_outer_bins():
    bins = Bins.learn(torch.arange(10.0)[:, None], 5)
    assert bins(torch.tensor([[-100.0], [0.0], [1.9], [2.0], [100.0]])).flatten().tolist() == [
        0,
        0,
        0,
        1,
        4,
    ]


def test_blanks_are_a_bin_of_their_own():
    blank = float("nan")
    values = torch.tensor([[0.0, blank], [blank, 1.0], [1.0, 2.0], [2.0, 3.0], [3.0, blank]])
    bins = Bins.learn(values, 2)
    assert bins(values).tolist() == [[0, 2], [2, 0], [0, 1], [1, 1], [1, 2]]
    assert Bins.learn(values * blank, 2)(values).tolist() == [[0, 1], [1, 0], *[[0, 0]] * 2, [0, 1]]


def test_bins_are_kept():
    bins = Bins.learn(torch.tensor([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0]]), 3)
    again = Bins.from_tensors(bins.tensors())
    assert [edges.tolist() for edges in again.edges] == [[1.0, 2.0], []]


def test_few_different_values_have_few_bins():
    column = torch.tensor([0.0] * 90 + [1.0] * 10)[:, None]
    bins = Bins.learn(column, 4)
    assert bins.edges[0].tolist() == []
    bins = Bins.learn(torch.tensor([[0.0], [0.0], [1.0], [1.0]]), 4)
    assert bins.edges[0].tolist() == [1.0]
    assert Bins.learn(torch.zeros(0, 1), 4)(torch.ones(3, 1)).tolist() == [[0]] * 3

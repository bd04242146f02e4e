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


def test_few_different_values_have_few_bins():
    column = torch.tensor([0.0] * 90 + [1.0] * 10)[:, None]
    bins = Bins.learn(column, 4)
    assert bins.edges[0].tolist() == []
    bins = Bins.learn(torch.tensor([[0.0], [0.0], [1.0], [1.0]]), 4)
    assert bins.edges[0].tolist() == [1.0]
    assert Bins.learn(torch.zeros(0, 1), 4)(torch.ones(3, 1)).tolist() == [[0]] * 3

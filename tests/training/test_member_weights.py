"""The weights of members as a stack: each gets its own back, in whatever company."""

import pytest
import torch

from lookhops.core.errors import LookHopsError
from lookhops.nn import Architecture, GraphNetwork
from lookhops.ops.adam import Adam
from lookhops.training.member_weights import TABLE, MemberWeights

SIZES = (3, 7, 5)
NAMES = ("11", "22", "33")


def networks():
    torch.manual_seed(0)
    architecture = Architecture(hidden=4, layers=1, fingerprint=1)
    return [
        GraphNetwork.from_architecture(2, 2, architecture, num_neighbourhoods=size)
        for size in SIZES
    ]


def stack(models=None):
    return MemberWeights(
        models or networks(), NAMES, SIZES, lambda values, members: Adam(list(values), lr=0.1)
    )


def train(weights, steps=1):
    """Steps whose gradients differ from member to member."""
    for _ in range(steps):
        for value in weights.now.values():
            members = torch.tensor(weights.members).view(-1, *[1] * (value.dim() - 1))
            value.grad = (members + 1.0).expand_as(value) * value.detach().cos()
        weights.optimizer.step()


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=0, msg=name)


def test_tables_of_different_lengths_come_back_without_padding():
    models = networks()
    weights = stack(models)
    [table] = [value for name, value in weights.now.items() if name.endswith(TABLE)]
    assert table.shape[:2] == (3, 7)
    for own, model in zip(weights.each(), models, strict=True):
        assert_same(own, {name: value.detach() for name, value in model.named_parameters()})


def test_only_what_was_better_is_kept():
    weights = stack()
    before = [{name: value.clone() for name, value in own.items()} for own in weights.each()]
    train(weights)
    weights.remember(torch.tensor([False, True, False]))
    after = weights.each()
    assert_same(after[0], before[0])
    assert_same(after[2], before[2])
    assert all((after[1][name] != value).all() for name, value in before[1].items())


def test_those_who_stay_train_on_as_if_nobody_had_left():
    whole, smaller = stack(), stack()
    for weights in (whole, smaller):
        train(weights, 2)
        weights.remember(torch.ones(3, dtype=torch.bool))
    smaller.retire([0, 2])
    assert smaller.members == [0, 2]
    left = smaller.each()[1]
    for weights in (whole, smaller):
        train(weights, 2)
        weights.remember(torch.ones(3, dtype=torch.bool))
    expected, found = whole.each(), smaller.each()
    assert_same(found[0], expected[0])
    assert_same(found[2], expected[2])
    assert_same(found[1], left)


def test_a_state_goes_on_where_it_was():
    weights, other = stack(), stack()
    train(weights, 2)
    weights.retire([1, 2])
    other.restore(weights.state())
    assert other.members == [1, 2]
    for one in (weights, other):
        train(one)
    assert_same(other.state(), weights.state())
    with pytest.raises(LookHopsError, match="seed 33"):
        other.restore({k: v for k, v in weights.state().items() if not k.startswith("33.")})

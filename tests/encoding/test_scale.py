"""Scales of numbers: against scikit-learn and plain formulas, with blanks and constants."""

import numpy as np
import pytest
import torch
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from lookhops.encoding.scale import Scale

BLANK = float("nan")


@pytest.fixture
def values() -> torch.Tensor:
    drawn = np.random.default_rng(0).normal(size=(200, 3))
    return torch.from_numpy(drawn * (300, 0.01, 1) + (1000, 0, 0))


def test_standard_is_scikit_learns(values):
    found = Scale.fit("standard", values)(values)
    np.testing.assert_allclose(found, StandardScaler().fit_transform(values), atol=1e-12)


def test_none_changes_no_bit(values):
    single = values.float()
    assert torch.equal(Scale.fit("none", single)(single), single)


def test_quantiles_are_about_those_of_scikit_learn():
    drawn = np.exp(2 * np.random.default_rng(0).normal(size=(2000, 1)))
    theirs = QuantileTransformer(output_distribution="normal", n_quantiles=500)
    wanted = theirs.fit_transform(drawn).flatten()
    found = Scale.fit("quantiles", torch.from_numpy(drawn))(torch.from_numpy(drawn)).flatten()
    inside = abs(wanted) < 1.8
    np.testing.assert_allclose(found[inside], wanted[inside], atol=0.2)
    assert found.abs().max() < 2.2  # no farther than the outer quantiles
    far = Scale.fit("quantiles", torch.from_numpy(drawn))(torch.tensor([[1e30]]).double())
    assert float(far) == float(found.max())


def test_equal_numbers_are_told_alike_in_the_middle_of_their_share():
    values = torch.tensor([[0.0]] * 50 + [[1.0]] * 50)
    told = Scale.fit("quantiles", values)(values)
    assert told.unique().numel() == 2
    assert float(told[0]) == pytest.approx(-float(told[-1]), abs=0.1)


def test_standard_bends_heavy_tails_alone(values):
    values[:, 2] = (3 * values[:, 2]).exp()
    scale = Scale.fit("standard", values)
    assert scale.bent.tolist() == [False, False, True]
    assert torch.equal(scale(values)[:, 2], Scale.fit("quantiles", values)(values)[:, 2])
    np.testing.assert_allclose(scale(values)[:, 0].std(correction=0), 1)
    seldom = torch.zeros(100, 1)
    seldom[::10] = 1  # two values have no tails
    assert not Scale.fit("standard", seldom).bent.any()


@pytest.mark.parametrize("kind", ["none", "standard", "quantiles"])
def test_constants_are_left_alone_and_blanks_told_as_the_mean(kind):
    seen = torch.tensor([[1.0, 7.0, BLANK], [3.0, 7.0, BLANK], [BLANK, 7.0, BLANK]])
    scale = Scale.fit(kind, seen)
    told = scale(seen)
    assert told[:, 1].tolist() == [7, 7, 7]
    assert told[:, 2].tolist() == [0, 0, 0]
    assert float(told[2, 0]) == pytest.approx(float(told[:2, 0].mean()))
    if kind == "standard":
        assert told[:, 0].tolist() == [-1, 1, 0]


def test_a_stack_scales_each_member_by_its_own(values):
    values[80:, 2] = (3 * values[80:, 2]).exp()  # heavy tails for one member alone
    members = [Scale.fit("standard", part) for part in (values[:80], values[80:])]
    both = Scale.stack(members, values)(torch.cat((values[:5], values[:5])))
    assert torch.equal(both, torch.cat([member(values[:5]) for member in members]))
    again = Scale.from_tensors(members[0].tensors())
    assert torch.equal(again(values), members[0](values))

"""Scales of numbers: against scikit-learn and plain formulas, with blanks and constants."""

import numpy as np
import pytest
import torch
from sklearn.preprocessing import StandardScaler

from lookhops.encoding.scale import Scale

BLANK = float("nan")


@pytest.fixture
def values() -> torch.Tensor:
    drawn = np.random.default_rng(0).normal(size=(200, 3))
    drawn[:, 2] = np.exp(3 * drawn[:, 2])
    return torch.from_numpy(drawn * (300, 0.01, 1) + (1000, 0, 0))


def test_standard_is_scikit_learns(values):
    found = Scale.fit("standard", values)(values)
    np.testing.assert_allclose(found, StandardScaler().fit_transform(values), atol=1e-12)


def test_none_changes_no_bit(values):
    single = values.float()
    assert torch.equal(Scale.fit("none", single)(single), single)


def test_asinh_is_standard_in_the_middle_and_logarithmic_in_the_tails():
    normal = torch.from_numpy(np.random.default_rng(0).normal(5, 2, size=(20000, 1)))
    scale = Scale.fit("asinh", normal)
    near, far = torch.tensor([[5.0], [5.2]]).double(), torch.tensor([[1e6], [1e9]]).double()
    np.testing.assert_allclose(scale(near).flatten(), [0, 0.1], atol=0.02)
    assert float(scale(far).diff(dim=0)) == pytest.approx(np.log(1000), abs=0.01)
    mostly_equal = torch.tensor([[0.0]] * 9 + [[10.0]])
    assert Scale.fit("asinh", mostly_equal)(mostly_equal).abs().max() < 3


@pytest.mark.parametrize("kind", ["none", "standard", "asinh"])
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
    members = [Scale.fit("standard", part) for part in (values[:80], values[80:])]
    both = Scale.stack(members, values)(torch.cat((values[:5], values[:5])))
    assert torch.equal(both, torch.cat([member(values[:5]) for member in members]))
    again = Scale.from_tensors(members[0].tensors())
    assert torch.equal(again(values), members[0](values))

"""Shares do not hang on rounding, which is another on every device and in every batch."""

import pytest
import torch

from explanation_cases import POOLS, SHARES, architecture_with, moved, trained, trees
from lookhops.explain import attribute
from lookhops.models.predictor import Predictor


@pytest.mark.parametrize("pool", POOLS)
def test_weights_that_differ_by_rounding_give_the_same_shares(tmp_path, pool):
    graphs = trees()
    folder = trained(tmp_path / "model", graphs, architecture_with(pool))
    plain, other = Predictor(folder, "cpu"), Predictor(folder, "cpu")
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for networks in other.members.values():
            for weight in (w for network in networks for w in network.parameters()):
                weight *= 1 + 3e-7 * torch.randn(weight.shape, generator=generator)
    found = [attribute(predictor, graphs[:20]) for predictor in (other, plain)]
    assert all(moved(*found, part) <= 0.02 for part in SHARES)

"""Adam: step for step PyTorch's own."""

import pytest
import torch

from lookhops.ops.adam import Adam
from lookhops.training.member_weights import MOMENTS


def trained(optimiser: type[torch.optim.Adam], steps: int = 5, **options) -> list[torch.Tensor]:
    draws = torch.Generator().manual_seed(0)
    weights = [torch.randn(shape, generator=draws, requires_grad=True) for shape in ((4, 3), (3,))]
    unused = torch.ones(2, requires_grad=True)
    own = optimiser([*weights, unused], lr=0.1, **options)
    for _ in range(steps):
        own.zero_grad(set_to_none=True)
        x = torch.randn(8, 4, generator=draws)
        (x @ weights[0] + weights[1]).sigmoid().square().sum().backward()
        own.step()
    assert torch.equal(unused, torch.ones(2))
    moments = [own.state[weight][name] for weight in weights for name in MOMENTS]
    return [*weights, *moments]


@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1}, {"fused": True}])
def test_steps_are_those_of_pytorch(options):
    for ours, theirs in zip(
        trained(Adam, **options), trained(torch.optim.Adam, **options), strict=True
    ):
        assert torch.equal(ours, theirs)


def test_a_state_goes_on():
    weight = torch.ones(3, requires_grad=True)
    own = Adam([weight])
    weight.square().sum().backward()
    own.step()
    again = Adam([weight])
    again.load_state_dict(own.state_dict())
    assert torch.equal(again.state[weight]["exp_avg"], own.state[weight]["exp_avg"])

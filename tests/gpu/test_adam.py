"""Adam on a GPU, where one kernel takes the step, against PyTorch's on the CPU."""

import pytest
import torch

from lookhops.ops.adam import Adam
from lookhops.training.member_weights import MOMENTS, MemberAdam
from lookhops.training.runs import Rates

RATES = [Rates(0.1, 0.0, 0.0), Rates(0.01, 0.2, 0.0)]


def trained(device: str, make) -> list[torch.Tensor]:
    draws = torch.Generator().manual_seed(0)
    shapes = (2, 400, 7), (2, 7), (2, 1)
    values = [torch.randn(s, generator=draws).to(device).requires_grad_() for s in shapes]
    unused = torch.ones(2, 3, device=device, requires_grad=True)
    own = make([*values, unused], fused=True, capturable=device == "cuda")
    for _ in range(5):
        for value in values:
            value.grad = torch.randn(value.shape, generator=draws).to(device)
        own.step()
    assert torch.equal(unused.cpu(), torch.ones(2, 3))
    assert unused not in own.state
    moments = [own.state[value][name] for value in values for name in MOMENTS]
    return [one.detach().cpu() for one in (*values, *moments)]


@pytest.mark.parametrize("each", [False, True])
def test_steps_are_those_of_the_cpu(each):
    def make(values, **options):
        if each:
            return MemberAdam(values, RATES, **options)
        return Adam(values, lr=0.1, weight_decay=0.2, **options)

    torch.testing.assert_close(trained("cuda", make), trained("cpu", make), rtol=1e-5, atol=1e-6)

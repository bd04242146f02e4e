"""Dense products with few outputs."""

import pytest
import torch
from torch.autograd import gradcheck

from lookhops.ops.dense import linear_scores, scores_beside


@pytest.mark.parametrize("shapes", [((7, 4), (2, 4)), ((3, 7, 4), (3, 2, 4)), ((3, 7, 4), (2, 4))])
def test_scores_beside_are_linear_scores_and_add_what_comes_back(shapes):
    x, weight = (torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)

    def beside(x, weight):
        again, score = scores_beside(x, weight)
        return score.sin() * again.exp().sum(-1).unsqueeze(-2)

    def plain(x, weight):
        return linear_scores(x, weight).sin() * x.exp().sum(-1).unsqueeze(-2)

    assert torch.equal(beside(x, weight), plain(x, weight))
    assert gradcheck(beside, (x, weight))
    assert gradcheck(plain, (x, weight))
    again, score = scores_beside(x, weight)
    for part in (again, score):  # one of them alone
        found = torch.autograd.grad(part.sum(), (x, weight), retain_graph=True, allow_unused=True)
        assert all(grad is None or grad.isfinite().all() for grad in found)

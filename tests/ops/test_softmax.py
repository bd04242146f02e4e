"""Softmax and maximum over the edges into each node."""

import pytest
import torch
from torch.autograd import gradcheck

from batches import make_batch
from lookhops import ops
from lookhops.ops import Adjacency, Pattern
from lookhops.ops.neighbour_max import neighbour_max
from lookhops.ops.softmax import softmax


@pytest.mark.parametrize("block", [1, 5, 1 << 13])
def test_maximum_and_its_gradient(block, monkeypatch):
    monkeypatch.setattr(ops.neighbour_max, "BLOCK", block)
    batch = make_batch(2, (9, 1, 12), 4, directed=True, dtype=torch.float64)
    pattern = Adjacency.of(batch.edge_index, len(batch.x)).with_loops
    a, b = (batch.x.round().requires_grad_() for _ in range(2))  # many ties
    found, again = neighbour_max(pattern, a)
    index = pattern.row.long()[:, None].expand(-1, 4)
    expected = torch.zeros_like(b).scatter_reduce(
        0, index, b[pattern.column.long()], "amax", include_self=False
    )
    into = torch.randn_like(found)
    ((found * into).sum() + (again * into.cos()).sum()).backward()
    ((expected * into).sum() + (b * into.cos()).sum()).backward()
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(a.grad, b.grad)


def test_softmax_and_its_gradient():
    pattern = Pattern(torch.tensor([0, 3, 3, 5, 9]), torch.zeros(9, dtype=torch.long))
    score = torch.randn(9, dtype=torch.float64, requires_grad=True)
    counts = torch.tensor([1, 0, 1, 1, 1, 0, 0, 0, 0]).bool()
    share = softmax(score, pattern, counts)
    torch.testing.assert_close(share[:3:2], score[:3:2].softmax(0))
    torch.testing.assert_close(share[3:5], score[3:5].softmax(0))
    assert (share[~counts] == 0).all()
    assert gradcheck(lambda s: softmax(s, pattern, counts), score)
    assert gradcheck(lambda s: softmax(s, pattern), score)
    large = softmax(score.detach().float() * 1e30, pattern)
    assert large.isfinite().all()

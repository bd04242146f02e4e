"""The sum of learnt rows against PyTorch's embedding_bag."""

import torch
import torch.nn.functional as F

from lookhops.neighbourhoods.bag import bag


def test_values_and_gradients_are_those_of_embedding_bag():
    generator = torch.Generator().manual_seed(0)
    indices = torch.randint(0, 7, (12,), generator=generator)
    offsets = torch.tensor([0, 5, 5, 9, 12])
    scale = torch.rand(12, generator=generator)
    ours = torch.randn(7, 3, generator=generator, requires_grad=True)
    theirs = ours.detach().clone().requires_grad_()
    one = bag(ours, indices, offsets, scale)
    two = F.embedding_bag(indices, theirs, offsets[:-1], mode="sum", per_sample_weights=scale)
    assert torch.allclose(one, two)
    into = torch.randn(4, 3, generator=generator)
    one.backward(into)
    two.backward(into)
    assert torch.allclose(ours.grad, theirs.grad)


def test_rows_without_entries_are_zero():
    weight = torch.randn(5, 2, requires_grad=True)
    none = torch.zeros(0, dtype=torch.long)
    result = bag(weight, none, torch.zeros(3, dtype=torch.long), torch.zeros(0))
    assert result.tolist() == [[0, 0], [0, 0]]
    result.sum().backward()
    assert not weight.grad.any()

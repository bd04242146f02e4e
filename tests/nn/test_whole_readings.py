"""Readings of whole graphs against a few plain lines."""

import pytest
import torch

from lookhops.core.errors import LookHopsError
from lookhops.nn import GraphNetwork
from lookhops.nn.whole import Fingerprint, Totals, WholeInputs

# Three graphs with 2, 0 and 3 neighbourhoods; one entry of padding.
ROWS = ([0, 2], [], [1, 2, 4])


def inputs(stack=None):
    size = 5
    members = 1 if stack is None else stack
    indices = [i + m * size for m in range(members) for row in ROWS for i in row]
    counts = [len(row) for _ in range(members) for row in ROWS]
    row = [r for r, count in enumerate(counts) for _ in range(count)]
    number = torch.tensor([[7, 8, 9]] * members)
    return WholeInputs(
        number=number[0] if stack is None else number,
        indices=torch.tensor([*indices, 0]),
        offsets=torch.tensor([0, *counts]).cumsum(0),
        row=torch.tensor([*row, len(counts) - 1]),
        place=torch.arange(len(indices) + 1) % 5,
    )


def test_fingerprint_sums_the_rows_of_each_graph():
    reading = Fingerprint(5, 2).double().eval()
    torch.nn.init.normal_(reading.weight)
    found = reading(inputs(), None)
    for output, row in zip(found, ROWS, strict=True):
        want = reading.weight[row].sum(0) * reading.GAMMA / max(len(row), 1) ** 0.5
        torch.testing.assert_close(output, want)


def test_fingerprint_gradient():
    reading = Fingerprint(5, 2).double().eval()

    def outputs(weight):
        return torch.func.functional_call(reading, {"weight": weight}, (inputs(), None))

    weight = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(outputs, (weight,))


def test_a_stack_reads_as_each_member_alone():
    weights = torch.randn(3, 5, 2)
    keys = torch.tensor([5, 6, 7])
    reading = Fingerprint(5, 2).train()
    stacked = torch.func.functional_call(reading, {"weight": weights}, (inputs(3), keys))
    for member in range(3):
        alone = torch.func.functional_call(
            reading, {"weight": weights[member]}, (inputs(), keys[member])
        )
        torch.testing.assert_close(stacked[member], alone)


def test_a_share_of_the_neighbourhoods_is_dropped_while_training():
    rows = torch.arange(10_000)
    many = WholeInputs(
        number=torch.tensor([0]),
        indices=rows,
        offsets=torch.tensor([0, 10_000]),
        row=torch.zeros_like(rows),
        place=rows,
    )
    reading = Fingerprint(10_000, 1, p=0.5).train()
    torch.nn.init.ones_(reading.weight)
    reading(many, torch.tensor(1)).sum().backward()
    dropped = (reading.weight.grad == 0).double().mean()
    assert abs(dropped - 0.5) < 0.02
    assert reading.weight.grad.max() == pytest.approx(2 * reading.GAMMA / 100)


def test_totals_begin_at_zero_and_learn():
    reading = Totals(4, 2)
    told = WholeInputs(number=torch.arange(3), totals=torch.randn(3, 4))
    assert (reading(told, torch.tensor(1)) == 0).all()
    reading(told, torch.tensor(1)).sum().backward()
    assert reading.outer.weight.grad.abs().sum() > 0


def test_a_model_without_convolutions(tasks):
    with pytest.raises(LookHopsError, match="fingerprint"):
        GraphNetwork(3, 2, conv="none")
    model = GraphNetwork(3, 2, conv="none", fingerprint=2, num_neighbourhoods=5)
    assert sum(parameter.numel() for parameter in model.parameters()) == 10

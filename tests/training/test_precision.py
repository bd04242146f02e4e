"""One place for precision: both engines follow it, and leave PyTorch as it was."""

import pytest
import torch

from lookhops.core.options import PRECISIONS
from lookhops.nn import Architecture, GraphNetwork
from lookhops.training import Protocol, train


@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_products_and_types_are_as_the_protocol_says(tasks, monkeypatch, precision, stacked):
    forward, seen = GraphNetwork.forward, set()

    def watched(model, level, **options):
        output, added = forward(model, level, **options)
        seen.add((torch.get_float32_matmul_precision(), level.x.dtype, output.dtype))
        return output, added

    monkeypatch.setattr(GraphNetwork, "forward", watched)
    before = torch.get_float32_matmul_precision()
    protocol = Protocol(seeds=(11,), max_epochs=1, batch_size=16, precision=precision)
    [run] = train(tasks, Architecture(hidden=8, layers=2), protocol, device="cpu", stacked=stacked)
    products = "high" if precision == "tf32" else "highest"
    dtype = torch.float64 if precision == "float64" else torch.float32
    inside = torch.bfloat16 if precision == "bfloat16" else dtype
    assert seen == {(products, dtype, inside)}
    assert torch.get_float32_matmul_precision() == before
    assert run.predictions["test"].dtype == dtype

"""Dense layers of stacked members on a GPU: where tensor cores take them, and how closely."""

import pytest
import torch

from lookhops.ops import dense
from lookhops.ops.dense import stacked

HOPPER = pytest.mark.skipif(
    torch.cuda.is_available() and torch.cuda.get_device_capability() != (9, 0),
    reason="the kernel is used on GPUs of another kind",
)


def products(x, weight, grad):
    """The layer and both its gradients."""
    x, weight = (t.detach().requires_grad_() for t in (x, weight))
    out = stacked(x, weight)
    out.backward(grad)
    return out.detach(), x.grad, weight.grad


@pytest.mark.parametrize("inputs", [16, 37, 128, 256, 300])
@pytest.mark.parametrize("shared", [True, False])  # one x that all members have
def test_a_layer_and_its_gradient_are_close_to_double_precision(inputs, shared):
    torch.manual_seed(0)
    x = torch.randn(1 if shared else 3, 700, inputs, device="cuda").expand(3, -1, -1)
    weight = torch.randn(3, 128, inputs, device="cuda")
    grad = torch.randn(3, 700, 128, device="cuda")
    given = (x, weight, grad)
    exact = products(*(t.double() for t in given))
    scale = products(*(t.double().abs() for t in given))
    for found, expected, size in zip(products(*given), exact, scale, strict=True):
        assert ((found - expected).abs() / size).max() <= 1e-6


@HOPPER
def test_kernel_is_for_plain_single_precision(monkeypatch):
    taken = []

    def counted(kernel):
        return lambda *ab: taken.append(1) or kernel(*ab)

    for name in ("product", "product_of_columns"):
        monkeypatch.setattr(dense, name, counted(getattr(dense, name)))
    x, weight, grad = (torch.randn(2, n, 32, device="cuda") for n in (90, 32, 90))

    def count(*given):
        taken.clear()
        products(*given)
        return len(taken)

    assert count(x, weight, grad) == 3
    assert count(x.double(), weight.double(), grad.double()) == 0
    assert count(x[..., :9], weight[..., :9], grad) == 0
    assert count(x[:, :0], weight, grad[:, :0]) == 0
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        assert count(x, weight, grad) == 0
    finally:
        torch.set_float32_matmul_precision(before)
    with torch.autocast("cuda", torch.bfloat16):
        assert count(x, weight, grad.bfloat16()) == 0


@HOPPER
def test_infinities_and_nans_go_where_float32_has_them():
    torch.manual_seed(0)
    a, b = torch.randn(1, 90, 40, device="cuda"), torch.randn(1, 40, 50, device="cuda")
    a[0, 3, 5], a[0, 7, 6], b[0, 1, 9] = float("inf"), float("nan"), float("-inf")
    plain, found = torch.bmm(a, b), dense.product(a, b.mT)
    for kind in (torch.isposinf, torch.isneginf, torch.isnan):
        assert torch.equal(kind(found), kind(plain))

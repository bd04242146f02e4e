"""Dense layers by oneDNN are those of PyTorch, whatever the number of rows."""

import pytest
import torch
from torch.nn.functional import linear

from lookhops.nn.linear import Linear
from lookhops.ops import dense

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="PyTorch has no oneDNN here"
)


@pytest.fixture
def everywhere(monkeypatch):
    """Take oneDNN for products of any size, on any processor."""
    monkeypatch.setattr(dense, "_is_faster", lambda: True)
    monkeypatch.setattr(dense, "LEAST", 0)
    monkeypatch.setattr(dense, "MULTIPLE", 8)


@pytest.fixture
def asked(monkeypatch):
    """How many products were taken by oneDNN."""
    found, product = [], dense.onednn_product

    def noted(*given):
        found.append(1)
        return product(*given)

    monkeypatch.setattr(dense, "onednn_product", noted)
    return found


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [8, 9, 15, 24])
def test_a_layer_and_its_gradients_are_pytorchs(everywhere, asked, rows, bias):
    layer, x = Linear(5, 7, bias=bias), torch.randn(rows, 5, requires_grad=True)
    grad = torch.randn(rows, 7)
    given = [x, *layer.parameters()]
    found = torch.autograd.grad(layer(x), given, grad)
    assert len(asked) == 2
    expected = torch.autograd.grad(linear(x, layer.weight, layer.bias), given, grad)
    torch.testing.assert_close(layer(x), linear(x, layer.weight, layer.bias))
    torch.testing.assert_close(found, expected)
    with torch.inference_mode():
        torch.testing.assert_close(layer(x), linear(x, layer.weight, layer.bias))


def test_a_second_derivative_goes_through(everywhere):
    x, weight = torch.randn(8, 3, requires_grad=True), torch.randn(2, 3, requires_grad=True)

    def by(layer):
        (first,) = torch.autograd.grad(layer().sin().sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), (x, weight))

    found = by(lambda: dense.by_onednn(x, weight, None))
    torch.testing.assert_close(found, by(lambda: linear(x, weight)))


def test_padding_is_nobodys_row(everywhere):
    x, weight = torch.randn(24, 5), torch.randn(7, 5)
    alone = dense.by_onednn(x[:11].clone(), weight, None)
    torch.testing.assert_close(alone, dense.by_onednn(x, weight, None)[:11])
    assert alone.shape == (11, 7)


@pytest.mark.parametrize("rows", [11, 16])
def test_what_comes_out_may_be_changed_in_place(everywhere, rows):
    layer, x = Linear(5, 7), torch.randn(rows, 5, requires_grad=True)
    found = torch.autograd.grad(layer(x).relu_().square().sum(), (x, *layer.parameters()))
    plain = torch.relu(linear(x, layer.weight, layer.bias)).square().sum()
    torch.testing.assert_close(found, torch.autograd.grad(plain, (x, *layer.parameters())))


def test_transforms_and_traces_take_pytorchs_own(everywhere):
    layer, x = Linear(5, 7), torch.randn(16, 5)
    (expected,) = torch.autograd.grad(layer(x.requires_grad_()).sum(), x)
    torch.testing.assert_close(torch.func.grad(lambda x: layer(x).sum())(x.detach()), expected)
    traced = torch.jit.trace(layer, x.detach())
    torch.testing.assert_close(traced(x), layer(x))


def test_what_is_left_to_pytorch(everywhere):
    x, weight = torch.randn(16, 5), torch.randn(7, 5)
    assert dense.onednn_fits(x, weight)
    others = [
        (x.double(), weight.double()),
        (x.bfloat16(), weight.bfloat16()),
        (x[:7], weight),
        (x[:, :3], weight[:, :3]),
        (x[None], weight),
        (x, weight[None]),
    ]
    assert not any(dense.onednn_fits(*given) for given in others)
    with torch.autocast("cpu"):
        assert not dense.onednn_fits(x, weight)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    assert not dense.onednn_fits(x, weight)
    torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize(
    ("processor", "capability", "faster"),
    [
        ("vendor_id : AuthenticAMD", "AVX512", torch.backends.mkl.is_available()),
        ("vendor_id : AuthenticAMD", "AVX2", False),
        ("vendor_id : GenuineIntel", "AVX512", False),
        ("", "DEFAULT", False),
    ],
)
def test_where_it_is_faster(monkeypatch, processor, capability, faster):
    monkeypatch.setattr(dense, "_processor", lambda: processor)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert dense._is_faster.__wrapped__() is faster

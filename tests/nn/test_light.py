"""LiCheb and LiMixHop: the formula, the conventions of PyG, and awkward graphs."""

import shutil
from copy import deepcopy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch_geometric.nn import ChebConv, global_mean_pool
from torch_geometric.nn import Sequential as PyGSequential

from batches import (
    Batch,
    batches,
    chebyshev_hops,
    dense_chebyshev,
    dense_mixhop,
    join,
    make_batch,
    power_hops,
    relabel,
    shuffle_within,
    split,
)
from lookhops import Graphs, LookHopsError
from lookhops.nn import LiChebConv, LiMixHopConv
from lookhops.ops import Adjacency, Anchors

LAYERS = [LiChebConv, LiMixHopConv]
each_layer = pytest.mark.parametrize("layer", LAYERS)
some_layer = st.sampled_from(LAYERS)


def make(layer: type, k: int = 2, d_in: int = 4, d_out: int = 3, dtype=torch.float64) -> nn.Module:
    torch.manual_seed(0)
    conv = layer(d_in, d_out, k).to(dtype)
    nn.init.normal_(conv.bias)  # starts at zero, where a wrong sign would not show
    return conv


def formula(conv: nn.Module, batch: Batch) -> Tensor:
    """The layer as the paper writes it, with dense matrices."""
    z = batch.x @ conv.project.weight.mT + conv.project.bias
    if isinstance(conv, LiChebConv):
        hops = chebyshev_hops(dense_chebyshev(batch), z, conv.k)
    else:
        hops = power_hops(dense_mixhop(batch), z, conv.k)
    return sum(hop * w for hop, w in zip(hops, conv.weight, strict=True)) + conv.bias


@given(batches(), some_layer, st.integers(0, 7))
def test_layer_is_the_formula(batch, layer, k):
    conv = make(layer, k)
    found = conv(batch.x, batch.edge_index, batch.edge_weight)
    torch.testing.assert_close(found, formula(conv, batch))
    # The same from a prepared adjacency, and once more from what that one keeps.
    adjacency = Adjacency.of(batch.edge_index, len(batch.x), batch.edge_weight)
    torch.testing.assert_close(conv(batch.x, adjacency), found)
    torch.testing.assert_close(conv(batch.x, adjacency), found)


@each_layer
def test_packed_graphs_give_the_same(layer):
    batch = make_batch(3, loops=True, dtype=torch.float64)
    graphs = Graphs.from_edges(*batch.edge_index, torch.tensor(batch.sizes))
    conv = make(layer)
    found = conv(batch.x, Adjacency.from_graphs(graphs))
    torch.testing.assert_close(found, formula(conv, batch))


@each_layer
def test_anchors_on_request(layer):
    batch = make_batch(0, dtype=torch.float64)
    conv = make(layer)
    merged, anchors = conv(batch.x, batch.edge_index, return_anchors=True)
    assert isinstance(anchors, Anchors)
    assert anchors.stack().shape == (17, 3, 3)
    torch.testing.assert_close(merged, conv(batch.x, batch.edge_index))
    torch.testing.assert_close((anchors.stack() * conv.weight).sum(1) + conv.bias, merged)


@each_layer
@pytest.mark.parametrize("options", [{}, {"directed": True}, {"weighted": True, "loops": True}])
def test_gradients(layer, options):
    batch = make_batch(1, sizes=[4, 1, 3], channels=2, dtype=torch.float64, **options)
    conv = make(layer, d_in=2, d_out=2)
    names = [name for name, _ in conv.named_parameters()]
    x = batch.x.clone().requires_grad_()
    inputs = [x, *(p.detach().clone().requires_grad_() for p in conv.parameters())]
    if batch.edge_weight is not None:
        inputs.append(batch.edge_weight.clone().requires_grad_())

    def call(x, *given):
        parameters = dict(zip(names, given, strict=False))
        weight = given[len(names)] if len(given) > len(names) else None
        return torch.func.functional_call(conv, parameters, (x, batch.edge_index, weight))

    assert gradcheck(call, inputs)


# -------------------------------------------------------------------- swapped into PyG code


class Ordinary(nn.Module):
    """What a PyG user has: two convolutions, a pooling, a classifier."""

    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.conv1, self.conv2, self.classify = first, second, nn.Linear(8, 2)

    def forward(self, x, edge_index, batch, edge_weight=None):
        x = self.conv1(x, edge_index, edge_weight).relu()
        x = self.conv2(x, edge_index, edge_weight).relu()
        return self.classify(global_mean_pool(x, batch))


@pytest.mark.parametrize("weighted", [False, True])
def test_swap_for_chebconv(weighted):
    batch = make_batch(0, weighted=weighted)
    theirs = Ordinary(ChebConv(4, 8, K=3), ChebConv(8, 8, K=3))
    ours = Ordinary(LiChebConv(4, 8, k=2), LiChebConv(8, 8, k=2))
    for model in (theirs, ours):
        optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
        labels = torch.tensor([0, 1, 0, 1])
        losses = []
        for _ in range(20):
            optimiser.zero_grad()
            out = model(batch.x, batch.edge_index, batch.batch, batch.edge_weight)
            loss = nn.functional.cross_entropy(out, labels)
            loss.backward()
            optimiser.step()
            losses.append(float(loss.detach()))
        assert losses[-1] < losses[0]


@pytest.mark.parametrize("weighted", [False, True])
def test_a_chebconv_of_rank_one_weights_is_licheb(weighted):
    """ChebConv with W_j = W diag(w_j) is LiCheb without the projection's bias."""
    batch = make_batch(2, weighted=weighted, loops=True, directed=True)
    ours, theirs = LiChebConv(4, 8, k=3), ChebConv(4, 8, K=4)
    with torch.no_grad():
        ours.project.bias.zero_()
        for lin, w in zip(theirs.lins, ours.weight, strict=True):
            lin.weight.copy_(w[:, None] * ours.project.weight)
        theirs.bias.copy_(ours.bias.normal_())
    expected = theirs(batch.x, batch.edge_index, batch.edge_weight, lambda_max=2.0)
    torch.testing.assert_close(ours(batch.x, batch.edge_index, batch.edge_weight), expected)


def test_in_pyg_s_sequential():
    batch = make_batch(0)
    model = PyGSequential(
        "x, edge_index, edge_weight",
        [
            (LiChebConv(4, 8), "x, edge_index, edge_weight -> x"),
            (LiMixHopConv(8, 2), "x, edge_index -> x"),
        ],
    )
    assert model(batch.x, batch.edge_index, None).shape == (17, 2)


@each_layer
def test_parameters(layer):
    conv = layer(37, 128, k=2)
    assert sum(p.numel() for p in conv.parameters()) == 38 * 128 + 4 * 128
    before = {name: p.clone() for name, p in conv.named_parameters()}
    torch.manual_seed(1)
    conv.reset_parameters()
    first = {name: p.clone() for name, p in conv.named_parameters()}
    assert not torch.equal(first["weight"], before["weight"])
    assert not torch.equal(first["project.weight"], before["project.weight"])
    torch.manual_seed(1)
    conv.reset_parameters()
    assert all(torch.equal(p, first[name]) for name, p in conv.named_parameters())
    assert repr(conv).startswith(f"{layer.__name__}(\n  37, 128, k=2\n")


@each_layer
def test_state_goes_through_safetensors(layer, tmp_path):
    batch = make_batch(0)
    conv, other = layer(4, 3), layer(4, 3)
    save_file(conv.state_dict(), tmp_path / "layer.safetensors")
    other.load_state_dict(load_file(tmp_path / "layer.safetensors"))
    expected = conv(batch.x, batch.edge_index)
    assert torch.equal(other(batch.x, batch.edge_index), expected)


@each_layer
def test_deepcopy_is_another_layer(layer):
    batch = make_batch(0)
    conv = layer(4, 3)
    conv(batch.x, batch.edge_index).sum().backward()
    copy = deepcopy(conv)
    assert torch.equal(copy(batch.x, batch.edge_index), conv(batch.x, batch.edge_index))
    with torch.no_grad():
        copy.weight.zero_()
    assert conv.weight.any()


# -------------------------------------------------------------------- compiled and mixed precision


def compiles_alike(conv: nn.Module, backend: str, *given: Batch) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(conv, fullgraph=True, backend=backend)
    for batch in given:
        results = []
        for call in (conv, compiled):
            conv.zero_grad()
            out = call(batch.x, batch.edge_index, batch.edge_weight)
            out.square().sum().backward()
            results.append([out.detach(), *(p.grad.clone() for p in conv.parameters())])
        torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("layer", "weighted"), [(LiChebConv, True), (LiMixHopConv, False)])
def test_one_graph_for_the_compiler(layer, weighted):
    small = make_batch(0, weighted=weighted, loops=True)
    large = make_batch(1, sizes=[9, 14, 30], weighted=weighted, loops=True)
    compiles_alike(layer(4, 3), "aot_eager", small, large)


@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler (g++)")
def test_compiled_with_inductor():
    compiles_alike(LiChebConv(4, 3), "inductor", make_batch(0))


@each_layer
def test_autocast_to_bfloat16(layer):
    batch = make_batch(0, sizes=[20, 10])
    conv = layer(4, 16)
    expected = conv(batch.x, batch.edge_index)
    with torch.autocast("cpu", torch.bfloat16):
        found, anchors = conv(batch.x, batch.edge_index, return_anchors=True)
        assert anchors.stack().dtype == torch.bfloat16
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, rtol=0.05, atol=0.05)
    found.float().square().sum().backward()
    assert all(p.grad.dtype == torch.float32 and p.grad.isfinite().all() for p in conv.parameters())


@each_layer
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions(layer, dtype):
    batch = make_batch(0, weighted=True)
    conv = layer(4, 3)
    expected = conv(batch.x, batch.edge_index, batch.edge_weight)
    conv.to(dtype)
    found = conv(batch.x.to(dtype), batch.edge_index, batch.edge_weight)  # weights stay as given
    assert found.dtype == dtype
    tolerance = 1e-5 if dtype == torch.float64 else 0.1
    torch.testing.assert_close(found.float(), expected, rtol=tolerance, atol=tolerance)
    found.sum().backward()


# -------------------------------------------------------------------- stacked seeds


@each_layer
@pytest.mark.parametrize("diagonal", [False, True], ids=["shared", "block-diagonal"])
def test_stacked_seeds_are_single_seeds(layer, diagonal):
    singles = [make(layer), deepcopy(make(layer))]
    with torch.no_grad():
        for p in singles[1].parameters():
            p.normal_()
    stack = deepcopy(singles[0])
    for name, p in list(stack.named_parameters()):
        owner, _, attribute = name.rpartition(".")
        stacked = torch.stack([single.get_parameter(name).detach() for single in singles])
        setattr(stack.get_submodule(owner), attribute, nn.Parameter(stacked.reshape(2, *p.shape)))
    own = [make_batch(seed if diagonal else 0, dtype=torch.float64) for seed in range(2)]
    xs = [torch.randn_like(batch.x) for batch in own]
    if diagonal:
        both = join(*own)
        adjacency = Adjacency.of(both.edge_index, len(both.x))
    else:
        adjacency = Adjacency.of(own[0].edge_index, 17)
    found = stack(torch.stack(xs), adjacency)
    for seed, single in enumerate(singles):
        expected = single(xs[seed], own[seed].edge_index)
        torch.testing.assert_close(found[seed], expected)
    found.sum().backward()
    singles[1](xs[1], own[1].edge_index).sum().backward()
    torch.testing.assert_close(stack.weight.grad[1], singles[1].weight.grad)
    torch.testing.assert_close(stack.project.bias.grad[1], singles[1].project.bias.grad)


# -------------------------------------------------------------------- a node's answer is its own


@given(batches(), some_layer, st.integers(0, 99))
def test_relabelling_nodes_relabels_the_answer(batch, layer, seed):
    conv = make(layer)
    order = shuffle_within(batch, seed)
    other = relabel(batch, order)
    found = conv(other.x, other.edge_index, other.edge_weight)
    expected = conv(batch.x, batch.edge_index, batch.edge_weight)
    torch.testing.assert_close(found, expected[order])


@given(batches(), some_layer)
def test_batch_mates_change_nothing(batch, layer):
    conv = make(layer)
    expected = conv(batch.x, batch.edge_index, batch.edge_weight)
    mate = make_batch(7, weighted=batch.edge_weight is not None, loops=True, dtype=torch.float64)
    for both, part in (
        (join(batch, mate), slice(len(batch.x))),
        (join(mate, batch), slice(17, None)),
    ):
        found = conv(both.x, both.edge_index, both.edge_weight)[part]
        torch.testing.assert_close(found, expected)
    alone = [conv(one.x, one.edge_index, one.edge_weight) for one in split(batch)]
    if alone:
        torch.testing.assert_close(torch.cat(alone), expected)


@given(batches(), some_layer)
def test_awkward_graphs_stay_finite(batch, layer):
    conv = make(layer)
    x = batch.x.clone().requires_grad_()
    weight = None
    if batch.edge_weight is not None:
        weight = batch.edge_weight.clone().requires_grad_()
    out = conv(x, batch.edge_index, weight)
    assert out.shape == (len(x), 3)
    out.square().sum().backward()
    assert out.isfinite().all()
    assert x.grad.isfinite().all()
    assert weight is None or weight.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in conv.parameters())


@each_layer
def test_no_nodes_at_all(layer):
    conv = layer(4, 3)
    out = conv(torch.zeros(0, 4), torch.zeros(2, 0, dtype=torch.long))
    assert out.shape == (0, 3)
    out.sum().backward()
    assert not conv.weight.grad.any()


# -------------------------------------------------------------------- refusals


@each_layer
def test_refusals_are_sentences(layer):
    for arguments, said in (
        ((0, 3), "in_channels .*0"),
        ((4, 0), "out_channels .*0"),
        ((4, 3, -1), "k .*-1"),
        ((4, 3, 1.5), "k .*1.5"),
        ((4, 3, True), "k .*True"),
    ):
        with pytest.raises(LookHopsError, match=f"^{layer.__name__}: {said}"):
            layer(*arguments)
    conv, batch = layer(4, 3), make_batch(0)
    with pytest.raises(LookHopsError, match=r"x .*\(17, 5\)"):
        conv(torch.zeros(17, 5), batch.edge_index)
    with pytest.raises(LookHopsError, match="4 channels"):
        conv(torch.zeros(4), batch.edge_index)
    with pytest.raises(LookHopsError, match="integers"):
        conv(batch.x, batch.edge_index.float())
    with pytest.raises(LookHopsError, match="shape"):
        conv(batch.x, batch.edge_index.T)
    with pytest.raises(LookHopsError, match=r"node \d+"):
        conv(batch.x[:5], batch.edge_index)
    with pytest.raises(LookHopsError, match="edge weights"):
        conv(batch.x, batch.edge_index, torch.ones(3))
    with pytest.raises(LookHopsError, match=r"17.*x"):
        conv(batch.x[:5], Adjacency.of(batch.edge_index, 17))

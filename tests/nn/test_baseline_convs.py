"""The baselines: PyG's numbers with PyG's weights; stacks of seeds; masked edges."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.func import functional_call
from torch_geometric.nn import ChebConv, GATConv, GCNConv, GINConv, MixHopConv, SAGEConv, SGConv

import lookhops
from batches import Batch, batches, dense_mixhop, join, make_batch, power_hops
from lookhops import LookHopsError
from lookhops.nn import DCNN, GAT, GCN, GIN, SAGE, SGC, Cheb, Convolution, GraphNetwork, MixHop
from lookhops.ops import Adjacency

IN, OUT = 5, 6
UNWEIGHTED = ("gat", "gin", "sage")  # in PyG too


def stacked(lins: nn.ModuleList) -> Tensor:
    return torch.cat([lin.weight for lin in lins])


# PyG's operator, ours, and for each of our parameters PyG's numbers for it.
PAIRS = {
    "gcn": (
        lambda d: GCNConv(d, OUT),
        lambda d: GCN(d, OUT),
        {"project.weight": lambda p: p.lin.weight},
    ),
    "gat": (
        lambda d: GATConv(d, OUT),
        lambda d: GAT(d, OUT),
        {
            "project.weight": lambda p: p.lin.weight,
            "attention": lambda p: torch.cat((p.att_src, p.att_dst)),
        },
    ),
    "gat, 3 heads": (
        lambda d: GATConv(d, OUT, heads=3),
        lambda d: GAT(d, OUT, heads=3),
        {
            "project.weight": lambda p: p.lin.weight,
            "attention": lambda p: torch.cat((p.att_src, p.att_dst)),
        },
    ),
    "gin": (
        lambda d: GINConv(
            nn.Sequential(nn.Linear(d, OUT), nn.ReLU(), nn.Linear(OUT, OUT)), train_eps=True
        ),
        lambda d: GIN(d, OUT),
        {
            "eps": lambda p: p.eps,
            "mlp.0.weight": lambda p: p.nn[0].weight,
            "mlp.0.bias": lambda p: p.nn[0].bias,
            "mlp.2.weight": lambda p: p.nn[2].weight,
            "mlp.2.bias": lambda p: p.nn[2].bias,
        },
    ),
    "sage": (
        lambda d: SAGEConv(d, OUT),
        lambda d: SAGE(d, OUT),
        {
            "own.weight": lambda p: p.lin_r.weight,
            "neighbours.weight": lambda p: p.lin_l.weight,
            "neighbours.bias": lambda p: p.lin_l.bias,
        },
    ),
    **{
        f"cheb, k={k}": (
            lambda d, k=k: ChebConv(d, OUT, K=k + 1),
            lambda d, k=k: Cheb(d, OUT, k),
            {"project.weight": lambda p: stacked(p.lins)},
        )
        for k in (0, 1, 2, 4)
    },
    **{
        f"mixhop, k={k}": (
            lambda d, k=k: MixHopConv(d, OUT, powers=list(range(k + 1))),
            lambda d, k=k: MixHop(d, (k + 1) * OUT, k),
            {"project.weight": lambda p: stacked(p.lins)},
        )
        for k in (0, 1, 2, 3)
    },
    **{
        f"sgc, k={k}": (
            lambda d, k=k: SGConv(d, OUT, K=k),
            lambda d, k=k: SGC(d, OUT, k),
            {"project.weight": lambda p: p.lin.weight, "bias": lambda p: p.lin.bias},
        )
        for k in (1, 3)
    },
}
OURS = {
    "gcn": lambda: GCN(IN, OUT),
    "gat": lambda: GAT(IN, OUT),
    "gat, 2 heads": lambda: GAT(IN, OUT, heads=2),
    "gin": lambda: GIN(IN, OUT),
    "sage": lambda: SAGE(IN, OUT),
    "cheb": lambda: Cheb(IN, OUT, 2),
    "mixhop": lambda: MixHop(IN, OUT, 2),
    "sgc": lambda: SGC(IN, OUT, 2),
    "dcnn": lambda: DCNN(IN, OUT, 2),
}


def randomize(module: nn.Module) -> None:
    """Biases, and whatever else starts at zero, somewhere else."""
    for parameter in module.parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter)


def make_pair(name: str, channels: int, dtype: torch.dtype = torch.float64):
    """PyG's operator and ours with its weights, and where these came from."""
    torch.manual_seed(0)
    make_theirs, make_ours, source = PAIRS[name]
    theirs, ours = make_theirs(channels).to(dtype), make_ours(channels).to(dtype)
    randomize(theirs)
    if "bias" in dict(ours.named_parameters()):
        source = {"bias": lambda p: p.bias, **source}
    ours.load_state_dict({key: read(theirs).detach() for key, read in source.items()})
    return theirs, ours, source


def assert_same(name: str, batch: Batch, dtype: torch.dtype = torch.float64) -> None:
    """Outputs and all gradients, of features, parameters and edge weights, are PyG's."""
    theirs, ours, source = make_pair(name, batch.x.shape[1], dtype)
    weighted = [] if batch.edge_weight is None else [batch.edge_weight.to(dtype)]
    given = [[t.clone().requires_grad_() for t in (batch.x.to(dtype), *weighted)] for _ in "ab"]
    options = {"lambda_max": 2.0} if name.startswith("cheb") else {}
    expected = theirs(given[0][0], batch.edge_index, *given[0][1:], **options)
    found = ours(given[1][0], batch.edge_index, *given[1][1:])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    into = torch.randn_like(expected) / max(len(batch.x), 1)
    expected.backward(into)
    found.backward(into)
    close = {"rtol": 1e-5, "atol": 1e-5}
    for a, b in zip(given[1], given[0], strict=True):
        if b.grad is not None:
            torch.testing.assert_close(a.grad, b.grad, **close)
    theirs_grad = deepcopy(theirs)
    for mine, own in zip(theirs_grad.parameters(), theirs.parameters(), strict=True):
        mine.data = own.grad
    for key, parameter in ours.named_parameters():
        torch.testing.assert_close(parameter.grad, source[key](theirs_grad).detach(), **close)


def once(batch: Batch) -> Batch:
    """Without repeated edges: of several loops at a node PyG reads the weight of the last."""
    edge_index, first = [], {}
    for number, pair in enumerate(batch.edge_index.T.tolist()):
        first.setdefault(tuple(pair), number)
    chosen = torch.tensor(sorted(first.values()), dtype=torch.long)
    edge_index = batch.edge_index[:, chosen]
    weight = None if batch.edge_weight is None else batch.edge_weight[chosen]
    return replace(batch, edge_index=edge_index, edge_weight=weight)


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", PAIRS)
def test_equals_pyg(name, directed, loops):
    batch = make_batch(1, (9, 1, 14, 4), IN, directed=directed, loops=loops, edges_per_node=1)
    assert_same(name, batch.to(torch.float64))
    assert_same(name, batch, torch.float32)


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", [name for name in PAIRS if name.split(",")[0] not in UNWEIGHTED])
def test_equals_pyg_with_edge_weights(name, directed, loops):
    batch = make_batch(2, (9, 1, 14, 4), IN, directed, weighted=True, loops=loops)
    assert_same(name, once(batch).to(torch.float64))


@pytest.mark.parametrize("name", PAIRS)
def test_equals_pyg_on_real_molecules(name, data_dir):
    graphs = lookhops.load("NCI1", data_dir=data_dir, cache=False)[:64]
    batch = Batch(graphs.x, graphs.edge_index, graphs.batch.long(), len(graphs))
    assert_same(name, batch.to(torch.float64))
    assert_same(name, batch, torch.float32)


def test_mixhop_shares_channels_out_as_evenly_as_can_be():
    assert MixHop(IN, 128, 2).widths == [43, 43, 42]
    assert MixHop(IN, 2, 2).widths == [1, 1, 0]
    batch = make_batch(3, channels=IN, dtype=torch.float64)
    conv = MixHop(IN, 8, 2).double()
    nn.init.normal_(conv.bias)
    z = batch.x @ conv.project.weight.T
    hops = power_hops(dense_mixhop(batch), z, 2)
    parts = [hop[:, a:b] for hop, a, b in zip(hops, (0, 3, 6), (3, 6, 8), strict=True)]
    expected = torch.cat(parts, dim=1) + conv.bias
    torch.testing.assert_close(conv(batch.x, batch.edge_index), expected)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_dcnn_is_what_its_paper_prints(k, weighted):
    batch = make_batch(3, (9, 1, 14), IN, True, weighted, loops=True, dtype=torch.float64)
    conv = DCNN(IN, OUT, k).double()
    nn.init.normal_(conv.weight)
    matrix = torch.zeros(len(batch.x), len(batch.x), dtype=torch.float64)
    value = batch.edge_weight if weighted else torch.ones(batch.edge_index.shape[1]).double()
    matrix.index_put_((batch.edge_index[1], batch.edge_index[0]), value, accumulate=True)
    degree = matrix.sum(1, keepdim=True)
    walk = torch.where(degree > 0, matrix / degree, 0)
    hops = [torch.linalg.matrix_power(walk, j) @ batch.x for j in range(k + 1)]
    activations = [torch.tanh(conv.weight[j] * hop) for j, hop in enumerate(hops)]
    expected = conv.project(torch.cat(activations, dim=1))
    found = conv(batch.x, batch.edge_index, batch.edge_weight)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("make", [GIN, SAGE, SGC, DCNN])
def test_gradients(make, directed):
    batch = make_batch(1, (4, 1, 3), 2, directed=directed, dtype=torch.float64)
    conv = make(2, 3).double()
    randomize(conv)
    values = tuple(p.detach().clone().requires_grad_() for p in conv.parameters())

    def call(x, *values):
        names = (name for name, _ in conv.named_parameters())
        return functional_call(conv, dict(zip(names, values, strict=True)), (x, batch.edge_index))

    assert gradcheck(call, (batch.x.clone().requires_grad_(), *values))


@given(batches(channels=IN))
def test_no_graph_is_too_awkward(batch):
    for make in OURS.values():
        conv = make().double()
        x = batch.x.clone().requires_grad_()
        out = conv(x, batch.edge_index, batch.edge_weight)
        out.sum().backward()
        assert out.isfinite().all()
        assert x.grad.isfinite().all()
        assert all(p.grad.isfinite().all() for p in conv.parameters())


@given(batches(channels=IN, weighted=False))
def test_an_edge_of_weight_zero_is_no_edge(batch):
    keep = torch.arange(batch.edge_index.shape[1]) % 3 > 0
    without = batch.edge_index[:, keep]
    for make in OURS.values():
        conv = make().double()
        masked = Adjacency.of(batch.edge_index, len(batch.x))
        masked = masked.masked(keep[masked.order])
        torch.testing.assert_close(conv(batch.x, masked), conv(batch.x, without))
        weight = keep.double()
        if not isinstance(conv, GIN | SAGE) and (batch.edge_index[0] == batch.edge_index[1]).any():
            continue  # the weights of several loops at a node are added up
        torch.testing.assert_close(conv(batch.x, batch.edge_index, weight), conv(batch.x, without))


def test_gat_leaves_scores_of_any_size_finite():
    batch = make_batch(4, channels=IN, dtype=torch.float64)
    conv = GAT(IN, OUT).double()
    x = (batch.x * 1e4).requires_grad_()
    out = conv(x, batch.edge_index)
    out.sum().backward()
    assert out.isfinite().all()
    assert x.grad.isfinite().all()


# -------------------------------------------------------------------- stacks of seeds


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", OURS)
def test_a_stack_of_seeds_is_each_seed(name, shared):
    batch = make_batch(5, channels=IN, dtype=torch.float64)
    seeds = [OURS[name]().double() for _ in range(2)]
    for conv in seeds:
        randomize(conv)
    stack = {
        key: torch.stack([dict(conv.named_parameters())[key] for conv in seeds])
        for key, _ in seeds[0].named_parameters()
    }
    x = torch.stack((batch.x, batch.x.flip(0)))
    both = batch if shared else join(batch, batch)
    adjacency = Adjacency.of(both.edge_index, len(both.x))
    found = functional_call(seeds[0], stack, (x, adjacency))
    expected = [conv(part, batch.edge_index) for conv, part in zip(seeds, x, strict=True)]
    torch.testing.assert_close(found, torch.stack(expected))


# -------------------------------------------------------------------- as any module


@pytest.mark.parametrize("name", OURS)
def test_is_a_good_module(name, tmp_path):
    batch = make_batch(6, channels=IN)
    conv = OURS[name]()
    expected = conv(batch.x, batch.edge_index)
    save_file(conv.state_dict(), tmp_path / "conv.safetensors")
    other = OURS[name]()
    other.load_state_dict(load_file(tmp_path / "conv.safetensors"))
    for again in (other, deepcopy(conv)):
        torch.testing.assert_close(again(batch.x, batch.edge_index), expected)
    torch.manual_seed(7)
    other.reset_parameters()
    torch.manual_seed(7)
    conv.reset_parameters()
    for a, b in zip(conv.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    assert f"{IN}, {OUT}" in repr(conv)
    with torch.autocast("cpu", torch.bfloat16):
        half = conv(batch.x, batch.edge_index)
    assert half.dtype == torch.bfloat16
    half.float().sum().backward()
    torch.testing.assert_close(half.float(), conv(batch.x, batch.edge_index), rtol=0.1, atol=0.1)


@pytest.mark.parametrize("name", OURS)
def test_compiles_whole(name):
    batch = make_batch(6, channels=IN)
    conv = OURS[name]()
    torch._dynamo.reset()  # the limit of recompilations is for all layers together
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    x = batch.x.clone().requires_grad_()
    out = compiled(x, batch.edge_index)
    torch.testing.assert_close(out, conv(batch.x, batch.edge_index))
    out.sum().backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("name", [name for name in PAIRS if "k=0" not in name])
def test_starts_as_pyg_starts(name):
    torch.manual_seed(0)
    make_theirs, make_ours, source = PAIRS[name]
    for key, read in source.items():
        theirs = torch.stack([read(make_theirs(30)).detach() for _ in range(100)])
        ours = torch.stack([make_ours(30).get_parameter(key).detach() for _ in range(100)])
        assert ours.shape == theirs.shape
        assert float(ours.std()) == pytest.approx(float(theirs.std()), rel=0.15)
        assert float(ours.max()) == pytest.approx(float(theirs.max()), rel=0.05)


def test_parameters_are_the_papers():
    def count(**options) -> int:
        return sum(p.numel() for p in GraphNetwork(37, 2, **options).parameters())

    assert count(conv="gcn") == 112_194
    assert count(conv="gat") == 113_474
    assert count(conv="cheb", k=2) == 252_738
    assert count(conv="mixhop", k=2) == 112_194
    assert count(conv="sgc", k=2) == count(conv="gcn")


def test_refuses_in_a_sentence():
    x, edges = torch.zeros(3, 4), torch.zeros(2, 0, dtype=torch.long)
    for make in OURS.values():
        with pytest.raises(LookHopsError, match=r"x .*\(3, 4\)"):
            make()(x, edges)
    with pytest.raises(LookHopsError, match="heads"):
        GAT(4, 4, heads=0)
    with pytest.raises(LookHopsError, match=r"\bk\b.*-1"):
        Cheb(4, 4, -1)
    with pytest.raises(LookHopsError, match="out_channels"):
        GCN(4, 0)
    assert all(isinstance(make(), Convolution) for make in OURS.values())

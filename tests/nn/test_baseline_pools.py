"""TopK, SAG, Edge and ASAP: PyG's numbers with PyG's weights; masked or compacted, one network."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import ASAPooling, EdgePooling, SAGPooling, TopKPooling

import lookhops
from batches import Batch, make_batch
from lookhops import LookHopsError
from lookhops.nn import ASAP, HGPSL, SAG, DiffPool, Edge, GraphNetwork, IPool, TopK

CHANNELS = 4
CLOSE = {"rtol": 1e-5, "atol": 1e-5}

# For each of our parameters, PyG's numbers for it.
SOURCES: dict[type, dict[str, Callable]] = {
    TopK: {"direction.weight": lambda p: p.select.weight},
    SAG: {
        "own.weight": lambda p: p.gnn.lin_root.weight,
        "own.bias": lambda p: p.gnn.lin_rel.bias,
        "neighbours.weight": lambda p: p.gnn.lin_rel.weight,
        "sign.weight": lambda p: p.select.weight,
    },
    Edge: {"ends.weight": lambda p: p.lin.weight, "ends.bias": lambda p: p.lin.bias},
    ASAP: {
        "query.weight": lambda p: p.lin.weight,
        "query.bias": lambda p: p.lin.bias,
        "attention.weight": lambda p: p.att.weight,
        "attention.bias": lambda p: p.att.bias,
        "neighbours.weight": lambda p: p.gnn_score.lin1.weight,
        "neighbours.bias": lambda p: p.gnn_score.lin1.bias,
        "against.weight": lambda p: p.gnn_score.lin2.weight,
        "own.weight": lambda p: p.gnn_score.lin3.weight,
        "own.bias": lambda p: p.gnn_score.lin3.bias,
        "sign.weight": lambda p: p.select.weight,
    },
}
THEIRS = {TopK: TopKPooling, SAG: SAGPooling, Edge: EdgePooling, ASAP: ASAPooling}
POOLS = {
    "topk": lambda: TopK(CHANNELS, 0.6),
    "sag": lambda: SAG(CHANNELS, 0.6),
    "edge": lambda: Edge(CHANNELS),
    "asap": lambda: ASAP(CHANNELS, 0.6),
    "ipool": lambda: IPool(CHANNELS, 0.6),
    "hgpsl": lambda: HGPSL(CHANNELS, 0.6),
    "diffpool": lambda: DiffPool(CHANNELS, 0.6, clusters=4),
}


def make_pair(kind: type, channels: int, seed: int, *options: float):
    """PyG's pooling and ours with its weights."""
    torch.manual_seed(seed)
    theirs, ours = THEIRS[kind](channels, *options).double(), kind(channels, *options).double()
    ours.load_state_dict({key: read(theirs).detach() for key, read in SOURCES[kind].items()})
    return theirs, ours


def assert_same_gradients(
    theirs: nn.Module, ours: nn.Module, outputs: tuple[Tensor, Tensor], *inputs: tuple
) -> None:
    """From the outputs of the two, given with rows in the same order, back to all there is."""
    expected, found = outputs
    torch.testing.assert_close(found, expected, **CLOSE)
    into = torch.randn_like(expected)
    expected.backward(into, retain_graph=True)
    found.backward(into, retain_graph=True)
    grads = deepcopy(theirs)
    for mine, own in zip(grads.parameters(), theirs.parameters(), strict=True):
        mine.data = torch.zeros_like(own) if own.grad is None else own.grad
    for key, parameter in ours.named_parameters():
        grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        torch.testing.assert_close(grad, SOURCES[type(ours)][key](grads).detach(), **CLOSE)
    for a, b in inputs:
        torch.testing.assert_close(b.grad, a.grad, **CLOSE)


def twice(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.clone().requires_grad_(), x.clone().requires_grad_()


def once(batch: Batch) -> Batch:
    """Without repeated edges: of several loops at a node PyG reads the weight of the last."""
    first: dict[tuple, int] = {}
    for number, pair in enumerate(batch.edge_index.T.tolist()):
        first.setdefault(tuple(pair), number)
    chosen = torch.tensor(sorted(first.values()), dtype=torch.long)
    weight = None if batch.edge_weight is None else batch.edge_weight[chosen]
    return replace(batch, edge_index=batch.edge_index[:, chosen], edge_weight=weight)


@pytest.fixture(params=["undirected", "directed", "loops", "molecules"])
def some(request: pytest.FixtureRequest) -> Batch:
    """Batches to compare on: random graphs of several kinds, and NCI1's."""
    if request.param == "molecules":
        data_dir = request.getfixturevalue("data_dir")
        graphs = lookhops.load("NCI1", data_dir=data_dir, cache=False)[:40]
        batch = graphs.batch.long()
        return Batch(graphs.x.double(), graphs.edge_index, batch, len(graphs))
    return make_batch(
        3,
        (9, 1, 12, 5),
        CHANNELS,
        directed=request.param == "directed",
        loops=request.param == "loops",
        edges_per_node=1.2,
        dtype=torch.float64,
    )


def noisy(batch: Batch) -> Batch:
    """With features that leave no two scores equal: which of them wins PyG leaves open."""
    generator = torch.Generator().manual_seed(5)
    noise = torch.randn(batch.x.shape, generator=generator, dtype=torch.float64)
    return replace(batch, x=batch.x + noise)


def matrix(edge_index: Tensor, size: int, weight: Tensor | None = None) -> Tensor:
    """Edges as a dense matrix; repeated ones add up."""
    value = torch.ones(edge_index.shape[1]).double() if weight is None else weight
    zeros = torch.zeros(size, size, dtype=value.dtype)
    return zeros.index_put(tuple(edge_index), value, accumulate=True)


# -------------------------------------------------------------------- PyG's numbers


@pytest.mark.parametrize("ratio", [0.5, 0.8])
@pytest.mark.parametrize("kind", [TopK, SAG])
def test_node_poolings_equal_pyg(kind, ratio, some):
    some = noisy(some)
    for seed in range(3):  # both signs of SAG's sign
        theirs, ours = make_pair(kind, some.x.shape[1], seed, ratio)
        a, b = twice(some.x)
        attr = torch.arange(some.edge_index.shape[1])
        expected = theirs(a, some.edge_index, attr, some.batch)
        found = ours(b, some.edge_index, attr, some.batch)
        for mine, own in zip(found[1:5], expected[1:5], strict=True):
            assert torch.equal(mine, own)
        torch.testing.assert_close(found[5], expected[5], **CLOSE)
        assert_same_gradients(theirs, ours, (expected[0], found[0]), (a, b))


def test_edge_equals_pyg(some, monkeypatch):
    some = noisy(some)
    # Edges that are the only ones into their targets all score 1.5: PyG's sort leaves open which
    # goes first, ours takes the one given first.
    monkeypatch.setattr(torch, "argsort", partial(torch.argsort, stable=True))
    theirs, ours = make_pair(Edge, some.x.shape[1], 0)
    a, b = twice(some.x)
    x, edge_index, batch, info = theirs(a, some.edge_index, some.batch)
    mine, edges, attr, graph, perm, score = ours(b, some.edge_index, None, some.batch)
    number = info.cluster[perm]  # what PyG calls each of our nodes
    assert sorted(number.tolist()) == list(range(len(x)))
    assert attr is None
    assert torch.equal(perm, perm.sort().values)
    assert torch.equal(graph, batch[number])
    assert torch.equal(matrix(number[edges], len(x)), matrix(edge_index, len(x)))
    torch.testing.assert_close(score, info.new_edge_score[number], **CLOSE)
    assert_same_gradients(theirs, ours, (x[number], mine), (a, b))


@pytest.fixture
def double_by_default():
    """PyG's ASAP makes a matrix of the default type."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ratio", [0.5, 0.8])
@pytest.mark.usefixtures("double_by_default")
def test_asap_equals_pyg(ratio, weighted, some):
    batch = noisy(once(some))
    weight = None
    if weighted:
        generator = torch.Generator().manual_seed(6)
        weight = torch.rand(batch.edge_index.shape[1], generator=generator) + 0.1
    for seed in range(3):  # both signs of its sign
        theirs, ours = make_pair(ASAP, batch.x.shape[1], seed, ratio)
        a, b = twice(batch.x)
        x, edge_index, edge_weight, graph, index = theirs(a, batch.edge_index, weight, batch.batch)
        mine, edges, weights, own, perm, _ = ours(b, batch.edge_index, weight, batch.batch)
        assert torch.equal(perm, index)
        assert torch.equal(own, graph)
        assert torch.equal(matrix(edges, len(x)), matrix(edge_index, len(x)))
        assert (weights is not None) == (edge_weight is not None) == weighted
        if weighted:  # PyTorch has no gradient for them; that is held to the dense product below
            expected = matrix(edge_index, len(x), edge_weight)
            torch.testing.assert_close(matrix(edges, len(x), weights), expected, **CLOSE)
        assert_same_gradients(theirs, ours, (x, mine), (a, b))


@pytest.mark.usefixtures("double_by_default")
def test_asap_shares_the_gradient_of_a_maximum_as_pyg_does(data_dir):
    """One-hot features are all ties."""
    graphs = lookhops.load("NCI1", data_dir=data_dir, cache=False)[:20]
    theirs, ours = make_pair(ASAP, 37, 0, 0.999)  # nearly all stay, whatever the order
    a, b = twice(graphs.x.double())
    x, _, _, _, index = theirs(a, graphs.edge_index, None, graphs.batch.long())
    mine, _, _, _, perm, _ = ours(b, graphs.edge_index, None, graphs.batch.long())
    order, own = index.argsort(), perm.argsort()
    assert torch.equal(index[order], perm[own])
    assert_same_gradients(theirs, ours, (x[order], mine[own]), (a, b))


# -------------------------------------------------------------------- as any module


@pytest.mark.parametrize("name", POOLS)
def test_nothing_is_something_to_pool(name):
    pool = POOLS[name]().double()
    empty = torch.zeros(0, CHANNELS, dtype=torch.float64), torch.zeros(2, 0, dtype=torch.long)
    x, edges, _, batch, perm, score = pool(*empty)
    assert x.shape == (0, CHANNELS)
    assert edges.shape == (2, 0)
    assert batch.numel() == perm.numel() == score.numel() == 0
    lonely = torch.randn(3, CHANNELS, dtype=torch.float64)
    x, edges, _, batch, perm, _ = pool(lonely, empty[1], None, torch.tensor([0, 2, 5]))
    assert batch.tolist() == [0, 2, 5]
    assert perm.tolist() == [0, 1, 2]
    assert x.isfinite().all()


@pytest.mark.parametrize("name", POOLS)
def test_other_precisions(name):
    batch = make_batch(11, (6, 1, 9), CHANNELS)
    pool = POOLS[name]()
    given = batch.x.requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        x, *_ = pool(given, batch.edge_index, None, batch.batch)
    x.float().sum().backward()
    assert x.isfinite().all()
    torch.manual_seed(3)
    pool.reset_parameters()
    first = [p.clone() for p in pool.parameters()]
    torch.manual_seed(3)
    pool.reset_parameters()
    assert all(torch.equal(a, b) for a, b in zip(first, pool.parameters(), strict=True))
    assert str(CHANNELS) in repr(pool)


def test_parameters_are_counted():
    def count(pool: str) -> int:
        model = GraphNetwork(37, 2, conv="licheb", pool=pool)
        return sum(p.numel() for p in model.parameters())

    assert count("none") == 114_754
    assert count("topk") == 114_754 + 128
    assert count("sag") == 114_754 + 258
    assert count("edge") == 114_754 + 257
    assert count("ipool") == 114_754
    assert count("hgpsl") == 114_754 + 256
    assert count("diffpool") == 114_754 + 4 * (128 * 64 + 64)


def test_refuses_in_a_sentence():
    edges = torch.zeros(2, 0, dtype=torch.long)
    for make in POOLS.values():
        with pytest.raises(LookHopsError, match="4 channels"):
            make()(torch.zeros(3, 5), edges)
    for kind in (TopK, SAG, ASAP):
        for ratio in (0, 1.5, -1):
            with pytest.raises(LookHopsError, match="ratio"):
                kind(4, ratio)
    with pytest.raises(LookHopsError, match="batch"):
        Edge(4)(torch.zeros(3, 4), edges, torch.zeros(3, dtype=torch.long))

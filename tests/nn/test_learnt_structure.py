"""iPool, HGP-SL and DiffPool against their papers' formulas, written with dense matrices."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch_geometric.nn import dense_diff_pool

from batches import Batch, make_batch
from lookhops import LookHopsError
from lookhops.nn import HGPSL, DiffPool, GraphBatch, GraphNetwork, IPool
from lookhops.nn.pool.diffpool import graph_products
from lookhops.ops import Pattern
from lookhops.ops.pattern import group
from lookhops.ops.ranking import top_of_each
from lookhops.ops.softmax import sparsemax

CHANNELS = 4
KINDS = {"undirected": {}, "directed": {"directed": True}, "weighted": {"weighted": True}}


@pytest.fixture(params=KINDS)
def some(request: pytest.FixtureRequest) -> Batch:
    options = {"edges_per_node": 1.2, "dtype": torch.float64, **KINDS[request.param]}
    return make_batch(3, (9, 1, 12, 5), CHANNELS, **options)


def dense(batch: Batch) -> torch.Tensor:
    """The matrix of edges, those into node i in row i."""
    weight = batch.edge_weight
    weight = torch.ones(batch.edge_index.shape[1]).double() if weight is None else weight
    zeros = torch.zeros(len(batch.x), len(batch.x), dtype=torch.float64)
    return zeros.index_put(tuple(batch.edge_index.flip(0)), weight, accumulate=True)


def naive_information(batch: Batch) -> torch.Tensor:
    matrix = dense(batch)
    degree = matrix.sum(1, keepdim=True)
    return (batch.x - torch.where(degree > 0, matrix / degree, 0) @ batch.x).abs().sum(1)


def naive_sparsemax(z: torch.Tensor) -> torch.Tensor:
    """The nearest point of the simplex, by the definition's sorted list."""
    falling = z.sort(descending=True).values
    total, place = falling.cumsum(0), torch.arange(1, len(z) + 1)
    size = int((1 + place * falling > total).nonzero().max()) + 1
    return (z - (total[size - 1] - 1) / size).clamp(min=0)


# -------------------------------------------------------------------- what they stand on


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(-5, 5)), min_size=1, max_size=20))
def test_sparsemax_is_the_nearest_point_of_the_simplex(entries):
    row, score = (torch.tensor(part) for part in zip(*entries, strict=True))
    row_ptr, order = group(row, 4)
    pattern = Pattern(row_ptr, torch.zeros_like(order))
    score = score.double()[order.long()]
    found = sparsemax(score, pattern)
    for i in range(4):
        own = pattern.row == i
        if own.any():
            torch.testing.assert_close(found[own], naive_sparsemax(score[own]))
            assert float(found[own].sum()) == pytest.approx(1)


def test_sparsemax_has_the_gradient_of_its_formula():
    pattern = Pattern(torch.tensor([0, 3, 3, 8]), torch.arange(8) % 3)
    score = torch.tensor([0.3, 0.1, -4, 1, 0.9, 0.2, 0.15, -1]).double().requires_grad_()
    assert gradcheck(lambda s: sparsemax(s, pattern), (score,))


@pytest.mark.parametrize("off", [0.0, 1e-4, -1e-4])
def test_sparsemax_gives_nothing_to_what_rounding_leaves(off):
    """Of each row those that tie: at zero they get nothing, at the top they stay, however large."""
    pattern = Pattern(torch.tensor([0, 4, 7]), torch.tensor([0, 1, 2, 3, 0, 1, 2]))
    score = torch.tensor([1000, 1000, 999.5 + off, 999.5 - off, 3, 3, 3 + off])
    score.requires_grad_()
    share = sparsemax(score, pattern, torch.tensor([1e3] * 4 + [1e9] * 3))
    torch.testing.assert_close(
        share, torch.tensor([0.5, 0.5, 0, 0] + [1 / 3] * 3), rtol=0, atol=2e-4
    )
    assert (share > 0).tolist() == [True, True, False, False, True, True, True]
    share[0].backward()  # as if there were no others
    assert score.grad.tolist() == [0.5, -0.5, 0, 0, 0, 0, 0]


def test_products_of_graphs_of_any_size():
    sizes = (3, 200, 0, 1, 64, 65)
    graph = torch.repeat_interleave(torch.arange(6), torch.tensor(sizes))
    shuffled = graph[torch.randperm(len(graph), generator=torch.Generator().manual_seed(0))]
    for order in (graph, shuffled):  # a PyG user's graphs may lie apart
        a, b = torch.randn(len(order), 3).double(), torch.randn(len(order), 2).double()
        level = GraphBatch(a, None, order, 6)
        found = graph_products(a, b, level)
        expected = [a[order == g].T @ b[order == g] for g in range(6)]
        torch.testing.assert_close(found, torch.stack(expected))
        alive = torch.arange(len(order)) % 3 > 0
        places = replace(level, alive=alive).positions
        for g in range(6):
            own = places[(order == g) & alive]
            assert own.tolist() == list(range(len(own)))
        assert (places[~alive] == -1).all()


# -------------------------------------------------------------------- against their formulas


@pytest.mark.parametrize("kind", [IPool, HGPSL])
def test_nodes_are_kept_for_what_their_neighbours_do_not_tell(kind, some):
    x, _, _, graph, perm, score = kind(CHANNELS, 0.6).double()(
        some.x, some.edge_index, some.edge_weight, some.batch
    )
    if kind is IPool:  # reads no weights: they are features of edges to it
        some = replace(some, edge_weight=None)
    wanted = naive_information(some)
    order, kept = top_of_each(wanted, some.batch, some.num_graphs, 0.6)
    assert sorted(perm.tolist()) == sorted(order[kept].tolist())
    torch.testing.assert_close(score, wanted[perm])
    assert torch.equal(x, some.x[perm])
    assert torch.equal(graph, some.batch[perm])


def test_hgpsl_learns_the_edges_that_its_paper_prints(some):
    torch.manual_seed(0)
    pool = HGPSL(CHANNELS, 0.6, strength=0.3).double()
    x, edges, weight, graph, perm, _ = pool(some.x, some.edge_index, some.edge_weight, some.batch)
    matrix = dense(some)
    # A directed graph's three hops go along one edge, along another, and back along the third.
    around = (matrix != 0).double() + torch.eye(len(matrix))
    near = around @ around @ around.T > 0
    attention = torch.zeros(len(perm), len(perm), dtype=torch.float64)
    for i, a in enumerate(perm.tolist()):
        others = [j for j, b in enumerate(perm.tolist()) if near[a, b]]
        raw = pool.attention[0] @ some.x[a] + some.x[perm[others]] @ pool.attention[1]
        start = matrix[a, perm[others]]
        attention[i, others] = naive_sparsemax(
            torch.nn.functional.leaky_relu(raw, 0.2) + 0.3 * start
        ).detach()
    found = torch.zeros_like(attention)
    found[edges[1], edges[0]] = weight.detach()
    torch.testing.assert_close(found, attention)
    assert (weight > 0).all()
    assert torch.equal(graph[edges[0]], graph[edges[1]])
    (weight * torch.rand(len(weight)) + x.sum() * 0).sum().backward()
    assert pool.attention.grad.abs().sum() > 0


@pytest.mark.parametrize("clusters", [3, 64])
def test_diffpool_of_one_graph_is_pygs(clusters):
    batch = make_batch(4, (11,), CHANNELS, edges_per_node=1.2, dtype=torch.float64)
    keep = batch.edge_index.unique(dim=1)  # a dense matrix knows an edge once
    batch = replace(batch, edge_index=keep)
    torch.manual_seed(0)
    pool = DiffPool(CHANNELS, 0.6, clusters).double()
    x, edges, weight, *_ = pool(batch.x, keep, None, batch.batch)
    assert len(x) == min(7, clusters)
    raw = pool.assign(batch.x, keep)[:, : len(x)]
    expected = dense_diff_pool(batch.x, dense(batch), raw)
    torch.testing.assert_close(x, expected[0][0])
    links = torch.zeros(len(x), len(x), dtype=torch.float64)
    links[edges[1], edges[0]] = weight
    torch.testing.assert_close(links, expected[1][0])
    answer = pool.answer(batch.level())
    torch.testing.assert_close(answer.loss, (expected[2] + expected[3]).view(1))


def test_diffpool_of_a_batch_is_each_graph_alone(some):
    pool = DiffPool(CHANNELS, 0.6, clusters=5).double()
    whole = pool.answer(some.level())
    for g in range(some.num_graphs):
        own = (some.batch == g).nonzero().flatten()
        edges = some.batch[some.edge_index[1]] == g
        alone = Batch(
            some.x[own],
            some.edge_index[:, edges] - own[0],
            torch.zeros_like(own),
            1,
            None if some.edge_weight is None else some.edge_weight[edges],
        )
        found = pool.answer(alone.level())
        torch.testing.assert_close(found.x, whole.x[own])
        torch.testing.assert_close(found.loss[0], whole.loss[g])


# -------------------------------------------------------------------- in a network


@pytest.mark.parametrize("pool", ["ipool", "hgpsl", "diffpool"])
@settings(max_examples=10)
@given(seed=st.integers(0, 100))
def test_the_order_of_nodes_does_not_matter(pool, seed):
    batch = make_batch(seed, (8, 1, 11), CHANNELS, edges_per_node=1.3, dtype=torch.float64)
    torch.manual_seed(1)
    model = GraphNetwork(CHANNELS, 2, pool=pool, hidden=8, layers=3, ratio=0.7).double()
    order = torch.randperm(len(batch.x), generator=torch.Generator().manual_seed(seed))
    order = order[batch.batch[order].argsort(stable=True)]
    number = order.argsort()
    shuffled = replace(batch, x=batch.x[order], edge_index=number[batch.edge_index])
    found, expected = (model.classify(one.level())[0] for one in (shuffled, batch))
    torch.testing.assert_close(found, expected)


def test_what_a_layer_adds_to_the_loss_is_learnt():
    batch = make_batch(5, (8, 3, 11), CHANNELS, dtype=torch.float64)
    model = GraphNetwork(CHANNELS, 2, pool="diffpool", hidden=8, layers=3).double()
    outputs, added = model(batch.level(), with_loss=True)
    assert added.shape == (3,)
    torch.testing.assert_close(model(batch.level()), outputs)
    added.mean().backward()
    assert all(p.grad.abs().sum() > 0 for p in model.pools.parameters())
    plain = GraphNetwork(CHANNELS, 2, pool="topk", hidden=8).double()
    assert plain(batch.level(), with_loss=True)[1] is None


def test_no_clusters_are_refused():
    with pytest.raises(LookHopsError, match=r"DiffPool.*0"):
        DiffPool(4, 0.5, 0)

"""LookHops pooling: the paper's formulas, PyG's conventions, and that each graph decides alone."""

from copy import deepcopy
from itertools import pairwise
from math import ceil

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch_geometric.nn import TopKPooling
from torch_geometric.nn.pool.connect.filter_edges import filter_adj
from torch_geometric.nn.pool.select.topk import topk

from batches import (
    Batch,
    batches,
    chebyshev_hops,
    dense_chebyshev,
    join,
    make_batch,
    relabel,
    shuffle_within,
    split,
)
from lookhops import LookHopsError
from lookhops.nn import LiChebConv, LiMixHopConv, LookHopsPooling
from lookhops.ops import Adjacency, Anchors, chebyshev
from lookhops.ops.batch import GraphBatch
from lookhops.ops.gate import gate
from lookhops.ops.ranking import top_of_each

RATIOS = st.sampled_from([0.1, 0.5, 0.7, 0.9, 1.0])
EDGE_RATIOS = st.sampled_from([None, 0.3, 0.5, 0.8, 1.0])


def make(channels: int = 4, dtype=torch.float64, **options) -> LookHopsPooling:
    torch.manual_seed(0)
    pool = LookHopsPooling(channels, **options).to(dtype)
    nn.init.normal_(pool.theta)
    return pool


def naive(pool: LookHopsPooling, batch: Batch, anchors: Tensor) -> tuple[list[int], set, Tensor]:
    """Kept nodes in order, kept edges as pairs, and x' of all nodes, graph by graph."""
    act = {"sigmoid": torch.sigmoid, "relu": torch.relu, "tanh": torch.tanh}.get(
        pool.activation, lambda score: score
    )
    score = act((anchors * pool.theta).sum((1, 2)) + pool.bias)
    norm = batch.x.norm(dim=1, keepdim=True)
    x = score[:, None] * (batch.x / torch.where(norm > 0, norm, 1) if pool.normalize else batch.x)
    nodes, edges = [], set()
    for graph in range(batch.num_graphs):
        own = [i for i in range(len(x)) if batch.batch[i] == graph]
        own.sort(key=lambda i: -float(score[i].detach()))  # stable: of equals the earlier one
        last = score[own[ceil(pool.ratio * len(own) - 1e-7) - 1]] if own else 0
        own = [i for i in own if score[i] >= last - 1e-9]
        nodes += own
        pairs = {
            tuple(sorted(pair))
            for pair in batch.edge_index.T.tolist()
            if pair[0] in own and pair[1] in own
        }
        wanted = (
            len(pairs) if pool.edge_ratio is None else ceil(pool.edge_ratio * len(pairs) - 1e-7)
        )
        far = sorted(pairs, key=lambda p: -float((x[p[0]] - x[p[1]]).norm().detach()))
        edges |= set(far[:wanted])
    return nodes, edges, x


def edges_of(edge_index: Tensor) -> list[tuple[int, ...]]:
    return [tuple(pair) for pair in edge_index.T.tolist()]


def no_ties(batch: Batch, x: Tensor) -> bool:
    """Whether no two pairs of a graph's nodes are equally far apart, but for loops."""
    ends = {tuple(sorted(pair)) for pair in batch.edge_index.T.tolist()}
    far = sorted(float((x[a] - x[b]).norm().detach()) for a, b in ends)
    return all(b - a > 1e-9 for a, b in pairwise(far))


# -------------------------------------------------------------------- the formulas


@given(
    batches(),
    RATIOS,
    EDGE_RATIOS,
    st.booleans(),
    st.sampled_from(["sigmoid", "relu", "tanh", "none"]),
)
def test_pooling_is_the_formula(batch, ratio, edge_ratio, normalize, activation):
    options = {"normalize": normalize, "activation": activation}
    pool = make(ratio=ratio, edge_ratio=edge_ratio, **options)
    stack = torch.randn(
        len(batch.x), 3, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    nodes, pairs, features = naive(pool, batch, stack)
    attr = torch.arange(batch.edge_index.shape[1])
    x, edge_index, edge_attr, graph, perm, score = pool(
        batch.x, batch.edge_index, attr, batch.batch, stack
    )
    assert perm.tolist() == nodes
    torch.testing.assert_close(x, features[perm])
    assert torch.equal(graph, batch.batch[perm])
    expected = torch.relu if activation == "relu" else None
    assert expected is None or (score >= 0).all()
    # Kept edges stand in the order of the given ones, with what belonged to them.
    assert edges_of(perm[edge_index]) == edges_of(batch.edge_index[:, edge_attr])
    assert edge_attr.tolist() == sorted(edge_attr.tolist())
    if no_ties(batch, features):
        kept = [
            e for e, pair in enumerate(edges_of(batch.edge_index)) if tuple(sorted(pair)) in pairs
        ]
        assert edge_attr.tolist() == kept


@given(batches(), RATIOS, EDGE_RATIOS.filter(bool))
def test_edge_dropping_really_drops(batch, ratio, edge_ratio):
    """ceil(edge_ratio * pairs) pairs of kept nodes stay in each graph, in all their directions.

    Of loops, which join what does not differ, all stay or none.
    """
    pool = make(ratio=ratio, edge_ratio=edge_ratio)
    _, edge_index, _, graph, perm, _ = pool(batch.x, batch.edge_index, None, batch.batch)
    whole = make(ratio=ratio)
    whole.load_state_dict(pool.state_dict())
    _, candidates, _, _, same, _ = whole(batch.x, batch.edge_index, None, batch.batch)
    assert torch.equal(perm, same)
    kept, before = edges_of(edge_index), edges_of(candidates)
    for number in range(batch.num_graphs):
        here = {tuple(sorted(e)) for e in before if graph[e[0]] == number}
        still = {tuple(sorted(e)) for e in kept if graph[e[0]] == number}
        wanted, loops = ceil(edge_ratio * len(here) - 1e-7), {(a, b) for a, b in here if a == b}
        assert len(still) == (wanted if wanted <= len(here - loops) else len(here))
        # Every edge between a chosen pair is there: both directions, and repeats.
        assert [e for e in kept if graph[e[0]] == number] == [
            e for e in before if tuple(sorted(e)) in still
        ]


def test_the_next_layer_sees_the_smaller_graph():
    batch = make_batch(0, sizes=[12], edges_per_node=2, dtype=torch.float64)
    pool = make(ratio=0.75, edge_ratio=0.5)
    conv = LiChebConv(4, 4).double()
    level, pooled = pool.pool(batch.level())
    assert (
        level.adjacency.num_edges
        == int(pooled.edge.sum())
        < int((pooled.node[batch.edge_index].all(0)).sum())
    )
    smaller = conv(level.x, level.adjacency)
    edge_index = level.adjacency.edge_index
    torch.testing.assert_close(smaller, conv(level.x, edge_index))
    whole, _ = make(ratio=0.75).pool(batch.level())
    assert not torch.allclose(smaller, conv(level.x, whole.adjacency))


def test_own_anchors_are_chebyshev_hops_of_x():
    batch = make_batch(0, loops=True, dtype=torch.float64)
    pool = make(ratio=0.6, k=3)
    stack = torch.stack(chebyshev_hops(dense_chebyshev(batch), batch.x, 3), dim=1)
    given_anchors = pool(batch.x, batch.edge_index, None, batch.batch, stack)
    for own, given_ in zip(
        pool(batch.x, batch.edge_index, None, batch.batch), given_anchors, strict=True
    ):
        assert own is given_ or torch.allclose(own, given_)


@pytest.mark.parametrize("layer", [LiChebConv, LiMixHopConv])
def test_anchors_as_tensor_and_as_object(layer):
    batch = make_batch(0, weighted=True, dtype=torch.float64)
    conv, pool = layer(4, 6).double(), make(6, ratio=0.5, edge_ratio=0.5)
    x, anchors = conv(batch.x, batch.edge_index, batch.edge_weight, return_anchors=True)
    results = []
    for form in (anchors, anchors.stack()):
        conv.zero_grad()
        out = pool(x, batch.edge_index, None, batch.batch, form)
        out[0].square().sum().backward(retain_graph=True)
        results.append([*(t for t in out if t is not None), *(p.grad for p in conv.parameters())])
    torch.testing.assert_close(results[1], results[0])


# -------------------------------------------------------------------- PyG's conventions


@given(batches(min_graphs=1), st.sampled_from([0.1, 0.5, 0.7, 0.9]), st.integers(0, 99))
def test_selection_is_pyg_s_for_the_same_scores(batch, ratio, seed):
    score = torch.randn(
        len(batch.x), generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    order, kept = top_of_each(score, batch.batch, batch.num_graphs, ratio)
    assert torch.equal(order[kept], topk(score, ratio, batch.batch))


@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9])
def test_as_many_nodes_as_pyg_keeps(ratio):
    sizes = torch.arange(1, 400)
    graph = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    score = torch.arange(len(graph), dtype=torch.float64)
    _, kept = top_of_each(score, graph, len(sizes), ratio)
    count = torch.zeros(len(sizes), dtype=torch.long).index_add(0, graph, kept.long())
    exactly = [-(-n * round(ratio * 10) // 10) for n in sizes.tolist()]
    assert count.tolist() == exactly


def test_swap_for_topk():
    """The same six things in the same order, and the same edges for the same perm."""
    batch = make_batch(0)
    attr = torch.randn(batch.edge_index.shape[1], 2)
    theirs = TopKPooling(4, ratio=0.5)(batch.x, batch.edge_index, attr, batch.batch)
    ours = LookHopsPooling(4, ratio=0.5)(batch.x, batch.edge_index, attr, batch.batch)
    assert len(ours) == len(theirs) == 6
    for a, b in zip(ours[3:], theirs[3:], strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
    edge_index, edge_attr = filter_adj(batch.edge_index, attr, ours[4], num_nodes=17)
    assert torch.equal(ours[1], edge_index)
    assert torch.equal(ours[2], edge_attr)
    # Without batch all nodes are one graph; without edge_attr there is none.
    x, _, none, graph, perm, score = LookHopsPooling(4, ratio=0.5)(batch.x, batch.edge_index)
    assert none is None
    assert not graph.any()
    assert len(x) == len(perm) == len(score) == 9
    assert score.tolist() == sorted(score.tolist(), reverse=True)


def test_an_adjacency_in_place_of_edge_index():
    batch = make_batch(3, loops=True, dtype=torch.float64)
    pool = make(ratio=0.7, edge_ratio=0.6)
    plain = pool(batch.x, batch.edge_index, None, batch.batch)
    for adjacency in (
        Adjacency.of(batch.edge_index, 17),
        Adjacency(Adjacency.of(batch.edge_index, 17).pattern),
    ):
        attr = adjacency.edge_index.T
        x, edge_index, edge_attr, _, perm, _ = pool(batch.x, adjacency, attr, batch.batch)
        torch.testing.assert_close(x, plain[0])
        assert torch.equal(perm, plain[4])
        assert sorted(edges_of(edge_index)) == sorted(edges_of(plain[1]))
        assert torch.equal(perm[edge_index].T, edge_attr)


def test_nodes_of_the_graphs_may_be_mixed():
    batch = make_batch(0, dtype=torch.float64)
    pool = make(ratio=0.5)
    order = torch.randperm(17, generator=torch.Generator().manual_seed(0))
    mixed = relabel(batch, order)
    expected = pool(batch.x, batch.edge_index, None, batch.batch)
    found = pool(mixed.x, mixed.edge_index, None, mixed.batch)
    assert torch.equal(order[found[4]], expected[4])
    torch.testing.assert_close(found[0], expected[0])


def test_module_manners(tmp_path):
    pool = LookHopsPooling(8, k=3, ratio=0.8, edge_ratio=0.9, activation="relu")
    assert sum(p.numel() for p in pool.parameters()) == 4 * 8 + 1
    assert repr(pool) == (
        "LookHopsPooling(8, k=3, ratio=0.8, edge_ratio=0.9, normalize=True, activation='relu')"
    )
    before = pool.theta.clone()
    torch.manual_seed(3)
    pool.reset_parameters()
    first = [p.clone() for p in pool.parameters()]
    assert not torch.equal(pool.theta, before)
    torch.manual_seed(3)
    pool.reset_parameters()
    assert all(torch.equal(p, q) for p, q in zip(pool.parameters(), first, strict=True))
    save_file(pool.state_dict(), tmp_path / "pool.safetensors")
    other = LookHopsPooling(8, k=3)
    other.load_state_dict(load_file(tmp_path / "pool.safetensors"))
    assert torch.equal(other.theta, pool.theta)
    copy = deepcopy(pool)
    with torch.no_grad():
        copy.theta.zero_()
    assert pool.theta.any()


def test_one_graph_for_the_compiler():
    torch._dynamo.reset()
    pool = LookHopsPooling(4, ratio=0.6, edge_ratio=0.5)
    compiled = torch.compile(pool, fullgraph=True, backend="aot_eager")
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        for seed in range(2):
            batch = make_batch(seed, sizes=[6, 9 + seed, 4])
            results = []
            for call in (pool, compiled):
                pool.zero_grad()
                out = call(batch.x, batch.edge_index, None, batch.batch)
                out[0].square().sum().backward()
                found = [t.detach() for t in out if t is not None]
                results.append([*found, *(p.grad.clone() for p in pool.parameters())])
            torch.testing.assert_close(results[1], results[0])


def test_masked_form_compiles_with_fixed_shapes():
    torch._dynamo.reset()
    pool = LookHopsPooling(4, ratio=0.6, edge_ratio=0.5)

    def step(x, edge_index, graph):
        level = GraphBatch(x, Adjacency.of(edge_index, x.shape[0]), graph, 4)
        level, pooled = pool.pool(level, masked=True)
        return level.x, pooled.node, pooled.edge

    batch = make_batch(0)
    arguments = (batch.x, batch.edge_index, batch.batch)
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*arguments), step(*arguments))


def test_autocast_and_other_precisions():
    batch = make_batch(0, sizes=[20, 10])
    conv, pool = LiChebConv(4, 16), LookHopsPooling(16, ratio=0.5, edge_ratio=0.5)
    with torch.autocast("cpu", torch.bfloat16):
        x, anchors = conv(batch.x, batch.edge_index, return_anchors=True)
        out = pool(x, batch.edge_index, None, batch.batch, anchors)
    out[0].float().square().sum().backward()
    assert all(p.grad.isfinite().all() for p in (*conv.parameters(), *pool.parameters()))
    for graph, wanted in enumerate((10, 5)):
        score = out[5][out[3] == graph]
        assert len(score) >= wanted
        torch.testing.assert_close(
            score[wanted - 1 :], score[wanted - 1].expand(len(score) - wanted + 1)
        )
    for dtype in (torch.float64, torch.bfloat16):
        conv.to(dtype), pool.to(dtype)
        x, anchors = conv(batch.x.to(dtype), batch.edge_index, return_anchors=True)
        out = pool(x, batch.edge_index, None, batch.batch, anchors)
        assert out[0].dtype == out[5].dtype == dtype


# -------------------------------------------------------------------- gradients


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("activation", ["sigmoid", "none"])
def test_gradients_of_what_is_kept(normalize, activation):
    batch = make_batch(1, sizes=[4, 1, 3], channels=2, dtype=torch.float64)
    pool = make(2, ratio=0.6, edge_ratio=0.5, normalize=normalize, activation=activation)
    names = [name for name, _ in pool.named_parameters()]
    parameters = [p.detach().clone().requires_grad_() for p in pool.parameters()]

    def call(x, z, *given):
        matrix = Adjacency.of(batch.edge_index, 8).chebyshev(z.dtype)
        anchors = Anchors(chebyshev, matrix, z, 2)
        out = torch.func.functional_call(
            pool,
            dict(zip(names, given, strict=True)),
            (x, batch.edge_index, None, batch.batch, anchors),
        )
        return out[0], out[5]

    x, z = batch.x.clone().requires_grad_(), torch.randn_like(batch.x).requires_grad_()
    assert gradcheck(call, (x, z, *parameters))
    masked = lambda x: pool.pool(batch.level().with_x(x), masked=True)[0].x  # noqa: E731
    assert gradcheck(masked, (x,))


@pytest.mark.parametrize("normalize", [True, False])
def test_the_gate_and_its_plain_twin(normalize, monkeypatch):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(6, 3, generator=generator, dtype=torch.float64)
    x[3] = 0  # a vector of zeros stays zero
    x.requires_grad_()
    score = torch.rand(6, generator=generator, dtype=torch.float64).requires_grad_()
    results = []
    for plain in (False, True):
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda plain=plain: plain)
        out = gate(x, score, normalize)
        grad = torch.cos(torch.arange(out.numel(), dtype=torch.float64)).view_as(out)
        results.append([out, *torch.autograd.grad(out, (x, score), grad)])
    torch.testing.assert_close(results[0], results[1])
    assert all(t.isfinite().all() for t in results[0])
    stacked = gate(torch.stack((x, 2 * x)), torch.stack((score, score)), normalize)
    torch.testing.assert_close(stacked[0], gate(x, score, normalize))


# -------------------------------------------------------------------- each graph decides alone


def pooled_graphs(pool: LookHopsPooling, batch: Batch) -> list[tuple[Tensor, Tensor, Tensor]]:
    """What each graph keeps: features, edges numbered within it, nodes numbered within it."""
    x, edge_index, _, graph, perm, _ = pool(batch.x, batch.edge_index, None, batch.batch)
    found = []
    starts = [0, *torch.tensor(batch.sizes).cumsum(0).tolist()]
    for number in range(batch.num_graphs):
        node = graph == number
        first = int(node.long().argmax()) if node.any() else 0
        edge = node[edge_index[0]]
        ends = torch.tensor(sorted(edges_of(edge_index[:, edge] - first))).view(-1, 2)
        found.append((x[node], ends, perm[node] - starts[number]))
    return found


@given(batches(min_graphs=1), RATIOS, EDGE_RATIOS)
def test_batch_mates_order_and_splitting_change_nothing(batch, ratio, edge_ratio):
    pool = make(ratio=ratio, edge_ratio=edge_ratio)
    expected = pooled_graphs(pool, batch)
    mate = make_batch(7, weighted=batch.edge_weight is not None, dtype=torch.float64)
    alone = split(batch)
    for found in (
        pooled_graphs(pool, join(batch, mate))[: batch.num_graphs],
        pooled_graphs(pool, join(mate, batch))[mate.num_graphs :],
        [pooled_graphs(pool, one)[0] for one in alone],
        pooled_graphs(pool, join(*alone[::-1]))[::-1],
    ):
        torch.testing.assert_close(found, expected)


@given(batches(), RATIOS, EDGE_RATIOS, st.integers(0, 99))
def test_relabelling_changes_nothing(batch, ratio, edge_ratio, seed):
    pool = make(ratio=ratio, edge_ratio=edge_ratio)
    order = shuffle_within(batch, seed)
    other = relabel(batch, order)
    x, edge_index, _, _, perm, _ = pool(batch.x, batch.edge_index, None, batch.batch)
    again = pool(other.x, other.edge_index, None, other.batch)
    assert torch.equal(order[again[4]], perm)  # scores of a graph are never equal here
    torch.testing.assert_close(again[0], x)
    assert len(again[1][0]) == len(edge_index[0])
    if no_ties(batch, pool.reduce(batch.x, pool.score(batch.x, batch.level().adjacency, None))):
        assert sorted(edges_of(again[1])) == sorted(edges_of(edge_index))


@given(batches(), RATIOS, EDGE_RATIOS)
def test_masked_is_compacted(batch, ratio, edge_ratio):
    """Three layers of either form: the same nodes, edges and features wherever a node is alive."""
    pool, conv = make(ratio=ratio, edge_ratio=edge_ratio), LiMixHopConv(4, 4).double()
    small, large = batch.level(), batch.level()
    rows = torch.arange(len(batch.x))
    for _ in range(3):
        (small, decided), (large, masked) = pool.pool(small), pool.pool(large, masked=True)
        rows = rows[decided.node]
        assert large.alive.nonzero().flatten().tolist() == rows.tolist()
        torch.testing.assert_close(large.x[rows], small.x)
        assert not large.x[~large.alive].any()
        assert int(masked.edge.sum()) == small.adjacency.num_edges
        assert torch.equal(
            rows[small.adjacency.edge_index], large.adjacency.edge_index[:, masked.edge]
        )
        small = small.with_x(conv(small.x, small.adjacency))
        large = large.with_x(conv(large.x, large.adjacency))


@given(batches(), RATIOS, EDGE_RATIOS, st.integers(1, 4))
def test_padding_changes_nothing(batch, ratio, edge_ratio, padding):
    """Dead nodes at the end of a batch, with edges of weight zero among them."""
    pool = make(ratio=ratio, edge_ratio=edge_ratio)
    n, e = len(batch.x), batch.edge_index.shape[1]
    weight = torch.ones(e, dtype=torch.float64) if batch.edge_weight is None else batch.edge_weight
    adjacency = Adjacency.of(
        torch.cat((batch.edge_index, torch.full((2, padding), n)), dim=1),
        n + padding,
        torch.cat((weight, weight.new_zeros(padding))),
    )
    last = max(batch.num_graphs - 1, 0)
    padded = GraphBatch(
        torch.cat((batch.x, torch.randn(padding, 4, dtype=torch.float64))),
        adjacency,
        torch.cat((batch.batch, torch.full((padding,), last))),
        max(batch.num_graphs, 1),
        alive=torch.arange(n + padding) < n,
    )
    level, pooled = pool.pool(padded, masked=True)
    weighted = Batch(batch.x, batch.edge_index, batch.batch, batch.num_graphs, weight)
    expected, same = pool.pool(weighted.level(), masked=True)
    assert torch.equal(pooled.node[:n], same.node)
    assert not pooled.node[n:].any()
    torch.testing.assert_close(level.x[:n], expected.x)
    assert int(pooled.edge.sum()) == int(same.edge.sum())


@given(batches(), RATIOS, EDGE_RATIOS, st.booleans())
def test_awkward_graphs_stay_finite(batch, ratio, edge_ratio, zeros):
    pool = make(ratio=ratio, edge_ratio=edge_ratio)
    x = (batch.x * 0 if zeros else batch.x.clone()).requires_grad_()
    out = pool(x, batch.edge_index, None, batch.batch)
    out[0].square().sum().backward()
    assert out[0].isfinite().all()
    assert x.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in pool.parameters())
    share = sum(ceil(ratio * size - 1e-7) for size in batch.sizes)
    assert len(out[0]) == (len(x) if zeros else share)


@given(batches(), RATIOS)
def test_a_graph_whose_every_score_is_zero_keeps_all_nodes(batch, ratio):
    pool = make(ratio=ratio, activation="relu")
    with torch.no_grad():
        pool.theta.zero_()
        pool.bias.fill_(-1)
    x, _, _, _, perm, score = pool(batch.x, batch.edge_index, None, batch.batch)
    assert not score.any()
    assert not x.any()
    assert perm.tolist() == list(range(len(batch.x)))


def test_stacked_seeds_keep_their_own_nodes():
    own = [make_batch(seed, dtype=torch.float64) for seed in range(2)]
    both = join(*own)
    pool = make(ratio=0.5, edge_ratio=0.5)
    xs = torch.stack([batch.x for batch in own])
    level = GraphBatch(xs, both.level().adjacency, both.batch, 8)
    found, pooled = pool.pool(level, masked=True)
    for seed, batch in enumerate(own):
        expected, alone = pool.pool(batch.level(), masked=True)
        torch.testing.assert_close(found.x[seed], expected.x)
        assert torch.equal(pooled.node.view(2, -1)[seed], alone.node)
    with pytest.raises(LookHopsError, match="masked=True"):
        pool.pool(level)


def test_nothing_at_all():
    pool = LookHopsPooling(4, edge_ratio=0.5)
    out = pool(torch.zeros(0, 4), torch.zeros(2, 0, dtype=torch.long))
    assert [t.shape for t in out if t is not None] == [(0, 4), (2, 0), (0,), (0,), (0,)]


# -------------------------------------------------------------------- refusals


def test_refusals_are_sentences():
    for options, said in (
        ({"ratio": 0.0}, "ratio .*0.0"),
        ({"ratio": 1.5}, "ratio .*1.5"),
        ({"ratio": "half"}, "ratio .*'half'"),
        ({"ratio": float("nan")}, "ratio .*nan"),
        ({"edge_ratio": -0.1}, "edge_ratio .*-0.1"),
        ({"k": -1}, "k .*-1"),
        ({"k": 1.5}, "k .*1.5"),
        ({"activation": "gelu"}, "activation .*sigmoid.*'gelu'"),
    ):
        with pytest.raises(LookHopsError, match=f"^LookHopsPooling: {said}"):
            LookHopsPooling(4, **options)
    pool, batch = LookHopsPooling(4), make_batch(0)
    with pytest.raises(LookHopsError, match=r"x .*\(17, 3\)"):
        pool(batch.x[:, :3], batch.edge_index)
    with pytest.raises(LookHopsError, match="integers"):
        pool(batch.x, batch.edge_index.float())
    with pytest.raises(LookHopsError, match="17 nodes"):
        pool(batch.x, batch.edge_index, None, batch.batch[:5])
    for shape in ((17, 2, 4), (17, 3, 5), (16, 3, 4)):
        with pytest.raises(LookHopsError, match="anchors"):
            pool(batch.x, batch.edge_index, None, batch.batch, torch.zeros(shape))
    _, anchors = LiChebConv(4, 4, k=3)(batch.x, batch.edge_index, return_anchors=True)
    with pytest.raises(LookHopsError, match=r"\(17, 4, 4\)"):
        pool(batch.x, batch.edge_index, None, batch.batch, anchors)

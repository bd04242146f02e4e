"""The network: its parts in order, its parameters, and that a prediction belongs to its graph."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch_geometric.data import Batch as PyGBatch
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv, global_max_pool, global_mean_pool

from batches import LAYER_PAIRS, Batch, batches, join, make_batch, relabel, shuffle_within, split
from lookhops import Graphs, LookHopsError
from lookhops.graphs.features import Features
from lookhops.nn import Architecture, GraphBatch, GraphNetwork, register_convolution
from lookhops.nn.registry import CONVOLUTIONS
from lookhops.ops import Adjacency

SMALL = {"hidden": 6, "layers": 3, "ratio": 0.7}
#: Rows of the paper's tables: the light half, with and without what LookHops pooling can do.
LIGHT = [
    {"conv": "licheb"},
    {"conv": "limixhop", "normalize": False},
    {"conv": "licheb", "pool": "lookhops"},
    {"conv": "licheb", "pool": "lookhops", "edge_ratio": 0.6, "activation": "relu"},
    {"conv": "limixhop", "pool": "lookhops", "edge_ratio": 0.6, "normalize": False},
]
light = st.sampled_from([*LIGHT, {"conv": "licheb", "readout": "max+mean+sum"}])


def make(dtype=torch.float64, **options) -> GraphNetwork:
    torch.manual_seed(0)
    return GraphNetwork(4, 3, **{**SMALL, **options}).to(dtype)


def predict(model: GraphNetwork, batch: Batch, masked: bool = False) -> Tensor:
    return model.classify(batch.level(), masked)[0]


def packed(batch: Batch) -> Graphs:
    return Graphs.from_edges(
        *batch.edge_index, torch.tensor(batch.sizes).long(), nodes=Features(numbers=batch.x)
    )


# -------------------------------------------------------------------- what it computes


@pytest.mark.parametrize("normalize", [True, False])
def test_the_network_without_pooling(normalize):
    """Convolution, sphere, ReLU, readout, ReLU, sum; dense layers."""
    batch = make_batch(0, dtype=torch.float64)
    model = make(normalize=normalize)
    x, total = batch.x, 0
    for conv in model.convs:
        x = conv(x, batch.edge_index)
        x = torch.relu(x / x.norm(dim=1, keepdim=True) if normalize else x)
        read = (global_max_pool(x, batch.batch), global_mean_pool(x, batch.batch))
        total = total + torch.relu(torch.cat(read, dim=1))
    expected = model.mlp(total)
    torch.testing.assert_close(predict(model, batch), expected)


@pytest.mark.parametrize("options", LIGHT[2:])
def test_the_network_with_lookhops_pooling(options):
    """Pooling layers called one by one, as a PyG user would; the last one drops nothing."""
    batch = make_batch(0, sizes=[9, 6, 12], edges_per_node=2, dtype=torch.float64)
    model = make(**{**options, "activation": "sigmoid"})  # no two scores are equal
    x, edge_index, graph, total = batch.x, batch.edge_index, batch.batch, 0
    for number, (conv, pool) in enumerate(zip(model.convs, model.pools, strict=True)):
        z, anchors = conv(x, edge_index, return_anchors=True)
        if number < 2:
            x, edge_index, _, graph, _, _ = pool(z, edge_index, None, graph, anchors)
        else:
            score = pool.score(z, Adjacency.of(edge_index, len(z)), anchors)
            x = score[:, None] * (z / z.norm(dim=1, keepdim=True) if pool.normalize else z)
        x = torch.relu(x)
        read = (global_max_pool(x, graph), global_mean_pool(x, graph))
        total = total + torch.relu(torch.cat(read, dim=1))
    expected = model.mlp(total)
    found, decisions = model.classify(batch.level())
    torch.testing.assert_close(found, expected)
    assert [int(d.node.sum()) for d in decisions] == [7 + 5 + 9, 5 + 4 + 7]
    assert len(x) == 16


@pytest.mark.parametrize(
    ("conv", "pool", "expected"),
    [
        ("gcn", "none", 112_194),
        ("gat", "none", 113_474),
        ("cheb", "none", 252_738),
        ("licheb", "none", 114_754),
        ("limixhop", "none", 114_754),
        ("licheb", "lookhops", 116_679),
        ("limixhop", "lookhops", 116_679),
    ],
)
def test_parameter_counts(conv, pool, expected):
    model = GraphNetwork(37, 2, conv=conv, pool=pool)
    assert sum(p.numel() for p in model.parameters()) == expected


def test_inputs_of_every_kind_are_the_same():
    batch = make_batch(0, sizes=[5, 1, 8, 3])
    model = make(torch.float32, pool="lookhops", edge_ratio=0.6)
    expected = predict(model, batch)
    graphs = packed(batch)
    data = [Data(x=one.x, edge_index=one.edge_index) for one in split(batch)]
    for form in (graphs, PyGBatch.from_data_list(data), batch.level()):
        torch.testing.assert_close(model(form), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model(data[2]), expected[2:3], rtol=1e-4, atol=1e-5)
    alive = replace(batch.level(), alive=torch.ones(17, dtype=torch.bool))
    torch.testing.assert_close(model(alive), expected, rtol=1e-4, atol=1e-5)


def test_edge_weights_of_a_pyg_batch_count():
    batch = make_batch(0, weighted=True)
    model = make(torch.float32)
    data = [
        Data(x=one.x, edge_index=one.edge_index, edge_weight=one.edge_weight)
        for one in split(batch)
    ]
    found = model(PyGBatch.from_data_list(data))
    torch.testing.assert_close(found, predict(model, batch), rtol=1e-4, atol=1e-5)
    unweighted = predict(model, replace(batch, edge_weight=None))
    assert not torch.allclose(found, unweighted)


# -------------------------------------------------------------------- masked and compacted


@pytest.mark.parametrize(("conv", "pool"), LAYER_PAIRS)
def test_masked_is_compacted_for_every_pair_of_layers(conv, pool):
    batch = make_batch(0, sizes=[7, 1, 9, 4], edges_per_node=2, dtype=torch.float64)
    model = make(conv=conv, pool=pool, edge_ratio=0.6)
    results = []
    for masked in (False, True):
        model.zero_grad()
        out = predict(model, batch, masked)
        out[:, 0].sum().backward()
        results.append([out, *(p.grad for p in model.parameters() if p.grad is not None)])
    torch.testing.assert_close(results[0], results[1])
    assert all(t.isfinite().all() for t in results[0])


@given(batches(), light)
def test_masked_is_compacted(batch, options):
    model = make(**options)
    torch.testing.assert_close(predict(model, batch), predict(model, batch, masked=True))


@given(batches(min_graphs=1, weighted=False), light, st.integers(1, 5))
def test_padding_changes_nothing(batch, options, padding):
    """Dead nodes after the last graph, and a graph of nothing else."""
    model = make(**options)
    level = batch.level()
    n = len(batch.x)
    padded = GraphBatch(
        torch.cat((batch.x, torch.randn(padding, 4, dtype=torch.float64))),
        Adjacency.of(batch.edge_index, n + padding),
        torch.cat((batch.batch, torch.full((padding,), batch.num_graphs))),
        batch.num_graphs + 1,
        alive=torch.arange(n + padding) < n,
    )
    found, _ = model.classify(padded, masked=True)
    torch.testing.assert_close(found[:-1], model.classify(level, masked=True)[0])
    assert found.isfinite().all()


def test_stacked_seeds_are_single_seeds():
    singles = [make(pool="lookhops", edge_ratio=0.6) for _ in range(2)]
    with torch.no_grad():
        for p in singles[1].parameters():
            p.normal_(std=0.5)
    stack = deepcopy(singles[0])
    for name, _ in list(stack.named_parameters()):
        owner, _, attribute = name.rpartition(".")
        stacked = torch.stack([single.get_parameter(name).detach() for single in singles])
        setattr(stack.get_submodule(owner), attribute, nn.Parameter(stacked))
    own = [make_batch(seed, dtype=torch.float64) for seed in range(2)]
    both = join(*own)
    xs = torch.stack([batch.x for batch in own])
    level = GraphBatch(xs, both.level().adjacency, both.batch, both.num_graphs)
    found, _ = stack.classify(level, masked=True)
    assert found.shape == (2, 4, 3)
    found[..., 0].sum().backward()
    for seed, (single, batch) in enumerate(zip(singles, own, strict=True)):
        out = predict(single, batch, masked=True)
        torch.testing.assert_close(found[seed], out)
        out[:, 0].sum().backward()
        for name, p in single.named_parameters():
            torch.testing.assert_close(stack.get_parameter(name).grad[seed], p.grad)


# -------------------------------------------------------------------- a prediction is its graph's


@given(batches(min_graphs=1), light)
def test_batch_mates_order_and_splitting_change_nothing(batch, options):
    model = make(**options)
    expected = predict(model, batch)
    mate = make_batch(7, weighted=batch.edge_weight is not None, dtype=torch.float64)
    alone = split(batch)
    torch.testing.assert_close(predict(model, join(batch, mate))[: len(expected)], expected)
    torch.testing.assert_close(predict(model, join(mate, batch))[4:], expected)
    torch.testing.assert_close(predict(model, join(*alone[::-1])).flip(0), expected)
    torch.testing.assert_close(torch.cat([predict(model, one) for one in alone]), expected)


@given(batches(), light.filter(lambda options: "edge_ratio" not in options), st.integers(0, 99))
def test_relabelling_changes_nothing(batch, options, seed):
    # Of edges that differ equally (repeated nodes) the first is kept: that is not tried here.
    model = make(**options)
    other = relabel(batch, shuffle_within(batch, seed))
    torch.testing.assert_close(predict(model, other), predict(model, batch))


@given(batches(), light, st.booleans(), st.booleans())
def test_awkward_graphs_stay_finite(batch, options, masked, zeros):
    model = make(**options)
    batch = replace(batch, x=batch.x * (not zeros))
    out = predict(model, batch, masked)
    assert out.shape == (batch.num_graphs, 3)
    out.square().sum().backward()
    assert out.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


# -------------------------------------------------------------------- manners of a module


def test_state_copies_and_names(tmp_path):
    batch = make_batch(0)
    model, other = make(torch.float32, pool="lookhops"), make(torch.float32, pool="lookhops")
    torch.manual_seed(5)
    other.reset_parameters()
    assert not torch.equal(model.convs[0].weight, other.convs[0].weight)
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    other.load_state_dict(load_file(tmp_path / "model.safetensors"))
    expected = predict(model, batch)
    assert torch.equal(predict(other, batch), expected)
    assert torch.equal(predict(deepcopy(model), batch), expected)
    again = GraphNetwork.from_architecture(4, 3, model.architecture)
    again.load_state_dict(model.state_dict())
    assert torch.equal(predict(again, batch), expected)
    assert "conv='licheb', pool='lookhops', k=2, hidden=6, layers=3, ratio=0.7" in repr(model)
    assert model.architecture == Architecture(pool="lookhops", **SMALL)


def test_reset_parameters_is_a_fresh_start():
    model = make(pool="lookhops")
    torch.manual_seed(9)
    model.reset_parameters()
    first = [p.clone() for p in model.parameters()]
    torch.manual_seed(9)
    model.reset_parameters()
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), first, strict=True))


def test_one_graph_for_the_compiler():
    """With fixed shapes the whole network is one graph."""
    torch._dynamo.reset()
    model = make(torch.float32, layers=2, pool="lookhops", edge_ratio=0.6)

    def step(x, edge_index, graph):
        level = GraphBatch(x, Adjacency.of(edge_index, x.shape[0]), graph, 4)
        return model.classify(level, masked=True)[0]

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    batch = make_batch(0)
    arguments = (batch.x, batch.edge_index, batch.batch)
    results = []
    for call in (step, compiled):
        model.zero_grad()
        out = call(*arguments)
        out[:, 0].sum().backward()
        results.append([out, *(p.grad.clone() for p in model.parameters() if p.grad is not None)])
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", LIGHT)
@pytest.mark.parametrize("masked", [False, True])
def test_autocast_to_bfloat16(options, masked):
    batch = make_batch(0, sizes=[20, 10])
    model = make(torch.float32, **options)
    with torch.autocast("cpu", torch.bfloat16):
        out = predict(model, batch, masked)
    torch.testing.assert_close(out.float(), predict(model, batch, masked), rtol=0.1, atol=0.1)
    out[:, 0].sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


# -------------------------------------------------------------------- other people's layers


@pytest.mark.parametrize("pool", ["none", "lookhops"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_layer_of_pyg_in_one_line(monkeypatch, pool, weighted):
    monkeypatch.setitem(CONVOLUTIONS, "pyg", None)  # to be taken out again
    if weighted:
        from torch_geometric.nn import GraphConv

        register_convolution("pyg", lambda d, h, k: GraphConv(d, h))
    else:
        register_convolution("pyg", lambda d, h, k: SAGEConv(d, h))
    batch = make_batch(0, weighted=weighted, dtype=torch.float64)
    model = make(conv="pyg", pool=pool, edge_ratio=0.6)
    expected = predict(model, batch)
    torch.testing.assert_close(predict(model, batch, masked=True), expected)


# -------------------------------------------------------------------- refusals


def test_refusals_are_sentences():
    for options, said in (
        ({"conv": "lichep"}, "'lichep'.*'licheb'"),
        ({"pool": "lookhop"}, "'lookhop'.*'lookhops'"),
        ({"layers": 0}, "layers=0"),
        ({"hidden": 1}, "hidden=1"),
        ({"ratio": 0}, "ratio.*0"),
        ({"edge_ratio": 2.0, "pool": "lookhops"}, "edge_ratio.*2.0"),
        ({"k": -1}, r"\bk\b.*-1"),
        ({"activation": "exp"}, "'exp'.*sigmoid"),
    ):
        with pytest.raises(LookHopsError, match=said):
            GraphNetwork(4, 3, **options)
    with pytest.raises(LookHopsError, match=r"4.*5"):
        make()(packed(make_batch(0, channels=5)))
    with pytest.raises(LookHopsError, match="features"):
        make()(Data(edge_index=torch.zeros(2, 0, dtype=torch.long), num_nodes=3))


def test_the_sum_tells_a_graph_from_two_of_it():
    batch = make_batch(5, [7], 4, dtype=torch.float64)
    twice = join(batch, batch)
    together = replace(twice.level(), graph=torch.zeros_like(twice.level().graph), num_graphs=1)
    plain, summing = make(), make(readout="max+mean+sum")
    one = [model(batch.level()) for model in (plain, summing)]
    two = [model(together) for model in (plain, summing)]
    torch.testing.assert_close(one[0], two[0])
    assert not torch.allclose(one[1], two[1])


def test_dropout_acts_while_training_alone():
    batch = make_batch(6, [7, 5], 4, dtype=torch.float64)
    model, same = make(dropout=0.5), make()
    torch.testing.assert_close(model.eval()(batch.level()), same(batch.level()))
    torch.manual_seed(1)
    first, second = (model.train()(batch.level()) for _ in range(2))
    assert not torch.allclose(first, second)

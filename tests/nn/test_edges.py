"""What edges carry: factors against naive versions, with every convolution and every pooling."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.func import functional_call
from torch_geometric.data import Data
from torch_geometric.nn import GATv2Conv, GCNConv, GINEConv, GraphConv, SimpleConv

from batches import (
    LAYER_PAIRS,
    Batch,
    chebyshev_hops,
    dense_chebyshev,
    dense_mixhop,
    make_batch,
    power_hops,
    relabel,
    shuffle_within,
    split,
)
from lookhops import LookHopsError
from lookhops.nn import (
    ASAP,
    SAG,
    Edge,
    EdgeFactors,
    EdgeInputs,
    GraphBatch,
    GraphNetwork,
    TopK,
    registry,
)
from lookhops.nn.layer import convolve
from lookhops.nn.registry import CONVOLUTIONS, edges_taken, make_convolution
from lookhops.ops import Adjacency

CHANNELS, NUMBERS, LABELS = 4, 2, 3
CLOSE = {"rtol": 1e-8, "atol": 1e-8}


def told(batch: Batch, seed: int = 0) -> Data:
    """The batch with numbers and one-hot labels on its edges, each direction its own."""
    generator = torch.Generator().manual_seed(seed)
    count = batch.edge_index.shape[1]
    numbers = torch.randn(count, NUMBERS, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, LABELS, (count,), generator=generator)
    one_hot = torch.nn.functional.one_hot(labels, LABELS).double()
    return Data(
        x=batch.x,
        edge_index=batch.edge_index,
        edge_attr=torch.cat((numbers, one_hot), 1),
        batch=batch.batch,
        num_graphs=batch.num_graphs,
    )


def make_model(conv: str = "licheb", pool: str = "none", **options) -> GraphNetwork:
    """A network that uses edges, with parameters that are no zeros."""
    torch.manual_seed(0)
    sizes = {"hidden": 16, "layers": 3, "ratio": 0.6, "edges": "use", **options}
    told = {"num_edge_numbers": NUMBERS, "num_edge_labels": LABELS}
    model = GraphNetwork(CHANNELS, 2, conv=conv, pool=pool, **told, **sizes).double()
    if model.edges is not None:
        for parameter in model.edges.parameters():
            torch.nn.init.normal_(parameter, std=0.1)
    return model


# -------------------------------------------------------------------- the factors


def test_factors_are_the_formula():
    torch.manual_seed(0)
    module = EdgeFactors(NUMBERS, LABELS, layers=2, hidden=5).double()
    columns = told(make_batch(0, dtype=torch.float64)).edge_attr
    found = module(columns)
    assert (found[0] - found[1]).abs().min() > 0
    assert 0.02 < found.min() < 1 < found.max() < 1.98  # around one at the beginning
    for layer in range(2):
        own = slice(5 * layer, 5 * layer + 5)
        inner = torch.relu(
            columns[:, :NUMBERS] @ module.inner.weight[own].T + module.inner.bias[own]
        )
        raw = inner @ module.outer[layer] + columns[:, NUMBERS:] @ module.table[layer]
        torch.testing.assert_close(found[layer], 2 / (1 + torch.exp(-10 * raw)), **CLOSE)


@pytest.mark.parametrize(("numbers", "labels"), [(2, 0), (0, 3), (2, 3)])
def test_a_stack_of_members_has_the_factors_of_each(numbers, labels):
    members = [EdgeFactors(numbers, labels, layers=2).double() for _ in range(3)]
    for member in members:
        for parameter in member.parameters():
            torch.nn.init.normal_(parameter)
    columns = torch.randn(3, 7, numbers + labels, dtype=torch.float64)
    stack = {
        key: torch.stack([dict(member.named_parameters())[key] for member in members])
        for key, _ in members[0].named_parameters()
    }
    found = functional_call(members[0], stack, (columns,))
    expected = [member(own) for member, own in zip(members, columns, strict=True)]
    torch.testing.assert_close(found, torch.stack(expected), **CLOSE)
    place = torch.tensor([8, 0, 20])  # of the edges of all members
    inputs = EdgeInputs(columns, place)
    flat = functional_call(Of(members[0]), {f"edges.{k}": v for k, v in stack.items()}, (inputs,))
    for layer in range(2):
        own = [expected[i // 7][layer, i % 7] for i in place.tolist()]
        torch.testing.assert_close(flat[layer], torch.stack(own), **CLOSE)


class Of(torch.nn.Module):
    """Calls :meth:`EdgeFactors.of` as a module."""

    def __init__(self, edges: EdgeFactors) -> None:
        super().__init__()
        self.edges = edges

    def forward(self, inputs: EdgeInputs) -> Tensor:
        return self.edges.of(inputs)


# -------------------------------------------------------------------- layers


def factored(batch: Batch, factor: Tensor) -> Adjacency:
    """The adjacency with factors that are given for the columns of edge_index."""
    adjacency = Adjacency.of(batch.edge_index, len(batch.x), batch.edge_weight)
    return adjacency.times(factor[adjacency.order])


def dense_factor(batch: Batch, factor: Tensor) -> Tensor:
    """The factors at (target, source), one elsewhere; the batch has no edge twice."""
    full = torch.ones(len(batch.x), len(batch.x), dtype=torch.float64)
    source, target = batch.edge_index
    return full.index_put((target, source), factor)


def simple(batch: Batch) -> Batch:
    """The batch without repeated edges."""
    source, target = batch.edge_index
    key = source * len(batch.x) + target
    chosen = torch.tensor([int((key == one).nonzero()[0, 0]) for one in key.unique()])
    weight = None if batch.edge_weight is None else batch.edge_weight[chosen]
    return replace(batch, edge_index=batch.edge_index[:, chosen], edge_weight=weight)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_convolutions_are_the_dense_formulas(weighted, directed):
    """Factors stand outside of the normalisation, and nodes themselves have none."""
    batch = simple(make_batch(3, (5, 1, 7), CHANNELS, directed, weighted, dtype=torch.float64))
    factor = torch.rand(batch.edge_index.shape[1], dtype=torch.float64) * 2
    adjacency, full = factored(batch, factor), dense_factor(batch, factor)
    layers = {
        name: make_convolution(make, CHANNELS, 3, 2, 0).double()
        for name, make in CONVOLUTIONS.items()
    }
    found = {name: layer(batch.x, adjacency) for name, layer in layers.items()}
    scaled, mixed = full * dense_chebyshev(batch), full * dense_mixhop(batch)
    for name, hops in (
        ("licheb", chebyshev_hops(scaled, layers["licheb"].project(batch.x), 2)),
        ("limixhop", power_hops(mixed, layers["limixhop"].project(batch.x), 2)),
    ):
        own = layers[name]
        expected = sum(w * hop for w, hop in zip(own.weight, hops, strict=True)) + own.bias
        torch.testing.assert_close(found[name], expected, **CLOSE)
    gcn = layers["gcn"]
    torch.testing.assert_close(found["gcn"], mixed @ gcn.project(batch.x) + gcn.bias, **CLOSE)
    weight = torch.zeros_like(full)
    given = torch.ones(len(factor)).double() if batch.edge_weight is None else batch.edge_weight
    weight[batch.edge_index[1], batch.edge_index[0]] = given
    gin = layers["gin"]
    around = (full * weight) @ batch.x
    torch.testing.assert_close(found["gin"], gin.mlp((1 + gin.eps) * batch.x + around), **CLOSE)
    sage, dcnn, degree = layers["sage"], layers["dcnn"], weight.sum(1, keepdim=True)
    degree = torch.where(degree > 0, degree, 1)
    mean = around / degree
    expected = sage.own(batch.x) + sage.neighbours(mean)
    torch.testing.assert_close(found["sage"], expected, **CLOSE)
    hop = torch.tanh(dcnn.weight * torch.stack(power_hops(full * weight / degree, batch.x, 2), 1))
    torch.testing.assert_close(found["dcnn"], dcnn.project(hop.flatten(1)), **CLOSE)
    gat = layers["gat"]
    z = gat.project(batch.x)
    score = (z @ gat.attention[0, 0])[None, :] + (z @ gat.attention[1, 0])[:, None]
    share = torch.nn.functional.leaky_relu(score, 0.2).exp()
    share = share * (full * weight + torch.eye(len(z)).double())
    expected = share / share.sum(1, keepdim=True) @ z + gat.bias
    torch.testing.assert_close(found["gat"], expected, **CLOSE)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_gradients_of_convolutions(name):
    batch = make_batch(2, (4, 1, 3), 2, directed=True, weighted=True, dtype=torch.float64)
    layer = make_convolution(CONVOLUTIONS[name], 2, 3, 2, 0).double()
    factor = (torch.rand(batch.edge_index.shape[1], dtype=torch.float64) + 0.5).requires_grad_()
    x = batch.x.clone().requires_grad_()
    assert gradcheck(lambda x, f: layer(x, factored(batch, f)), (x, factor))


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_symmetric_edges_need_no_transpose(name):
    """The same gradients as by the transpose, for x and for every entry."""
    batch = make_batch(2, (4, 1, 3), 2, dtype=torch.float64)
    layer, grads = make_convolution(CONVOLUTIONS[name], 2, 3, 2, 0).double(), []
    low, high = batch.edge_index.sort(0).values
    raw = torch.cos(low * 10.0 + high).double()  # the same in both directions
    for symmetric in (False, True):
        x, factor = batch.x.clone().requires_grad_(), (raw + 1.5).requires_grad_()
        adjacency = Adjacency.of(batch.edge_index, len(x))
        adjacency.symmetric = symmetric
        layer(x, adjacency.times(factor[adjacency.order])).square().sum().backward()
        grads.append((x.grad, factor.grad))
    torch.testing.assert_close(*grads, **CLOSE)


@pytest.mark.parametrize("make", [SAG, Edge, ASAP])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_of_poolings(make, weighted):
    batch = make_batch(5, (5, 4), CHANNELS, weighted=weighted, dtype=torch.float64)
    pool = make(CHANNELS).double()
    factor = (torch.rand(batch.edge_index.shape[1], dtype=torch.float64) + 0.5).requires_grad_()

    def pooled(x: Tensor, factor: Tensor) -> tuple[Tensor, ...]:
        level = GraphBatch(x, factored(batch, factor), batch.batch, batch.num_graphs)
        after, answer = pool.pool(level)
        links = (after.adjacency.weight, after.adjacency.factor)
        return (after.x, answer.score, *(t for t in links if t is not None and t.requires_grad))

    x = batch.x.clone().requires_grad_()
    assert gradcheck(pooled, (x, factor))
    pooled(x, factor)[1].square().sum().backward()
    assert make is ASAP or factor.grad.abs().sum() > 0


# -------------------------------------------------------------------- networks


@pytest.mark.parametrize(("conv", "pool"), LAYER_PAIRS)
def test_factors_of_one_are_a_network_that_ignores_edges(conv, pool):
    """To the last bit; all other parameters begin the same."""
    data = told(make_batch(8, (6, 1, 9), CHANNELS, dtype=torch.float64))
    torch.manual_seed(0)
    plain = GraphNetwork(CHANNELS, 2, conv=conv, pool=pool, hidden=16, layers=3).double()
    model = make_model(conv, pool, ratio=0.9)
    assert all(torch.equal(v, model.state_dict()[k]) for k, v in plain.state_dict().items())
    for parameter in (model.edges.table, model.edges.outer):
        torch.nn.init.zeros_(parameter)
    assert torch.equal(model(data), plain(data))


@pytest.mark.parametrize(("conv", "pool"), LAYER_PAIRS)
def test_masked_is_compacted_and_batch_mates_and_order_change_nothing(conv, pool):
    batch = make_batch(11, (6, 1, 9), CHANNELS, edges_per_node=2.5, dtype=torch.float64)
    model, data = make_model(conv, pool), told(batch)
    results, grads = [], []
    for masked in (False, True):
        model.zero_grad()
        result = model.classify(model.batch(data), masked)[0]
        result[:, 0].sum().backward()
        results.append(result)
        grads.append([p.grad for p in model.parameters() if p.grad is not None])
    torch.testing.assert_close(*results, **CLOSE)
    torch.testing.assert_close(*grads, **CLOSE)
    assert model.edges.table.grad.abs().sum() > 0
    edge_graph = batch.batch[batch.edge_index[0]]
    for number, part in enumerate(split(batch)):
        own = Data(x=part.x, edge_index=part.edge_index, num_graphs=1)
        own.edge_attr = data.edge_attr[edge_graph == number]
        torch.testing.assert_close(model(own), results[0][number : number + 1], **CLOSE)
    turned = relabel(batch, shuffle_within(batch, 1))
    other = data.clone()
    other.x, other.edge_index = turned.x, turned.edge_index
    shuffled = torch.randperm(data.edge_index.shape[1])
    other.edge_index = other.edge_index[:, shuffled]
    other.edge_attr = data.edge_attr[shuffled]
    if pool != "edge":  # which takes of equal scores the edge that was given first
        torch.testing.assert_close(model(other), results[0], **CLOSE)


def test_edges_that_stay_carry_what_is_told_of_them():
    """After two poolings the factors of the third layer are those of the edges that stayed."""
    batch = make_batch(4, (9, 8), CHANNELS, edges_per_node=2, dtype=torch.float64)
    model, data, pool = make_model(), told(batch), TopK(CHANNELS, 0.7).double()
    level = model.batch(data)
    number = torch.arange(data.edge_index.shape[1]).double()
    wanted = {tuple(pair): i for i, pair in enumerate(batch.edge_index.T.tolist())}
    node = torch.arange(len(batch.x))
    for _ in range(2):
        level, pooled = pool.pool(level)
        node = node[pooled.node]
    kept = [tuple(pair) for pair in node[level.adjacency.edge_index].T.tolist()]
    assert 0 < len(kept) < len(number)
    found = level.with_factors(number[level.edges.place]).adjacency.factor
    twice = {pair for pair in wanted if batch.edge_index.T.tolist().count(list(pair)) > 1}
    for pair, value in zip(kept, found.tolist(), strict=True):
        assert pair in twice or value == wanted[pair]
    columns = data.edge_attr[found.long()]
    torch.testing.assert_close(level.edge_columns, columns, **CLOSE)


def test_merged_edges_have_the_mean_of_their_factors():
    x = torch.tensor([[3.0], [2.0], [1.0]])
    edges = torch.tensor([[0, 1, 0, 2, 1, 2], [1, 0, 2, 0, 2, 1]])
    pool = Edge(1)
    torch.nn.init.ones_(pool.ends.weight)
    data = Data(x=x, edge_index=edges, edge_attr=torch.arange(6.0)[:, None], num_graphs=1)
    model = GraphNetwork(1, 2, hidden=4, layers=2, num_edge_numbers=1, edges="use")
    for masked in (False, True):
        level, pooled = pool.pool(model.batch(data), masked=masked)
        assert pooled.node.tolist() == [True, False, True]
        factors = data.edge_attr.flatten()[level.edges.place]
        after = level.with_factors(factors).adjacency
        there = slice(None) if after.present is None else after.present
        ends, values = after.edge_index.T[there].tolist(), after.factor[there].tolist()
        merged = dict(zip(map(tuple, ends), values, strict=True))
        last = 2 if masked else 1
        assert merged == {(0, 0): 0.5, (0, last): 3.0, (last, 0): 4.0}


def test_without_what_edges_carry_a_network_that_uses_it_refuses():
    batch = make_batch(0, channels=CHANNELS, dtype=torch.float64)
    model = make_model()
    with pytest.raises(LookHopsError, match=r"5.*edge.*0"):
        model(Data(x=batch.x, edge_index=batch.edge_index))
    with pytest.raises(LookHopsError, match="edges"):
        model.classify(batch.level())
    with pytest.raises(LookHopsError, match=r"edges.*'maybe'"):
        GraphNetwork(CHANNELS, 2, edges="maybe")
    for edges in (None, "ignore"):
        plain = GraphNetwork(CHANNELS, 2, num_edge_labels=3, edges=edges)
        assert plain.edges is None
        assert plain(Data(x=batch.x.float(), edge_index=batch.edge_index)).shape == (1, 2)


# -------------------------------------------------------------------- layers of other people

THEIRS = {
    "plain": lambda d, h, k: SimpleConvolution(d, h),
    "weights": lambda d, h, k: GraphConv(d, h),
    "gcnconv": lambda d, h, k: GCNConv(d, h),
    "gine": lambda d, h, k, edge_channels: GINEConv(torch.nn.Linear(d, h), edge_dim=edge_channels),
    "gatv2": lambda d, h, k, edge_channels: GATv2Conv(d, h, edge_dim=edge_channels),
}


class SimpleConvolution(torch.nn.Module):
    """A layer of somebody's that knows nothing of edges but where they are."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.project, self.mean = torch.nn.Linear(channels, hidden), SimpleConv("mean")

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.project(self.mean(x, edge_index))


@pytest.fixture
def theirs(monkeypatch):
    monkeypatch.setattr(registry, "CONVOLUTIONS", {**CONVOLUTIONS, **THEIRS})


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("plain", None),
        ("weights", "edge_weight"),
        ("gcnconv", "edge_weight"),
        ("gine", "edge_attr"),
        ("gatv2", "edge_attr"),
    ],
)
def test_layers_of_other_people_get_what_they_take(theirs, name, taken):
    batch = make_batch(1, (6, 5), CHANNELS, dtype=torch.float64)
    data = told(batch)
    conv = make_convolution(THEIRS[name], CHANNELS, 6, 2, NUMBERS + LABELS)
    assert edges_taken(conv) is taken
    model = make_model(name)
    assert (model.edges is not None) == (taken == "edge_weight")
    x = data.x
    factors = None if model.edges is None else model.edges(data.edge_attr)
    for layer, own in enumerate(model.convs):
        more = {
            None: [],
            "edge_weight": [] if factors is None else [factors[layer]],
            "edge_attr": [data.edge_attr],
        }[taken]
        x = torch.relu(own(x, data.edge_index, *more))
    level = model.batch(data)
    for layer, own in enumerate(model.convs):
        if factors is not None:
            level = level.with_factors(factors[layer][level.edges.place])
        level = level.with_x(torch.relu(convolve(own, level)))
    torch.testing.assert_close(level.x, x, **CLOSE)
    for pool in ("topk", "lookhops", "edge"):
        both = make_model(name, pool)
        results = [both.classify(both.batch(data), masked)[0] for masked in (False, True)]
        torch.testing.assert_close(*results, **CLOSE)


def test_a_layer_that_reads_features_is_told_when_there_are_none(theirs):
    batch = make_batch(1, (6, 5), CHANNELS)
    data = Data(x=batch.x, edge_index=batch.edge_index)
    model = GraphNetwork(CHANNELS, 2, conv="gatv2", hidden=6, layers=2, edges="use")
    assert model(data).shape == (1, 2)
    pooled = make_model("gatv2", "asap")
    with pytest.raises(LookHopsError, match="GATv2Conv"):
        pooled(told(batch.to(torch.float64)))

"""Names of layers."""

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GraphConv

from batches import make_batch
from lookhops import LookHopsError
from lookhops.nn import (
    GraphNetwork,
    LiChebConv,
    LookHopsPooling,
    NodePooling,
    register_convolution,
    register_pooling,
)
from lookhops.nn.conv import Convolution
from lookhops.nn.pool import Pooling
from lookhops.nn.registry import (
    CONVOLUTIONS,
    POOLINGS,
    find,
    make_convolution,
    make_pooling,
    network_name,
    reads_k,
)


def test_the_names_of_the_command_line():
    assert list(CONVOLUTIONS) == [
        "gcn",
        "gat",
        "gin",
        "sage",
        "sgc",
        "dcnn",
        "cheb",
        "mixhop",
        "licheb",
        "limixhop",
    ]
    dropping, merging = {"topk", "sag", "ipool", "lookhops"}, {"edge", "asap", "diffpool", "hgpsl"}
    assert set(POOLINGS) == {"none"} | dropping | merging


@pytest.mark.parametrize("name", list(CONVOLUTIONS))
def test_every_convolution_is_made_the_same_way(name):
    conv = make_convolution(CONVOLUTIONS[name], 5, 7, 2, 0)
    assert isinstance(conv, Convolution)
    assert (conv.in_channels, conv.out_channels) == (5, 7)


@pytest.mark.parametrize("name", [name for name in POOLINGS if name != "none"])
def test_every_pooling_is_made_the_same_way(name):
    options = {"edge_ratio": None, "normalize": True, "activation": "sigmoid"}
    pool = make_pooling(POOLINGS[name], 7, k=2, ratio=0.5, **options)
    assert isinstance(pool, Pooling)
    assert pool.in_channels == 7


def test_none_is_no_pooling():
    assert make_pooling(POOLINGS["none"], 7, k=2, ratio=0.5) is None


def test_find_knows_the_nearest_name():
    assert find("convolution", CONVOLUTIONS, "licheb") is LiChebConv
    assert find("pooling", POOLINGS, "lookhops") is LookHopsPooling
    with pytest.raises(LookHopsError, match=r"'xyz'.*gcn, gat"):
        find("convolution", CONVOLUTIONS, "xyz")
    with pytest.raises(LookHopsError, match="'lookhops'"):
        find("pooling", POOLINGS, "LookHops".lower()[:-1])


def test_who_reads_k(monkeypatch):
    assert [name for name in CONVOLUTIONS if not reads_k(name, "none")] == [
        "gcn",
        "gat",
        "gin",
        "sage",
    ]
    assert reads_k("gcn", "lookhops")
    assert not reads_k("gcn", "topk")
    monkeypatch.setitem(CONVOLUTIONS, "mine", lambda d, h, k: GraphConv(d, h))
    assert reads_k("mine", "none")


def test_one_more_convolution(monkeypatch):
    monkeypatch.setitem(CONVOLUTIONS, "mine", None)
    register_convolution("mine", lambda d, h, k: GraphConv(d, h))
    model = GraphNetwork(4, 2, conv="mine", hidden=8)
    assert all(isinstance(conv, GraphConv) for conv in model.convs)


def test_one_more_pooling(monkeypatch):
    class First(NodePooling):
        """Keeps the first nodes."""

        def score(self, x, adjacency, anchors):
            return x.new_ones(x.shape[:-1])

    monkeypatch.setitem(POOLINGS, "first", None)
    register_pooling("first", lambda channels, k, ratio, **options: First(channels, ratio))
    model = GraphNetwork(4, 2, pool="first", hidden=8)
    assert [type(pool) for pool in model.pools] == [First]  # one module for all layers
    assert isinstance(model.pools[0], nn.Module)


def user_pooling(**members):
    """A user's own pooling that scores nodes by their anchors."""

    def score(self, x, adjacency, anchors):
        stack = anchors if isinstance(anchors, Tensor) else anchors.stack()
        return torch.sigmoid((stack * self.theta).sum((-2, -1)))

    def init(self, channels, k, ratio):
        NodePooling.__init__(self, channels, ratio)
        self.theta = nn.Parameter(torch.full((k + 1, channels), 0.1))

    return type("Mine", (NodePooling,), {"__init__": init, "score": score, **members})


def with_pooling(monkeypatch, kind) -> GraphNetwork:
    """A network with a user's pooling, its other parameters those of one seed."""
    monkeypatch.setitem(POOLINGS, "mine", None)
    register_pooling("mine", lambda channels, k, ratio, **options: kind(channels, k, ratio))
    torch.manual_seed(3)
    return GraphNetwork(4, 2, pool="mine", hidden=8, layers=3, ratio=0.6).double()


@pytest.mark.parametrize("masked", [False, True])
def test_a_users_pooling_reads_anchors_as_ours_does(monkeypatch, masked):
    """One module a layer, the anchors of its convolution, a gate on the last layer."""
    model = with_pooling(monkeypatch, user_pooling(uses_anchors=True, normalize=True))
    assert len(model.pools) == 3
    ours = GraphNetwork(4, 2, pool="lookhops", hidden=8, layers=3, ratio=0.6).double()
    ours.convs, ours.mlp = model.convs, model.mlp
    with torch.no_grad():
        for mine, pool in zip(model.pools, ours.pools, strict=True):
            mine.theta.normal_()
            pool.theta.copy_(mine.theta)
            pool.bias.zero_()
    batch = make_batch(0, sizes=[9, 6, 12], dtype=torch.float64)
    found, decisions = model.classify(batch.level(), masked)
    expected, theirs = ours.classify(batch.level(), masked)
    torch.testing.assert_close(found, expected)
    assert len(decisions) == 2
    for one, other in zip(decisions, theirs, strict=True):
        torch.testing.assert_close((one.score, one.node), (other.score, other.node))
    found.sum().backward()
    assert all(pool.theta.grad.abs().sum() > 0 for pool in model.pools)


def test_a_users_pooling_that_reads_anchors_may_reduce_its_own_way(monkeypatch):
    def reduce(self, x, score):
        return x * score.unsqueeze(-1)

    plain = with_pooling(monkeypatch, user_pooling(uses_anchors=True))
    own = with_pooling(monkeypatch, user_pooling(uses_anchors=True, reduce=reduce))
    level = make_batch(0, sizes=[9, 6, 12], dtype=torch.float64).level()
    for masked in (False, True):
        torch.testing.assert_close(own.classify(level, masked)[0], plain.classify(level, masked)[0])


def test_a_network_is_called_by_all_that_it_reads():
    beside = {"pool": "lookhops", "k": 3, "fingerprint": 5, "totals": True}
    said = network_name({"conv": "licheb", **beside})
    assert said == "licheb + lookhops, k = 3, fingerprint of 5 hops, totals"
    alone = {"conv": "none", "pool": "none", "k": 2, "fingerprint": 1, "totals": False}
    assert network_name(alone) == "fingerprint of 1 hop"
    assert network_name({"conv": "gcn", "pool": "none", "k": 2}) == "gcn"

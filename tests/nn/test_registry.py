"""Names of layers."""

import pytest
from torch import nn
from torch_geometric.nn import GraphConv

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
from lookhops.nn.registry import CONVOLUTIONS, POOLINGS, find


def test_the_names_of_the_command_line():
    assert list(CONVOLUTIONS) == ["gcn", "gat", "cheb", "mixhop", "licheb", "limixhop"]
    assert set(POOLINGS) == {"none", "topk", "sag", "edge", "asap", "lookhops"}


@pytest.mark.parametrize("name", list(CONVOLUTIONS))
def test_every_convolution_is_made_the_same_way(name):
    conv = CONVOLUTIONS[name](5, 7, 2)
    assert isinstance(conv, Convolution)
    assert (conv.in_channels, conv.out_channels) == (5, 7)


@pytest.mark.parametrize("name", [name for name in POOLINGS if name != "none"])
def test_every_pooling_is_made_the_same_way(name):
    options = {"edge_ratio": None, "normalize": True, "activation": "sigmoid"}
    pool = POOLINGS[name](7, k=2, ratio=0.5, **options)
    assert isinstance(pool, Pooling)
    assert pool.in_channels == 7


def test_none_is_no_pooling():
    assert POOLINGS["none"](7, k=2, ratio=0.5) is None


def test_find_knows_the_nearest_name():
    assert find("convolution", CONVOLUTIONS, "licheb") is LiChebConv
    assert find("pooling", POOLINGS, "lookhops") is LookHopsPooling
    with pytest.raises(LookHopsError, match=r"^There is no convolution 'xyz'; there are gcn, gat"):
        find("convolution", CONVOLUTIONS, "xyz")
    with pytest.raises(LookHopsError, match="Did you mean 'lookhops'"):
        find("pooling", POOLINGS, "LookHops".lower()[:-1])


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

"""Poolings of PyG and of torch-geometric-pool, in our network."""

import sys
from dataclasses import dataclass
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import TopKPooling

import lookhops.nn.others.poolings as poolings
from batches import make_batch, split
from lookhops import LookHopsError
from lookhops.nn import GraphNetwork, TopK
from lookhops.nn.others import find_pooling
from lookhops.nn.others.poolings import pyg_poolings

WORKING = ["TopKPooling", "SAGPooling", "EdgePooling", "ASAPooling", "PANPooling", "ClusterPooling"]


def test_every_pooling_of_pyg_is_looked_at():
    assert set(pyg_poolings()) == {*WORKING, "MemPooling"}


@pytest.mark.parametrize("name", [name for name in WORKING if name != "ClusterPooling"])
def test_a_pooling_of_pyg_pools_each_graph_alone(name):
    batch = make_batch(3, (6, 1, 8), 5)
    torch.manual_seed(0)
    model = GraphNetwork(5, 2, pool=f"pyg:{name}", hidden=8, layers=3, ratio=0.6).eval()
    found, decisions = model.classify(batch.level())
    alone = [model.classify(part.level())[0] for part in split(batch)]
    torch.testing.assert_close(torch.cat(alone), found)
    assert len(decisions) == 2
    found.square().sum().backward()
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in model.pools.parameters())


@pytest.mark.parametrize("name", [*(f"pyg:{name}" for name in WORKING), "tgp:two/k=2"])
@pytest.mark.usefixtures("tgp")
def test_a_pooling_has_its_shapes_where_nothing_is_in_memory(name):
    there = find_pooling(name)(5, k=2, ratio=0.5).state_dict()
    with torch.device("meta"):
        found = find_pooling(name)(5, k=2, ratio=0.5).state_dict()
    assert {key: own.shape for key, own in found.items()} == {
        key: own.shape for key, own in there.items()
    }


def test_of_edges_that_pyg_made_nothing_is_told():
    batch = make_batch(3, (6, 1, 8), 5)
    data = Data(batch.x, batch.edge_index, torch.rand(batch.edge_index.shape[1], 2))
    data.batch, data.num_graphs = batch.batch, 3
    options = {"pool": "pyg:TopKPooling", "edges": "use", "num_edge_numbers": 2}
    model = GraphNetwork(5, 2, hidden=8, layers=3, **options)
    assert model(data).shape == (3, 2)
    reads = GraphNetwork(5, 2, conv="pyg:GINEConv", hidden=8, layers=2, **options)
    with pytest.raises(LookHopsError, match="edges"):
        reads(data)


def test_pygs_topk_is_ours():
    batch = make_batch(3, (6, 1, 8), 5)
    theirs = find_pooling("pyg:TopKPooling")(5, k=2, ratio=0.6)
    ours = TopK(5, 0.6)
    assert isinstance(theirs.layer, TopKPooling)
    ours.direction.weight.data = theirs.layer.select.weight.data
    (found, kept), (expected, wanted) = (p.pool(batch.level()) for p in (theirs, ours))
    torch.testing.assert_close(found.x, expected.x)
    assert torch.equal(kept.node, wanted.node)
    assert torch.equal(found.graph, expected.graph)
    assert torch.equal(found.place, expected.place)
    assert torch.equal(found.adjacency.edge_index, expected.adjacency.edge_index)


@dataclass
class Output:
    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor | None
    batch: Tensor
    loss: dict[str, Tensor] | None = None


class TwoClusters(nn.Module):
    """As torch-geometric-pool's poolings are called: two soft clusters a graph, with a loss."""

    def __init__(self, in_channels: int, k: int, sparse_output: bool = False):
        super().__init__()
        assert sparse_output
        self.k, self.lin = k, nn.Linear(in_channels, k)

    def forward(self, x, adj, edge_weight=None, batch=None):
        share = self.lin(x).softmax(1)
        graphs = int(batch.max()) + 1
        number = batch[:, None] * self.k + torch.arange(self.k)
        rows = (share[:, :, None] * x[:, None]).flatten(0, 1)
        pooled = x.new_zeros(graphs * self.k, x.shape[1]).index_add(0, number.flatten(), rows)
        first = torch.arange(graphs) * self.k
        edges = torch.stack((torch.cat((first, first + 1)), torch.cat((first + 1, first))))
        owner = torch.arange(graphs * self.k) // self.k
        losses = {"one": share.square().mean(), "two": share.mean()}
        return Output(pooled, edges, None, owner, losses)


@pytest.fixture
def tgp(monkeypatch):
    """A library with the face of torch-geometric-pool, which is no dependency of ours."""
    package, poolers = ModuleType("tgp"), ModuleType("tgp.poolers")
    poolers.pooler_map = {"two": TwoClusters}
    monkeypatch.setitem(sys.modules, "tgp", package)
    monkeypatch.setitem(sys.modules, "tgp.poolers", poolers)


@pytest.mark.usefixtures("tgp")
def test_a_pooling_of_torch_geometric_pool_and_its_losses():
    batch = make_batch(3, (6, 1, 8), 5)
    model = GraphNetwork(5, 2, pool="tgp:two/k=2", hidden=8, layers=2)
    outputs, added = model(batch.level(), with_loss=True)
    assert outputs.shape == (3, 2)
    assert added.shape == (3,)
    (outputs.sum() + added.mean()).backward()
    assert model.pools[0].layer.lin.weight.grad.abs().sum() > 0
    assert type(find_pooling("tgp:TwoClusters/k=2")(8, k=2, ratio=0.5).layer) is TwoClusters


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pyg:MemPooling", "pyg:MemPooling"),
        ("pyg:TopPooling", "'TopPooling'.*pyg:TopKPooling"),
        ("pyg:TopKPooling/ration=0.5", "'ration'.*'ratio'"),
        ("pyg:TopKPooling/nonlinearity=xyz", "pyg:TopKPooling"),
        ("tgp:two", "tgp:two/k="),
        ("tgp:three", "'three'"),
    ],
)
@pytest.mark.usefixtures("tgp")
def test_refuses_in_a_sentence(name, said):
    with pytest.raises(LookHopsError, match=said):
        find_pooling(name)(8, k=2, ratio=0.5)


def test_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tgp", None)
    monkeypatch.setitem(sys.modules, "tgp.poolers", None)
    with pytest.raises(LookHopsError, match="torch-geometric-pool"):
        find_pooling("tgp:kmis")


def test_cannot_be_masked():
    pool = find_pooling("pyg:TopKPooling")(5, k=2, ratio=0.5)
    with pytest.raises(LookHopsError, match="TopKPooling"):
        pool.pool(poolings._small_batch(5), masked=True)

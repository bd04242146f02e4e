"""Every convolution of PyG: it works, or there is a reason."""

import pytest
import torch
from torch_geometric.nn import GATv2Conv, TAGConv

from batches import make_batch
from lookhops import LookHopsError
from lookhops.nn import GraphNetwork
from lookhops.nn.others import find_convolution, is_other
from lookhops.nn.others.convolutions import pyg_convolutions, survey

#: What does not fit, and a word of the reason; what has no line here must work.
REASONS = {
    "CuGraphSAGEConv": "pylibcugraphops",
    "CuGraphGATConv": "edge_attr",
    "CuGraphRGCNConv": "edge_type",
    "FusedGATConv": "csr",
    "GravNetConv": "not called with",
    "DynamicEdgeConv": "not called with",
    "HeteroConv": "not called with",
    "RGCNConv": "edge_type",
    "FastRGCNConv": "edge_type",
    "RGATConv": "edge_type",
    "SignedConv": "neg_edge_index",
    "DNAConv": "num_layers",
    "PointNetConv": "pos",
    "XConv": "pos",
    "PPFConv": "normal",
    "PointTransformerConv": "pos",
    "PointGNNConv": "pos",
    "HypergraphConv": "hyperedge_index",
    "NNConv": "nn, which a name cannot give",
    "PNAConv": "aggregators, which a name cannot give",
    "GPSConv": "conv, which a name cannot give",
    "DirGNNConv": "conv, which a name cannot give",
    "SplineConv": "kernel_size",
    "GCN2Conv": "x_0",
    "FAConv": "x_0",
    "PANConv": "torch-sparse",
    "WLConv": "check of its own",
    "HGTConv": "x_dict",
    "HANConv": "x_dict",
    "HEATConv": "node_type",
    "MeshCNNConv": "does not work so",
}
#: What works only where edges have features.
OF_EDGES = {"GINEConv", "GMMConv", "PDNConv"}


def layer_of(name: str) -> str:
    return name.removeprefix("pyg:").partition("/")[0]


@pytest.mark.parametrize("edge_channels", [None, 3])
def test_every_convolution_of_pyg_works_or_there_is_a_reason(edge_channels):
    found = {layer_of(name): why for name, why in survey(edge_channels)}
    assert set(found) == set(pyg_convolutions())
    assert REASONS.keys() <= found.keys()
    for layer, why in found.items():
        if layer in REASONS:
            expected = "needs graphs with edge features" if edge_channels is None else ""
            assert REASONS[layer] in why or (expected and expected in why), layer
        elif layer in OF_EDGES and edge_channels is None:
            assert "it needs graphs with edge features" in why, layer
        else:
            assert why == "", layer
    assert sum(not why for why in found.values()) >= 30


def test_what_works_trains_in_a_network():
    batch = make_batch(3, (6, 1, 8), 5)
    for name, why in survey():
        if why:
            continue
        model = GraphNetwork(5, 2, conv=name, hidden=24, layers=2)
        out = model(batch.level())
        assert out.shape == (3, 2), name
        out.square().sum().backward()
        assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in model.convs.parameters())


@pytest.mark.parametrize("edge_channels", [None, 3])
def test_what_works_has_its_shapes_where_nothing_is_in_memory(edge_channels):
    """As a model folder is looked at: most layers cannot run on that device."""
    options = {"edges": "use", "num_edge_numbers": edge_channels or 0, "hidden": 24, "layers": 2}
    for name, why in survey(edge_channels):
        if not why:
            there = GraphNetwork(5, 2, conv=name, **options).state_dict()
            with torch.device("meta"):
                found = GraphNetwork(5, 2, conv=name, **options).state_dict()
            assert {key: own.shape for key, own in found.items()} == {
                key: own.shape for key, own in there.items()
            }, name


def test_options_go_to_the_class_and_heads_share_the_width():
    layer = find_convolution("pyg:GATv2Conv/heads=4")(5, 24, 2)
    assert isinstance(layer, GATv2Conv)
    assert (layer.heads, layer.out_channels) == (4, 6)
    layer = find_convolution("pyg:GATv2Conv/concat=false/heads=4")(5, 24, 2)
    assert (layer.heads, layer.out_channels, layer.concat) == (4, 24, False)
    layer = find_convolution("pyg:TAGConv/K=3")(5, 24, 2)
    assert isinstance(layer, TAGConv)
    assert layer.K == 3


def test_a_layer_of_pyg_computes_what_pyg_computes():
    batch = make_batch(3, (6, 1, 8), 5, weighted=True)
    torch.manual_seed(0)
    ours = find_convolution("pyg:TAGConv/K=2")(5, 8, 2)
    theirs = TAGConv(5, 8, K=2)
    theirs.load_state_dict(ours.state_dict())
    expected = theirs(batch.x, batch.edge_index, batch.edge_weight)
    torch.testing.assert_close(ours(batch.x, batch.edge_index, batch.edge_weight), expected)


def test_edge_features_are_handed_to_those_that_take_them():
    make = find_convolution("pyg:GATv2Conv")
    assert make(5, 8, 2, edge_channels=3).edge_dim == 3
    assert make(5, 8, 2).edge_dim is None
    assert not find_convolution("pyg:GCNConv").reads_edges


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pyg:GATv3Conv", "'GATv3Conv'.*pyg:GAT"),
        ("pyg:ChebConv", "pyg:ChebConv/K="),
        ("pyg:GATv2Conv/heads=5", "120 .* 24 "),
        ("pyg:GATv2Conv/heads=two", "heads.*'two'"),
        ("pyg:GATv2Conv/head=2", "'head'.*'heads'"),
        ("pyg:GATv2Conv/heads", "name=value"),
        ("pyg:GCNConv/cached=true", "cached"),
        ("pyg:GINEConv", "edges=use"),
        ("pyg:GATv2Conv/heads=0", "pyg:GATv2Conv"),
        ("tgp:kmis", "torch-geometric-pool"),
    ],
)
def test_refuses_in_a_sentence(name, said):
    assert is_other(name)
    with pytest.raises(LookHopsError, match=said):
        find_convolution(name)(5, 24, 2)

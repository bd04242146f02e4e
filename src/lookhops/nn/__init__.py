"""Layers and the network: drop-in for PyTorch Geometric."""

from lookhops.core.options import RECOMMENDED, Architecture
from lookhops.nn.conv import (
    DCNN,
    GAT,
    GCN,
    GIN,
    SAGE,
    SGC,
    Cheb,
    Convolution,
    LiChebConv,
    LiMixHopConv,
    MixHop,
)
from lookhops.nn.edges import EdgeFactors
from lookhops.nn.network import GraphNetwork
from lookhops.nn.plugins import load_plugin
from lookhops.nn.pool import (
    ASAP,
    HGPSL,
    SAG,
    DiffPool,
    Edge,
    IPool,
    LookHopsPooling,
    NodePooling,
    Pooling,
    TopK,
)
from lookhops.nn.registry import register_convolution, register_pooling
from lookhops.ops.activate import readout
from lookhops.ops.batch import EdgeInputs, GraphBatch, Pooled

__all__ = [
    "ASAP",
    "DCNN",
    "GAT",
    "GCN",
    "GIN",
    "HGPSL",
    "RECOMMENDED",
    "SAG",
    "SAGE",
    "SGC",
    "Architecture",
    "Cheb",
    "Convolution",
    "DiffPool",
    "Edge",
    "EdgeFactors",
    "EdgeInputs",
    "GraphBatch",
    "GraphNetwork",
    "IPool",
    "LiChebConv",
    "LiMixHopConv",
    "LookHopsPooling",
    "MixHop",
    "NodePooling",
    "Pooled",
    "Pooling",
    "TopK",
    "load_plugin",
    "readout",
    "register_convolution",
    "register_pooling",
]

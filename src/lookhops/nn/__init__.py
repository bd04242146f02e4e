"""Layers and the network: drop-in for PyTorch Geometric."""

from lookhops.nn.conv import (
    GAT,
    GCN,
    GIN,
    SAGE,
    Cheb,
    Convolution,
    LiChebConv,
    LiMixHopConv,
    MixHop,
)
from lookhops.nn.edges import EdgeFactors, EdgeInputs
from lookhops.nn.level import Level, Pooled
from lookhops.nn.network import GraphNetwork
from lookhops.nn.pool import ASAP, SAG, Edge, LookHopsPooling, NodePooling, Pooling, TopK
from lookhops.nn.readout import readout
from lookhops.nn.registry import register_convolution, register_pooling
from lookhops.options import RECOMMENDED, Architecture

__all__ = [
    "ASAP",
    "GAT",
    "GCN",
    "GIN",
    "RECOMMENDED",
    "SAG",
    "SAGE",
    "Architecture",
    "Cheb",
    "Convolution",
    "Edge",
    "EdgeFactors",
    "EdgeInputs",
    "GraphNetwork",
    "Level",
    "LiChebConv",
    "LiMixHopConv",
    "LookHopsPooling",
    "MixHop",
    "NodePooling",
    "Pooled",
    "Pooling",
    "TopK",
    "readout",
    "register_convolution",
    "register_pooling",
]

"""Layers and the network: drop-in for PyTorch Geometric."""

from lookhops.core.options import RECOMMENDED, Architecture
from lookhops.nn import conv, pool
from lookhops.nn.conv import *  # noqa: F403
from lookhops.nn.layer import EdgeFactors
from lookhops.nn.network import GraphNetwork
from lookhops.nn.pool import *  # noqa: F403
from lookhops.nn.registry import load_plugin, register_convolution, register_pooling
from lookhops.ops.activate import readout
from lookhops.ops.batch import EdgeInputs, GraphBatch, Pooled

__all__ = [
    "RECOMMENDED",
    "Architecture",
    "EdgeFactors",
    "EdgeInputs",
    "GraphBatch",
    "GraphNetwork",
    "Pooled",
    "load_plugin",
    "readout",
    "register_convolution",
    "register_pooling",
    *conv.__all__,
    *pool.__all__,
]

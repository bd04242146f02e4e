"""Layers and the network: drop-in for PyTorch Geometric."""

from lookhops.nn.classifier import Architecture, GraphClassifier
from lookhops.nn.conv import Convolution, LiChebConv, LiMixHopConv
from lookhops.nn.level import Level, Pooled
from lookhops.nn.pool import LookHopsPooling, NodePooling, Pooling
from lookhops.nn.readout import readout
from lookhops.nn.registry import register_convolution, register_pooling

__all__ = [
    "Architecture",
    "Convolution",
    "GraphClassifier",
    "Level",
    "LiChebConv",
    "LiMixHopConv",
    "LookHopsPooling",
    "NodePooling",
    "Pooled",
    "Pooling",
    "readout",
    "register_convolution",
    "register_pooling",
]

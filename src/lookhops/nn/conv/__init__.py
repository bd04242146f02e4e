"""Convolutions."""

from lookhops.nn.conv.base import Convolution
from lookhops.nn.conv.cheb import Cheb
from lookhops.nn.conv.gat import GAT
from lookhops.nn.conv.gcn import GCN
from lookhops.nn.conv.light import LiChebConv, LightConv, LiMixHopConv
from lookhops.nn.conv.mixhop import MixHop

__all__ = ["GAT", "GCN", "Cheb", "Convolution", "LiChebConv", "LiMixHopConv", "LightConv", "MixHop"]

"""Convolutions."""

from lookhops.nn.conv.base import Convolution
from lookhops.nn.conv.cheb import Cheb
from lookhops.nn.conv.dcnn import DCNN
from lookhops.nn.conv.gat import GAT
from lookhops.nn.conv.gcn import GCN
from lookhops.nn.conv.gin import GIN
from lookhops.nn.conv.light import LiChebConv, LightConv, LiMixHopConv
from lookhops.nn.conv.mixhop import MixHop
from lookhops.nn.conv.sage import SAGE
from lookhops.nn.conv.sgc import SGC

__all__ = [
    "DCNN",
    "GAT",
    "GCN",
    "GIN",
    "SAGE",
    "SGC",
    "Cheb",
    "Convolution",
    "LiChebConv",
    "LiMixHopConv",
    "LightConv",
    "MixHop",
]

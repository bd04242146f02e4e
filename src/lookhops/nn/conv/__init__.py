"""Convolutions."""

from lookhops.nn.conv.base import Convolution
from lookhops.nn.conv.light import LiChebConv, LightConv, LiMixHopConv

__all__ = ["Convolution", "LiChebConv", "LiMixHopConv", "LightConv"]

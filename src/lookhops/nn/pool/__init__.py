"""Poolings."""

from lookhops.nn.pool.base import NodePooling, Pooling
from lookhops.nn.pool.lookhops import LookHopsPooling

__all__ = ["LookHopsPooling", "NodePooling", "Pooling"]

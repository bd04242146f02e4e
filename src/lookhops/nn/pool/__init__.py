"""Poolings."""

from lookhops.nn.pool.asap import ASAP
from lookhops.nn.pool.base import NodePooling, Pooling
from lookhops.nn.pool.edge import Edge
from lookhops.nn.pool.lookhops import LookHopsPooling
from lookhops.nn.pool.sag import SAG
from lookhops.nn.pool.topk import TopK

__all__ = ["ASAP", "SAG", "Edge", "LookHopsPooling", "NodePooling", "Pooling", "TopK"]

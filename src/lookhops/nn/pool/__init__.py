"""Poolings."""

from lookhops.nn.pool.asap import ASAP
from lookhops.nn.pool.base import NodePooling, Pooling
from lookhops.nn.pool.diffpool import DiffPool
from lookhops.nn.pool.edge import Edge
from lookhops.nn.pool.hgpsl import HGPSL
from lookhops.nn.pool.ipool import IPool
from lookhops.nn.pool.lookhops import LookHopsPooling
from lookhops.nn.pool.sag import SAG
from lookhops.nn.pool.topk import TopK

__all__ = [
    "ASAP",
    "HGPSL",
    "SAG",
    "DiffPool",
    "Edge",
    "IPool",
    "LookHopsPooling",
    "NodePooling",
    "Pooling",
    "TopK",
]

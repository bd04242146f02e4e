"""Poolings, in the order in which lists of names have them: a line here adds one."""

# ruff: noqa: I001

from lookhops.nn.pool.base import NodePooling as NodePooling
from lookhops.nn.pool.base import Pooling as Pooling
from lookhops.nn.pool.topk import TopK as TopK
from lookhops.nn.pool.sag import SAG as SAG
from lookhops.nn.pool.edge import Edge as Edge
from lookhops.nn.pool.asap import ASAP as ASAP
from lookhops.nn.pool.diffpool import DiffPool as DiffPool
from lookhops.nn.pool.hgpsl import HGPSL as HGPSL
from lookhops.nn.pool.ipool import IPool as IPool
from lookhops.nn.pool.lookhops import LookHopsPooling as LookHopsPooling

#: The poolings by their names.
NAMED = {
    kind.name: kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, Pooling) and kind.name
}
__all__ = ["NodePooling", "Pooling", *(kind.__name__ for kind in NAMED.values())]

"""Convolutions, in the order in which lists of names have them: a line here adds one."""

# ruff: noqa: I001

from lookhops.nn.conv.base import Convolution as Convolution
from lookhops.nn.conv.light import LightConv as LightConv
from lookhops.nn.conv.gcn import GCN as GCN
from lookhops.nn.conv.gat import GAT as GAT
from lookhops.nn.conv.gin import GIN as GIN
from lookhops.nn.conv.sage import SAGE as SAGE
from lookhops.nn.conv.sgc import SGC as SGC
from lookhops.nn.conv.dcnn import DCNN as DCNN
from lookhops.nn.conv.cheb import Cheb as Cheb
from lookhops.nn.conv.mixhop import MixHop as MixHop
from lookhops.nn.conv.light import LiChebConv as LiChebConv
from lookhops.nn.conv.light import LiMixHopConv as LiMixHopConv

#: The convolutions by their names.
NAMED = {
    kind.name: kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, Convolution) and kind.name
}
__all__ = ["Convolution", "LightConv", *(kind.__name__ for kind in NAMED.values())]

"""Names of layers: what the command line calls ``licheb`` is a class here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from torch import nn

from lookhops.errors import LookHopsError
from lookhops.nn.conv.cheb import Cheb
from lookhops.nn.conv.dcnn import DCNN
from lookhops.nn.conv.gat import GAT
from lookhops.nn.conv.gcn import GCN
from lookhops.nn.conv.gin import GIN
from lookhops.nn.conv.light import LiChebConv, LiMixHopConv
from lookhops.nn.conv.mixhop import MixHop
from lookhops.nn.conv.sage import SAGE
from lookhops.nn.conv.sgc import SGC
from lookhops.nn.pool.asap import ASAP
from lookhops.nn.pool.diffpool import DiffPool
from lookhops.nn.pool.edge import Edge
from lookhops.nn.pool.hgpsl import HGPSL
from lookhops.nn.pool.ipool import IPool
from lookhops.nn.pool.lookhops import LookHopsPooling
from lookhops.nn.pool.sag import SAG
from lookhops.nn.pool.topk import TopK
from lookhops.options import CLASSICAL

#: Makes a convolution from ``(in_channels, out_channels, k)``.
MakeConvolution = Callable[[int, int, int], nn.Module]
#: Makes a pooling from ``(channels, k, ratio)`` and the options that LookHops pooling takes.
MakePooling = Callable[..., nn.Module | None]


@dataclass(frozen=True)
class OneHop:
    """Makes a convolution that looks one hop, whatever k is."""

    layer: type[nn.Module]
    reads_k = False

    def __call__(self, in_channels: int, out_channels: int, k: int) -> nn.Module:
        """The layer, without k."""
        return self.layer(in_channels, out_channels)


CONVOLUTIONS: dict[str, MakeConvolution] = {
    "gcn": OneHop(GCN),
    "gat": OneHop(GAT),
    "gin": OneHop(GIN),
    "sage": OneHop(SAGE),
    "sgc": SGC,
    "dcnn": DCNN,
    "cheb": Cheb,
    "mixhop": MixHop,
    "licheb": LiChebConv,
    "limixhop": LiMixHopConv,
}
POOLINGS: dict[str, MakePooling] = {
    "none": lambda channels, k, ratio, **options: None,
    "topk": lambda channels, k, ratio, **options: TopK(channels, ratio),
    "sag": lambda channels, k, ratio, **options: SAG(channels, ratio),
    "edge": lambda channels, k, ratio, **options: Edge(channels),
    "asap": lambda channels, k, ratio, **options: ASAP(channels, ratio),
    "diffpool": lambda channels, k, ratio, **options: DiffPool(channels, ratio),
    "hgpsl": lambda channels, k, ratio, **options: HGPSL(channels, ratio),
    "ipool": lambda channels, k, ratio, **options: IPool(channels, ratio),
    "lookhops": LookHopsPooling,
}
#: What comes with LookHops, and keeps its name.
BUILT_IN = frozenset((*CONVOLUTIONS, *POOLINGS, *CLASSICAL, "recommended", "fingerprint"))


def register_convolution(name: str, make: MakeConvolution) -> None:
    """Let ``name`` stand for a convolution everywhere a name is taken.

    ``make(in_channels, out_channels, k)`` returns the module: one of ours, or any of PyG's that is
    called with ``(x, edge_index)``, such as ``lambda d, h, k: GraphConv(d, h)``.
    """
    CONVOLUTIONS[_new(name)] = make


def register_pooling(name: str, make: MakePooling) -> None:
    """Let ``name`` stand for a pooling everywhere a name is taken.

    ``make(channels, k, ratio, **options)`` returns a :class:`~lookhops.nn.Pooling`.
    """
    POOLINGS[_new(name)] = make


def reads_k(conv: str, pool: str) -> bool:
    """Whether the number of hops changes a network of these layers; a user's own may read it."""
    if conv == "none":
        return False
    read_by_conv = getattr(CONVOLUTIONS.get(conv), "reads_k", True)
    return read_by_conv or getattr(POOLINGS.get(pool), "uses_anchors", pool not in BUILT_IN)


def network_name(architecture: Mapping[str, Any]) -> str:
    """What a network is called: ``licheb + lookhops, k = 2, fingerprint of 5 hops, totals``."""
    conv, pool, k = (architecture[key] for key in ("conv", "pool", "k"))
    parts = [] if conv == "none" else [conv + (f" + {pool}" if pool != "none" else "")]
    if reads_k(conv, pool):
        parts.append(f"k = {k}")
    if (hops := architecture.get("fingerprint")) is not None:
        parts.append(f"fingerprint of {hops} hop{'' if hops == 1 else 's'}")
    if architecture.get("totals"):
        parts.append("totals")
    return ", ".join(parts)


def _new(name: str) -> str:
    if name in BUILT_IN:
        raise LookHopsError(f"{name!r} is a name that LookHops has given; choose another.")
    if not re.fullmatch(r"[\w.-]+", name):
        raise LookHopsError(
            f"{name!r} cannot be the name of a layer: take letters, digits, dots, - and _."
        )
    return name


def find(kind: str, table: Mapping[str, Any], name: str) -> Any:
    """What is called ``name``, or a sentence that names the nearest."""
    if name in table:
        return table[name]
    near = get_close_matches(name, table, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise LookHopsError(f"There is no {kind} {name!r}; there are {', '.join(table)}.{hint}")

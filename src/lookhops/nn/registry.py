"""Names of layers: what the command line calls ``licheb`` is a class here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from torch import nn

from lookhops.errors import LookHopsError
from lookhops.nn.conv.light import LiChebConv, LiMixHopConv
from lookhops.nn.pool.lookhops import LookHopsPooling

#: Makes a convolution from ``(in_channels, out_channels, k)``.
MakeConvolution = Callable[[int, int, int], nn.Module]
#: Makes a pooling from ``(channels, k, ratio)`` and the options that LookHops pooling takes.
MakePooling = Callable[..., nn.Module | None]

CONVOLUTIONS: dict[str, MakeConvolution] = {
    "licheb": LiChebConv,
    "limixhop": LiMixHopConv,
}
POOLINGS: dict[str, MakePooling] = {
    "none": lambda channels, k, ratio, **options: None,
    "lookhops": LookHopsPooling,
}


def register_convolution(name: str, make: MakeConvolution) -> None:
    """Let ``name`` stand for a convolution everywhere a name is taken.

    ``make(in_channels, out_channels, k)`` returns the module: one of ours, or any of PyG's that is
    called with ``(x, edge_index)``, such as ``lambda d, h, k: SAGEConv(d, h)``.
    """
    CONVOLUTIONS[name] = make


def register_pooling(name: str, make: MakePooling) -> None:
    """Let ``name`` stand for a pooling everywhere a name is taken.

    ``make(channels, k, ratio, **options)`` returns a :class:`~lookhops.nn.Pooling`.
    """
    POOLINGS[name] = make


def find(kind: str, table: Mapping[str, Callable[..., Any]], name: str) -> Callable[..., Any]:
    """The maker called ``name``, or a sentence that names the nearest."""
    if name in table:
        return table[name]
    near = get_close_matches(name, table, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise LookHopsError(f"There is no {kind} {name!r}; there are {', '.join(table)}.{hint}")

"""Convolutions of PyG by name: those that take node features and edges, and give node features."""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from inspect import Parameter
from typing import Any

import torch
from torch import Tensor, nn

from lookhops.core.errors import LookHopsError
from lookhops.core.words import joined
from lookhops.nn.others.names import OtherName, arguments, is_plain, named_arguments, tried

#: Arguments that say how wide a layer is; the network gives them.
WIDTHS = ("in_channels", "out_channels", "channels")
#: What classes call the number of edge features.
EDGE_WIDTHS = ("edge_dim", "in_edge_channels", "dim")
NEEDS_EDGES = "reads what edges carry: it needs graphs with edge features, and edges=use."


@dataclass(frozen=True)
class OtherConvolution:
    """Makes a convolution of PyG: ``make(in_channels, out_channels, k, edge_channels=None)``."""

    name: OtherName
    kind: type[nn.Module]
    reads_edges: bool  # it is given the number of their features

    def __call__(
        self, in_channels: int, out_channels: int, k: int, edge_channels: int | None = None
    ) -> nn.Module:
        """The layer, tried on a small graph, or a sentence that says why there is none."""
        widths = in_channels, out_channels, edge_channels if self.reads_edges else None
        return tried(lambda: self._tried(*widths), lambda: self._made(*widths))

    def _tried(self, in_channels: int, out_channels: int, edge_channels: int | None) -> nn.Module:
        """The layer, of whose width a trial is asked.

        A class without ``in_channels`` and ``out_channels`` gives as many channels as it takes: a
        dense layer stands before it. One whose heads stand side by side gets as many channels a
        head as make up the width asked for.
        """
        layer = self._made(in_channels, out_channels, edge_channels)
        width = self._try(layer, in_channels, edge_channels)
        if width != out_channels:
            parts = width // out_channels
            if width % out_channels or out_channels % parts:
                self.name.refuse(
                    f"gives {width} channels where {out_channels} are wanted; choose its options, "
                    "or the network's hidden, so that they divide."
                )
            layer = self._made(in_channels, out_channels, edge_channels, parts)
            if self._try(layer, in_channels, edge_channels) != out_channels:
                self.name.refuse(f"cannot be made to give {out_channels} channels.")
        return layer

    def _made(
        self, in_channels: int, out_channels: int, edge_channels: int | None, parts: int = 1
    ) -> nn.Module:
        known = arguments(self.kind)
        widens = {"in_channels", "out_channels"} <= {*known} or "nn" in known
        start = in_channels if widens else out_channels
        offered: dict[str, Any] = dict(
            zip(WIDTHS, (start, out_channels // parts, out_channels), strict=True)
        )
        if edge_channels is not None:
            offered |= dict.fromkeys(EDGE_WIDTHS, edge_channels)
        elif any(known[n].default is Parameter.empty for n in EDGE_WIDTHS if n in known):
            self.name.refuse(NEEDS_EDGES)
        if "nn" in known and "in_channels" not in known:
            ends = 2 if self.kind.__name__ == "EdgeConv" else 1  # of an edge, which it reads
            dense = nn.Linear(ends * start, out_channels), nn.Linear(out_channels, out_channels)
            offered["nn"] = nn.Sequential(dense[0], nn.ReLU(), dense[1])
        layer: Any = self.name.make(self.kind, offered)
        if not widens:
            layer.widen = nn.Linear(in_channels, out_channels)
            layer.register_forward_pre_hook(_widened)
        layer.register_forward_hook(_features_alone)
        return layer

    def _try(self, layer: nn.Module, in_channels: int, edge_channels: int | None) -> int:
        """How many channels the layer gives on a small graph."""
        source = torch.tensor([0, 1, 1, 2, 2, 3])
        target = torch.tensor([1, 0, 2, 1, 3, 2])
        x = torch.linspace(-1, 1, 4 * in_channels).view(4, in_channels)
        edges = torch.stack((source, target))
        features = {} if edge_channels is None else {"edge_attr": torch.ones(6, edge_channels)}
        layer.eval()
        try:
            with torch.no_grad():
                found = self.name.attempt(lambda: layer(x, edges, **features))
        except LookHopsError:
            if edge_channels is None and self._works_with_edges(in_channels):
                self.name.refuse(NEEDS_EDGES)
            raise
        layer.train()
        is_features = isinstance(found, Tensor) and found.dim() == 2 and len(found) == 4
        if not is_features or not found.is_floating_point():
            self.name.refuse("does not give a row of features for each node.")
        return found.shape[1]

    def _works_with_edges(self, in_channels: int) -> bool:
        """Whether the layer works where edges have features."""
        try:
            layer = self._made(in_channels, 24, 1)
            return self.reads_edges and self._try(layer, in_channels, 1) > 0
        except LookHopsError:
            return False


def find_convolution(text: str) -> OtherConvolution:
    """What makes the convolution of a name such as ``pyg:GATv2Conv/heads=4``."""
    name = OtherName.parse(text)
    if name.package != "pyg":
        name.refuse("is no convolution: torch-geometric-pool has poolings only.")
    kind = name.find(pyg_convolutions(), "convolution")
    takes = _check_takes(name, kind)
    return OtherConvolution(name, kind, "edge_attr" in takes)


@cache
def pyg_convolutions() -> dict[str, type[nn.Module]]:
    """The convolutions of the installed PyG."""
    import torch_geometric.nn.conv as library

    found = {name: getattr(library, name) for name in library.__all__}
    return {
        name: kind
        for name, kind in found.items()
        if inspect.isclass(kind) and issubclass(kind, nn.Module) and name != "MessagePassing"
    }


def _check_takes(name: OtherName, kind: type[nn.Module]) -> set[str]:
    """What a layer is called with; refused where that is more than node features and edges."""
    takes = named_arguments(kind.forward)
    needed = [name for name, argument in takes.items() if argument.default is Parameter.empty]
    more = [argument for argument in needed if argument not in ("x", "edge_index")]
    relations = arguments(kind).get("num_relations")
    if relations is not None and relations.default is Parameter.empty:
        more = ["edge_type"]  # though its signature says that it may be missing
    if more:
        name.refuse(f"needs {joined(more)}: more than node features and edges.")
    if needed != ["x", "edge_index"]:
        name.refuse("is not called with node features and edges.")
    return set(takes)


def _widened(layer: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    return layer.widen(given[0]), *given[1:]


def _features_alone(layer: nn.Module, given: tuple[Any, ...], found: Any) -> Any:
    return found[0] if isinstance(found, tuple) else found


def survey(edge_channels: int | None = None) -> Iterator[tuple[str, str]]:
    """Each convolution of PyG: its name with the options it needs; why it does not work, if so."""
    for layer, kind in pyg_convolutions().items():
        name = OtherName("pyg", layer, _needed_options(kind))
        try:
            find_convolution(str(name))(5, 24, 1, edge_channels)
        except LookHopsError as error:
            yield str(name), str(error).removeprefix(f"pyg:{layer} ")
        else:
            yield str(name), ""


def _needed_options(kind: type[nn.Module]) -> dict[str, str]:
    """Values for what a class needs besides its widths: 2, or 0.5 where it wants a fraction."""
    given = (*WIDTHS, *EDGE_WIDTHS, "nn")
    return {
        name: "0.5" if argument.annotation is float else "2"
        for name, argument in arguments(kind).items()
        if argument.default is Parameter.empty and name not in given and is_plain(argument)
    }

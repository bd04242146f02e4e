"""``lookhops params``: how many parameters a network has, in all and part by part."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from lookhops.cli.common import Json, out, print_json
from lookhops.cli.groups import with_groups
from lookhops.cli.reading import Reading, Source
from lookhops.errors import LookHopsError

if TYPE_CHECKING:
    from torch import nn

    from lookhops.nn import GraphClassifier


@with_groups
def params(
    source: Source,
    conv: Annotated[
        str, typer.Option(help="licheb, limixhop, gcn, gat, cheb or mixhop.")
    ] = "licheb",
    pool: Annotated[
        str, typer.Option(help="lookhops, none, topk, sag, edge or asap.")
    ] = "lookhops",
    k: Annotated[int, typer.Option(help="Hops that a layer looks.")] = 2,
    hidden: Annotated[int, typer.Option(help="Channels of a layer.")] = 128,
    layers: Annotated[int, typer.Option(help="Layers.")] = 5,
    ratio: Annotated[float, typer.Option(help="Fraction of nodes that pooling keeps.")] = 0.9,
    edge_ratio: Annotated[
        float | None, typer.Option(help="Fraction of edges that it keeps.", show_default="all")
    ] = None,
    readout: Annotated[
        str, typer.Option(help="Of each graph: max+mean (the paper's) or max+mean+sum.")
    ] = "max+mean+sum",
    json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Count the parameters of the network that these graphs would get."""
    from lookhops.encoding import Encoding
    from lookhops.nn import GraphClassifier

    graphs = reading.load(source)
    if graphs.num_classes < 1:
        raise LookHopsError(f"{graphs.name}: these graphs have no classes to tell apart.")
    features = Encoding.fit(graphs).width
    model = GraphClassifier(
        features,
        graphs.num_classes,
        conv=conv,
        pool=pool,
        k=k,
        hidden=hidden,
        layers=layers,
        ratio=ratio,
        edge_ratio=edge_ratio,
        readout=readout,
    )
    parts = [
        {"part": part, "layer": layer, "parameters": _count(module)}
        for part, layer, module in _parts(model)
    ]
    result = {
        "source": graphs.name,
        "features": features,
        "classes": graphs.num_classes,
        "architecture": asdict(model.architecture),
        "parameters": _count(model),
        "parts": parts,
    }
    if json:
        print_json(result)
    else:
        _print(result)


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _parts(model: GraphClassifier) -> list[tuple[str, str, nn.Module]]:
    """The modules that hold parameters: what each is for, what it is, and it."""
    found = []
    for number, conv in enumerate(model.convs, start=1):
        found.append((f"convolution {number}", _name(conv), conv))
    shared = len(model.pools) < len(model.convs)
    for number, pool in enumerate(model.pools, start=1):
        found.append(("pooling" if shared else f"pooling {number}", _name(pool), pool))
    dense = [layer for layer in model.mlp if _count(layer)]
    for number, layer in enumerate(dense, start=1):
        found.append(
            (f"dense {number}", f"Linear({layer.in_features}, {layer.out_features})", layer)
        )
    return found


def _name(module: nn.Module) -> str:
    size = module.extra_repr().split(", ratio=")[0]  # what follows has no parameters
    return f"{type(module).__name__}({size})"


def _print(result: dict[str, Any]) -> None:
    table = Table(
        title=f"{escape(result['source'])}: {result['features']} features, "
        f"{result['classes']} classes",
        title_justify="left",
        show_footer=True,
    )
    table.add_column("part", footer="in all")
    table.add_column("layer")
    table.add_column("parameters", justify="right", footer=f"{result['parameters']:,}")
    for part in result["parts"]:
        table.add_row(part["part"], escape(part["layer"]), f"{part['parameters']:,}")
    out.print(table)

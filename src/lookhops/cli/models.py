"""``lookhops models`` and ``params``: the layers there are, and the parameters of a network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from lookhops.cli.shared.output import grid, out, print_json, print_line, print_table
from lookhops.cli.shared.parameters import Json, Network, Plugins, with_options
from lookhops.cli.shared.reading import Reading, Source
from lookhops.core.options import RECOMMENDED
from lookhops.core.words import counted

if TYPE_CHECKING:
    from torch import nn

    from lookhops.nn import GraphNetwork


@with_options
def models(page: Path | None = None, plugin: Plugins = None, json: Json = False) -> None:
    """List the convolutions and poolings that models are made of.

    Args:
        page: Write a page with their formulas and papers, and what of PyG works, in Markdown.
    """
    from lookhops.core.files import write_text
    from lookhops.core.tables import Table
    from lookhops.nn import catalogue

    if page is not None:
        write_text(page, catalogue.page())
        print_line(f"written: {page}")
        return
    tables = {"convolutions": catalogue.convolutions(), "poolings": catalogue.poolings()}
    found = {title: list(layers) for title, layers in tables.items()}
    if json:
        print_json(
            {
                title: [{**asdict(layer), "kind": layer.kind.__name__} for layer in layers]
                for title, layers in found.items()
            }
        )
        return
    for title, layers in found.items():
        rows = [
            [[layer.name], [layer.runs], [f"{layer.parameters:,}"], [layer.paper or "LookHops"]]
            for layer in layers
        ]
        head = ("name", "on a GPU", "parameters", "paper")
        print_table(Table(head, rows, title=title))
    print_line(
        "Parameters are those of the paper's network on NCI1. Layers of PyG are named as in "
        "pyg:GATv2Conv/heads=4; docs/models.md has them too, and all formulas."
    )


@with_options
def params(
    source: Source,
    plugin: Plugins = None,
    json: Json = False,
    *,
    network: Network = RECOMMENDED,
    reading: Reading,
) -> None:
    """Count the parameters of the network that these graphs would get."""
    from lookhops.encoding import Encoding
    from lookhops.encoding.preprocessing import PreparedGraphs, Preprocessing
    from lookhops.nn import GraphNetwork
    from lookhops.tasks import task_of

    graphs = reading.load(source)
    encoding = Encoding.fit(graphs, network.reads_edges, network.totals)
    outputs = task_of(graphs).out_channels
    preprocessing = Preprocessing.fit(PreparedGraphs.of(graphs, network, encoding), network)
    sizes = {**preprocessing.sizes, **encoding.sizes}
    model = GraphNetwork.from_architecture(encoding.width, outputs, network, **sizes)
    result = {
        "source": graphs.name,
        "features": encoding.width,
        "classes": outputs,
        "architecture": asdict(network),
        "parameters": _count(model),
        "parts": list(_parts(model)),
    }
    if json:
        print_json(result)
    else:
        _print(result)


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _parts(model: GraphNetwork) -> Iterator[dict[str, Any]]:
    """The modules that hold parameters: what each is for, what it is, and how many they are."""
    shared = len(model.pools) == 1 < len(model.convs)
    dense = [layer for layer in model.mlp if _count(layer)]
    for part, modules in (("convolution", model.convs), ("pooling", model.pools), ("dense", dense)):
        for number, module in enumerate(modules, start=1):
            name = part if part == "pooling" and shared else f"{part} {number}"
            sizes = module.extra_repr().split(", ratio=")[0]  # what follows has no parameters
            if part == "dense":
                sizes = f"{module.in_features}, {module.out_features}"
            layer = f"{type(module).__name__}({sizes})"
            yield {"part": name, "layer": layer, "parameters": _count(module)}
    beside = {"edges": model.edges} if model.edges is not None else {}
    for name, reading in (*beside.items(), *model.readings.items()):
        layer = f"{type(reading).__name__}({reading.extra_repr()})"
        yield {"part": name, "layer": layer, "parameters": _count(reading)}


def _print(result: dict[str, Any]) -> None:
    rows = [
        (part["part"], escape(part["layer"]), f"{part['parameters']:,}") for part in result["parts"]
    ]
    rows.append(("[bold]in all[/]", "", f"[bold]{result['parameters']:,}[/]"))
    title = f"{result['source']}: {counted(result['features'], 'feature')}, "
    title += counted(result["classes"], "class", "classes")
    head = ("part", "layer", "parameters")
    out.print(grid(rows, head, ("", "left wrap"), title=escape(title)))

"""``lookhops params``: how many parameters a network has, in all and part by part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from lookhops.cli.shared.parameters import Json, Network, Plugins, with_options
from lookhops.cli.shared.printing import grid, out, print_json
from lookhops.cli.shared.reading import Reading, Source
from lookhops.core.options import RECOMMENDED
from lookhops.core.words import counted

if TYPE_CHECKING:
    from torch import nn

    from lookhops.nn import GraphNetwork


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

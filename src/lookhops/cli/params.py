"""``lookhops params``: how many parameters a network has, in all and part by part."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from lookhops.cli.shared.parameters import Json, Network, with_options
from lookhops.cli.shared.printing import grid, out, print_json
from lookhops.cli.shared.reading import Reading, Source
from lookhops.options import RECOMMENDED

if TYPE_CHECKING:
    from torch import nn

    from lookhops.nn import GraphNetwork


@with_options
def params(
    source: Source, json: Json = False, *, network: Network = RECOMMENDED, reading: Reading
) -> None:
    """Count the parameters of the network that these graphs would get."""
    from lookhops.encoding import Encoding
    from lookhops.encoding.whole import WholeEncoding, WholeGraphs
    from lookhops.nn import GraphNetwork
    from lookhops.tasks import task_of

    graphs = reading.load(source)
    features, outputs = Encoding.fit(graphs).width, task_of(graphs).out_channels
    whole = WholeGraphs.of(graphs, network.fingerprint, network.totals)
    sizes = WholeEncoding.fit(whole).sizes
    model = GraphNetwork.from_architecture(features, outputs, network, **sizes)
    parts = [
        {"part": part, "layer": layer, "parameters": _count(module)}
        for part, layer, module in _parts(model)
    ]
    result = {
        "source": graphs.name,
        "features": features,
        "classes": outputs,
        "architecture": asdict(network),
        "parameters": _count(model),
        "parts": parts,
    }
    if json:
        print_json(result)
    else:
        _print(result)


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _parts(model: GraphNetwork) -> list[tuple[str, str, nn.Module]]:
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
    for name, reading in model.readings.items():
        found.append((name, _name(reading), reading))
    return found


def _name(module: nn.Module) -> str:
    size = module.extra_repr().split(", ratio=")[0]  # what follows has no parameters
    return f"{type(module).__name__}({size})"


def _print(result: dict[str, Any]) -> None:
    rows = [
        (part["part"], escape(part["layer"]), f"{part['parameters']:,}") for part in result["parts"]
    ]
    rows.append(("[bold]in all[/]", "", f"[bold]{result['parameters']:,}[/]"))
    title = f"{result['source']}: {result['features']} features, {result['classes']} classes"
    head = ("part", "layer", "parameters")
    out.print(grid(rows, head, ("", "left wrap"), title=escape(title)))

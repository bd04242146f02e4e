"""``lookhops models``: every convolution and pooling, and where it runs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from lookhops.cli.shared.parameters import Json, Plugins, with_options
from lookhops.cli.shared.printing import print_json, print_line, print_table


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

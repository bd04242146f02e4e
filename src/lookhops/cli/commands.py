"""The commands by name: the file of a command is imported when it is called, not for the others."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import typer
import typer.main
from typer.core import TyperGroup

#: The commands in the order of the help, and how their docstrings begin.
SUMMARIES = {
    "look": "See, before any training, how many hops are worth looking at.",
    "train": "Train a model for each seed, test it once, and keep all of them in a folder.",
    "predict": "Answer for new graphs: classes or numbers, and how sure they are.",
    "evaluate": "Compare a model's answers with the truth: all metrics, with bootstrap intervals.",
    "embed": "Write each graph as a vector: for similarity, clustering, or another model.",
    "explain": "Show each node's and edge's share of the answer.",
    "serve": "Serve models: a page for people, an API for programs.",
    "compare": "Train models on the same splits of your graphs and say which differ.",
    "tune": "Search for a configuration, say what that gains, and keep its model in a folder.",
    "paper": "Run what is missing of the paper's experiments, and write its tables and figures.",
    "report": "Write one self-contained HTML page about a model, a comparison or an experiment.",
    "export": "Write a trained model as one file, `.onnx` or `.pt2`, that runs without LookHops.",
    "demo": "Look, train, compare, predict, explain and report, on the bundled molecules.",
    "params": "Count the parameters of the network that these graphs would get.",
    "models": "List the convolutions and poolings that models are made of.",
    "data": "List, describe, convert and fetch sets of graphs.",
}
#: How all help is written.
MARKUP: Any = "markdown"


class Commands(TyperGroup):
    """Commands that are known by what they do, and loaded when one of them is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the words begin with, and the words that are left."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command and load(str(command.name)), rest


@cache
def load(name: str) -> Any:
    """A command, or a group of them, with its options: what a file of its own is named after."""
    module = import_module(f"lookhops.cli.{name}")
    alone = typer.Typer(rich_markup_mode=MARKUP)
    if hasattr(module, "app"):
        alone.add_typer(module.app, name=name)
    else:
        alone.command(name)(getattr(module, name))
    return typer.main.get_group(alone).commands[name]


def add_commands(app: typer.Typer) -> None:
    """Have all commands in an application's help; it is a group of :class:`Commands`."""
    for name, summary in SUMMARIES.items():
        app.command(name, help=summary)(_not_yet_loaded)


def _not_yet_loaded() -> None:
    """Stands for a command until it is called."""

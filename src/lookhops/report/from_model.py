"""The parts of a page about one model: its head, the data, how to do it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lookhops.report.charts import class_balance, sizes
from lookhops.report.content import Block, Commands, Section, TableBlock, Tile
from lookhops.report.folders import ModelFolder
from lookhops.words import counted, joined, mean_std, network_name, percent, share_between

SPACE = "\N{NO-BREAK SPACE}"


# -------------------------------------------------------------------- the data


def data_section(name: str, facts: Mapping[str, Any]) -> Section:
    """Counts, class balance and sizes, from what :func:`~...facts.graph_facts` gave."""
    classes, counts = facts["class_names"], facts["class_counts"]
    lead = (
        f"{name} has {counted(facts['graphs'], 'graph')} with {counted(facts['nodes'], 'node')}, "
        f"{counted(facts['edges'], 'edge')} and {counted(facts['features'], 'feature')} a node"
    )
    blocks: list[Block] = []
    if classes and sum(counts):
        most, least = int(np.argmax(counts)), int(np.argmin(counts))
        largest, smallest = (percent(counts[i] / sum(counts), 0) for i in (most, least))
        lead += f", in {counted(len(classes), 'class', 'classes')}"
        lead += (
            " of the same size"
            if counts[most] == counts[least]
            else f": the largest, {classes[most]}, has {largest} of them, the smallest, "
            f"{classes[least]}, {smallest}"
        )
        blocks.append(class_balance(facts))
    return Section("data", "The data", lead + ".", [*blocks, sizes(facts)])


# -------------------------------------------------------------------- how to do it again


def commands_of(models: Sequence[ModelFolder]) -> list[tuple[str, str]]:
    """The command lines that made the models, each once."""
    known: dict[str, list[str]] = {}
    for model in models:
        if "command" in model.config:
            known.setdefault(model.config["command"], []).append(model.path.name)
    several = len(known) > 1
    return [(f"Run {joined(names)}" if several else "Run", line) for line, names in known.items()]


def reproduce_section(model: ModelFolder, lines: Sequence[tuple[str, str]]) -> Section:
    """The command lines, each with what it does, and a model's versions, seeds and settings."""
    config = model.config
    versions = ", ".join(f"{name} {version}" for name, version in config["versions"].items())
    machine, data = config["machine"], config["data"]
    rows = [
        ["seeds", ", ".join(map(str, model.seeds))],
        ["network", _settings(config["architecture"])],
        ["training", _settings({k: v for k, v in config["protocol"].items() if k != "seeds"})],
        ["data", f"{data['name']}, fingerprint {data['fingerprint']}, splits {data['splits']}"],
        ["versions", versions],
        ["machine", f"{machine['system']}, {machine['cores']} cores, on {machine['device']}"],
        ["weights", f"SHA-256 {config['weights_sha256'][:16]}…"],
    ]
    lead = (
        "The same command with the same versions gives the same models: each seed decides its "
        "split, its first weights and the order of its batches."
    )
    commands: list[Block] = [Commands(lines)] if lines else []
    return Section(
        "reproduce", "How to reproduce", lead, [*commands, TableBlock(("what", "value"), rows)]
    )


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{key.replace('_', ' ')} {_said(v)}" for key, v in values.items() if v is not None
    )


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "/".join(map(str, value)) if isinstance(value, list) else str(value)


# -------------------------------------------------------------------- the head of the page


def model_tiles(model: ModelFolder, *more: Tile) -> list[Tile]:
    """The key figures of a model, with others in their midst."""
    config = model.config
    summary, several = config["metrics"]["summary"], len(model.seeds) > 1
    tiles = []
    if "accuracy" in summary:
        a = summary["accuracy"]
        seeds = f"mean of {counted(len(model.seeds), 'seed')}" if several else "one seed"
        tiles.append(Tile("test accuracy", mean_std(a["mean"], a["std"], several), seeds))
    tiles += more
    if "auroc" in summary and len(more) < 2:
        a = summary["auroc"]
        note = f"95%: {share_between(a['interval'])}" if a.get("interval") else ""
        tiles.append(Tile("AUROC", percent(a["mean"]), note))
    graphs, classes = config["data"]["graphs"], len(model.class_names)
    tiles.append(Tile("graphs", f"{graphs:,}", f"in {counted(classes, 'class', 'classes')}"))
    network = network_name(config["architecture"]).replace(
        " = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"
    )
    tiles.append(Tile("parameters", f"{config['parameters']:,}", network))
    return tiles


def model_summary(model: ModelFolder) -> str:
    """A model in one plain sentence."""
    config = model.config
    parts = [counted(len(model.seeds), "model")]
    if "accuracy" in config["metrics"]["summary"]:
        a = config["metrics"]["summary"]["accuracy"]
        parts.append(f"test accuracy {mean_std(a['mean'], a['std'], len(model.seeds) > 1)}")
    graphs = counted(config["data"]["graphs"], "graph")
    parts.append(f"on {graphs} of {counted(len(model.class_names), 'class', 'classes')}")
    names = f" ({joined(model.class_names)})" if len(model.class_names) <= 5 else ""
    return ", ".join(parts) + names + "."

"""How to do it again: the command lines, and a model's versions, seeds and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lookhops.report.content import Block, Commands, Section
from lookhops.report.folders import ModelFolder
from lookhops.tables import Table
from lookhops.words import joined


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
    table = Table(("what", "value"), rows)
    return Section("reproduce", "How to reproduce", lead, [*commands, table])


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{key.replace('_', ' ')} {_said(v)}" for key, v in values.items() if v is not None
    )


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "/".join(map(str, value)) if isinstance(value, list) else str(value)

"""How to do it again: the command lines, the seeds, settings, versions and machines."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from lookhops.core.tables import Table
from lookhops.core.words import joined
from lookhops.learners import learner_of
from lookhops.report.folders import ModelFolder
from lookhops.report.page import Block, Commands, Lines, Section
from lookhops.runs.compare import Comparison
from lookhops.runs.record import Machine


def reproduce_section(lead: str, lines: Lines, rows: Sequence[Sequence[str]] = ()) -> Section:
    """Command lines, each with what it does, and what else decides the numbers."""
    blocks: list[Block] = [Commands(lines)] if lines else []
    blocks += [Table(("what", "value"), rows)] if rows else []
    return Section("reproduce", "How to reproduce", lead, blocks)


def commands_of(models: Sequence[ModelFolder]) -> list[tuple[str, str]]:
    """The command lines that made the models, each once."""
    trained: dict[str, list[str]] = {}
    for model in models:
        if "command" in model.config:
            trained.setdefault(model.config["command"], []).append(model.path.name)
    several = len(trained) > 1
    return [(f"Run {joined(names)}" if several else "Run", line) for line, names in trained.items()]


def model_reproduce_section(model: ModelFolder, lines: Lines) -> Section:
    """The command lines, and a model's versions, seeds and settings."""
    config, data = model.config, model.config["data"]
    rows = [
        ["seeds", ", ".join(map(str, model.seeds))],
        ["model", _settings(config["learner"]["options"]) or config["learner"]["name"]],
        ["training", _settings({k: v for k, v in config["protocol"].items() if k != "seeds"})],
        ["data", f"{data['name']}, fingerprint {data['fingerprint']}, splits {data['splits']}"],
        ["versions", _versions(config["versions"])],
        ["machine", _machine(Machine(**config["machine"]))],
        ["weights", f"SHA-256 {config['weights_sha256'][:16]}…"],
    ]
    lead = (
        "The same command with the same versions gives the same models: each seed decides its "
        "split, its first weights and the order of its batches."
    )
    return reproduce_section(lead, lines, rows)


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{key.replace('_', ' ')} {_said(v)}" for key, v in values.items() if v is not None
    )


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "/".join(map(str, value)) if isinstance(value, list) else str(value)


def _versions(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _machine(machine: Machine) -> str:
    return f"{machine.system}, {machine.cores} cores, on {machine.device}"


def runs_reproduce_section(
    groups: Sequence[Comparison], commands: Sequence[str], more: Lines = ()
) -> Section:
    """Commands that run it again, with the versions and machines of the runs."""
    lines = [("Run", command) for command in commands] or [
        (f"Run {group.dataset} again", rerun(group)) for group in groups
    ]
    records = [run for group in groups for cell in group.finished for run in cell.runs]
    versions = dict.fromkeys(_versions(run.versions) for run in records)
    machines = dict.fromkeys(_machine(run.machine) for run in records)
    rows = [
        ["data", "; ".join(f"{g.dataset}, fingerprint {g.best.key.fingerprint}" for g in groups)],
        ["seeds", ", ".join(map(str, dict.fromkeys(s for g in groups for s in g.seeds)))],
        *(["versions", text] for text in versions),
        *(["machine", text] for text in machines),
    ]
    lead = "Finished runs are kept in the store: the same command runs only what is missing."
    return reproduce_section(lead, [*lines, *more], rows)


def rerun(group: Comparison) -> str:
    """The ``lookhops compare`` that trains the models of a group."""
    if group.quick:
        return "lookhops paper --quick -o paper"
    models = ",".join(
        learner_of(cell.architecture).spelled
        + (f"/members={cell.protocol.members}" if cell.protocol.members > 1 else "")
        for cell in group.finished
    )
    every = (group.best, *group.finished)
    trained = [cell for cell in every if learner_of(cell.architecture).has_epochs]
    protocol = (trained or [group.best])[0].protocol
    finished = sorted({seed for cell in group.finished for seed in cell.seeds})
    seeds = ",".join(map(str, finished))
    seeds += "," if len(finished) == 1 else ""  # else it would be their number
    dataset = group.dataset.removesuffix(f" ({group.best.key.fingerprint})")
    return (
        f"lookhops compare {shlex.quote(dataset)} --models {models} --seeds {seeds} --epochs "
        f"{protocol.max_epochs} --patience {protocol.patience} --batch-size {protocol.batch_size} "
        f"--lr {protocol.learning_rate:g}"
        + (f" --split {shlex.quote(protocol.split)}" if protocol.split != "file" else "")
        + (" --splits FILE" if protocol.split == "file" else "")
        + (f" --folds {protocol.folds}" if protocol.folds else "")
        + (f" --precision {protocol.precision}" if protocol.precision != "float32" else "")
    )

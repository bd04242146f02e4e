"""How to run a comparison again: the commands, and where its runs ran."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import fields

from lookhops.experiments.keys import Model
from lookhops.nn import Architecture
from lookhops.nn.registry import reads_k
from lookhops.options import FINGERPRINT, Classical
from lookhops.report.comparable import Group
from lookhops.report.content import Block, Commands, Section
from lookhops.tables import Table


def runs_reproduce_section(
    groups: Sequence[Group], commands: Sequence[str], more: Sequence[tuple[str, str]] = ()
) -> Section:
    """Commands that run it again, with the versions and machines of the runs."""
    lines = [("Run", command) for command in commands] or [
        (f"Run {group.dataset} again", rerun(group)) for group in groups
    ]
    records = [run for group in groups for cell in group.finished for run in cell.runs]
    versions = dict.fromkeys(
        ", ".join(f"{name} {version}" for name, version in run.versions.items()) for run in records
    )
    machines = dict.fromkeys(run.machine for run in records)
    rows = [
        ["data", "; ".join(f"{g.dataset}, fingerprint {g.best.key.fingerprint}" for g in groups)],
        ["seeds", ", ".join(map(str, dict.fromkeys(s for g in groups for s in g.found.seeds)))],
        *(["versions", text] for text in versions),
        *(["machine", f"{m.system}, {m.cores} cores, on {m.device}"] for m in machines),
    ]
    lead = "Finished runs are kept in the store: the same command runs only what is missing."
    blocks: list[Block] = [Commands([*lines, *more]), Table(("what", "value"), rows)]
    return Section("reproduce", "How to reproduce", lead, blocks)


def rerun(group: Group) -> str:
    """The ``lookhops compare`` that trains the models of a group."""
    if group.quick:
        return "lookhops paper --quick -o paper"
    models = ",".join(spelled(cell.architecture) for cell in group.finished)
    trained = [c for c in (group.best, *group.finished) if isinstance(c.architecture, Architecture)]
    protocol = (trained or [group.best])[0].protocol
    known = sorted({seed for cell in group.finished for seed in cell.seeds})
    seeds = ",".join(map(str, known))
    seeds += "," if len(known) == 1 else ""  # else it would be their number
    dataset = group.dataset.removesuffix(f" ({group.best.key.fingerprint})")
    return (
        f"lookhops compare {shlex.quote(dataset)} --models {models} --seeds {seeds} --epochs "
        f"{protocol.max_epochs} --patience {protocol.patience} --batch-size {protocol.batch_size} "
        f"--lr {protocol.learning_rate:g}"
        + (" --stratify" if protocol.stratify else "")
        + (f" --precision {protocol.precision}" if protocol.precision != "float32" else "")
    )


def spelled(model: Model) -> str:
    """A model as ``lookhops compare`` reads it: ``licheb+lookhops/k=3``."""
    if isinstance(model, Classical):
        return model.classical
    text, start = model.conv, Architecture(model.conv, model.pool)
    unread = () if reads_k(model.conv, model.pool) else ("k",)
    if model.conv == "none":
        text, start = "fingerprint", FINGERPRINT
    elif model.pool != "none":
        text += f"+{model.pool}"
    for option in fields(Architecture):
        value = getattr(model, option.name)
        if option.name not in unread and value != getattr(start, option.name):
            text += (
                f"/{option.name}={str(value).lower() if value in (None, True, False) else value}"
            )
    return text

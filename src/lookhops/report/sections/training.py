"""Training: loss and accuracy over the epochs, and where each seed stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from lookhops.core.charts import Figure, axis, figure, rounded, series
from lookhops.core.tables import Table
from lookhops.core.words import agreeing, counted, duration
from lookhops.report.content import Block, Chart, Note, Section
from lookhops.report.folders import ModelFolder
from lookhops.tasks import TASKS

#: Of each seed, the columns of its epochs.
History = Mapping[int, Mapping[str, Sequence[float]]]
#: The same of members but the first, by seed and member.
Others = Mapping[tuple[int, int], Mapping[str, Sequence[float]]]


def training_section(model: ModelFolder) -> Section | None:
    """Loss and accuracy over the epochs; none without a history."""
    history = {seed: model.history[seed] for seed in model.seeds if seed in model.history}
    if not history:
        return None
    config, protocol = model.config, model.config["protocol"]
    lengths = [len(rows["epoch"]) for rows in history.values()]
    epochs = " to ".join(map(str, sorted({min(lengths), max(lengths)})))
    full = sum(length >= protocol["max_epochs"] for length in lengths)
    seeds = counted(len(history), "seed")
    lead = (
        f"{seeds.capitalize()} trained for {epochs} {agreeing(max(lengths), 'epoch', 'epochs')}. "
        f"Training stops after "
        f"{counted(protocol['patience'], 'epoch')} without a lower validation loss, or at "
        f"{protocol['max_epochs']}"
        + (" (as here)" if full == len(lengths) else "")
        + (f" ({full} of {seeds} went that far)" if 0 < full < len(lengths) else "")
        + ". The weights of the lowest validation loss, marked by a diamond, are kept and tested."
    )
    if seconds := config.get("seconds_per_epoch"):
        lead += f" An epoch took {duration(seconds)} a seed on {config['machine']['device']}."
    blocks: list[Block] = [Note(config["stopped"])] if config.get("stopped") else []
    blocks += training_charts(history, model.best_epoch, others=model.others)
    if model.others:
        lead += " The faint lines are the other members of each seed."
    return Section("training", "Training", lead, blocks)


def training_charts(
    history: History,
    best: Mapping[int, int],
    title: str = "",
    others: Others = MappingProxyType({}),
) -> list[Chart]:
    """The losses, and the main metric of the validation part, of every seed.

    Args:
        history: Of each seed.
        best: Of each seed, the epoch whose weights were kept.
        title: Said first in the captions.
        others: Of the other members, by seed and member, drawn faintly behind.
    """
    columns, mains = next(iter(history.values())), (task.main for task in TASKS.values())
    # The main metric that was measured after each epoch; none where that is the loss.
    metric = next((main for main in mains if f"val_{main.name}" in columns), None)
    rows = []
    for seed, columns in history.items():
        i = max(best[seed], 1) - 1
        at = [f"{columns[name][i]:.4f}" for name in ("train_loss", "val_loss")]
        at += [metric.written(columns[f"val_{metric.name}"][i])] if metric else []
        rows.append([str(seed), str(len(columns["epoch"])), str(best[seed]), *at])
    head = ["seed", "epochs", "kept epoch", "training loss", "validation loss"]
    head += [f"validation {metric.title}"] if metric else []
    table = Table(head, rows, "At the epoch that was kept")
    n = counted(len(history), "seed")
    over, each = f"over the epochs of {n}", f"{n.capitalize()}, a line each."
    names = {"train_loss": "training", "val_loss": "validation"}
    losses = curves(history, best, names, "loss", others=others)
    shown = f"{title}Loss a graph: training dotted, validation solid. {each}"
    charts = [Chart(losses, f"Training and validation loss {over}.", shown, table)]
    if metric is not None:
        unit, scale = (", %", 100) if metric.share else ("", 1)
        names = {f"val_{metric.name}": "validation"}
        drawn = curves(history, best, names, f"{metric.title}{unit}", scale, others)
        per_cent = ", in per cent" if metric.share else ""
        name = metric.title[0].upper() + metric.title[1:]
        shown = f"{title}{name} on the validation graphs{per_cent}. {each}"
        charts.append(Chart(drawn, f"Validation {metric.title} {over}.", shown, table))
    return charts


def curves(
    history: History,
    best: Mapping[int, int],
    columns: Mapping[str, str],
    title: str,
    scale: float = 1.0,
    others: Others = MappingProxyType({}),
) -> Figure:
    """Curves over the epochs, one a seed; a diamond marks the epoch whose weights were kept.

    Args:
        history, best, others: As for :func:`training_charts`.
        columns: Columns to draw, the main one last, and what to call them.
        title: Of the vertical axis.
        scale: Multiplies the values: 100 for per cent.
    """
    looks = (("var(--orange)", "dot"), ("var(--blue)", "solid"))[-len(columns) :]
    width = 2 if len(history) == 1 else 1.4

    def line(rows: Mapping[str, Sequence[float]], column: str, said: str, **look: Any) -> Figure:
        values = rounded(scale * np.asarray(rows[column]))
        said = f"epoch %{{x}}: %{{y:.4g}}<extra>{said}</extra>"
        return series("lines", map(int, rows["epoch"]), values, said, **look)

    traces = []
    for (column, name), (colour, dash) in zip(columns.items(), looks, strict=True):
        drawn: dict[str, Any] = {"name": name, "legendgroup": name}
        for (seed, member), rows in others.items():
            faint = {"line": {"color": colour, "dash": dash, "width": 1}, "opacity": 0.3}
            said = f"seed {seed}, member {member + 1}"
            traces.append(line(rows, column, said, **drawn, **faint, showlegend=False))
        for number, (seed, rows) in enumerate(history.items()):
            plain = {"line": {"color": colour, "dash": dash, "width": width}, "opacity": 0.85}
            shown = number == 0
            traces.append(line(rows, column, f"seed {seed}", **drawn, **plain, showlegend=shown))
    main = list(columns)[-1]
    kept = {seed: best[seed] for seed in history if best[seed]}
    diamonds = series(
        "markers",
        kept.values(),
        rounded([scale * history[seed][main][epoch - 1] for seed, epoch in kept.items()]),
        "%{text} kept epoch %{x}",
        name="kept epoch",
        marker={"color": "var(--vermillion)", "symbol": "diamond", "size": 10}
        | {"line": {"color": "var(--page)", "width": 1.5}},
        text=[f"seed {seed}" for seed in kept],
    )
    epochs = axis("epoch", rangemode="tozero", zeroline=False)
    return figure([*traces, diamonds], epochs, axis(title))

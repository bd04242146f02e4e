"""The section on training: loss and accuracy over the epochs, and where each seed stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lookhops.report.charts import Figure, axis, figure, rounded
from lookhops.report.content import Block, Chart, Note, Section, TableBlock
from lookhops.report.folders import ModelFolder
from lookhops.words import counted, duration, percent


def training_section(model: ModelFolder) -> Section | None:
    """Loss and accuracy over the epochs; none without a history."""
    history = {seed: model.history[seed] for seed in model.seeds if seed in model.history}
    best = {int(seed): int(epoch) for seed, epoch in model.config["best_epoch"].items()}
    return _training(
        history, best, model.config["protocol"], model.config, model.config.get("stopped")
    )


def _training(
    history: Mapping[int, Mapping[str, Sequence[float]]],
    best: Mapping[int, int],
    protocol: Mapping[str, Any],
    config: Mapping[str, Any],
    stopped: str | None,
) -> Section | None:
    if not history:
        return None
    lengths = [len(rows["epoch"]) for rows in history.values()]
    patience, most = protocol["patience"], protocol["max_epochs"]
    epochs = (
        f"{min(lengths)}" if min(lengths) == max(lengths) else f"{min(lengths)} to {max(lengths)}"
    )
    full = sum(length >= most for length in lengths)
    seeds = counted(len(history), "seed")
    lead = (
        f"{seeds.capitalize()} trained for {epochs} epochs. Training stops after {patience} epochs "
        f"without a lower validation loss, or at {most}"
        + (" (as here)" if full == len(lengths) else "")
        + (f" ({full} of {seeds} went that far)" if 0 < full < len(lengths) else "")
        + ". The weights of the lowest validation loss, marked by a diamond, are kept and tested."
    )
    seconds = config.get("seconds_per_epoch")
    if seconds:
        lead += f" An epoch took {duration(seconds)} a seed on {config['machine']['device']}."
    blocks: list[Block] = [Note(stopped)] if stopped else []
    return Section("training", "Training", lead, [*blocks, *training_charts(history, best)])


def training_charts(
    history: Mapping[int, Mapping[str, Sequence[float]]], best: Mapping[int, int], title: str = ""
) -> list[Chart]:
    """The losses, and the validation accuracy, of every seed."""
    rows = []
    for seed, columns in history.items():
        i = max(best[seed], 1) - 1
        values = (columns["train_loss"][i], columns["val_loss"][i])
        row = [str(seed), str(len(columns["epoch"])), str(best[seed])]
        rows.append(
            [*row, *(f"{value:.4f}" for value in values), percent(columns["val_accuracy"][i])]
        )
    head = ("seed", "epochs", "kept epoch", "training loss", "validation loss", "val. accuracy")
    n = counted(len(history), "seed")
    losses = Chart(
        curves(history, best, {"train_loss": "training", "val_loss": "validation"}, "loss (nats)"),
        f"Training and validation loss over the epochs of {n}.",
        f"{title}Loss a graph: training dotted, validation solid. {n.capitalize()}, a line each.",
        TableBlock(head, rows, "At the epoch that was kept"),
    )
    accuracy = Chart(
        curves(history, best, {"val_accuracy": "validation"}, "accuracy, %", scale=100),
        f"Validation accuracy over the epochs of {n}.",
        f"{title}Accuracy on the validation graphs, in per cent. {n.capitalize()}, a line each.",
        TableBlock(head, rows, "At the epoch that was kept"),
    )
    return [losses, accuracy]


def curves(
    history: Mapping[int, Mapping[str, Sequence[float]]],
    best: Mapping[int, int],
    columns: Mapping[str, str],
    title: str,
    scale: float = 1.0,
) -> Figure:
    """Curves over the epochs, one a seed; a diamond marks the epoch whose weights were kept.

    Args:
        history: Of each seed, the columns of its history.
        best: Of each seed, that epoch.
        columns: Columns to draw, the main one last, and what to call them.
        title: Of the vertical axis.
        scale: Multiplies the values: 100 for per cent.
    """
    traces: list[Figure] = []
    looks = ({"color": "var(--orange)", "dash": "dot"}, {"color": "var(--blue)", "dash": "solid"})
    for (column, name), look in zip(columns.items(), looks[-len(columns) :], strict=True):
        for number, (seed, rows) in enumerate(history.items()):
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": name,
                    "legendgroup": name,
                    "showlegend": number == 0,
                    "x": [int(epoch) for epoch in rows["epoch"]],
                    "y": rounded(scale * np.asarray(rows[column])),
                    "line": {**look, "width": 2 if len(history) == 1 else 1.4},
                    "opacity": 0.85,
                    "hovertemplate": "epoch %{x}: %{y:.4g}<extra>" + f"seed {seed}</extra>",
                }
            )
    main = list(columns)[-1]
    kept = [(seed, best[seed]) for seed in history if 0 < best[seed] <= len(history[seed]["epoch"])]
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": "kept epoch",
            "x": [epoch for _, epoch in kept],
            "y": rounded([scale * history[seed][main][epoch - 1] for seed, epoch in kept]),
            "text": [f"seed {seed}" for seed, _ in kept],
            "marker": {
                "color": "var(--vermillion)",
                "symbol": "diamond",
                "size": 10,
                "line": {"color": "var(--page)", "width": 1.5},
            },
            "hovertemplate": "%{text} kept epoch %{x}<extra></extra>",
        }
    )
    return figure(traces, axis("epoch", rangemode="tozero", zeroline=False), axis(title))

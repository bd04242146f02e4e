"""The figures of a trained model, as one panel within 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from rich.console import RenderableType
from rich.markup import escape
from rich.panel import Panel

from lookhops.cli.shared.output import as_grid, grid, panel
from lookhops.core.options import splits_in_words
from lookhops.core.words import counted, duration, short, span
from lookhops.models.config import learner_in, task_in
from lookhops.report.evaluation import tested_table
from lookhops.tasks.answers import Tested
from lookhops.tasks.charts import confusion_chart

#: More seeds than this have their own columns in config.json alone; more classes no matrix.
SHOWN_SEEDS, SHOWN_CLASSES, NAME_WIDTH = 2, 5, 24
#: A smaller share of the variance is in config.json alone.
LEAST_SHARE = 0.05


def model_panel(config: Mapping[str, Any]) -> Panel:
    """All of a model's figures, from its ``config.json``."""
    parts: list[RenderableType] = []
    task, summary = task_in(config), config["metrics"]["summary"]
    if len(task.heads) > 1 and (found := summary.get(task.main.name)):
        parts.append(f"{escape(task.main.title)}: [bold]{task.main.written(found['mean'])}[/]")
    for head in task.heads if config["metrics"]["seeds"] else ():
        tested = Tested.of(config["metrics"], head)
        table = tested_table(head, tested, SHOWN_SEEDS)
        title = f"{head.name} ({head.task.words})" if head.name else "test"
        parts.append(as_grid(replace(table, head=[title, *table.head[1:]])))
        parts += _confusion(head.task.class_names, tested.overview)
    parts.append(grid(_about(config), columns=("", "bold", "dim")))
    return panel(f"{config['data']['name']}: {learner_in(config).title}", *parts)


def _confusion(names: Sequence[str], overview: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Of classes the confusion matrix, or where there are many what follows from it."""
    if "confusion" in overview:
        held = overview.get("in_sets")
        table = confusion_chart(np.asarray(overview["confusion"]), names, "", held).numbers
        if len(names) > SHOWN_CLASSES:
            name, *cells = zip(table.head, *table.rows, strict=True)
            head, *rows = zip(name, *cells[len(names) :], strict=True)
            table = replace(table, head=head, rows=rows)
        yield as_grid(table)


def _chosen(runs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """What training chose; of shares of the variance those that are large, the largest first."""
    shares, others = {}, []
    for name in sorted({name for one in runs for name in one if name.startswith("chosen_")}):
        values, title = [one[name] for one in runs if name in one], name.removeprefix("chosen_")
        if "share of " in title:
            shares[title] = sum(values) / len(runs)
        else:
            others.append((title, ", ".join(dict.fromkeys(map(str, values)))))
    for title, text in others:
        yield escape(title), escape(text), "chosen in training"
    order = sorted(shares, key=lambda title: (title.split(": ")[:-1], -shares[title]))
    for title in (title for title in order if shares[title] >= LEAST_SHARE):
        yield escape(title), f"{shares[title]:.2f}", "of the variance"


def _about(config: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    epochs, protocol = list(config["epochs"].values()), config["protocol"]
    runs = list(config["metrics"]["seeds"].values())
    members = protocol.get("members", 1)
    networks = counted(members * len(epochs), "network" if members > 1 else "model")
    has_epochs = config["parameters"] is not None
    if has_epochs:
        each = f"each of {networks}" if members * len(epochs) > 1 else ""
        yield "parameters", f"{config['parameters']:,}", each
    if "split" in protocol and runs:
        parts = [f"{runs[0][f'{part}_graphs']:,}" for part in ("train", "val", "test")]
        sizes = "{} + {} + {} graphs".format(*parts)
        yield "splits", splits_in_words(protocol["split"], protocol["folds"]), sizes
    if last := config.get("final_model"):
        trained = f"all {counted(last['graphs'], 'graph')}"
        yield "final model", trained, f"{counted(last['epochs'], 'epoch')}; it answers"
    thresholds = [one["threshold"] for one in runs if "threshold" in one]
    if thresholds:
        ends = dict.fromkeys(f"{end:.2f}" for end in (min(thresholds), max(thresholds)))
        second = escape(short(config["data"]["class_names"][1], NAME_WIDTH))
        yield "threshold", " to ".join(ends), f"from it on the answer is {second}"
    yield from _chosen(runs)
    if not has_epochs:
        return
    yield "epochs", span(min(epochs), max(epochs)), f"at most {protocol['max_epochs']}"
    if (seconds := config["seconds_per_epoch"]) is not None:
        device = escape(config["machine"]["device"])
        yield "time per epoch", duration(seconds), f"a seed, on {device}"

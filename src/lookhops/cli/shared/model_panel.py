"""The figures of a trained model, as one panel within 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import RenderableType
from rich.markup import escape
from rich.panel import Panel

from lookhops.cli.shared.printing import grid, panel
from lookhops.core.options import splits_in_words
from lookhops.core.words import counted, duration, short, span
from lookhops.models.config import learner_in, task_in
from lookhops.tasks import Metric
from lookhops.tasks.task import Head

#: More seeds than this have their own columns in config.json alone; more classes no matrix.
SHOWN_SEEDS, SHOWN_CLASSES, NAME_WIDTH = 3, 5, 12
#: A smaller share of the variance is in config.json alone.
LEAST_SHARE = 0.05
#: What metrics are called where there is little room.
SHORT = {"majority": "commonest", "coverage": "in 90%"}


def model_panel(config: Mapping[str, Any]) -> Panel:
    """All of a model's figures, from its ``config.json``."""
    parts: list[RenderableType] = [grid(_about(config), columns=("", "bold", "dim"))]
    if seeds := config["metrics"]["seeds"]:
        several = len(seeds) > 1
        shown_seeds = list(seeds) if several and len(seeds) <= SHOWN_SEEDS else []
        head = "mean ± std" if several else f"seed {next(iter(seeds))}"
        task = task_in(config)
        heads = task.heads if len(task.heads) > 1 else []
        shown = [task.main] if heads else task.metrics
        scores = grid(
            _metrics(config, shown, shown_seeds),
            ("test", head, *(f"seed {seed}" for seed in shown_seeds)),
            ("", "right bold"),
        )
        confusion = [_confusion(config)] if "confusion" in config["metrics"] else []
        tables = [*_target_tables(config, heads), *_class_coverage(config, heads)]
        parts = [scores, *tables, *confusion, *parts]
    return panel(f"{config['data']['name']}: {learner_in(config).title}", *parts)


def _target_tables(config: Mapping[str, Any], heads: Sequence[Head]) -> Iterator[RenderableType]:
    summary = config["metrics"]["summary"]
    for words, group in groupby(heads, key=lambda head: head.task.words):
        same_kind = list(group)
        titles = {metric.name: metric for head in same_kind for metric in head.task.metrics}
        shown = [titles[name] for name in same_kind[0].task.panel if name in titles]
        rows = []
        for head in same_kind:
            found = (summary.get(f"{head.name}: {metric.name}") for metric in shown)
            cells = (m.written(f and f["mean"]) for m, f in zip(shown, found, strict=True))
            rows.append((escape(short(head.name, 2 * NAME_WIDTH)), *cells))
        heading = (SHORT.get(m.name, m.title.rpartition(", ")[2]) for m in shown)
        yield grid(rows, (f"target ({words})", *heading))


def _class_coverage(config: Mapping[str, Any], heads: Sequence[Head]) -> Iterator[RenderableType]:
    """Of several targets, how many graphs of each class have it in their 90% set."""
    rows = []
    for head in heads:
        found = config["metrics"].get("targets", {}).get(head.name, {})
        if "in_sets" in found:
            counts = [sum(row) for row in found["confusion"]]
            names = head.task.class_names
            for name, count, held in zip(names, counts, found["in_sets"], strict=True):
                share = f"{held / count:.1%}" if count else "-"
                titles = (escape(short(text, 2 * NAME_WIDTH)) for text in (head.name, name))
                rows.append((*titles, f"{count:,}", share))
    if rows:
        yield grid(rows, ("target", "true class", "graphs", "in 90%"), ("", "left"))


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


def _metrics(
    config: Mapping[str, Any], shown: Sequence[Metric], seeds: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """A row for each metric that is shown, and below it its interval where there is one."""
    metrics = config["metrics"]
    several, before = len(metrics["seeds"]) > 1, " "
    known = {name for one in metrics["seeds"].values() for name in one}
    for metric in (metric for metric in shown if metric.shown and metric.name in known):
        title = metric.title.replace(f"{before}, ", "  ")  # a variant stands below, indented
        before = metric.title
        found = metrics["summary"].get(metric.name)
        if found is None:  # no AUROC where a test part has a single class
            yield title, "-"
            continue
        spread = (found["std"],) if several else ()
        each = (metric.written(metrics["seeds"][seed][metric.name]) for seed in seeds)
        each = (text.removesuffix(" %") for text in each)
        yield title, metric.written(found["mean"], *spread), *each
        if "interval" in found:
            ends = metric.written(*found["interval"] or (), joint=" to ")
            yield "  95% interval", f"[not bold]{ends}[/]"


def _confusion(config: Mapping[str, Any]) -> RenderableType:
    """Test graphs of each class, by the class that was predicted where there are few."""
    names = [short(name, NAME_WIDTH) for name in config["data"]["class_names"]]
    matrix, in_sets = config["metrics"]["confusion"], config["metrics"].get("in_sets")
    shown = names if len(names) <= SHOWN_CLASSES else []
    rows = []
    for i, name in enumerate(names):
        row, column = matrix[i], [matrix[j][i] for j in range(len(names))]
        cells = [f"[bold]{n:,}[/]" if i == j else f"{n:,}" for j, n in enumerate(row) if shown]
        pairs = [(row[i], sum(row)), (row[i], sum(column))]
        pairs += [] if in_sets is None else [(in_sets[i], sum(row))]
        shares = (f"{one / of:.1%}" if of else "-" for one, of in pairs)
        rows.append((escape(name), *cells, f"{sum(row):,}", *shares))
    heading = ("recall", "precision", *([] if in_sets is None else ["in 90%"]))
    return grid(rows, ("true class", *map(escape, shown), "graphs", *heading))


def _about(config: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    epochs = list(config["epochs"].values())
    length = span(min(epochs), max(epochs))
    members = config["protocol"].get("members", 1)
    each = "" if len(epochs) == 1 else f"each of {len(epochs)} models"
    if members > 1:
        each = f"each of {members * len(epochs)} networks"
    has_epochs = config["parameters"] is not None
    if has_epochs:
        yield "parameters", f"{config['parameters']:,}", each
    protocol, runs = config["protocol"], list(config["metrics"]["seeds"].values())
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
        second = escape(short(config["data"]["class_names"][1], 2 * NAME_WIDTH))
        yield "threshold", " to ".join(ends), f"from it on the answer is {second}"
    yield from _chosen(runs)
    if not has_epochs:
        return
    yield "epochs", length, f"at most {config['protocol']['max_epochs']}"
    if (seconds := config["seconds_per_epoch"]) is not None:
        device = escape(config["machine"]["device"])
        yield "time per epoch", duration(seconds), f"a seed, on {device}"

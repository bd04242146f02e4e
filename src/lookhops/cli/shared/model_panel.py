"""The figures of a trained model, as one panel within 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.markup import escape
from rich.panel import Panel

from lookhops.cli.shared.printing import grid, panel
from lookhops.nn.registry import network_name
from lookhops.options import splits_in_words
from lookhops.tasks import Classification, task_from_dict
from lookhops.words import duration, short

#: More seeds than this have their own columns in config.json alone; more classes no matrix.
SHOWN_SEEDS, SHOWN_CLASSES, NAME_WIDTH = 3, 5, 12


def model_panel(config: Mapping[str, Any]) -> Panel:
    """All of a model's figures, from its ``config.json``."""
    parts: list[RenderableType] = [grid(_about(config), columns=("", "bold", "dim"))]
    if seeds := config["metrics"]["seeds"]:
        several = len(seeds) > 1
        own = list(seeds) if several and len(seeds) <= SHOWN_SEEDS else []
        head = "mean ± std" if several else f"seed {next(iter(seeds))}"
        scores = grid(
            _metrics(config, own),
            ("test", head, *(f"seed {seed}" for seed in own)),
            ("", "right bold"),
        )
        confusion = [_confusion(config)] if "confusion" in config["metrics"] else []
        parts = [scores, *confusion, *parts]
    return panel(f"{config['data']['name']}: {network_name(config['architecture'])}", *parts)


def _metrics(config: Mapping[str, Any], own: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """A row for each metric that is shown, and below it its interval where there is one."""
    metrics = config["metrics"]
    # Older folders do not say what was asked.
    asked = {"kind": Classification.kind, "class_names": config["data"]["class_names"]}
    task = task_from_dict(config.get("task", asked))
    several, before = len(metrics["seeds"]) > 1, " "
    known = {name for own in metrics["seeds"].values() for name in own}
    for metric in (metric for metric in task.metrics if metric.shown and metric.name in known):
        title = metric.title.replace(f"{before}, ", "  ")  # a variant stands below, indented
        before = metric.title
        found = metrics["summary"].get(metric.name)
        if found is None:  # no AUROC where a test part has a single class
            yield title, "-"
            continue
        spread = (found["std"],) if several else ()
        each = (metric.written(metrics["seeds"][seed][metric.name]) for seed in own)
        each = (text.removesuffix(" %") for text in each)
        yield title, metric.written(found["mean"], *spread), *each
        if found.get("interval"):
            ends = metric.written(*found["interval"], joint=" to ")
            yield "  95% interval", f"[not bold]{ends}[/]"


def _confusion(config: Mapping[str, Any]) -> RenderableType:
    """Test graphs of each class, by the class that was predicted where there are few."""
    names = [short(name, NAME_WIDTH) for name in config["data"]["class_names"]]
    matrix = config["metrics"]["confusion"]
    shown = names if len(names) <= SHOWN_CLASSES else []
    rows = []
    for i, name in enumerate(names):
        row, column = matrix[i], [matrix[j][i] for j in range(len(names))]
        cells = [f"[bold]{n:,}[/]" if i == j else f"{n:,}" for j, n in enumerate(row) if shown]
        shares = (f"{row[i] / sum(of):.1%}" if sum(of) else "-" for of in (row, column))
        rows.append((escape(name), *cells, f"{sum(row):,}", *shares))
    return grid(rows, ("true class", *map(escape, shown), "graphs", "recall", "precision"))


def _about(config: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    epochs = list(config["epochs"].values())
    length = f"{min(epochs)}" if min(epochs) == max(epochs) else f"{min(epochs)} to {max(epochs)}"
    each = "" if len(epochs) == 1 else f"each of {len(epochs)} models"
    yield "parameters", f"{config['parameters']:,}", each
    protocol, runs = config["protocol"], list(config["metrics"]["seeds"].values())
    if "split" in protocol and runs:
        parts = [f"{runs[0][f'{part}_graphs']:,}" for part in ("train", "val", "test")]
        sizes = "{} + {} + {} graphs".format(*parts)
        yield "splits", splits_in_words(protocol["split"], protocol["folds"]), sizes
    yield "epochs", length, f"at most {config['protocol']['max_epochs']}"
    if (seconds := config["seconds_per_epoch"]) is not None:
        device = escape(config["machine"]["device"])
        yield "time per epoch", duration(seconds), f"a seed, on {device}"

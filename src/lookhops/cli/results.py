"""How a trained model's figures are printed: one panel, within 80 columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from lookhops.words import duration, network_name

ROWS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "macro_f1": "macro-F1",
    "auroc": "AUROC",
    "ece_before": "calibration error",
    "ece_after": "  with temperature",
}
#: More seeds than this have their own columns in config.json alone; more classes no matrix.
SHOWN_SEEDS, SHOWN_CLASSES, NAME_WIDTH = 3, 5, 12


def results_panel(config: Mapping[str, Any]) -> Panel:
    """All of a model's figures, from its ``config.json``."""
    architecture, data, metrics = config["architecture"], config["data"], config["metrics"]
    parts: list[RenderableType] = []
    if metrics["seeds"]:
        parts += [_metrics_table(metrics), Text(), _confusion_table(config), Text()]
    parts.append(_facts_table(config))
    title = f"{escape(data['name'])}: {network_name(architecture)}"
    return Panel.fit(
        Group(*parts), title=f"[bold cyan]{title}[/]", title_align="left", padding=(1, 2)
    )


def _metrics_table(metrics: Mapping[str, Any]) -> Table:
    seeds = metrics["seeds"]
    several = len(seeds) > 1
    own = list(seeds) if several and len(seeds) <= SHOWN_SEEDS else []
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", style="bold", no_wrap=True)
    for _ in own:
        table.add_column(justify="right", no_wrap=True)
    head = "mean ± std" if several else f"seed {next(iter(seeds))}"
    table.add_row("test", f"[not bold]{head}[/]", *(f"seed {s}" for s in own), style="dim")
    for key, name in ROWS.items():
        if key not in metrics["summary"]:  # no AUROC where a test part has a single class
            table.add_row(name, "-")
            continue
        found = metrics["summary"][key]
        spread = f" ± {100 * found['std']:4.1f}" if several else ""
        each = (f"{100 * seeds[s][key]:.1f}" for s in own)
        table.add_row(name, f"{100 * found['mean']:.1f}{spread} %", *each)
        if found.get("interval"):
            low, high = found["interval"]
            table.add_row("  95% interval", f"[not bold]{100 * low:.1f} to {100 * high:.1f} %[/]")
    return table


def _confusion_table(config: Mapping[str, Any]) -> Table:
    names = [_short(name) for name in config["data"]["class_names"]]
    matrix = config["metrics"]["confusion"]
    shown = names if len(names) <= SHOWN_CLASSES else []
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    for _ in (*shown, "graphs", "recall", "precision"):
        table.add_column(justify="right", no_wrap=True)
    table.add_row("true class", *map(escape, shown), "graphs", "recall", "precision", style="dim")
    for i, name in enumerate(names):
        row, column = matrix[i], [matrix[j][i] for j in range(len(names))]
        cells = [f"[bold]{n:,}[/]" if i == j else f"{n:,}" for j, n in enumerate(row) if shown]
        table.add_row(
            escape(name), *cells, f"{sum(row):,}", _share(row[i], row), _share(column[i], column)
        )
    return table


def _share(part: int, whole: list[int]) -> str:
    return f"{part / sum(whole):.1%}" if sum(whole) else "-"


def _short(name: str) -> str:
    return name if len(name) <= NAME_WIDTH else name[: NAME_WIDTH - 1] + "…"


def _facts_table(config: Mapping[str, Any]) -> Table:
    epochs = list(config["epochs"].values())
    length = f"{min(epochs)}" if min(epochs) == max(epochs) else f"{min(epochs)} to {max(epochs)}"
    seconds = config["seconds_per_epoch"]
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(style="bold")
    table.add_column(style="dim")
    count = len(epochs)
    each = "" if count == 1 else f"each of {count} models"
    table.add_row("parameters", f"{config['parameters']:,}", each)
    table.add_row("epochs", length, f"at most {config['protocol']['max_epochs']}")
    if seconds is not None:
        device = config["machine"]["device"]
        table.add_row("time per epoch", f"{duration(seconds)}", f"a seed, on {escape(device)}")
    return table

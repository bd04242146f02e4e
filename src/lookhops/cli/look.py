"""``lookhops look``: how many hops are worth looking at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from lookhops.cli.common import (
    Json,
    bar,
    err,
    out,
    print_json,
)
from lookhops.cli.groups import with_groups
from lookhops.cli.reading import Reading, Source
from lookhops.cli.report import ReportFile, check_page, command_line, write
from lookhops.errors import LookHopsError
from lookhops.files import replacing
from lookhops.words import compact_percent

if TYPE_CHECKING:
    from lookhops.information import HopInformation
    from lookhops.information.gain import Progress

PICTURES = (".png", ".svg", ".pdf", ".html")
# More classes than this do not fit beside one another in 80 columns.
SIDE_BY_SIDE = 2


@with_groups
def look(
    source: Source,
    max_k: Annotated[int, typer.Option("--max-k", help="The most hops to look at.")] = 9,
    neighbourhood: Annotated[
        str,
        typer.Option(
            "--neighbourhood",
            metavar="[walk|ball]",
            help="What a node sees at k hops: what a walk of k steps leads to, or all within k.",
        ),
    ] = "walk",
    epsilon: Annotated[
        float, typer.Option("--epsilon", help="The share of the information that may be lost.")
    ] = 0.05,
    per_class: Annotated[
        bool, typer.Option("--per-class", help="Measure the graphs of each class as well.")
    ] = False,
    bootstrap: Annotated[
        int,
        typer.Option("--bootstrap", help="Resamples of the graphs for the intervals; 0: none."),
    ] = 200,
    seed: Annotated[int, typer.Option("--seed", help="Of the resamples.")] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", help="Draw it to a file: .png .svg .pdf or .html.", show_default=False
        ),
    ] = None,
    report: ReportFile = None,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """See, before any training, how much each further hop can tell, and which k that suggests.

    The classes of the graphs are not looked at, save with --per-class to choose graphs.
    """
    from lookhops.information import look as measure

    if plot is not None and plot.suffix.lower() not in PICTURES:
        raise LookHopsError(f"{plot}: a picture ends in {', '.join(PICTURES)}.")
    if report is not None:
        check_page(report)
    graphs = reading.load(source)
    with _progress() as progress:
        found = measure(
            graphs, max_k, neighbourhood, epsilon, bootstrap, seed, per_class, progress=progress
        )
    if plot is not None:
        _draw(found, plot)
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found)
    if report is not None:
        from lookhops.models.facts import graph_facts
        from lookhops.report.build import look_report

        again = [("Measure", command_line())]
        made = look_report(found.to_dict(), graph_facts(graphs), again)
        write(made, report, quiet=as_json)


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A bar on stderr where someone sees it."""
    if not err.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    parts = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*parts, console=err, transient=True) as shown:
        task = shown.add_task("looking", total=1.0)
        yield lambda what, share: shown.update(task, description=what, completed=share)


def _draw(found: HopInformation, path: Path) -> None:
    kind = path.suffix.lower()[1:]
    with replacing(path) as part:
        if kind == "html":
            text = found.plot(backend="plotly").to_html(include_plotlyjs=True)
            part.write_text(text, encoding="utf-8")
        else:
            found.plot().savefig(part, format=kind, dpi=150)
    err.print(f"drawn to {escape(str(path))}", soft_wrap=True)


# -------------------------------------------------------------------- the answer as text


def _print(found: HopInformation) -> None:
    from lookhops.information.sentences import classes_sentence

    constant = f" ({found.constant_channels} more are constant)" if found.constant_channels else ""
    out.print(
        f"[bold]{escape(found.name)}[/]: {found.graphs:,} graphs, {found.nodes:,} nodes, "
        f"{found.channels.size:,} features{constant}",
        soft_wrap=True,
    )
    out.print()
    out.print(_gains(found))
    out.print()
    out.print(_explanation(found), width=80)
    if found.per_class:
        out.print()
        out.print(_classes(found))
        out.print()
        out.print(escape(classes_sentence(found)), width=80)
    out.print()
    out.print(f"[bold]{escape(found.sentence())}[/]", width=80)


def _gains(found: HopInformation) -> Table:
    """A row for each k; at k = 1 there is no gain, as there is nothing before it to compare."""
    table = Table(box=None, padding=(0, 2), header_style="bold")
    table.add_column("hops k", justify="right")
    table.add_column("gain IG(k)", justify="right")
    if found.gain_interval is not None:
        table.add_column("95% interval", justify="center")
    table.add_column("lost beyond k", justify="right")
    table.add_column("")
    for k in range(1, found.max_k + 1):
        suggested = k == found.suggested_k
        row = [str(k), f"{found.gain[k - 2]:.4f}" if k > 1 else "-"]
        if found.gain_interval is not None:
            row.append("{:.4f} to {:.4f}".format(*found.gain_interval[k - 2]) if k > 1 else "-")
        row += [compact_percent(found.lost(k)), bar(float(found.lost(k)), 20)]
        if suggested:
            row[-1] = f"{row[-1]} <- enough".strip()
        table.add_row(*row, style="bold green" if suggested else None)
    return table


def _explanation(found: HopInformation) -> str:
    """What the columns say and where the last one comes from."""
    decay = found.decay
    rate = f"{decay.b:.3f}"
    if found.b_interval is not None:
        rate += " ({:.3f} to {:.3f})".format(*found.b_interval)
    seen = "a walk of k steps leads to" if found.neighbourhood == "walk" else "lie within k steps"
    return (
        f"IG(k), the information gain, is how much the view of the nodes changes when they look k "
        f"hops far instead of k - 1. (At k hops a node sees the nodes that {seen}.) The gains fall "
        f"like {decay.a:.4g} e^(-b k) with b = {rate}, R² = {decay.r2:.4f}, MSE = "
        f"{decay.mse:.2g}; by that curve, e^(-b k) of all there is to see lies beyond k hops and "
        "is lost. "
        + (
            "The classes choose the graphs measured below, and nothing else."
            if found.per_class
            else "The classes of the graphs were not looked at."
        )
    )


def _classes(found: HopInformation) -> Table:
    """Few classes side by side, a row for each k; many below one another."""
    table = Table(box=None, padding=(0, 2), header_style="bold")
    if len(found.per_class) <= SIDE_BY_SIDE:
        table.add_column("hops k", justify="right")
        for name, one in found.per_class.items():
            table.add_column(f"class {escape(name)} ({one.graphs:,})", justify="right")
        for i, k in enumerate(found.k):
            table.add_row(str(k), *(_gain(one, i) for one in found.per_class.values()))
        table.add_row("b", *(f"{one.decay.b:.3f}" for one in found.per_class.values()))
        table.add_row("enough", *(_enough(one) for one in found.per_class.values()))
        return table
    table.add_column("class")
    for title in ("graphs", "IG(2)", "IG(3)", "IG(4)", "b", "enough"):
        table.add_column(title, justify="right")
    for name, one in found.per_class.items():
        shown = [f"{gain:.4f}" for gain in one.gain[:3]] + ["-"] * (3 - len(one.gain[:3]))
        table.add_row(escape(name), f"{one.graphs:,}", *shown, f"{one.decay.b:.3f}", _enough(one))
    return table


def _gain(found: HopInformation, i: int) -> str:
    if found.gain_interval is None:
        return f"{found.gain[i]:.4f}"
    return "{:.3f} ({:.3f} to {:.3f})".format(found.gain[i], *found.gain_interval[i])


def _enough(found: HopInformation) -> str:
    return "-" if found.suggested_k is None else f"k = {found.suggested_k}"

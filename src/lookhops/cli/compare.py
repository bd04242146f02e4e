"""``lookhops compare``: which model is better on your graphs, and how sure that is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from lookhops.cli.common import (
    Json,
    check_folder,
    out,
    print_json,
)
from lookhops.cli.groups import with_groups
from lookhops.cli.reading import Reading, Source
from lookhops.cli.report import ReportFile, check_page, command_line, write
from lookhops.cli.runs import (
    Left,
    RunOptions,
    run_plan,
)
from lookhops.errors import LookHopsError

if TYPE_CHECKING:
    from lookhops.experiments.compare import Comparison
    from lookhops.experiments.store import Store
    from lookhops.graphs import Graphs
    from lookhops.tables import Table
    from lookhops.training import Protocol

STORE = "comparison.sqlite"
#: The files that a comparison of one model, or on one split, does not have.
OF_PAIRS = ("pairs.md", "pairs.tex", "pairs.csv", "ranks.svg", "ranks.png")


@with_groups
def compare(
    source: Source,
    models: Annotated[
        str,
        typer.Option(
            help="With commas between: recommended, or conv[+pool][/option=value], such as "
            "licheb+lookhops/k=3."
        ),
    ] = "recommended,licheb+lookhops,licheb,cheb,gcn",
    seeds: Annotated[str, typer.Option(help="How many splits, or which seeds (11,22).")] = "10",
    epochs: Annotated[int, typer.Option(min=1, help="At most so many.")] = 500,
    patience: Annotated[
        int, typer.Option(min=1, help="Epochs without improvement before a run stops.")
    ] = 30,
    batch_size: Annotated[int, typer.Option(min=1, help="Graphs in a batch.")] = 256,
    lr: Annotated[float, typer.Option(help="Learning rate.")] = 1e-3,
    stratify: Annotated[
        bool, typer.Option("--stratify", help="Keep the classes' proportions in each part.")
    ] = False,
    precision: Annotated[str, typer.Option(help="float32, tf32, bfloat16 or float64.")] = "float32",
    store: Annotated[
        Path | None,
        typer.Option(
            help="SQLite file of finished runs.", show_default=f"OUTPUT/{STORE} or ./{STORE}"
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder for tables and the plot of ranks."),
    ] = None,
    report: ReportFile = None,
    as_json: Json = False,
    *,
    options: RunOptions,
    reading: Reading,
) -> None:
    """Train models on the same splits of your graphs and say which differ.

    The table is sorted by mean accuracy. Below it are the differences, paired over the splits, with
    95% intervals and a corrected resampled t-test (Nadeau and Bengio), Holm-adjusted. Finished runs
    are kept in the store: add a model or more seeds, and only what is new is trained.
    """
    from lookhops.training import Protocol
    from lookhops.training.protocol import parse_seeds

    if report is not None:
        check_page(report)
    protocol = Protocol(
        seeds=parse_seeds(seeds),
        stratify=stratify,
        batch_size=batch_size,
        learning_rate=lr,
        max_epochs=epochs,
        patience=patience,
        precision=precision,
    )
    graphs = reading.load(source)
    if output is not None:
        check_folder(output)
    path = store or (output or Path()) / STORE
    if options.time_limit == 0 and not path.exists():
        raise LookHopsError(
            f"{path}: there is no such store, and with --time-limit 0 none is made."
        )
    found, left = _run(graphs, models, protocol, path, options)
    paths = _write(found, output) if output else []
    if as_json:
        files = {"files": [str(path) for path in paths], "left": left.said}
        print_json({**found.to_json(), **files})
    else:
        _print(found, paths)
    if report is not None:
        _report(found, path, report, quiet=as_json)
    left.tell()


def _run(
    graphs: Graphs, models: str, protocol: Protocol, path: Path, options: RunOptions
) -> tuple[Comparison, Left]:
    from lookhops.experiments.compare import comparison
    from lookhops.experiments.plan import cross, parse_models
    from lookhops.experiments.results import Results, collect
    from lookhops.experiments.store import Store
    from lookhops.training.trainer import draw_splits

    cells = cross([graphs.name], parse_models(models).items(), protocol)
    draw_splits(graphs, protocol, None)  # graphs that cannot be split say so now
    options.check()
    with Store(path) as store:
        _keep_facts(store, graphs)
        left = run_plan(cells, lambda name: graphs, store, options)
        results = Results(collect(cells, lambda name: graphs, store))
    return comparison(graphs.name, results), left


def _keep_facts(store: Store, graphs: Graphs) -> None:
    """Keep with the runs what a report says besides: the graphs' counts and the command."""
    from lookhops.models.facts import graph_facts

    where = (graphs.name, graphs.fingerprint)
    store.fact(*where, "graphs", lambda: graph_facts(graphs))
    command = command_line()
    store.fact(*where, f"command {command}", lambda: command)


def _report(found: Comparison, store: Path, path: Path, quiet: bool) -> None:
    """The report on the models of this comparison, whatever else the store has."""
    from lookhops.experiments.results import Results
    from lookhops.report.runs import runs_report
    from lookhops.report.snapshot import read_store

    cells = found.results.cells
    stored = read_store(store, cells[0].fingerprint)
    results = Results(cells, stored.results.facts)
    write(runs_report(replace(stored, results=results)), path, quiet)


def _write(found: Comparison, folder: Path) -> list[Path]:
    from lookhops.experiments.export import export
    from lookhops.paper.figures import rank_figure, save

    paths = found.models_table().write(folder)
    if found.pairs:
        paths += found.pairs_table().write(folder)
        paths += save(rank_figure(found.ranks, found.groups), folder, "ranks")
    else:  # those of an earlier comparison would stand beside these models
        for name in OF_PAIRS:
            (folder / name).unlink(missing_ok=True)
    export(found.results, folder / "runs.json")
    export(found.results, folder / "runs.csv")
    return [*paths, folder / "runs.json", folder / "runs.csv"]


def _print(found: Comparison, paths: list[Path]) -> None:
    models = found.models_table()
    print_table(models)
    if models.note:
        out.print(escape(models.note), style="dim")
    if found.pairs:
        print_table(found.pairs_table())
        out.print(escape(found.pairs_table().note), style="dim")
    elif len(found.scores) > 1:
        out.print("One shared split says nothing about differences: it takes two or more.")
    if paths:
        out.print(f"written: {paths[0].parent}", soft_wrap=True)


def print_table(table: Table) -> None:
    """Print a table on stdout."""
    from rich.table import Table as RichTable

    grid = RichTable(title=escape(table.title), title_justify="left", box=None, pad_edge=False)
    for i, name in enumerate(table.head):
        first = i == 0  # names may be long, and differ at their end: never cut
        grid.add_column(
            name, justify="left" if first else "right", no_wrap=not first, overflow="fold"
        )
    for row in table.rows:
        grid.add_row(*("\n".join(escape(line.strip("*")) for line in cell) for cell in row))
    out.print(grid)
    out.print()

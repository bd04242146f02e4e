"""``lookhops paper``: the paper's tables and figures, from what is stored and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lookhops.cli.common import Json, check_folder, err, out, print_json
from lookhops.cli.groups import with_groups
from lookhops.cli.reading import DataDir
from lookhops.cli.report import ReportFile, check_page, command_line, write
from lookhops.cli.runs import (
    Left,
    RunOptions,
    run_plan,
    split_names,
)
from lookhops.errors import LookHopsError

if TYPE_CHECKING:
    from lookhops.experiments.results import Results
    from lookhops.experiments.store import Store
    from lookhops.paper.suites import Suite
    from lookhops.tables import Table

NAMES = "all, none, or names with commas between"


@with_groups
def paper(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the page.")],
    tables: Annotated[str, typer.Option(help=f"Of data, gain, conv, pool: {NAMES}.")] = "all",
    figures: Annotated[str, typer.Option(help=f"Of gain, accuracy-by-k: {NAMES}.")] = "all",
    datasets: Annotated[
        str | None,
        typer.Option(
            help="With commas between.", show_default="the paper's; BURSI in FRANKENSTEIN's place"
        ),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(
            help="Only these rows, by the names below theirs on the page: gcn, licheb, edge, "
            "lookhops-nf, recommended, licheb-k3, ...",
            show_default="all",
        ),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="How many, or which (11,22).", show_default="10")
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Minutes on a CPU: few graphs, two seeds, a few epochs."),
    ] = False,
    precision: Annotated[str, typer.Option(help="float32, tf32, bfloat16 or float64.")] = "float32",
    store: Annotated[
        Path | None,
        typer.Option(help="SQLite file of finished runs.", show_default="OUTPUT/runs.sqlite"),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(help="Also write all runs there: .json, .csv, .md or .tex."),
    ] = None,
    stored: Annotated[
        Path | None,
        typer.Option("--from", help="Build the page from exported .json; run nothing."),
    ] = None,
    report: ReportFile = None,
    as_json: Json = False,
    data_dir: DataDir = None,
    *,
    options: RunOptions,
) -> None:
    """Run what is missing of the paper's experiments, and write its tables and figures.

    Finished runs are kept in the store: stop at any time, and the same command goes on. Several
    processes may share a store.
    """
    from lookhops.experiments.export import check_suffix
    from lookhops.experiments.export import export as write_export
    from lookhops.experiments.results import Results
    from lookhops.paper.page import write_page
    from lookhops.paper.reference import FIGURES, ROWS, TABLES

    chosen_tables = split_names(tables, TABLES, "table")
    chosen_figures = split_names(figures, FIGURES, "figure")
    if not chosen_tables and not chosen_figures:
        raise LookHopsError("There is nothing to make: name a table or a figure.")
    check_folder(output)
    if export is not None:
        check_suffix(export)
        check_folder(export.parent)
    if report is not None:
        check_page(report)
    left = Left([], [])
    if stored is not None:
        _check_nothing_runs(datasets, rows, seeds, quick, store)
        results = Results.from_json(stored)
        if not any(
            results.find(d, r.architecture(d)) for d in results.datasets for r in ROWS.values()
        ):
            raise LookHopsError(f"{stored}: holds no run of the paper's rows.")
    else:
        results, left = _run(
            store or output / "runs.sqlite",
            _suite(datasets, quick, seeds, precision, data_dir),
            chosen_tables,
            chosen_figures,
            [row.strip() for row in rows.split(",") if row.strip()] if rows else None,
            options,
        )
    paths = write_page(results, output, chosen_tables, chosen_figures)
    if export is not None:
        write_export(results, export)
        paths.append(export)
    if as_json:
        print_json({"files": [str(path) for path in paths], "left": left.said, **_summary(results)})
    else:
        _print(results, chosen_tables, paths[0])
    if report is not None:
        from lookhops.report.runs import runs_report
        from lookhops.report.snapshot import Snapshot

        made = runs_report(Snapshot(results, commands=[command_line()]), paper=True)
        write(made, report, quiet=as_json)
    left.tell()


def _check_nothing_runs(*options: Any) -> None:
    """With --from nothing is run, so that nothing can be said about how."""
    if any(options):
        raise LookHopsError(
            "--from shows what is exported: --datasets, --rows, --seeds, --quick and --store do "
            "not go with it."
        )


def _suite(
    datasets: str | None, quick: bool, seeds: str | None, precision: str, data_dir: Path | None
) -> Suite:
    from lookhops.paper.suites import paper_suite
    from lookhops.training.protocol import parse_seeds

    names = [name.strip() for name in datasets.split(",") if name.strip()] if datasets else None
    return paper_suite(
        names, parse_seeds(seeds) if seeds else None, precision, quick=quick, data_dir=data_dir
    )


def _run(
    path: Path,
    suite: Suite,
    tables: Sequence[str],
    figures: Sequence[str],
    rows: Sequence[str] | None,
    options: RunOptions,
) -> tuple[Results, Left]:
    """Run what is missing; the results, and what is left."""
    from lookhops.experiments.results import Results, collect
    from lookhops.experiments.store import Store
    from lookhops.paper.reference import chosen_rows, paper_plan

    options.check()
    cells = paper_plan(chosen_rows(tables, figures, rows), suite.datasets, suite.protocol)
    with Store(path) as store:
        left = run_plan(cells, suite.graphs, store, options)
        facts = _facts(suite, store, {*tables, *figures})
        results = Results(collect(cells, suite.graphs, store), facts, suite.quick)
    return results, left


def _facts(suite: Suite, store: Store, wanted: set[str]) -> dict[str, dict[str, Any]]:
    """The sizes of the data sets, and their information gain where it is asked for."""
    from lookhops.paper.suites import data_facts, gain_facts

    facts: dict[str, dict[str, Any]] = {}
    for name in suite.datasets:
        graphs = suite.graphs(name)
        where = (name, graphs.fingerprint)
        facts[name] = {"data": store.fact(*where, "data", partial(data_facts, graphs))}
        if "gain" in wanted:
            err.print(f"{name}: information gain")
            facts[name]["gain"] = store.fact(*where, "gain", partial(gain_facts, graphs))
    return facts


def _summary(results: Results) -> dict[str, Any]:
    from lookhops.paper.claims import CLAIMS, judge

    return {
        "quick": results.quick,
        "claims": {claim.title: judge(claim, results).said for claim in CLAIMS},
        "results": results.to_json(),
    }


def _print(results: Results, tables: Sequence[str], page: Path) -> None:
    from lookhops.paper.claims import CLAIMS, judge
    from lookhops.paper.tables import make_tables

    mark = " (quick version: says nothing about the models)" if results.quick else ""
    for table in make_tables(results, tables):
        _print_table(table, mark)
    if {"conv", "pool"} <= {*tables}:
        for claim in CLAIMS:
            out.print(f"{claim.title}: [bold]{judge(claim, results).said}[/]{mark}", soft_wrap=True)
        out.print()
    out.print(f"written: {page}", soft_wrap=True)


def _print_table(table: Table, mark: str) -> None:
    """A table within 80 columns: the paper's own columns and what does not fit are on the page."""
    from rich.markup import escape
    from rich.table import Table as RichTable

    shown = [i for i, name in enumerate(table.head) if "paper)" not in name][:8]
    if table.name in ("conv", "pool"):
        shown = [i for i in shown if table.head[i] not in ("parameters", "50 epochs")]
    grid = RichTable(
        title=escape(table.title + mark), title_justify="left", box=None, pad_edge=False
    )
    for i in shown:
        grid.add_column(table.head[i], justify="left" if i == 0 else "right", no_wrap=i > 0)
    for row in table.rows:
        cells = []
        for i in shown:
            lines = [line for line in row[i] if not line.startswith("`")]
            cells.append("\n".join(escape(line.strip("*").replace(" ± ", "±")) for line in lines))
        grid.add_row(*cells)
    out.print(grid)
    out.print()

"""``lookhops paper``: the paper's tables and figures, from what is stored and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lookhops.cli.shared.output import (
    ReportFile,
    check_folder,
    command_line,
    out,
    print_json,
    print_line,
    print_table,
    remark,
    write_page,
)
from lookhops.cli.shared.parameters import Json, with_options
from lookhops.cli.shared.reading import DataDir, warnings_as_lines
from lookhops.cli.shared.running import Left, Runner, Running, run_plan
from lookhops.core.errors import LookHopsError
from lookhops.core.options import parse_seeds
from lookhops.core.tables import Table

if TYPE_CHECKING:
    from lookhops.runs.results import Results


@dataclass(frozen=True)
class Experiments:
    """Which of the paper's experiments are run.

    Args:
        datasets: With commas between; by default the paper's, with BURSI in FRANKENSTEIN's place
            where the data folder has it.
        rows: Only these rows, by the names below theirs on the page: gcn, licheb, edge,
            lookhops-nf, recommended, licheb-k3, ...; by default all.
        seeds: How many, or which (11,22); by default 10.
        quick: Minutes on a CPU: few graphs, two seeds, a few epochs.
        store: SQLite file of finished runs; by default OUTPUT/runs.sqlite.
    """

    datasets: str | None = None
    rows: str | None = None
    seeds: str | None = None
    quick: bool = False
    store: Path | None = None
    precision: str = "float32"


@with_options
def paper(
    output: Path,
    tables: str = "all",
    figures: str = "all",
    export: Path | None = None,
    stored: Annotated[
        Path | None,
        typer.Option("--from", help="Build the page from exported .json; run nothing."),
    ] = None,
    report: ReportFile = None,
    as_json: Json = False,
    data_dir: DataDir = None,
    *,
    experiments: Annotated[Experiments, "The experiments"],
    options: Running,
) -> None:
    """Run what is missing of the paper's experiments, and write its tables and figures.

    Finished runs are kept in the store: stop at any time, and the same command goes on. Several
    processes may share a store.

    Args:
        output: Folder for the page.
        tables: Of data, gain, conv, pool, ours: all, none, or names with commas between.
        figures: Of gain, accuracy-by-k: all, none, or names with commas between.
        export: Also write all runs there: .json, .csv, .md or .tex.
    """
    from lookhops.report.paper.page import write_page as write_paper
    from lookhops.runs.paper import FIGURES, TABLES
    from lookhops.runs.results import check_suffix
    from lookhops.runs.results import export as write_export

    parts = _names(tables, TABLES, "table"), _names(figures, FIGURES, "figure")
    if not any(parts):
        raise LookHopsError("There is nothing to make: name a table or a figure.")
    check_folder(output)
    if export is not None:
        check_suffix(export)
        check_folder(export.parent)
    if stored is not None:
        results, left = _exported(stored, experiments), Left()
    else:
        path = experiments.store or output / "runs.sqlite"
        results, left = _run(path, experiments, data_dir, parts, options)
    paths = write_paper(results, output, *parts)
    if export is not None:
        write_export(results, export)
        paths.append(export)
    if as_json:
        about = {"quick": results.quick, "claims": _claims(results), "results": results.to_json()}
        print_json({"files": [str(path) for path in paths], "left": left.said, **about})
    else:
        _print(results, parts[0], paths[0])
    if report is not None:
        from lookhops.report.runs import runs_report

        made = runs_report(replace(results, commands=[command_line()]), paper=True)
        write_page(made, report, quiet=as_json)
    left.tell()


def _names(text: str, known: Sequence[str], what: str) -> list[str]:
    """Names with commas between, ``all`` or ``none``, in the order in which they are known."""
    if text in ("all", "none"):
        return list(known) if text == "all" else []
    names = _split(text)
    if unknown := [name for name in names if name not in known]:
        listed = f"{', '.join(known)}, or all, or none"
        raise LookHopsError(f"There is no {what} {unknown[0]!r}; there are {listed}.")
    return [name for name in known if name in names]


def _split(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _exported(path: Path, experiments: Experiments) -> Results:
    """Results from a file: nothing is run, so that nothing can be said about how."""
    from lookhops.runs.paper import ROWS
    from lookhops.runs.results import Results

    if replace(experiments, precision=Experiments.precision) != Experiments():
        raise LookHopsError(
            "--from shows what is exported: --datasets, --rows, --seeds, --quick and --store do "
            "not go with it."
        )
    results = Results.from_json(path)
    if not any(results.find(d, r.architecture(d)) for d in results.datasets for r in ROWS.values()):
        raise LookHopsError(f"{path}: holds no run of the paper's rows.")
    return results


def _run(
    path: Path,
    experiments: Experiments,
    data_dir: Path | None,
    parts: tuple[Sequence[str], Sequence[str]],
    options: Runner,
) -> tuple[Results, Left]:
    """Run what is missing for these tables and figures; the results, and what is left."""
    from lookhops.runs import paper as plan
    from lookhops.runs.results import Results
    from lookhops.runs.store import Store
    from lookhops.training import Protocol

    quick, protocol = experiments.quick, Protocol(precision=experiments.precision)
    if quick:
        protocol = replace(protocol, seeds=plan.QUICK_SEEDS, max_epochs=plan.QUICK_EPOCHS)
    if experiments.seeds:
        protocol = replace(protocol, seeds=parse_seeds(experiments.seeds))
    with warnings_as_lines():
        names = plan.paper_datasets(_split(experiments.datasets), quick, data_dir)
    executor, left = options.executor(), Left()
    rows = plan.chosen_rows(*parts, _split(experiments.rows))
    datasets = plan.paper_graphs(names, quick, data_dir)
    cells = plan.paper_plan(rows, datasets, protocol)
    with Store(path) as store:
        run_plan(cells, store, executor, options.time_limit, left)
        notes: dict[str, dict[str, Any]] = {}
        for name, graphs in datasets.items():
            where = (name, graphs.fingerprint)
            notes[name] = {"data": store.note(*where, "data", partial(plan.data_note, graphs))}
            if any("gain" in part for part in parts):
                remark(f"{name}: information gain")
                notes[name]["gain"] = store.note(*where, "gain", partial(plan.gain_note, graphs))
        results = Results(store.collect(cells), notes, quick)
    return results, left


def _claims(results: Results) -> dict[str, str]:
    from lookhops.report.paper.claims import CLAIMS, judge

    return {claim.title: judge(claim, results).said for claim in CLAIMS}


def _print(results: Results, tables: Sequence[str], page: Path) -> None:
    from lookhops.report.paper.side_by_side import make_tables

    mark = " (quick version: says nothing about the models)" if results.quick else ""
    for table in make_tables(results, tables):
        print_table(_narrow(replace(table, title=table.title + mark)))
    if {"conv", "pool"} <= {*tables}:
        for claim, said in _claims(results).items():
            out.print(f"{claim}: [bold]{said}[/]{mark}", soft_wrap=True)
        out.print()
    print_line(f"written: {page}")


def _narrow(table: Table) -> Table:
    """A table within 80 columns: the paper's own columns and what does not fit are on the page."""
    names = [n for n in table.head if "paper)" not in n and n not in ("parameters", "50 epochs")]
    shown = [table.head.index(name) for name in names[:8]]
    short = table.name == "ours"  # eight columns: deviations and p are on the page

    def lines(cell: Sequence[str]) -> list[str]:
        found = [line.replace(" ± ", "±") for line in cell if not line.startswith("`")]
        return [line.split("±")[0].strip("*") for line in found[:1]] if short else found

    rows = [[lines(row[i]) for i in shown] for row in table.rows]
    return replace(table, head=names[:8], rows=rows, note="")

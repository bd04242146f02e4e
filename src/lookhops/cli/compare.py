"""``lookhops compare``: which model is better on your graphs, and how sure that is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lookhops.cli.shared.parameters import AUTO, Json, Plugins, Training, with_options
from lookhops.cli.shared.printing import err, out, print_json, print_line, print_table
from lookhops.cli.shared.reading import Reading, Source, Splitting
from lookhops.cli.shared.running import Left, Runner, Running, run_plan, tell_remarks
from lookhops.cli.shared.writing import (
    ReportFile,
    check_folder,
    check_picture,
    command_line,
    write_page,
)
from lookhops.core.errors import LookHopsError
from lookhops.core.files import changing

if TYPE_CHECKING:
    from lookhops.runs.compare import Comparison
    from lookhops.runs.fair import Contest

STORE = "comparison.sqlite"
#: Splits that are drawn where the user does not say how many.
SEEDS = 10
PICTURES = (".png", ".svg", ".pdf")
#: The files that a comparison of one model, or on one split, does not have.
OF_PAIRS = ("pairs.md", "pairs.tex", "pairs.csv", "ranks.svg", "ranks.png")


@with_options
def compare(
    source: Source,
    models: str = "recommended,fingerprint,baseline,licheb,gcn",
    output: Path | None = None,
    store: Path | None = None,
    protocol: str | None = None,
    grid: str | None = None,
    seeds: str | None = None,
    members: int | None = None,
    plot: Path | None = None,
    report: ReportFile = None,
    plugin: Plugins = None,
    as_json: Json = False,
    *,
    training: Training = AUTO,
    splitting: Splitting,
    options: Running,
    reading: Reading,
) -> None:
    """Train models on the same splits of your graphs and say which differ.

    The table has the best mean first: of accuracy, or of the error. Below it are the differences,
    paired over the splits, with 95% intervals and a corrected resampled t-test (Nadeau and Bengio),
    Holm-adjusted. Finished runs are kept in the store, and only what is new is trained.

    Args:
        models: With commas between: recommended, network, blend, gp, fingerprint, wl, wl-oa,
            baseline, mean, descriptors-boosting, descriptors-ridge, descriptors-forest,
            morgan-forest, morgan-ridge, or conv[+pool][/option=value], such as
            licheb+lookhops/k=3, network/members=5 or pyg:GATv2Conv/heads=4 (all: docs/models.md).
        protocol: paper: ten random splits, as in the paper. fair: 10 folds, an inner validation
            part, 3 initialisations whose scores are averaged, as Errica et al. describe. By default
            ten splits, classes in proportion.
        grid: fair: options among which validation chooses, such as hidden=64,128/k=1,2.
        seeds: How many splits, or which seeds (11,22; 11, is one). By default 10, or one a fold.
        members: Networks for each split, with other initial weights each, whose answers are
            averaged; by default 1. fair: their scores are averaged, by default of 3.
        store: SQLite file of finished runs; by default comparison.sqlite, in the output folder or
            the working folder.
        output: Folder for tables and the plots of ranks and costs.
        plot: Draw accuracy against time and parameters to a file: .png .svg or .pdf.
    """
    from lookhops.runs.fair import Contest, named_protocol, parse_grid
    from lookhops.runs.plan import parse_models

    check_picture(plot, PICTURES)
    graphs = reading.load_to_learn(source)
    if output is not None:
        check_folder(output)  # what cannot be written says so before anything is trained
    path = store or (output or Path()) / STORE
    if options.time_limit == 0 and not path.exists():
        raise LookHopsError(
            f"{path}: there is no such store, and with --time-limit 0 none is made."
        )
    training = named_protocol(protocol, training, splitting.splits is not None, members)
    graphs, plan = splitting.plan(source, graphs, training, seeds, reading, SEEDS)
    contest = Contest.of(graphs, parse_models(models), plan, parse_grid(grid), protocol)
    found, left = _run(contest, path, options)
    paths = _write(found, output, plot)
    if as_json:
        print_json({**found.to_json(), "files": paths, "left": left.said})
    else:
        _print(found, [*filter(None, (output, plot))])
    if report is not None:
        _report(found, path, report, quiet=as_json)
    left.tell()


def _run(contest: Contest, path: Path, options: Runner) -> tuple[Comparison, Left]:
    """Train what is missing; the comparison, and what is left."""
    from lookhops.runs.compare import comparison
    from lookhops.runs.store import Store
    from lookhops.sources.counts import graph_counts

    graphs, left, executor = contest.graphs, Left(), options.executor()
    if contest.recommended:
        print_line(f"recommended is {contest.recommended}", err)
    tell_remarks(graphs, contest.plan)
    with Store(path) as store:
        # What a report says besides: the graphs' counts and the command.
        where = (graphs.name, graphs.fingerprint)
        store.note(*where, "graphs", lambda: graph_counts(graphs))
        store.note(*where, f"command {command_line()}", command_line)
        found = contest.run(
            lambda cells: run_plan(cells, store, executor, options.time_limit, left), store
        )
    return comparison(graphs.name, found, contest.about()), left


def _report(found: Comparison, store: Path, path: Path, quiet: bool) -> None:
    """The report on the models of this comparison, whatever else the store has."""
    from lookhops.report.runs import read_store, runs_report

    stored = read_store(store, found.best.key.fingerprint)
    write_page(runs_report(replace(stored, cells=found.finished, quick=False)), path, quiet)


def _write(found: Comparison, folder: Path | None, plot: Path | None) -> list[str]:
    from lookhops.core.pictures import save
    from lookhops.report.sections.comparison import cost_picture

    paths = _write_folder(found, folder) if folder else []
    if plot is not None:
        save(cost_picture(found.costs(), found.main), plot)
        paths.append(plot)
    return [str(path) for path in paths]


def _write_folder(found: Comparison, folder: Path) -> list[Path]:
    from lookhops.core.pictures import save_both
    from lookhops.report.paper.page import rank_figure
    from lookhops.report.sections.comparison import cost_picture
    from lookhops.runs.results import Results, export

    # Those of pairs in an earlier comparison would stand beside these models.
    with changing(folder, without=OF_PAIRS) as new:
        paths = found.models_table().write(new)
        paths += save_both(cost_picture(found.costs(), found.main), new, "costs")
        if found.pairs:
            paths += found.pairs_table().write(new)
            paths += save_both(rank_figure(found.ranks, found.groups), new, "ranks")
        for name in ("runs.json", "runs.csv"):
            export(Results(found.finished), new / name)
            paths.append(new / name)
    return [folder / path.relative_to(new) for path in paths]


def _print(found: Comparison, written: list[Path]) -> None:
    print_table(found.models_table())
    if found.pairs:
        print_table(found.pairs_table())
    elif len(found.scores) > 1:
        out.print("One shared split says nothing about differences: it takes two or more.")
    for path in written:
        print_line(f"written: {path}")

"""``lookhops compare`` and ``tune``: which model is better on your graphs, and how sure that is."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.markup import escape
from rich.progress import MofNCompleteColumn

from lookhops.cli.shared.output import (
    ReportFile,
    check_folder,
    check_picture,
    command_line,
    out,
    print_json,
    print_line,
    print_saved,
    print_table,
    remark,
    write_page,
)
from lookhops.cli.shared.parameters import AUTO, Json, Plugins, Training, with_options
from lookhops.cli.shared.reading import Reading, Source, Splitting
from lookhops.cli.shared.running import (
    Left,
    Runner,
    Running,
    progress_bar,
    run_plan,
    stoppable,
    tell_remarks,
)
from lookhops.core.errors import LookHopsError
from lookhops.core.files import changing
from lookhops.core.options import SearchOptions
from lookhops.core.words import counted, duration

if TYPE_CHECKING:
    from lookhops.graphs import Graphs
    from lookhops.runs.compare import Comparison
    from lookhops.runs.fair import Contest
    from lookhops.runs.tune.tuning import Tuning
    from lookhops.sources.splits import SplitPlan
    from lookhops.training.runs import Event

STORE = "comparison.sqlite"
#: Splits that are drawn where the user does not say how many.
SEEDS = 10
PICTURES = (".png", ".svg", ".pdf")
#: The files that a comparison of one model, or on one split, does not have.
OF_PAIRS = ("pairs.md", "pairs.tex", "pairs.csv", "ranks.svg", "ranks.png")


@dataclass(frozen=True)
class Entrants:
    """What is compared.

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
    """

    models: str = "recommended,fingerprint,baseline,licheb,gcn"
    protocol: str | None = None
    grid: str | None = None
    seeds: str | None = None
    members: int | None = None


@with_options
def compare(
    source: Source,
    entrants: Annotated[Entrants, None],
    output: Path | None = None,
    store: Path | None = None,
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
    given = splitting.splits is not None
    training = named_protocol(entrants.protocol, training, given, entrants.members)
    graphs, plan = splitting.plan(source, graphs, training, entrants.seeds, reading, SEEDS)
    models, grid = parse_models(entrants.models), parse_grid(entrants.grid)
    contest = Contest.of(graphs, models, plan, grid, entrants.protocol)
    found, left = _run(contest, path, options)
    written = _write(found, output, plot)
    if as_json:
        print_json({**found.to_json(), "files": [*map(str, written)], "left": left.said})
    else:
        _print(found, [*filter(None, (output, plot))])
    if report is not None:
        from lookhops.report.runs import read_store, runs_report

        stored = read_store(path, found.best.key.fingerprint)  # whatever else the store has
        made = runs_report(replace(stored, cells=found.finished, quick=False))
        write_page(made, report, quiet=as_json)
    left.tell()


def _run(contest: Contest, path: Path, options: Runner) -> tuple[Comparison, Left]:
    """Train what is missing; the comparison, and what is left."""
    from lookhops.runs.compare import comparison
    from lookhops.runs.store import Store
    from lookhops.sources.counts import graph_counts

    graphs, left, executor = contest.graphs, Left(), options.executor()
    if contest.recommended:
        remark(f"recommended is {contest.recommended}")
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


def _write(found: Comparison, folder: Path | None, plot: Path | None) -> list[Path]:
    from lookhops.core.pictures import save, save_both
    from lookhops.report.paper.page import rank_figure
    from lookhops.report.sections.comparison import cost_picture
    from lookhops.runs.results import Results, export

    if folder is None and plot is None:
        return []
    paths, costs = [], cost_picture(found)
    if folder is not None:
        # Those of pairs in an earlier comparison would stand beside these models.
        with changing(folder, without=OF_PAIRS) as new:
            made = [*found.models_table().write(new), *save_both(costs, new, "costs")]
            if found.pairs:
                made += found.pairs_table().write(new)
                made += save_both(rank_figure(found.ranks, found.groups), new, "ranks")
            for name in ("runs.json", "runs.csv"):
                export(Results(found.finished), new / name)
                made.append(new / name)
        paths = [folder / path.relative_to(new) for path in made]
    if plot is not None:
        save(costs, plot)
        paths.append(plot)
    return paths


def _print(found: Comparison, written: list[Path]) -> None:
    print_table(found.models_table())
    if found.pairs:
        print_table(found.pairs_table())
    elif len(found.scores) > 1:
        out.print("One shared split says nothing about differences: it takes two or more.")
    for path in written:
        print_line(f"written: {path}")


#: Outer splits where the user does not say how many.
OUTER_SPLITS = 5
#: Options that are shown of what matters most.
SHOWN = 5


@with_options
def tune(
    source: Source,
    output: Path,
    seeds: str | None = None,
    device: str = "auto",
    overwrite: bool = False,
    report: ReportFile = None,
    plugin: Plugins = None,
    as_json: Json = False,
    *,
    search: Annotated[SearchOptions, "The search"],
    protocol: Training = AUTO,
    splitting: Splitting,
    reading: Reading,
) -> None:
    """Search for a configuration, say what that gains, and keep its model in a folder.

    Each outer split has a search of its own, judged by the validation parts of inner splits. When
    all have ended, the outer test parts are opened once, for the chosen configurations and for the
    recommended model; the gain is their paired difference, with its 95% interval (corrected
    resampled t-test, as in `compare`). That it is nothing is a result too.

    The folder holds the model of the first split's choice, Optuna's storage (study.sqlite) and the
    record. Ctrl-C keeps what is finished; the same command goes on, also with more --trials.

    Args:
        output: Folder for the model and the study.
        seeds: How many outer splits, or which seeds (11,22). By default 5, or one a fold.
        overwrite: Begin again, whatever is in the folder.
    """
    from lookhops.models.tuning import check_optuna

    check_optuna()
    graphs = reading.load_to_learn(source)
    graphs, plan = splitting.plan(source, graphs, protocol, seeds, reading, OUTER_SPLITS)
    tell_remarks(graphs, plan)
    found = _tune(output, graphs, plan, search, device, overwrite, reading)
    if as_json:
        print_json(found.to_dict())
    else:
        _print_tuning(found, output)
    if report is not None:
        from lookhops.report.build import report_on

        write_page(report_on(output, graphs), report, quiet=as_json)


def _tune(
    output: Path,
    graphs: Graphs,
    plan: SplitPlan,
    search: SearchOptions,
    device: str,
    overwrite: bool,
    reading: Reading,
) -> Tuning:
    """Tune, with a progress bar and an orderly end when the user asks for one."""
    from lookhops.models.folder import Provenance
    from lookhops.models.tuning import tune_into

    trials, runs = search.trials * len(plan.splits), 2 * len(plan.splits)
    start = time.monotonic()
    with stoppable(command_line()) as check, progress_bar(MofNCompleteColumn()) as bar:
        task = bar.add_task("configurations", total=trials + runs)

        def show(event: Event) -> None:
            bar.advance(task, event.finished)
            if event.text:
                remark(f"{event.text} ({duration(time.monotonic() - start)})")
            check()

        return tune_into(
            output,
            graphs,
            options=search,
            splits=plan,
            device=device,
            overwrite=overwrite,
            on_event=show,
            provenance=Provenance(reading, command_line()),
        )


def _print_tuning(found: Tuning, output: Path) -> None:
    from lookhops.report.sections.training import chosen_table

    tried = f"{counted(found.trials, 'configuration')} in {duration(found.seconds)}"
    print_table(replace(chosen_table(found), title=f"{found.dataset}: {tried}"))
    if found.importance:
        shares = [f"{name} {share:.0%}" for name, share in found.importance.items()][:SHOWN]
        out.print(f"[dim]what mattered:[/] {escape(', '.join(shares))}", soft_wrap=True)
    out.print(escape(found.said()), soft_wrap=True)
    print_saved(output)

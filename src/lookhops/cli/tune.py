"""``lookhops tune``: find the configuration that suits your graphs, and what that gains."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.markup import escape
from rich.progress import MofNCompleteColumn

from lookhops.cli.shared.parameters import AUTO, Json, Plugins, Training, with_options
from lookhops.cli.shared.printing import err, grid, out, print_json, print_line
from lookhops.cli.shared.reading import Reading, Source, Splitting
from lookhops.cli.shared.running import progress_bar, stoppable, tell_remarks
from lookhops.cli.shared.writing import ReportFile, command_line, print_saved, write_page
from lookhops.core.options import SearchOptions
from lookhops.core.words import counted, duration

if TYPE_CHECKING:
    from lookhops.graphs import Graphs
    from lookhops.runs.tune.tuning import Tuning
    from lookhops.sources.splits import SplitPlan
    from lookhops.training.runs import Event

#: Outer splits where the user does not say how many.
SEEDS = 5
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
        overwrite: Begin anew, whatever is in the folder.
    """
    from lookhops.models.tuning import check_optuna

    check_optuna()
    graphs = reading.load_to_learn(source)
    graphs, plan = splitting.plan(source, graphs, protocol, seeds, reading, SEEDS)
    tell_remarks(graphs, plan)
    found = _tune(output, graphs, plan, search, device, overwrite, reading)
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found, output)
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
                print_line(f"{event.text} ({duration(time.monotonic() - start)})", err)
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


def _print(found: Tuning, output: Path) -> None:
    main = found.main
    tried = f"{counted(found.trials, 'configuration')} in {duration(found.seconds)}"
    rows = [
        (
            f"{search.seed}",
            escape(search.chosen.said),
            main.written(search.chosen.value),
            main.written(tuned),
            main.written(recommended),
        )
        for search, tuned, recommended in zip(
            found.searches, found.tuned, found.recommended, strict=True
        )
    ]
    head = ("seed", "chosen", "validation", f"test {main.title}", "recommended")
    out.print(grid(rows, head, ("right", "left wrap"), title=f"{escape(found.dataset)}: {tried}"))
    out.print()
    if found.importance:
        shares = [f"{name} {share:.0%}" for name, share in found.importance.items()][:SHOWN]
        out.print(f"[dim]what mattered:[/] {escape(', '.join(shares))}", soft_wrap=True)
    out.print(escape(found.said()), soft_wrap=True)
    print_saved(output)

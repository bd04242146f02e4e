"""``lookhops look``: how many hops are worth looking at."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.markup import escape

from lookhops.cli.shared.output import (
    ReportFile,
    check_picture,
    command_line,
    out,
    print_json,
    print_section,
    remark,
    write_page,
)
from lookhops.cli.shared.parameters import Json, with_options
from lookhops.cli.shared.reading import Reading, Source, warnings_as_lines
from lookhops.cli.shared.running import progress_bar
from lookhops.core.words import agreeing, counted

if TYPE_CHECKING:
    from lookhops.graphs import Graphs
    from lookhops.neighbourhoods import HopInformation
    from lookhops.report.page import Report

PICTURES = (".png", ".svg", ".pdf", ".html")


@dataclass(frozen=True)
class Measuring:
    """What is measured whatever the classes of the graphs.

    Args:
        max_k: The most hops to look at.
        neighbourhood: What a node sees at k hops: what a ``walk`` of k steps leads to, or, in a
            ``ball``, all within k.
        epsilon: The share of the information that may be lost.
        per_class: Measure the graphs of each class as well.
        bootstrap: Resamples of the graphs for the intervals; 0: none.
        seed: Of the resamples.
    """

    max_k: int = 9
    neighbourhood: str = "walk"
    epsilon: float = 0.05
    per_class: bool = False
    bootstrap: int = 200
    seed: int = 0


@with_options
def look(
    source: Source,
    measuring: Annotated[Measuring, None],
    labels: bool = True,
    max_hops: int = 6,
    seeds: str = "10",
    plot: Path | None = None,
    report: ReportFile = None,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """See, before any training, how many hops are worth looking at.

    First, how much each further hop adds, whatever the classes of the graphs, and which k that
    suggests. Then, how well what lies within so many hops predicts the classes, and which hops a
    Gaussian process gives the weight to.

    Args:
        labels: Look at the classes too.
        max_hops: The most hops to predict the classes from.
        seeds: Splits for these predictions: a count or a list.
        plot: Draw it to a file: .png .svg .pdf or .html.
    """
    from lookhops.graphs.targets import one_target_each
    from lookhops.learners.hop_weights import look_weights
    from lookhops.neighbourhoods import look as measure
    from lookhops.neighbourhoods import look_labels
    from lookhops.neighbourhoods.labels import why_not

    check_picture(plot, PICTURES)
    graphs = reading.load_to_learn(source)
    with warnings_as_lines(), progress_bar() as shown:
        task = shown.add_task("looking", total=1.0)
        progress = lambda what, share: shown.update(task, description=what, completed=share)  # noqa: E731
        found = measure(graphs, **asdict(measuring), progress=progress)
        # How well hops predict each target, and of the others why they cannot.
        reasons = {one: why_not(one) for one in one_target_each(graphs)} if labels else {}
        targets = [one for one in reasons if not reasons[one]]
        everything = found.to_dict()
        for name, of_target in (
            ("labels", [look_labels(one, max_hops, seeds, progress) for one in targets]),
            ("hop_weights", [look_weights(one, max_hops, progress=progress) for one in targets]),
        ):
            each = [result.to_dict() for result in of_target]
            everything[name] = (each[0] if len(each) == 1 else each) or None
    if plot is not None:
        _draw(found, everything, graphs, plot)
    if as_json:
        print_json(everything)
    else:
        _print(found, everything, [*filter(None, reasons.values())])
    if report is not None:
        write_page(_page(everything, graphs), report, quiet=as_json)


def _draw(found: HopInformation, everything: dict[str, Any], graphs: Graphs, path: Path) -> None:
    from lookhops.core.pictures import save
    from lookhops.report.page import write_report

    if path.suffix.lower() == ".html":  # with its interactive charts
        write_report(_page(everything, graphs), path)
    else:
        save(found.plot(), path)
    remark(f"drawn to {path}")


def _page(everything: dict[str, Any], graphs: Graphs) -> Report:
    from lookhops.report.build import look_report
    from lookhops.sources.counts import graph_counts

    return look_report(everything, graph_counts(graphs), [("Measure", command_line())])


def _print(found: HopInformation, everything: dict[str, Any], reasons: list[str]) -> None:
    """The section of the page, and why of some targets hops were not measured."""
    from lookhops.neighbourhoods.information import classes_sentence
    from lookhops.report.sections.data import information_section

    constant = ""
    if same := found.constant_channels:
        constant = f" ({same} more {agreeing(same, 'is', 'are')} constant)"
    sizes = {"graph": found.graphs, "node": found.nodes, "feature": found.channels.size}
    said = ", ".join(counted(size, thing) for thing, size in sizes.items())
    out.print(f"[bold]{escape(found.name)}[/]: {said}{constant}\n", soft_wrap=True)
    print_section(information_section(everything))
    if found.per_class:
        out.print(f"\n{escape(classes_sentence(found))}", width=80)
    for reason in reasons:
        out.print(f"\n{escape(reason)}", width=80)

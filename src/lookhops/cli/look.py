"""``lookhops look``: how many hops are worth looking at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from lookhops.cli.shared.parameters import Json, with_options
from lookhops.cli.shared.printing import bar, err, grid, out, print_json, print_line
from lookhops.cli.shared.reading import Reading, Source, warnings_as_lines
from lookhops.cli.shared.running import progress_bar
from lookhops.cli.shared.writing import ReportFile, check_picture, command_line, write_page
from lookhops.core.words import agreeing, compact_percent, counted, plus_minus

if TYPE_CHECKING:
    from lookhops.graphs import Graphs
    from lookhops.learners.hop_weights import HopWeights
    from lookhops.neighbourhoods import HopInformation, LabelInformation
    from lookhops.report.page import Report

PICTURES = (".png", ".svg", ".pdf", ".html")
# More classes than this do not fit beside one another in 80 columns.
SIDE_BY_SIDE = 2


@with_options
def look(
    source: Source,
    max_k: int = 9,
    neighbourhood: str = "walk",
    epsilon: float = 0.05,
    per_class: bool = False,
    bootstrap: int = 200,
    seed: int = 0,
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
        max_k: The most hops to look at.
        neighbourhood: What a node sees at k hops: what a ``walk`` of k steps leads to, or, in a
            ``ball``, all within k.
        epsilon: The share of the information that may be lost.
        per_class: Measure the graphs of each class as well.
        bootstrap: Resamples of the graphs for the intervals; 0: none.
        seed: Of the resamples.
        labels: Look at the classes too.
        max_hops: The most hops to predict the classes from.
        seeds: Splits for these predictions: a count or a list.
        plot: Draw it to a file: .png .svg .pdf or .html.
    """
    from lookhops.core.pictures import save
    from lookhops.graphs.targets import one_target_each
    from lookhops.learners.hop_weights import look_weights
    from lookhops.neighbourhoods import look as measure
    from lookhops.neighbourhoods import look_labels
    from lookhops.neighbourhoods.labels import why_not
    from lookhops.report.page import write_report

    check_picture(plot, PICTURES)
    graphs = reading.load_to_learn(source)
    with warnings_as_lines(), progress_bar() as shown:
        task = shown.add_task("looking", total=1.0)
        progress = lambda what, share: shown.update(task, description=what, completed=share)  # noqa: E731
        asked = (max_k, neighbourhood, epsilon, bootstrap, seed, per_class)
        found = measure(graphs, *asked, progress=progress)
        # How well hops predict each target, and of the others why they cannot.
        reasons = {one: why_not(one) for one in one_target_each(graphs)} if labels else {}
        asked_of = [one for one in reasons if not reasons[one]]
        informed = [look_labels(one, max_hops, seeds, progress) for one in asked_of]
        weighed = [look_weights(one, max_hops, progress=progress) for one in asked_of]
    everything = found.to_dict()
    by_name: dict[str, list[Any]] = {"labels": informed, "hop_weights": weighed}
    for name, results in by_name.items():
        each = [result.to_dict() for result in results]
        everything[name] = (each[0] if len(each) == 1 else each) or None
    if plot is not None:
        if plot.suffix.lower() == ".html":  # with its interactive charts
            write_report(_page(everything, graphs), plot)
        else:
            save(found.plot(), plot)
        print_line(f"drawn to {plot}", err)
    if as_json:
        print_json(everything)
    else:
        _print(found)
        for information, weights in zip(informed, weighed, strict=True):
            _print_labels(information, weights)
        for reason in filter(None, reasons.values()):
            out.print(f"\n{escape(reason)}", width=80)
    if report is not None:
        write_page(_page(everything, graphs), report, quiet=as_json)


def _page(found: dict[str, Any], graphs: Graphs) -> Report:
    from lookhops.report.build import look_report
    from lookhops.sources.counts import graph_counts

    return look_report(found, graph_counts(graphs), [("Measure", command_line())])


def _print(found: HopInformation) -> None:
    from lookhops.neighbourhoods.information import classes_sentence

    constant = ""
    if same := found.constant_channels:
        constant = f" ({same} more {agreeing(same, 'is', 'are')} constant)"
    sizes = {"graph": found.graphs, "node": found.nodes, "feature": found.channels.size}
    said = ", ".join(counted(size, thing) for thing, size in sizes.items())
    out.print(
        f"[bold]{escape(found.name)}[/]: {said}{constant}\n",
        soft_wrap=True,
    )
    out.print(_gains(found))
    out.print(f"\n{_explanation(found)}", width=80)
    if found.per_class:
        out.print()
        out.print(_classes(found))
        out.print(f"\n{escape(classes_sentence(found))}", width=80)
    out.print(f"\n[bold]{escape(found.sentence())}[/]", width=80)


def _gains(found: HopInformation) -> Table:
    """A row for each k; at k = 1 there is no gain, as there is nothing before it to compare."""
    intervals = found.gain_interval
    rows = []
    for k in range(1, found.max_k + 1):
        row = [str(k), f"{found.gain[k - 2]:.4f}" if k > 1 else "-"]
        if intervals is not None:
            row.append("{:.4f} to {:.4f}".format(*intervals[k - 2]) if k > 1 else "-")
        row += [compact_percent(found.lost(k)), bar(float(found.lost(k)), 20)]
        if k == found.suggested_k:
            row = [f"[bold green]{cell}[/]" for cell in (*row[:-1], f"{row[-1]} <- enough".strip())]
        rows.append(row)
    between = [] if intervals is None else ["95% interval"]
    head = ("hops k", "gain IG(k)", *between, "lost beyond k", "")
    return grid(rows, head, ("right", "right", *("center" for _ in between), "right", "left"))


def _explanation(found: HopInformation) -> str:
    """What the columns say and where the last one comes from."""
    decay, interval = found.decay, found.b_interval
    rate = f"{decay.b:.3f}" + ("" if interval is None else " ({:.3f} to {:.3f})".format(*interval))
    seen = "a walk of k steps leads to" if found.neighbourhood == "walk" else "lie within k steps"
    chosen = "choose the graphs measured below, and nothing else"
    classes = chosen if found.per_class else "of the graphs were not looked at"
    return (
        f"IG(k), the information gain, is how much the view of the nodes changes when they look k "
        f"hops far instead of k - 1. (At k hops a node sees the nodes that {seen}.) The gains fall "
        f"like {decay.a:.4g} e^(-b k) with b = {rate}, R² = {decay.r2:.4f}, MSE = "
        f"{decay.mse:.2g}; by that curve, e^(-b k) of all there is to see lies beyond k hops and "
        f"is lost. The classes {classes}."
    )


def _classes(found: HopInformation) -> Table:
    """Few classes side by side, a row for each k; many below one another."""
    names, each = [escape(name) for name in found.per_class], list(found.per_class.values())
    rates = [f"{one.decay.b:.3f}" for one in each]
    enough = ["-" if one.suggested_k is None else f"k = {one.suggested_k}" for one in each]
    if len(each) <= SIDE_BY_SIDE:
        titles = (f"class {name} ({one.graphs:,})" for name, one in zip(names, each, strict=True))
        rows = []
        for i, k in enumerate(found.k):
            written = [
                f"{one.gain[i]:.4f}"
                if one.gain_interval is None
                else "{:.3f} ({:.3f} to {:.3f})".format(one.gain[i], *one.gain_interval[i])
                for one in each
            ]
            rows.append((str(k), *written))
        rows += [("b", *rates), ("enough", *enough)]
        return grid(rows, ("hops k", *titles), ("right",))
    gains = [[*(f"{gain:.4f}" for gain in one.gain[:3]), "-", "-"][:3] for one in each]
    graphs = (f"{one.graphs:,}" for one in each)
    columns = names, graphs, *zip(*gains, strict=True), rates, enough
    head = ("class", "graphs", "IG(2)", "IG(3)", "IG(4)", "b", "enough")
    return grid(zip(*columns, strict=True), head)


def _print_labels(found: LabelInformation, weights: HopWeights) -> None:
    """How well what lies within 0, 1, ... hops predicts the target, and the weight of each hop."""
    rows, of_classes = [], found.number is None
    columns = zip(found.mean, found.std, weights.weights, weights.spread, strict=True)
    for hops, (mean, std, weight, spread) in enumerate(columns):
        text = plus_minus((100 * mean, 100 * std)) if of_classes else f"{mean:.3f} ± {std:.3f}"
        share = f"{weight:.2f} ± {spread:.2f}" if weight else "-"
        row = [str(hops), text, share, bar(max(float(mean), 0.0), 20)]
        if hops == found.enough:
            row = [f"[bold green]{cell}[/]" for cell in (*row[:-1], f"{row[-1]} <- enough")]
        rows.append(row)
    out.print()
    head = "% right" if of_classes else "R²"
    titles = ("hops 0 to h", head, "weight of hop h", "")
    out.print(grid(rows, titles, ("right", "right", "right", "left")))
    splits = counted(found.naive.size, "split")
    said = (
        f"This table looks at the classes: of the graphs held out in each of {splits}, how many a "
        "linear model puts in the right class by what lies within h hops of their nodes; the "
        f"commonest class alone is right for {compact_percent(found.naive.mean())}."
        if of_classes
        else f"This table looks at {found.number}: how well a linear model predicts it of the "
        f"graphs held out in each of {splits} from what lies within h hops of their nodes; 1 is "
        "exactly, 0 is no better than the mean."
    )
    said += (
        " The weight of a hop is its share in a Gaussian process that looks no farther than it "
        f"needs, by the marginal likelihood: mean and spread of {len(weights.naive)} resamples."
    )
    out.print(f"\n{escape(said)}", width=80)
    out.print(f"\n[bold]{escape(found.sentence())} {escape(weights.sentence())}[/]", width=80)

"""The section that compares models: the table, the accuracies, the paired differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lookhops.core.charts import ZERO, axis, figure, interval, label, marks, rows_axis, series
from lookhops.core.paired import ALPHA
from lookhops.core.pictures import picture
from lookhops.core.tables import Table
from lookhops.core.words import (
    MINUS,
    agreeing,
    ahead,
    between,
    counted,
    joined,
    p_said,
    short,
    signed,
)
from lookhops.report.page import Block, Chart, Folded, Section, Subheading, Tile
from lookhops.report.paper.side_by_side import ROW_NAMES
from lookhops.runs.compare import Comparison
from lookhops.runs.statistics import Pair, pareto_front

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

#: More pairs than this are drawn against the best model only, and listed in a folded table.
MOST_PAIRS = 10


def comparison_section(groups: Sequence[Comparison]) -> Section:
    """The models of each data set: the table, the accuracies, the paired differences."""
    blocks: list[Block] = []
    for group in groups:
        if len(groups) > 1:
            blocks.append(Subheading(group.dataset, verdict(group)))
        blocks += _comparison_blocks(group)
    datasets = joined(list(dict.fromkeys(group.dataset for group in groups)))
    lead = verdict(groups[0]) if len(groups) == 1 else f"On {datasets}."
    if any(len(group.cells) > 1 for group in groups):
        lead += " Models are tested on the same splits, so that their differences are paired, "
        lead += "split by split."
    if len(groups) > 1:
        lead += " Those on other graphs or other splits stand apart and are not compared."
    if any("NF+pN" in name for group in groups for name in group.cells):
        lead += f" {ROW_NAMES}"
    return Section("comparison", "Comparison", lead, blocks, list(_lead_tiles(groups[0])))


def verdict(group: Comparison) -> str:
    """Who is ahead, by how much, and how sure that is."""
    pairs, main, (first, *others) = group.pairs, group.main, group.cells
    if not others:
        if not (left_out := list(group.left_out)):
            return f"Only {first} has finished runs."
        have = agreeing(len(left_out), "has", "have")
        return (
            f"Only {first} is shown: {joined(left_out)} {have} finished too few of the same "
            "splits to be compared."
        )
    means = [group.mean(name) for name in (first, others[0])]
    one, other = (main.written(mean / main.scale) for mean in means)
    one, other = (text if main.share else f"{main.title} {text}" for text in (one, other))
    if not pairs:
        return (
            f"{first} has {one}, {others[0]} {other}, on one split, which says nothing about "
            "differences."
        )
    gap = f"{abs(means[0] - means[1]):.{group.digits}f} ahead of {others[0]}"
    if main.share:
        gap = ahead(means[0] - means[1], others[0])
    difference, p = pairs[0].difference.interval, pairs[0].adjusted_p
    ends = "the same on every split"
    if difference:
        ends = f"95% interval {between(difference, group.digits)}"
    sure = "too little to tell them apart with this many seeds"
    if p < ALPHA:
        sure = "and they differ at the 5 % level"
    differ = sum(pair.adjusted_p < ALPHA for pair in pairs)
    count = {0: "none differ", 1: "1 differs", len(pairs): "all differ"}
    said = count.get(differ, f"{differ} differ")
    of_all = f" Of all {len(pairs)} pairs, {said}." if len(pairs) > 1 else ""
    return f"{first} comes first with {one}, {gap} ({ends}, Holm's {p_said(p)}): {sure}.{of_all}"


def _lead_tiles(group: Comparison) -> Iterator[Tile]:
    """How far the best model is ahead of the next, and how sure that is, where there are two."""
    if len(group.cells) > 1:
        first, second, *_ = group.cells
        sure = f" ({p_said(group.pairs[0].adjusted_p)})" if group.pairs else ""
        gap = signed(group.mean(first) - group.mean(second), group.digits)
        yield Tile("ahead", f"{gap} {group.unit}", f"{first} over {second}{sure}")


def _comparison_blocks(group: Comparison) -> list[Block]:
    pairs, count, main = group.pairs, len(group.seeds), group.main.title
    tested = group.best.metrics["test_graphs"][0]
    seeds = counted(count, "shared seed" if len(group.cells) > 1 else "seed")
    n = f"n = {tested:,} test graphs a seed, {seeds}"
    table = group.models_table(wide=True)
    choose = (
        f"Choose among models by their validation {main}: the test {main} is for telling how good "
        "the choice is."
    )
    blocks: list[Block] = [replace(table, note=f"{table.note} {choose} {n}.")]
    first, many = group.best.model, len(pairs) > MOST_PAIRS
    shown = [pair for pair in pairs if not many or pair.first == first]
    high = 140 + 34 * max(len(shown), len(group.cells))
    blocks.append(accuracies(group, f"Test {main} of each model, best first. {n}.", high))
    if pairs:
        note = (
            f"Paired differences of test {main} with 95% intervals, {counted(count, 'split')}; "
            "corrected resampled t-test of Nadeau and Bengio, p adjusted for all pairs by Holm's "
            "method." + (f" Against {first}; all pairs below." if many else "")
        )
        blocks.append(differences(group, shown, note, high))
    if len(group.cells) > 1:
        blocks += cost_charts(group, n).values()
    if many:
        blocks.append(Folded(replace(group.pairs_table(), note=f"All {len(pairs)} pairs")))
    return blocks


def accuracies(group: Comparison, caption: str, height: int) -> Chart:
    """The main metric of each model: a dot a seed, and the mean with its standard deviation."""
    main, seeds = group.main, len(group.seeds)
    shown = f"%{{x:.{group.digits}f}}{' %' if main.share else ''}"
    names, each = list(group.cells), list(group.scores.values())
    means, spreads = zip(*(cell.mean_std() for cell in group.cells.values()), strict=True)
    rows = [i for i, values in enumerate(each) for _ in values]
    scores = np.concatenate(each)
    dots = marks(scores, rows, shown, "one seed", "muted", "circle-open", 8)
    spread = {"type": "data", "array": spreads, "thickness": 2} if seeds > 1 else None
    name = "mean ± standard deviation" if spread else "mean"
    mean = marks(means, range(len(names)), f"mean {shown}", name, "blue", error_x=spread)
    said = "; ".join(f"{name} {text}" for name, text in group.written.items())
    table = [(name, text, str(seeds)) for name, text in group.written.items()]
    x = axis(f"test {main.heading}", zeroline=False)
    return Chart(
        figure([dots, mean], x, rows_axis(names, 26)),
        f"Test {main.title} by model, best first: {said}.",
        caption,
        Table(("model", f"test {main.title}", "seeds"), table),
        height,
    )


def differences(group: Comparison, pairs: Sequence[Pair], caption: str, height: int) -> Chart:
    """Paired differences with 95% intervals; filled marks differ at 5 % after Holm's adjustment."""
    traces = []
    for name, differ, colour, symbol in (
        ("differ at 5 %", True, "blue", "diamond"),
        ("not decidable", False, "muted", "diamond-open"),
    ):
        rows = [i for i, pair in enumerate(pairs) if (pair.adjusted_p < ALPHA) == differ]
        if rows:
            found = [pairs[i].difference for i in rows]
            low, mean, high = zip(*((one.low, one.mean, one.high) for one in found), strict=True)
            hover, bars = f"%{{x:+.{group.digits}f}} {group.unit}", interval(low, mean, high)
            traces.append(marks(mean, rows, hover, name, colour, symbol, error_x=bars))
    points = "percentage points" if group.main.share else group.unit
    if len(pairs) > 1 and len({pair.first for pair in pairs}) == 1:
        title = f"{label(pairs[0].first, 16)} {MINUS} others, {points}"
        labels = [f"{MINUS} {short(pair.second, 26)}" for pair in pairs]
    else:
        title = f"difference, {points}"
        labels = [f"{short(p.first, 16)} {MINUS} {short(p.second, 16)}" for p in pairs]
    table = group.pairs_table(pairs)
    said = "; ".join(f"{row[0]}: {row[1]}, interval {row[2]}" for row in table.rows[:8])
    return Chart(
        figure(traces, axis(title, **ZERO), rows_axis(labels, 36), showlegend=True),
        f"Paired differences of test {group.main.title}, in {points}: {said}.",
        caption,
        table,
        height,
    )


def cost_charts(group: Comparison, n: str) -> dict[str, Chart]:
    """The main metric against time and against parameters; ``n`` is the sample size in words."""
    found = {name: cell.metrics for name, cell in group.cells.items()}
    time = {name: sum(one["seconds"]) / len(one["seconds"]) for name, one in found.items()}
    sizes = {name: one["parameters"][0] for name, one in found.items() if one["parameters"][0]}
    charts = {"seconds a split": {name: seconds for name, seconds in time.items() if seconds}}
    charts |= {"parameters": sizes} if len(sizes) > 1 else {}
    return {title: _chart(group, x, title, n) for title, x in charts.items()}


def cost_picture(group: Comparison) -> MatplotlibFigure:
    """The same charts for a file, with the names of the models below."""
    panels = {title: chart.figure for title, chart in cost_charts(group, "").items()}
    names = ", ".join(f"{number} {short(name)}" for number, name in enumerate(group.cells, 1))
    note = f"{names}. On the line: no other model is better at less cost."
    return picture(panels, note=note, height=3.4)


def _chart(group: Comparison, found: Mapping[str, float], title: str, n: str) -> Chart:
    """The main metric against one cost; a line joins the models that no other beats for less."""
    models, x, main = list(found), list(found.values()), group.main
    numbers = {name: str(number) for number, name in enumerate(group.cells, 1)}
    y = [group.mean(name) for name in models]
    front = pareto_front(x, y, main.higher_is_better)
    line = {"color": "var(--blue)", "width": 2}
    ends = [x[i] for i in front], [y[i] for i in front]
    traces = [series("lines", *ends, name="no other is better for less", line=line)]
    for name, places, colour, symbol in (
        ("on the line", front, "blue", "diamond"),
        ("others", [i for i in range(len(x)) if i not in front], "muted", "circle-open"),
    ):
        if places:
            shown = [models[i] for i in places]
            at = [x[i] for i in places], [y[i] for i in places]
            dots = marks(*at, "%{customdata}: %{y:.4g}", name, colour, symbol, size=10)
            texts = {"text": [numbers[model] for model in shown], "textposition": "top center"}
            names = {"customdata": [label(model) for model in shown]}
            traces.append({**dots, "mode": "markers+text", **texts, **names})
    rows = []
    for i, model in enumerate(models):
        name, best = f"{numbers[model]}  {model}", "yes" if i in front else "no"
        rows.append((name, main.written(y[i] / main.scale), f"{x[i]:,.4g}", best))
    said = f"Test {main.title} against {title}"
    return Chart(
        figure(traces, axis(title, type="log"), axis(f"test {main.heading}", zeroline=False)),
        f"{said}. No other model is better for less than {joined([models[i] for i in front])}.",
        f"{said}; the line joins the models that no other beats at less cost. Models are numbered "
        f"as in the table above. {n}.",
        Table(("model", f"test {main.title}", title, "on the line"), rows),
        420,
    )

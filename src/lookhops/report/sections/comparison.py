"""The section that compares models: the table, the accuracies, the paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np

from lookhops.experiments.compare import ALPHA
from lookhops.experiments.costs import Cost, pareto_front
from lookhops.experiments.keys import Model
from lookhops.experiments.results import CellResult
from lookhops.experiments.statistics import Pair
from lookhops.nn import Architecture
from lookhops.nn.registry import network_name
from lookhops.paper.side_by_side import ROW_NAMES
from lookhops.report.charts import (
    Figure,
    axis,
    figure,
    interval,
    label,
    named_axis,
    rounded,
    series,
)
from lookhops.report.comparable import Group
from lookhops.report.content import Block, Chart, Folded, Note, Section, Subheading, Tile
from lookhops.tables import Table
from lookhops.words import (
    MINUS,
    NONE,
    ahead,
    between,
    counted,
    duration,
    joined,
    memory,
    number,
    p_said,
    p_value,
    percent,
    short,
    signed,
)

#: More pairs than this are drawn against the best model only, and listed in a folded table.
MOST_PAIRS = 10


def comparison_section(groups: Sequence[Group]) -> Section:
    """The models of each data set: the table, the accuracies, the paired differences."""
    blocks: list[Block] = []
    for group in groups:
        if len(groups) > 1:
            blocks.append(Subheading(group.dataset, verdict(group)))
        blocks += _comparison_blocks(group)
    lead = (
        verdict(groups[0])
        if len(groups) == 1
        else f"On {joined(list(dict.fromkeys(group.dataset for group in groups)))}."
    )
    if any(len(group.cells) > 1 for group in groups):
        lead += (
            " Models are tested on the same splits, so that their differences are paired, split by "
            "split."
        )
    if len(groups) > 1:
        lead += " Those on other graphs or other splits stand apart and are not compared."
    if any("NF+pN" in name for group in groups for name in group.cells):
        lead += f" {ROW_NAMES}"
    return Section("comparison", "Comparison", lead, blocks)


def verdict(group: Group) -> str:
    """Who is ahead, by how much, and how sure that is."""
    names, pairs = list(group.cells), group.found.pairs
    if len(names) == 1:
        others = list(group.left_out)
        if not others:
            return f"Only {names[0]} has finished runs."
        have = "has" if len(others) == 1 else "have"
        return (
            f"Only {names[0]} is shown: {joined(others)} {have} finished too few of the same "
            "splits to be compared."
        )
    first, second = names[:2]
    means = [float(np.mean(group.found.scores[name])) for name in (first, second)]
    if not pairs:
        return (
            f"{first} has {means[0]:.1f} %, {second} {means[1]:.1f} %, on one split, which says "
            "nothing about differences."
        )
    leaders, *_ = pairs
    sure = (
        "and they differ at the 5 % level"
        if leaders.adjusted_p < ALPHA
        else "too little to tell them apart with this many seeds"
    )
    differ = sum(pair.adjusted_p < ALPHA for pair in pairs)
    count = {0: "none differ", 1: "1 differs", len(pairs): "all differ"}
    said = count.get(differ, f"{differ} differ")
    rest = f" Of all {len(pairs)} pairs, {said}." if len(pairs) > 1 else ""
    return (
        f"{first} comes first with {means[0]:.1f} %, {ahead(means[0] - means[1], second)} "
        f"(95% interval {_interval(leaders)}, Holm's {p_said(leaders.adjusted_p)}): {sure}.{rest}"
    )


def lead_tiles(group: Group) -> list[Tile]:
    """How far the best model is ahead of the next, and how sure that is, where there are two."""
    if len(group.cells) < 2:
        return []
    first, second = list(group.cells)[:2]
    points = float(np.mean(group.found.scores[first]) - np.mean(group.found.scores[second]))
    sure = f" ({p_said(group.found.pairs[0].adjusted_p)})" if group.found.pairs else ""
    return [Tile("ahead", f"{signed(points)} points", f"{first} over {second}{sure}")]


def _comparison_blocks(group: Group) -> list[Block]:
    pairs, count = group.found.pairs, len(group.found.seeds)
    tested = group.best.metrics["test_graphs"][0]
    seeds = counted(count, "shared seed" if len(group.cells) > 1 else "seed")
    n = f"n = {tested:,} test graphs a seed, {seeds}"
    blocks: list[Block] = [models_table(group, n)]
    if group.left_out:
        out = joined([f"{model} ({runs})" for model, runs in group.left_out.items()])
        blocks.append(Note(f"Left out, for all means here are over {seeds}: {out}."))
    first, many = group.best.model, len(pairs) > MOST_PAIRS
    shown = [pair for pair in pairs if not many or pair.first == first]
    high = 140 + 34 * max(len(shown), len(group.cells))
    blocks.append(accuracies(group, f"Test accuracy of each model, best first. {n}.", high))
    if pairs:
        note = (
            f"Paired differences of test accuracy with 95% intervals, {counted(count, 'split')}; "
            "corrected resampled t-test of Nadeau and Bengio, p adjusted for all pairs by Holm's "
            "method." + (f" Against {first}; all pairs below." if many else "")
        )
        blocks.append(differences(shown, note, high))
    if len(group.cells) > 1:
        blocks += cost_charts(group, n)
    if many:
        blocks.append(Folded(replace(pairs_table(pairs), note=f"All {len(pairs)} pairs")))
    return blocks


# -------------------------------------------------------------------- tables


def models_table(group: Group, n: str) -> Table:
    """The models over the splits that they share, best mean first."""
    rows = [
        [
            name,
            group.scores[name],
            percent(_mean(cell, "val_accuracy")),
            percent(_mean(cell, "auroc")),
            number(cell.metrics["parameters"][0]),
            duration(float(np.mean(cell.metrics["seconds"]))),
            memory(cell.peak_memory),
            _network(cell.architecture),
        ]
        for name, cell in group.cells.items()
    ]
    head = ("model", "test accuracy", "validation", "AUROC", "parameters", "time a split")
    order = "Best mean first; " if len(rows) > 1 else ""
    spread = "mean ± standard deviation" if len(group.found.seeds) > 1 else "one split, no spread"
    caption = (
        f"{order}{spread}. Choose among models by their "
        f"validation accuracy: the test accuracy is for telling how good the choice is. {n}."
    )
    return Table((*head, "peak memory", "network"), rows, caption, best=0)


def _network(model: Model) -> str:
    return network_name(asdict(model)) if isinstance(model, Architecture) else NONE


def _mean(cell: CellResult, metric: str) -> float | None:
    """The mean of a metric over the seeds, where all of them have it."""
    values = cell.metrics.get(metric) or [None]
    return None if None in values else float(np.mean(values))


def pairs_table(pairs: Sequence[Pair]) -> Table:
    """Paired differences with their intervals."""
    rows = [
        (
            f"{short(pair.first)} {MINUS} {short(pair.second)}",
            signed(pair.difference.mean),
            _interval(pair),
            p_value(pair.adjusted_p),
        )
        for pair in pairs
    ]
    return Table(("pair", "difference", "95% interval", "Holm's p"), rows)


def _interval(pair: Pair) -> str:
    return between((pair.difference.low, pair.difference.high))


# -------------------------------------------------------------------- charts


def accuracies(group: Group, caption: str, height: int) -> Chart:
    """Test accuracy of each model: a dot a seed, and the mean with its standard deviation."""
    names, each = list(group.cells), list(group.found.scores.values())
    several = len(group.found.seeds) > 1
    means, spreads = zip(*(cell.mean_std() for cell in group.cells.values()), strict=True)
    dots = series(
        "markers",
        rounded(np.concatenate(each)),
        [i for i, values in enumerate(each) for _ in values],
        "%{x:.1f} %",
        name="one seed",
        marker={"color": "var(--muted)", "symbol": "circle-open", "size": 8},
    )
    diamonds = series(
        "markers",
        rounded(means),
        range(len(names)),
        "mean %{x:.1f} %",
        name="mean ± standard deviation" if several else "mean",
        marker={"color": "var(--blue)", "symbol": "diamond", "size": 11},
    )
    if several:
        diamonds["error_x"] = {"type": "data", "array": rounded(spreads), "thickness": 2}
    said = "; ".join(f"{name} {text}" for name, text in group.scores.items())
    rows = [(name, text, str(len(group.found.seeds))) for name, text in group.scores.items()]
    x = axis("test accuracy, %", zeroline=False)
    return Chart(
        figure([dots, diamonds], x, _rows_axis(names, 26)),
        f"Test accuracy by model, best first: {said}.",
        caption,
        Table(("model", "test accuracy", "seeds"), rows),
        height,
    )


def cost_charts(group: Group, n: str) -> list[Chart]:
    """Test accuracy against time and against parameters, with the models nothing beats for less."""
    costs = group.found.costs()
    counted = [cost for cost in costs if cost.parameters]
    numbered = {cost.model: str(i + 1) for i, cost in enumerate(costs)}
    charts = [cost_chart(costs, numbered, "seconds a split", [c.seconds for c in costs], n)]
    if len(counted) > 1:
        sizes = [float(cost.parameters or 0) for cost in counted]
        charts.append(cost_chart(counted, numbered, "parameters", sizes, n))
    return charts


def cost_chart(
    costs: Sequence[Cost], numbered: Mapping[str, str], title: str, x: Sequence[float], n: str
) -> Chart:
    """Test accuracy against one cost; a line joins the models that no other beats at less cost."""
    y = [cost.score for cost in costs]
    front = pareto_front(x, y)
    line = {"color": "var(--blue)", "width": 2}
    ends = rounded([x[i] for i in front]), rounded([y[i] for i in front])
    traces = [series("lines", *ends, name="no other is better for less", line=line)]
    for name, places, colour, symbol in (
        ("on the line", front, "var(--blue)", "diamond"),
        ("others", [i for i in range(len(x)) if i not in front], "var(--muted)", "circle-open"),
    ):
        if places:
            look = {"color": colour, "symbol": symbol, "size": 10}
            names = [label(costs[i].model) for i in places]
            at = rounded([x[i] for i in places]), rounded([y[i] for i in places])
            hover = "%{customdata}: %{y:.1f} %"
            dots = series("markers+text", *at, hover, name=name, marker=look, customdata=names)
            numbers = [numbered[costs[i].model] for i in places]
            traces.append({**dots, "text": numbers, "textposition": "top center"})
    rows = [
        (
            f"{numbered[cost.model]}  {cost.model}",
            f"{cost.score:.1f} %",
            f"{value:,.4g}",
            "yes" if i in front else "no",
        )
        for i, (cost, value) in enumerate(zip(costs, x, strict=True))
    ]
    said = joined([costs[i].model for i in front])
    return Chart(
        figure(traces, axis(title, type="log"), axis("test accuracy, %", zeroline=False)),
        f"Test accuracy against {title}. No other model is better for less than {said}.",
        f"Test accuracy against {title}; the line joins the models that no other beats at less "
        f"cost. Models are numbered as in the table above. {n}.",
        Table(("model", "test accuracy", title, "on the line"), rows),
        420,
    )


def differences(pairs: Sequence[Pair], caption: str, height: int) -> Chart:
    """Paired differences with 95% intervals; filled marks differ at 5 % after Holm's adjustment."""
    traces = []
    for name, differ, colour, symbol in (
        ("differ at 5 %", True, "var(--blue)", "diamond"),
        ("not decidable", False, "var(--muted)", "diamond-open"),
    ):
        places = [i for i, pair in enumerate(pairs) if (pair.adjusted_p < ALPHA) == differ]
        if places:
            found = [pairs[i].difference for i in places]
            low, mean, high = zip(*((one.low, one.mean, one.high) for one in found), strict=True)
            look = {"color": colour, "symbol": symbol, "size": 11}
            bars = {"error_x": interval(low, mean, high)}
            hover = "%{x:+.1f} points"
            dots = series("markers", rounded(mean), places, hover, name=name, marker=look, **bars)
            traces.append(dots)
    if len(pairs) > 1 and len({pair.first for pair in pairs}) == 1:
        title = f"{label(pairs[0].first, 16)} {MINUS} others, percentage points"
        labels = [f"{MINUS} {short(pair.second, 26)}" for pair in pairs]
    else:
        title = "difference, percentage points"
        labels = [f"{short(p.first, 16)} {MINUS} {short(p.second, 16)}" for p in pairs]
    zero = {"zeroline": True, "zerolinecolor": "var(--ink)", "zerolinewidth": 1}
    table = pairs_table(pairs)
    said = "; ".join(f"{row[0]}: {row[1]}, from {row[2]}" for row in table.rows[:8])
    return Chart(
        figure(traces, axis(title, **zero), _rows_axis(labels, 36), showlegend=True),
        f"Paired differences of test accuracy, in percentage points: {said}.",
        caption,
        table,
        height,
    )


def _rows_axis(names: Sequence[str], width: int) -> Figure:
    """An axis of names from top to bottom, a row each."""
    return named_axis("", names, width, range=[len(names) - 0.4, -0.6])

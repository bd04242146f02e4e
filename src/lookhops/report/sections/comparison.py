"""The section that compares models: the table, the accuracies, the paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np

from lookhops.experiments.compare import ALPHA
from lookhops.experiments.results import CellResult
from lookhops.experiments.statistics import Pair
from lookhops.experiments.statistics import mean_std as spread_of
from lookhops.nn import Architecture
from lookhops.nn.registry import network_name
from lookhops.paper.side_by_side import ROW_NAMES
from lookhops.report.charts import axis, figure, interval, label, marks, rounded, rows_axis
from lookhops.report.comparable import Group
from lookhops.report.content import Block, Chart, Folded, Note, Section, Subheading
from lookhops.tables import Table
from lookhops.words import (
    MINUS,
    NONE,
    ahead,
    between,
    counted,
    duration,
    joined,
    mean_std,
    number,
    p_said,
    p_value,
    percent,
    short,
    signed,
)

#: More pairs than this are drawn against the best model only, and listed in a folded table.
MOST_PAIRS = 10


def verdict(group: Group) -> str:
    """Who is ahead, by how much, and how sure that is."""
    found = group.found
    names = list(found.scores)
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
    means = [float(np.mean(found.scores[name])) for name in (first, second)]
    if not found.pairs:
        return (
            f"{first} has {means[0]:.1f} %, {second} {means[1]:.1f} %, on one split, which says "
            "nothing about differences."
        )
    pair = next(p for p in found.pairs if {p.first, p.second} == {first, second})
    e = pair.difference
    sure = (
        "and they differ at the 5 % level"
        if pair.adjusted_p < ALPHA
        else "too little to tell them apart with this many seeds"
    )
    differ = sum(p.adjusted_p < ALPHA for p in found.pairs)
    count = {0: "none differ", 1: "1 differs", len(found.pairs): "all differ"}
    said = count.get(differ, f"{differ} differ")
    rest = f" Of all {len(found.pairs)} pairs, {said}." if len(found.pairs) > 1 else ""
    return (
        f"{first} comes first with {means[0]:.1f} %, {ahead(means[0] - means[1], second)} "
        f"(95% interval {between((e.low, e.high), '')}, Holm's "
        f"{p_said(pair.adjusted_p)}): {sure}.{rest}"
    )


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
    if any(len(group.found.scores) > 1 for group in groups):
        lead += (
            " Models are tested on the same splits, so that their differences are paired, split by "
            "split."
        )
    if len(groups) > 1:
        lead += " Those on other graphs or other splits stand apart and are not compared."
    if any("NF+pN" in name for group in groups for name in group.found.scores):
        lead += f" {ROW_NAMES}"
    return Section("comparison", "Comparison", lead, blocks)


def _comparison_blocks(group: Group) -> list[Block]:
    found, count = group.found, len(group.found.seeds)
    tested = group.cells[0].metrics["test_graphs"][0]
    seeds = counted(count, "shared seed" if len(found.scores) > 1 else "seed")
    n = f"n = {tested:,} test graphs a seed, {seeds}"
    blocks: list[Block] = [models_table(group, n)]
    if group.left_out:
        out = joined([f"{model} ({runs})" for model, runs in group.left_out.items()])
        blocks.append(Note(f"Left out, for all means here are over {seeds}: {out}."))
    first = next(iter(found.scores))
    many = len(found.pairs) > MOST_PAIRS
    shown = [p for p in found.pairs if not many or first in (p.first, p.second)]
    high = max(len(shown), len(found.scores))
    blocks.append(accuracies(found.scores, f"Test accuracy of each model, best first. {n}.", high))
    if not found.pairs:
        return blocks
    note = (
        f"Paired differences of test accuracy with 95% intervals, {counted(count, 'split')}; "
        "corrected resampled t-test of Nadeau and Bengio, p adjusted for all pairs by Holm's method"
    )
    if not many:
        return [*blocks, differences(shown, f"{note}.", high)]
    every = differences(found.pairs, "").numbers
    folded = Folded(replace(every, note=f"All {len(found.pairs)} pairs"))
    note += f". Against {first}; all pairs below."
    return [*blocks, differences(shown, note, high), folded]


def models_table(group: Group, n: str) -> Table:
    """The models over the splits that they share, best mean first."""
    cells = {cell.model: cell for cell in group.cells}
    rows = []
    for name in group.found.scores:
        cell, model = cells[name], cells[name].architecture
        mean, std = cell.mean_std()
        seconds = sum(cell.metrics["seconds"]) / len(cell.seeds)
        rows.append(
            [
                name,
                mean_std(mean / 100, std / 100, len(cell.seeds) > 1),
                percent(_mean(cell, "val_accuracy")),
                percent(_mean(cell, "auroc")),
                number(cell.metrics["parameters"][0]),
                duration(seconds),
                network_name(asdict(model)) if isinstance(model, Architecture) else NONE,
            ]
        )
    head = ("model", "test accuracy", "validation", "AUROC", "parameters", "time a seed")
    order = "Best mean first; " if len(rows) > 1 else ""
    spread = "mean ± standard deviation" if len(group.found.seeds) > 1 else "one split, no spread"
    caption = (
        f"{order}{spread}. Choose among models by their "
        f"validation accuracy: the test accuracy is for telling how good the choice is. {n}."
    )
    return Table((*head, "network"), rows, caption, best=0)


def _mean(cell: CellResult, metric: str) -> float | None:
    """The mean of a metric over the seeds, where all of them have it."""
    values = cell.metrics.get(metric) or [None]
    return None if None in values else float(np.mean(values))


# -------------------------------------------------------------------- charts


def accuracies(scores: Mapping[str, Sequence[float]], caption: str, rows_high: int = 0) -> Chart:
    """Test accuracy of each model: a dot a seed, and the mean with its standard deviation.

    Args:
        scores: Of each model, in per cent.
        caption: With the sample size.
        rows_high: Make it as high as a chart of so many rows, to stand beside one.
    """
    names, each = list(scores), list(scores.values())
    found = [spread_of(values) for values in each]
    dots = marks(
        "one seed",
        rounded([value for values in each for value in values]),
        [i for i, values in enumerate(each) for _ in values],
        ("var(--muted)", "circle-open", 8),
        "%{x:.1f} %",
    )
    center, look = rounded([mean for mean, _ in found]), ("var(--blue)", "diamond", 11)
    means = marks("mean", center, range(len(names)), look, "mean %{x:.1f} %")
    if any(len(values) > 1 for values in each):
        means["name"] = "mean ± standard deviation"
        spread = rounded([std for _, std in found])
        means["error_x"] = {"type": "data", "array": spread, "thickness": 2}
    rows = [
        (name, mean_std(mean / 100, std / 100, len(values) > 1), str(len(values)))
        for (name, values), (mean, std) in zip(scores.items(), found, strict=True)
    ]
    said = "; ".join(f"{name} {text}" for name, text, _ in rows)
    return Chart(
        figure([dots, means], axis("test accuracy, %", zeroline=False), rows_axis(names, 26)),
        f"Test accuracy by model, best first: {said}.",
        caption,
        Table(("model", "test accuracy", "seeds"), rows),
        height=140 + 34 * max(len(names), rows_high),
    )


def differences(pairs: Sequence[Pair], caption: str, rows_high: int = 0) -> Chart:
    """Paired differences with 95% intervals; filled marks differ at 5 % after Holm's adjustment.

    Args:
        pairs: The pairs.
        caption: With the sample size.
        rows_high: Make it as high as a chart of so many rows, to stand beside one.
    """
    looks = {
        "differ at 5 %": (True, ("var(--blue)", "diamond", 11)),
        "not decidable": (False, ("var(--muted)", "diamond-open", 11)),
    }
    traces = []
    for name, (differ, look) in looks.items():
        places = [i for i, pair in enumerate(pairs) if (pair.adjusted_p < ALPHA) == differ]
        if places:
            found = [pairs[i].difference for i in places]
            low, mean, high = zip(*((one.low, one.mean, one.high) for one in found), strict=True)
            dots = marks(name, rounded(mean), places, look, "%{x:+.1f} points")
            traces.append({**dots, "error_x": interval(low, mean, high)})
    if len(pairs) > 1 and len({pair.first for pair in pairs}) == 1:
        title = f"{label(pairs[0].first, 16)} {MINUS} others, percentage points"
        labels = [f"{MINUS} {short(pair.second, 26)}" for pair in pairs]
    else:
        title = "difference, percentage points"
        labels = [f"{short(p.first, 16)} {MINUS} {short(p.second, 16)}" for p in pairs]
    zero = {"zeroline": True, "zerolinecolor": "var(--ink)", "zerolinewidth": 1}
    rows = [
        (
            f"{short(pair.first)} {MINUS} {short(pair.second)}",
            signed(pair.difference.mean),
            between((pair.difference.low, pair.difference.high), ""),
            p_value(pair.adjusted_p),
        )
        for pair in pairs
    ]
    said = "; ".join(f"{row[0]}: {row[1]}, from {row[2]}" for row in rows[:8])
    return Chart(
        figure(traces, axis(title, **zero), rows_axis(labels, 36), showlegend=True),
        f"Paired differences of test accuracy, in percentage points: {said}.",
        caption,
        Table(("pair", "difference", "95% interval", "Holm's p"), rows),
        height=140 + 34 * max(len(pairs), rows_high),
    )

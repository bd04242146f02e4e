"""The data: counts, class balance and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from lookhops.core.charts import (
    MOST_SERIES,
    PATTERN,
    PATTERNS,
    axis,
    colour,
    figure,
    label,
    named_axis,
    series,
)
from lookhops.core.tables import Table
from lookhops.core.words import counted, percent, span
from lookhops.report.content import Block, Chart, Section
from lookhops.sources.duplicates import in_words


def data_section(name: str, about: Mapping[str, Any]) -> Section:
    """Counts, class balance and sizes, from what ``graph_counts`` gave."""
    classes, counts = about["class_names"], about["class_counts"]
    lead = (
        f"{name} has {counted(about['graphs'], 'graph')} with {counted(about['nodes'], 'node')}, "
        f"{counted(about['edges'], 'edge')} and {counted(about['features'], 'feature')} a node"
    )
    blocks: list[Block] = []
    if classes and sum(counts):
        most, least = int(np.argmax(counts)), int(np.argmin(counts))
        largest, smallest = (percent(counts[i] / sum(counts), 0) for i in (most, least))
        lead += f", in {counted(len(classes), 'class', 'classes')}"
        lead += (
            " of the same size"
            if counts[most] == counts[least]
            else f": the largest, {classes[most]}, has {largest} of them, the smallest, "
            f"{classes[least]}, {smallest}"
        )
        blocks.append(class_balance(about))
    found = in_words(about["molecules"]) if "molecules" in about else ""
    lead += f". Among the molecules: {found}." if found else "."
    return Section("data", "The data", lead, [*blocks, sizes(about)])


def class_balance(about: Mapping[str, Any]) -> Chart:
    """How many graphs each class has."""
    names, counts = list(about["class_names"]), list(about["class_counts"])
    total = max(sum(counts), 1)
    rows = [(name, f"{n:,}", percent(n / total)) for name, n in zip(names, counts, strict=True)]
    own = [colour(i) for i in range(len(names))]
    drawn = series(
        "bar",
        counts,
        range(len(names)),
        "%{text}",
        marker={"color": own if len(names) <= MOST_SERIES else "var(--blue)"},
        orientation="h",
        text=[f"{count} ({share})" for _, count, share in rows],
        textposition="auto",
        insidetextanchor="end",
    )
    said = ", ".join(f"{name} {count} ({share})" for name, count, share in rows)
    return Chart(
        figure(
            [drawn],
            axis("graphs", rangemode="tozero"),
            named_axis("", names, 16, autorange="reversed"),
            bargap=0.45,
            uniformtext={"minsize": 10, "mode": "hide"},
        ),
        f"Bar chart of graphs in each class: {said}.",
        f"Class balance. n = {counted(total, 'graph')}.",
        Table(("class", "graphs", "share"), rows),
        height=max(300, min(90 + 30 * len(names), 640)),
    )


def sizes(about: Mapping[str, Any]) -> Chart:
    """How large the graphs are, by class."""
    edges, counts = about["sizes"]["edges"], about["sizes"]["counts"]
    names = list(about["class_names"]) or ["graphs"]
    if len(counts) > MOST_SERIES:
        counts, names = [np.sum(counts, axis=0).tolist()], ["graphs"]
    ranges = [span(*np.ceil((low, high - 1)).astype(int)) for low, high in pairwise(edges)]
    drawn = [
        series(
            "bar",
            [(low + high) / 2 for low, high in pairwise(edges)],
            row,
            "%{customdata} nodes: %{y:,} graphs<extra>" + label(name) + "</extra>",
            marker={"color": colour(i), "pattern": {**PATTERN, "shape": PATTERNS[i]}},
            name=label(name, 16),
            customdata=ranges,
        )
        for i, (name, row) in enumerate(zip(names, counts, strict=True))
    ]
    low, high = about["nodes_range"]
    mean = about["nodes"] / max(about["graphs"], 1)
    rows = [
        [text, *(f"{n:,}" for n in column)]
        for text, *column in zip(ranges, *counts, strict=True)
        if any(column)
    ]
    return Chart(
        figure(drawn, axis("nodes in a graph"), axis("graphs"), barmode="stack", bargap=0.06),
        f"Histogram of nodes in a graph, from {low:,} to {high:,}, on average {mean:.1f}.",
        f"Sizes of the graphs: from {low:,} to {counted(high, 'node')}, {mean:.1f} on average. "
        f"n = {counted(about['graphs'], 'graph')}.",
        Table(("nodes", *names), rows),
    )
